//! Drives a scheduler whose classes have packets for some time: the line is the clock.

use super::pace::{FRAME, LINE, Pace};
use anyhow::{Result, bail};
use farpace_link::pacing::{ClassId, LinkClock, Next, SaturatingFrame, Scheduler, wire_len};
use farpace_units::{ByteCount, Instant};

/// A class that always has two full frames queued from one byte of the line to another.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Its rate in bit/s.
    pub rate: u64,
    /// From when on.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

/// Runs `pace` until the line has carried `end` bytes. `sent` hears of each frame: the place of its class, the byte of the
/// line at which it begins.
///
/// # Errors
/// Rates that do not fit, or a frame that is refused.
pub fn drive(pace: Pace, sources: &[Source], end: u64, mut sent: impl FnMut(usize, u64)) -> Result<()> {
    let rates: Vec<u64> = sources.iter().map(|s| s.rate).collect();
    let (mut scheduler, ids) = pace.scheduler(&rates)?;
    let mut clock = LinkClock::new(LINE);
    let mut coming: Vec<usize> = (0..sources.len()).collect();
    coming.sort_by_key(|place| std::cmp::Reverse(sources[*place].from));
    while clock.bytes() < end {
        let now = clock.instant_of(clock.bytes());
        while let Some(place) = coming.pop_if(|place| sources[*place].from <= clock.bytes()) {
            offer(scheduler.as_mut(), now, ids[place])?;
            offer(scheduler.as_mut(), now, ids[place])?;
        }
        let next = coming.last().map_or(end, |place| sources[*place].from);
        match scheduler.dequeue(now) {
            Next::Packet { class, packet } => {
                let Some(place) = ids.iter().position(|id| *id == class) else { continue };
                sent(place, clock.bytes());
                if clock.bytes() < sources[place].to {
                    offer(scheduler.as_mut(), now, class)?;
                }
                clock.advance(wire_len(ByteCount::new(u64::from(packet.0))));
            }
            Next::Gap(gap) => clock.advance(gap),
            Next::Wait(until) => clock.catch_up(until.min(clock.instant_of(next))),
            Next::Empty => clock.catch_up(clock.instant_of(next)),
        }
    }
    Ok(())
}

fn offer(scheduler: &mut dyn Scheduler<SaturatingFrame>, now: Instant, class: ClassId) -> Result<()> {
    let frame = SaturatingFrame(u32::try_from(FRAME.get()).unwrap_or(u32::MAX));
    match scheduler.enqueue(now, class, frame) {
        Ok(()) => Ok(()),
        Err(refused) => bail!("a frame was refused: {:?}", refused.why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: every measurement on a line: a class sends before its time, after it, or at another rate; an idle line
    /// stands still for ever.
    #[test]
    fn a_class_has_its_time() {
        for pace in [Pace::Psp, Pace::Edf, Pace::Fq, Pace::TokenBucket] {
            let source = |rate, from, to| Source { rate, from, to };
            let sources =
                [source(100_000_000, 1_000_000, 2_000_000), source(200_000_000, 5_000_000, 6_000_000)];
            let mut starts = [Vec::new(), Vec::new()];
            drive(pace, &sources, 8_000_000, |class, at| starts[class].push(at)).unwrap();
            for (source, starts) in sources.iter().zip(&starts) {
                assert!((source.from..source.from + 200).contains(&starts[0]), "{pace}: {starts:?}");
                // Two frames are left when the time is over.
                let due = 1_000_000 * source.rate / LINE.bits_per_sec() / 1_518;
                let sent = starts.iter().filter(|at| **at < source.to).count() as u64;
                assert!(sent.abs_diff(due) <= 50, "{pace}: {sent} of {due}");
                assert!(starts.len() as u64 <= sent + 2, "{pace}");
            }
        }
    }
}
