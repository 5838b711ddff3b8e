//! The receive window is too small for the path.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::flow::Wait;
use crate::view::View;
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

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !view.matters(Cause::ReceiveWindow) {
        return None;
    }
    let window = view.half.largest_window;
    let need = view.capacity * view.base.as_secs_f64();
    let possible = if view.base.is_zero() { 0.0 } else { window as f64 / view.base.as_secs_f64() };
    let evidence = format!(
        "the flight filled the offered window, at most {:.1} kB; over a round trip of {} that allows \
         {:.2} Mbit/s, and the transfer \
         had {:.2} Mbit/s at its best",
        window as f64 / 1e3,
        seconds(view.base),
        possible * 8.0 / 1e6,
        view.capacity * 8.0 / 1e6
    );
    let _ = need;
    let frames = view
        .stretches
        .iter()
        .filter(|s| s.slice.waited(Wait::Window) > s.slice.duration() / 2)
        .take(8)
        .map(|s| s.slice.last_frame)
        .collect();
    let sure = if view.flow.saw_syn() { 0.92 } else { 0.6 };
    Some(view.finding(Cause::ReceiveWindow, sure, evidence, frames))
}
