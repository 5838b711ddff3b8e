//! ACKs are lost.

use super::{AttributedView, Cause, Finding, Info, Kind};

pub(super) const INFO: Info = Info {
    id: "ack_loss",
    title: "ACK loss",
    what: "ACKs are lost on the way back. Later ones repeat what they said, but bursts and timeouts follow.",
    cure: "find what drops on the way back: a narrow or full uplink, a policer of small packets; priority \
           for small packets there",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let counts = &transfer.view.half.counts;
    let all = counts.numbered_acks + counts.missing_acks;
    let missing = counts.missing_acks as f64 / (all as f64).max(1.0);
    if (counts.missing_acks < 10 || missing < 0.03 || super::ack_thinning::is_thinned(transfer))
        && !transfer.matters(Cause::AckLoss)
    {
        return None;
    }
    let evidence = format!(
        "{} of {all} pure ACKs never passed the capture point, by the gaps in their IP identification",
        counts.missing_acks
    );
    Some(transfer.finding(Cause::AckLoss, 0.7, evidence, transfer.stall_frames(Cause::AckLoss)))
}
