//! The receive window is too small for the path.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::flow::Wait;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "receive_window",
    title: "receive window",
    what: "The receiver offered a window smaller than what the path holds, and did not enlarge it.",
    cure: "a larger receive buffer, or none set by the program so that it is autotuned: Linux \
           `net.ipv4.tcp_rmem` (third number), `net.ipv4.tcp_moderate_rcvbuf = 1`; farpace autotunes by \
           default",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::ReceiveWindow) {
        return None;
    }
    let window = transfer.view.half.largest_window;
    let scaled = transfer.view.half.knows_windows();
    let possible =
        if transfer.view.base.is_zero() { 0.0 } else { window as f64 / transfer.view.base.as_secs_f64() };
    let evidence = format!(
        "the flight filled the offered window, at most {:.1} kB; over a round trip of {} that allows {:.2} \
         Mbit/s, and the transfer had {:.2} Mbit/s at its best{}",
        window as f64 / 1e3,
        seconds(transfer.view.base),
        possible * 8.0 / 1e6,
        transfer.view.capacity * 8.0 / 1e6,
        if scaled { "" } else { ". The scale of the windows is the least that allows what was sent" }
    );
    let frames = transfer
        .view
        .stretches
        .iter()
        .filter(|s| s.slice.waited(Wait::Window) > s.slice.duration() / 2)
        .take(8)
        .map(|s| s.slice.last_frame)
        .collect();
    let sure = if scaled { 0.92 } else { 0.6 };
    Some(transfer.finding(Cause::ReceiveWindow, sure, evidence, frames))
}
