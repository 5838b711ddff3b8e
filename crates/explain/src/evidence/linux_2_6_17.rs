//! The recovery of Linux 2.6.15 to 2.6.17.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "linux_2_6_17",
    title: "recovery of Linux 2.6.17",
    what: "After a timeout the window stays at one segment per round trip (byte counting that is not \
           fed), and lost retransmissions are overlooked (block sort, single pass over SACK blocks).",
    cure: "a kernel of 2.6.24 or later; in farpace profile `linux`; `aist-fix` is the paper's own cure",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !crate::losses::crawls(&transfer.view) {
        return recovery(transfer);
    }
    let after = transfer.view.half.after_timeout;
    let overlooked = transfer.view.half.counts.overlooked;
    let evidence = format!(
        "after timeouts {} of {} ACKs released one segment each, for {} in all: the byte counter is not fed \
         in state Loss (defect 1); {overlooked} timeouts came although SACKs had shown that the \
         retransmission was lost (defects 2 and 3)",
        after.single,
        after.acks,
        seconds(after.time)
    );
    let mut frames = transfer.stall_frames(Cause::Linux2617);
    frames.extend(after.frames.iter().flat_map(|(a, b)| [*a, *b]));
    Some(transfer.finding(Cause::Linux2617, 0.85, evidence, frames))
}

/// It crawled in fast recovery, without a timeout.
fn recovery(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::Linux2617) {
        return None;
    }
    let evidence = format!(
        "for {} not more than three segments were sent again in a round trip of {}, although SACKs told \
         of many losses: the window sinks to a segment in recovery",
        seconds(transfer.time.of(Cause::Linux2617)),
        seconds(transfer.view.base)
    );
    let frames = transfer.stretch_frames(Cause::Linux2617);
    Some(transfer.finding(Cause::Linux2617, 0.7, evidence, frames))
}
