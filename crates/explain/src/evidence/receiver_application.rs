//! The receiving program reads too slowly.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "receiver_application",
    title: "receiver application",
    what: "The receiving program read more slowly than data came, so its window shrank.",
    cure: "the program on the receiving side: read in larger pieces, do not wait for its disk or its user \
           between reads",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::ReceiverApplication) {
        return None;
    }
    let half = transfer.view.half;
    let evidence = format!(
        "the offered window shrank from up to {} kB until it held the sender back for {}; it was zero {}",
        half.largest_window / 1_000,
        seconds(transfer.time.of(Cause::ReceiverApplication)),
        count(half.counts.zero_windows, "time", "times")
    );
    let mut frames = transfer.stall_frames(Cause::ReceiverApplication);
    frames.extend(half.first_zero_window);
    Some(transfer.finding(Cause::ReceiverApplication, 0.85, evidence, frames))
}
