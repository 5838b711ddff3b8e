//! The send buffer is too small for the path.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::Vantage;
use crate::view::View;

pub(super) const INFO: Info = Info {
    id: "send_buffer",
    title: "send buffer",
    what: "What is in flight stays constant below the receive window although no queue grows and nothing \
           is lost: the send buffer, or a clamp of the window, bounds it.",
    cure: "a larger send buffer, or none set by the program so that it is autotuned: Linux \
           `net.ipv4.tcp_wmem` (third number); SO_SNDBUF of the program; `ss -tmi` shows `sndbuf_limited`",
    kind: Kind::Fault,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::SendBuffer) {
        return None;
    }
    let flight = view.stretches.iter().map(|s| s.slice.flight).max().unwrap_or_default();
    let evidence = format!(
        "at most {:.1} kB were in flight, never more, while the receiver offered {:.1} kB, the round trip \
         stayed at its least, and \
         nothing was lost",
        flight as f64 / 1e3,
        view.half.largest_window as f64 / 1e3
    );
    let sure = match view.vantage {
        Vantage::Sender => 0.85,
        _ => 0.65,
    };
    Some(view.finding(Cause::SendBuffer, sure, evidence, view.stretch_frames(Cause::SendBuffer)))
}
