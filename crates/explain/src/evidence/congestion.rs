//! The path was full.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "congestion",
    title: "path full (congestion)",
    what: "The path carried as much as it can: its bottleneck had a queue.",
    cure: "this is the rate of the path; if others share it, that is their part. Long queues: AQM \
           (fq_codel, CAKE) at the bottleneck, or bbr or farpace at the sender",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::Congestion) {
        return None;
    }
    if !transfer.view.sees_near_queues() && transfer.view.deep <= transfer.view.threshold() {
        let evidence = format!(
            "full segments passed at a constant rate of {:.2} Mbit/s, as behind a line that is full; a queue \
             before the capture point is not seen without timestamps",
            transfer.view.capacity * 8.0 / 1e6
        );
        let frames = transfer.stretch_frames(Cause::Congestion);
        return Some(transfer.finding(Cause::Congestion, 0.6, evidence, frames));
    }
    let losses: u32 = transfer.episodes_of(Cause::Congestion).map(|e| e.losses).sum();
    let evidence = format!(
        "the queue added up to {} to a round trip of {}; {:.2} Mbit/s were delivered at best; {} \
         lost while the queue was long",
        seconds(transfer.view.deep),
        seconds(transfer.view.base),
        transfer.view.capacity * 8.0 / 1e6,
        count(losses, "segment was", "segments were")
    );
    let mut frames = transfer.loss_frames(Cause::Congestion);
    if frames.is_empty() {
        frames = transfer.stretch_frames(Cause::Congestion);
    }
    Some(transfer.finding(Cause::Congestion, 0.85, evidence, frames))
}
