//! What the capture does not tell.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "unknown",
    title: "unknown",
    what: "The capture does not tell what the sender waited for.",
    cure: "a capture at the sender, with the handshake, and 128 bytes of each packet",
    kind: Kind::Limit,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::Unknown) {
        return None;
    }
    let evidence = format!("{} are not explained", seconds(view.time.of(Cause::Unknown)));
    Some(view.finding(Cause::Unknown, 0.3, evidence, Vec::new()))
}
