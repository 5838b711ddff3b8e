//! The receiver closed its window.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "zero_window",
    title: "zero window",
    what: "The receiver said that it can take nothing more, because its program does not read.",
    cure: "the program on the receiving side has stopped reading: look at its disk, its locks, or what it \
           waits for",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if transfer.view.half.counts.zero_windows == 0 || !transfer.matters(Cause::ZeroWindow) {
        return None;
    }
    let (pauses, longest) = transfer.stalled(Cause::ZeroWindow);
    let evidence = format!(
        "{} a window of zero; the sender waited {} in all, with {} of at most {}",
        count(transfer.view.half.counts.zero_windows, "ACK offered", "ACKs offered"),
        seconds(transfer.time.of(Cause::ZeroWindow)),
        count(pauses as u64, "long pause", "long pauses"),
        seconds(longest)
    );
    let mut frames = transfer.stall_frames(Cause::ZeroWindow);
    frames.extend(transfer.view.half.first_zero_window);
    let mut finding = transfer.finding(Cause::ZeroWindow, 0.95, evidence, frames);
    finding.filter = format!("{} && tcp.window_size == 0 && !tcp.flags.reset == 1", transfer.view.filter());
    Some(finding)
}
