//! The sender's host is too slow.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::Vantage;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "sender_processor",
    title: "sender processor",
    what: "The sender had data, windows and ACKs, and its host took its time: its processor, its queues, \
           or pacing on it.",
    cure: "the sending host: segmentation offload (`ethtool -K IFACE tso on gso on`), interrupt and \
           process placement, a faster host; `tc -s qdisc` if a queue on it delays",
    kind: Kind::Limit,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::SenderProcessor) {
        return None;
    }
    let near = view.half.trips.near;
    let evidence = format!(
        "segments left up to {} after the ACKs that released them, while the path itself had no queue",
        seconds(near.max)
    );
    let sure = match view.vantage {
        Vantage::Sender => 0.8,
        _ => 0.5,
    };
    Some(view.finding(Cause::SenderProcessor, sure, evidence, view.stretch_frames(Cause::SenderProcessor)))
}
