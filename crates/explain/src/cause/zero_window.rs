//! The receiver closed its window.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "zero_window",
    title: "zero window",
    what: "The receiver said that it can take nothing more, because its program does not read.",
    cure: "the program on the receiving side has stopped reading: look at its disk, its locks, or what it \
           waits for",
    kind: Kind::Limit,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if view.half.counts.zero_windows == 0 || !view.matters(Cause::ZeroWindow) {
        return None;
    }
    let (pauses, longest) = view.stalled(Cause::ZeroWindow);
    let evidence = format!(
        "{} ACKs offered a window of zero; the sender waited {} in all, {pauses} times long, at most {}",
        view.half.counts.zero_windows,
        seconds(view.time.of(Cause::ZeroWindow)),
        seconds(longest)
    );
    let mut frames = view.stall_frames(Cause::ZeroWindow);
    frames.extend(view.half.first_zero_window);
    let mut finding = view.finding(Cause::ZeroWindow, 0.95, evidence, frames);
    finding.filter = format!("{} && tcp.window_size == 0 && !tcp.flags.reset == 1", view.filter());
    Some(finding)
}
