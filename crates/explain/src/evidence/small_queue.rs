//! Bursts overflow a small queue.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "small_queue",
    title: "small queue",
    what: "Bursts of the sender overflow a queue that is small against what the path holds, long before \
           the path is full.",
    cure: "pacing at the sender: `tc qdisc add dev IFACE root fq`, `farpace pacing up`, `pacing` in a \
           scenario; a queue of at least the bandwidth times the round trip over the root of the flows",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    transfer.episodes_of(Cause::SmallQueue).next()?;
    let losses: u32 = transfer.episodes_of(Cause::SmallQueue).map(|e| e.losses).sum();
    let episodes = transfer.episodes_of(Cause::SmallQueue).count();
    let evidence = format!(
        "{} lost in {}; before each, {:.1} times as many had come back to back as before others, and the \
         queue seldom added more than {}",
        count(losses, "segment was", "segments were"),
        count(episodes as u64, "place", "places"),
        transfer.time.pattern.burst,
        seconds(transfer.view.deep)
    );
    Some(transfer.finding(
        Cause::SmallQueue,
        if transfer.time.pattern.burst > 2.5 { 0.8 } else { 0.65 },
        evidence,
        transfer.loss_frames(Cause::SmallQueue),
    ))
}
