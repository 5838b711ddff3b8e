//! The send buffer is too small for the path.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::view::Vantage;

pub(super) const INFO: Info = Info {
    id: "send_buffer",
    title: "send buffer",
    what: "What is in flight stays constant below the receive window although no queue grows and nothing \
           is lost: the send buffer, or a clamp of the window, bounds it.",
    cure: "a larger send buffer, or none set by the program so that it is autotuned: Linux \
           `net.ipv4.tcp_wmem` (third number); SO_SNDBUF of the program; `ss -tmi` shows `sndbuf_limited`",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::SendBuffer) {
        return None;
    }
    let flight = transfer.view.stretches.iter().map(|s| s.slice.flight).max().unwrap_or_default();
    let evidence = format!(
        "at most {:.1} kB were in flight, never more, while the receiver offered {:.1} kB, the round trip \
         stayed at its least, and nothing was lost",
        flight as f64 / 1e3,
        transfer.view.half.largest_window as f64 / 1e3
    );
    let sure = match transfer.view.vantage {
        Vantage::Sender => 0.85,
        _ => 0.65,
    };
    Some(transfer.finding(Cause::SendBuffer, sure, evidence, transfer.stretch_frames(Cause::SendBuffer)))
}
