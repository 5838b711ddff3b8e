//! What the capture does not tell.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "unknown",
    title: "unknown",
    what: "The capture does not tell what the sender waited for.",
    cure: "a capture at the sender, with the handshake, and 128 bytes of each packet",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::Unknown) {
        return None;
    }
    let time = seconds(transfer.time.of(Cause::Unknown));
    let evidence = if !transfer.view.has_data() {
        format!("the capture has {time} of ACKs, and not the data that they acknowledge")
    } else if transfer.view.is_one_way() {
        format!("the capture has no ACKs of {time} of data")
    } else {
        format!("{time} are not explained")
    };
    Some(transfer.finding(Cause::Unknown, 0.3, evidence, Vec::new()))
}
