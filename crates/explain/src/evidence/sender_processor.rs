//! The sender's host is too slow.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::view::Vantage;
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

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::SenderProcessor) {
        return None;
    }
    let near = transfer.view.half.trips.near;
    let evidence = format!(
        "segments left up to {} after the ACKs that released them, while the path itself had no queue",
        seconds(near.max)
    );
    let sure = match transfer.view.vantage {
        Vantage::Sender => 0.8,
        _ => 0.5,
    };
    Some(transfer.finding(
        Cause::SenderProcessor,
        sure,
        evidence,
        transfer.stretch_frames(Cause::SenderProcessor),
    ))
}
