//! What decides when packets leave: schedulers by name, and a drive that keeps their classes full.

use crate::experiment::MeasureError;
use farpace_link::pacing::{
    ClassId, ClassKind, ClassSpec, Edf, FifoScheduler, Fq, Gaps, LinkClock, Next, PacingConfig, Psp,
    SaturatingFrame, Scheduler, TokenBucket, wire_len,
};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, Packets, Rate, Span};
use std::fmt::{self, Debug};

/// The line of all hosts: Gigabit Ethernet.
pub const LINE: Rate = Rate::from_mbit(1_000);
/// The longest IP packet.
pub const MTU: ByteCount = ByteCount::new(1_500);
/// A full frame in memory: without its check sequence, as the paper's meter counts.
pub const FRAME: ByteCount = ByteCount::new(1_514);

/// What decides when the packets of a host leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacingMethod {
    /// Nothing: the paper's "no limit".
    None,
    /// A token bucket refilled by a timer of 1 ms: the paper's TBF.
    TokenBucket,
    /// The paper's scheduler.
    Psp,
    /// farpace's default: earliest deadline first.
    Edf,
    /// A timer per flow, like Linux's fq.
    Fq,
    /// [`Edf`](Pacer::Edf) with a class that has the rate of its connection, which nobody has to know.
    Connection,
}

/// A scheduler of frames that are always there.
pub type LineScheduler = Box<dyn Scheduler<SaturatingFrame>>;

impl PacingMethod {
    /// A name for programs and one for people.
    const NAMES: [[&str; 2]; 6] = [
        ["none", "no limit"],
        ["token-bucket", "token bucket"],
        ["psp", "PSPacer"],
        ["edf", "edf"],
        ["fq", "fq"],
        ["edf-connection", "edf, rate of the connection"],
    ];

    /// For programs.
    pub const fn id(self) -> &'static str {
        PacingMethod::NAMES[self as usize][0]
    }
    /// For people.
    pub const fn label(self) -> &'static str {
        PacingMethod::NAMES[self as usize][1]
    }

    /// The table that a scenario has for it in `links.NIC.forward.pacing`; none: a NIC that does not pace.
    pub fn table(self, rate: Rate) -> Option<String> {
        let rate = format!("{} bit/s", rate.bits_per_sec());
        let (scheduler, rate) = match self {
            PacingMethod::None => return None,
            PacingMethod::Connection => ("edf", "connection"),
            _ => (self.id(), rate.as_str()),
        };
        Some(format!(
            "{{ scheduler = \"{scheduler}\", limit = \"10000 packets\", default = \"all\", \
             classes = [{{ name = \"all\", rate = \"{rate}\" }}] }}"
        ))
    }

    /// The scheduler with a class for each of `rates` in bit/s, on [`LINE`].
    ///
    /// # Errors
    /// Rates that do not fit, or a pacer without rates.
    pub fn scheduler(self, rates: &[u64]) -> Result<(LineScheduler, Vec<ClassId>), MeasureError> {
        let refused = |error| MeasureError::Invalid(format!("{self}: {error}"));
        let defaults = PacingConfig::default();
        let mut scheduler: LineScheduler = match self {
            PacingMethod::None => Box::new(FifoScheduler::new(LINE, MTU).map_err(refused)?),
            PacingMethod::Psp => Box::new(Psp::new(LINE, MTU).map_err(refused)?),
            PacingMethod::Edf => Box::new(Edf::new(LINE, MTU, Gaps::Frames, Span::ZERO).map_err(refused)?),
            PacingMethod::TokenBucket => {
                Box::new(TokenBucket::new(LINE, MTU, defaults.tick, None).map_err(refused)?)
            }
            PacingMethod::Fq => Box::new(Fq::new(LINE, MTU, defaults.slack, None).map_err(refused)?),
            PacingMethod::Connection => {
                return Err(MeasureError::Invalid(format!("{self}: without a connection there is no rate")));
            }
        };
        let mut classes = Vec::new();
        for rate in rates {
            let kind = ClassKind::Paced(Rate::from_bits_per_sec(*rate));
            let limit = QueueLimit::Packets(Packets::new(4));
            classes.push(scheduler.add_class(ClassSpec { kind, limit }).map_err(refused)?);
        }
        Ok((scheduler, classes))
    }
}

impl fmt::Display for PacingMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A class that always has two full frames queued from one byte of the line to another.
#[derive(Clone, Copy, Debug)]
pub struct FullClass {
    /// Its rate in bit/s.
    pub rate: u64,
    pub from: u64,
    pub to: u64,
}

/// Runs `pacer` until the line has carried `end` bytes. `sent` hears of each frame: the place of its class,
/// and the byte of the line at which it begins.
///
/// # Errors
/// Rates that do not fit, or a frame that is refused.
pub fn drive(
    pacer: PacingMethod,
    classes: &[FullClass],
    end: u64,
    mut sent: impl FnMut(usize, u64),
) -> Result<(), MeasureError> {
    let rates: Vec<u64> = classes.iter().map(|s| s.rate).collect();
    let (mut scheduler, ids) = pacer.scheduler(&rates)?;
    let mut clock = LinkClock::new(LINE);
    let mut coming: Vec<usize> = (0..classes.len()).collect();
    coming.sort_by_key(|place| std::cmp::Reverse(classes[*place].from));
    while clock.bytes() < end {
        let now = clock.instant_of(clock.bytes());
        while let Some(place) = coming.pop_if(|place| classes[*place].from <= clock.bytes()) {
            offer(scheduler.as_mut(), now, ids[place])?;
            offer(scheduler.as_mut(), now, ids[place])?;
        }
        let next = coming.last().map_or(end, |place| classes[*place].from);
        match scheduler.dequeue(now) {
            Next::Packet { class, packet } => {
                let Some(place) = ids.iter().position(|id| *id == class) else { continue };
                sent(place, clock.bytes());
                if clock.bytes() < classes[place].to {
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

fn offer(
    scheduler: &mut dyn Scheduler<SaturatingFrame>,
    now: Instant,
    class: ClassId,
) -> Result<(), MeasureError> {
    let frame = SaturatingFrame(u32::try_from(FRAME.get()).unwrap_or(u32::MAX));
    let refused = |why: &dyn Debug| MeasureError::Incomplete(format!("a frame was refused: {why:?}"));
    scheduler.enqueue(now, class, frame).map_err(|error| refused(&error.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: every measurement on a line: a class sends before its time, after it, or at another rate; an
    /// idle line stands still for ever.
    #[test]
    fn a_class_has_its_time() {
        for pacer in [PacingMethod::Psp, PacingMethod::Edf, PacingMethod::Fq, PacingMethod::TokenBucket] {
            let class = |rate, from, to| FullClass { rate, from, to };
            let classes =
                [class(100_000_000, 1_000_000, 2_000_000), class(200_000_000, 5_000_000, 6_000_000)];
            let mut starts = [Vec::new(), Vec::new()];
            drive(pacer, &classes, 8_000_000, |class, at| starts[class].push(at)).unwrap();
            for (class, starts) in classes.iter().zip(&starts) {
                assert!((class.from..class.from + 200).contains(&starts[0]), "{pacer}: {starts:?}");
                // Two frames are left when the time is over.
                let due = 1_000_000 * class.rate / LINE.bits_per_sec() / 1_518;
                let sent = starts.iter().filter(|at| **at < class.to).count() as u64;
                assert!(sent.abs_diff(due) <= 50, "{pacer}: {sent} of {due}");
                assert!(starts.len() as u64 <= sent + 2, "{pacer}");
            }
        }
    }
}
