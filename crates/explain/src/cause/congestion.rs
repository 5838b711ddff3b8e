//! The path was full.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "congestion",
    title: "path full (congestion)",
    what: "The path carried as much as it can: its bottleneck had a queue.",
    cure: "this is the rate of the path; if others share it, that is their part. Long queues: AQM \
           (fq_codel, CAKE) at the bottleneck, or bbr or farpace at the sender",
    kind: Kind::Limit,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::Congestion) {
        return None;
    }
    let losses: u32 = view.episodes_of(Cause::Congestion).map(|e| e.losses).sum();
    let evidence = format!(
        "the queue added up to {} to a round trip of {}; {:.2} Mbit/s were delivered at best; {losses} \
         segments were lost while the \
         queue was long",
        seconds(view.deep),
        seconds(view.base),
        view.capacity * 8.0 / 1e6
    );
    let mut frames = view.loss_frames(Cause::Congestion);
    if frames.is_empty() {
        frames = view.stretch_frames(Cause::Congestion);
    }
    Some(view.finding(Cause::Congestion, 0.85, evidence, frames))
}
