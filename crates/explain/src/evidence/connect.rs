//! The three-way handshake.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "connect",
    title: "handshake",
    what: "The connection is set up before data can flow.",
    cure: "keep connections open between transfers; TCP Fast Open saves a round trip",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::Connect) {
        return None;
    }
    let evidence = format!("the handshake took {}", seconds(transfer.time.of(Cause::Connect)));
    let frames = vec![
        transfer.view.flow.first_frame,
        transfer.view.flow.established.map_or(transfer.view.flow.first_frame, |e| e.1),
    ];
    Some(transfer.finding(Cause::Connect, 0.95, evidence, frames))
}
