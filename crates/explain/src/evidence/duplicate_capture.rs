//! Packets were captured twice.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "duplicate_capture",
    title: "captured twice",
    what: "The same packets were captured at two places, or on two interfaces.",
    cure: "capture at one place; `editcap -d` or one interface instead of `any`; the copies are left out \
           of this analysis",
    kind: Kind::Capture,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let [elsewhere, here] = transfer.view.flow.copies;
    let all = elsewhere + here;
    if all < 3 || all * 20 < transfer.view.flow.packets {
        return None;
    }
    let place =
        if elsewhere > 0 { "with another time to live or on another interface" } else { "at the same place" };
    let point = transfer.view.flow.nearest.map_or(String::new(), |side| {
        format!("; what passed the point nearest to the {} was analysed", side.name())
    });
    let evidence = format!(
        "of {}, {all} are copies, {place}; they were left out{point}",
        count(transfer.view.flow.packets, "packet", "packets")
    );
    let frames = transfer.view.flow.first_copy.into_iter().collect();
    Some(transfer.finding(Cause::DuplicateCapture, 0.95, evidence, frames))
}
