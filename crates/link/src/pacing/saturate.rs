//! A scheduler under full load: every class always has a packet, and the link is the clock.

use super::{ClassId, LinkClock, Next, PacedFrame, Scheduler, wire_len};
use farpace_units::{ByteCount, Instant, Rate};

/// A frame with a length and no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaturatingFrame(pub u32);

impl PacedFrame for SaturatingFrame {
    fn len(&self) -> ByteCount {
        ByteCount::new(u64::from(self.0))
    }
}

/// Runs `scheduler` with `classes` that always have two frames of their length (in memory) queued, until the
/// link has carried `end` bytes. `sent` is called for each frame with the index in `classes`, the byte on the
/// wire at which the frame began, and its length. This is for schedulers that fill the link with gaps: the
/// run ends if the scheduler waits or refuses a frame. Returns the byte on the wire that was reached.
pub fn saturate(
    scheduler: &mut dyn Scheduler<SaturatingFrame>,
    classes: &[(ClassId, u32)],
    end: u64,
    sent: impl FnMut(usize, u64, ByteCount),
) -> u64 {
    run(scheduler, classes, end, None, sent)
}

/// Like [`saturate`], on a link of `link_rate` with a clock, for schedulers that wait. The link is idle
/// during a wait.
pub fn saturate_in_time(
    scheduler: &mut dyn Scheduler<SaturatingFrame>,
    classes: &[(ClassId, u32)],
    link_rate: Rate,
    end: u64,
    sent: impl FnMut(usize, u64, ByteCount),
) -> u64 {
    run(scheduler, classes, end, Some(LinkClock::new(link_rate)), sent)
}

fn run(
    scheduler: &mut dyn Scheduler<SaturatingFrame>,
    classes: &[(ClassId, u32)],
    end: u64,
    clock: Option<LinkClock>,
    mut sent: impl FnMut(usize, u64, ByteCount),
) -> u64 {
    let mut indices = vec![usize::MAX; classes.iter().map(|(id, _)| id.index() + 1).max().unwrap_or(0)];
    for (index, (id, len)) in classes.iter().enumerate() {
        indices[id.index()] = index;
        for _ in 0..2 {
            if scheduler.enqueue(Instant::ZERO, *id, SaturatingFrame(*len)).is_err() {
                return 0;
            }
        }
    }
    let mut bytes = 0;
    while bytes < end {
        let now = clock.as_ref().map_or(Instant::ZERO, |clock| clock.instant_of(bytes));
        match scheduler.dequeue(now) {
            Next::Packet { class, packet } => {
                sent(indices[class.index()], bytes, packet.len());
                bytes += wire_len(packet.len()).get();
                if scheduler.enqueue(now, class, packet).is_err() {
                    return bytes;
                }
            }
            Next::Gap(gap) => bytes += gap.get(),
            Next::Wait(until) => match &clock {
                Some(clock) if until > now => bytes = bytes.max(clock.bytes_at(until)),
                _ => return bytes,
            },
            Next::Empty => return bytes,
        }
    }
    bytes
}
