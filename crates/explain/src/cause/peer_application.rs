//! The other side had to speak first.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "peer_application",
    title: "think time of the other side",
    what: "The sender had sent its answer and waited for the next request of the other side.",
    cure: "the program on the other side: send requests ahead (pipelining), or larger ones",
    kind: Kind::Limit,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::PeerApplication) {
        return None;
    }
    let (pauses, longest) = view.stalled(Cause::PeerApplication);
    let evidence = format!(
        "everything was acknowledged until the other side sent data: {} in all, {pauses} long pauses, the \
         longest {}",
        seconds(view.time.of(Cause::PeerApplication)),
        seconds(longest)
    );
    Some(view.finding(Cause::PeerApplication, 0.9, evidence, view.stall_frames(Cause::PeerApplication)))
}
