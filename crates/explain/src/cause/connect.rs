//! The three-way handshake.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "connect",
    title: "handshake",
    what: "The connection is set up before data can flow.",
    cure: "keep connections open between transfers; TCP Fast Open saves a round trip",
    kind: Kind::Limit,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::Connect) {
        return None;
    }
    let evidence = format!("the handshake took {}", seconds(view.time.of(Cause::Connect)));
    let frames = vec![view.flow.first_frame, view.flow.established.map_or(view.flow.first_frame, |e| e.1)];
    Some(view.finding(Cause::Connect, 0.95, evidence, frames))
}
