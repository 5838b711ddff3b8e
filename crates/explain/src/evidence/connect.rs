//! The three-way handshake.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::attribution::syn_was_answered;
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
    let mut evidence = format!("the handshake took {}", seconds(transfer.time.of(Cause::Connect)));
    if syn_was_answered(&transfer.view) {
        evidence.push_str(
            "; the SYN was sent again although nothing was lost: the initial retransmission timeout is below \
             the round trip",
        );
    }
    let frames = vec![
        transfer.view.flow.first_frame,
        transfer.view.flow.established.map_or(transfer.view.flow.first_frame, |e| e.1),
    ];
    Some(transfer.finding(Cause::Connect, 0.95, evidence, frames))
}
