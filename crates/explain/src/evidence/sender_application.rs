//! The sending program had nothing to send.

use super::{AttributedView, BLIND, Cause, Finding, Info, Kind};
use crate::flow::Wait;
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "sender_application",
    title: "sender application",
    what: "The sending program wrote less than the path could carry, or paused.",
    cure: "the program on the sending side: larger writes, no pauses between them, reading ahead from its \
           disk or database; no setting of TCP helps",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::SenderApplication) {
        return None;
    }
    let counts = &transfer.view.half.counts;
    let idle = transfer.view.waited(Wait::Program);
    let (pauses, longest) = transfer.stalled(Cause::SenderApplication);
    let evidence = format!(
        "everything was acknowledged and nothing to send for {} ({} of more than two round \
         trips, the longest {}); short segments: {} of {}",
        seconds(idle),
        count(pauses as u64, "pause", "pauses"),
        seconds(longest),
        counts.short_segments,
        counts.data_segments
    );
    // What is not there may stand in a queue that is not seen.
    let blind = !transfer.view.sees_near_queues();
    let evidence = if blind {
        evidence
            + "; without timestamps this looks the same as data that stood in a queue before the capture \
               point"
    } else {
        evidence
    };
    let idle_share = idle.as_secs_f64() / transfer.time.of(Cause::SenderApplication).as_secs_f64().max(1e-9);
    let mut frames = transfer.stall_frames(Cause::SenderApplication);
    if frames.is_empty() {
        frames = transfer.stretch_frames(Cause::SenderApplication);
    }
    let sure = if blind { BLIND } else { 0.7 + 0.25 * idle_share.min(1.0) };
    Some(transfer.finding(Cause::SenderApplication, sure, evidence, frames))
}
