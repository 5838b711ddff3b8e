//! The other side had to speak first.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "peer_application",
    title: "think time of the other side",
    what: "The sender had sent its answer and waited for the next request of the other side.",
    cure: "the program on the other side: send requests ahead (pipelining), or larger ones",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::PeerApplication) {
        return None;
    }
    let (pauses, longest) = transfer.stalled(Cause::PeerApplication);
    let evidence = format!(
        "everything was acknowledged until the other side sent data: {} in all, {}, the \
         longest {}",
        seconds(transfer.time.of(Cause::PeerApplication)),
        count(pauses as u64, "long pause", "long pauses"),
        seconds(longest)
    );
    Some(transfer.finding(
        Cause::PeerApplication,
        0.9,
        evidence,
        transfer.stall_frames(Cause::PeerApplication),
    ))
}
