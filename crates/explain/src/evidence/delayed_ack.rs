//! The receiver delayed ACKs that the sender waited for.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "delayed_ack",
    title: "delayed ACK",
    what: "A lone segment waited for an ACK that the receiver delayed, while the sender could send \
           nothing else.",
    cure: "Nagle off at the sender (TCP_NODELAY) or one write per request; TCP_QUICKACK at the receiver; \
           ACK requests (`ack_control`, CDL) between farpace hosts",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::DelayedAck) {
        return None;
    }
    let (pauses, longest) = transfer.stalled(Cause::DelayedAck);
    let evidence = format!(
        "the sender waited {} for ACKs of single segments that came {} later than the path needs; \
         {}",
        seconds(transfer.time.of(Cause::DelayedAck)),
        seconds(longest),
        count(pauses as u64, "long pause", "long pauses")
    );
    Some(transfer.finding(Cause::DelayedAck, 0.85, evidence, transfer.stall_frames(Cause::DelayedAck)))
}
