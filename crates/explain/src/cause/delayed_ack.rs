//! The receiver delayed ACKs that the sender waited for.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "delayed_ack",
    title: "delayed ACK",
    what: "A lone segment waited for an ACK that the receiver delayed, while the sender could send \
           nothing else.",
    cure: "Nagle off at the sender (TCP_NODELAY) or one write per request; TCP_QUICKACK at the receiver; \
           ACK requests (`ack_control`, CDL) between farpace hosts",
    kind: Kind::Fault,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::DelayedAck) {
        return None;
    }
    let (pauses, longest) = view.stalled(Cause::DelayedAck);
    let evidence = format!(
        "the sender waited {} for ACKs of single segments that came {} later than the path needs; \
         {pauses} long pauses",
        seconds(view.time.of(Cause::DelayedAck)),
        seconds(longest)
    );
    Some(view.finding(Cause::DelayedAck, 0.85, evidence, view.stall_frames(Cause::DelayedAck)))
}
