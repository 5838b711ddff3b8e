//! Something drops or gathers ACKs.

use super::{AttributedView, Cause, Finding, Info, Kind};

pub(super) const INFO: Info = Info {
    id: "ack_thinning",
    title: "ACK thinning",
    what: "A modem or a satellite terminal drops ACKs that later ones repeat, or the receiver \
           acknowledges many segments at once.",
    cure: "a sender that counts bytes, not ACKs (RFC 3465), and paces; ACK filters off where the uplink \
           can bear it (CAKE: `no-ack-filter`); requests for ACKs (`ack_control`)",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !is_thinned(transfer) {
        return None;
    }
    let counts = &transfer.view.half.counts;
    let per_ack = transfer.view.half.acknowledged() as f64
        / (counts.ack_sizes.iter().sum::<u64>() as f64).max(1.0)
        / f64::from(transfer.view.mss);
    let gaps = if counts.missing_acks > counts.numbered_acks / 4 {
        ", and gaps in their IP identification say that the others were dropped on the path"
    } else {
        ""
    };
    let evidence = format!("an ACK stands for {per_ack:.1} full segments on average{gaps}");
    Some(transfer.finding(Cause::AckThinning, if gaps.is_empty() { 0.6 } else { 0.85 }, evidence, Vec::new()))
}

/// Most ACKs stand for more than four segments, regularly.
pub(super) fn is_thinned(transfer: &AttributedView<'_>) -> bool {
    let counts = &transfer.view.half.counts;
    let all: u64 = counts.ack_sizes.iter().sum();
    let large = counts.ack_sizes[3] + counts.ack_sizes[4];
    // Receive offload makes stretch ACKs, too; where identifications follow on, nothing was dropped.
    let dropped = counts.missing_acks * 2 > counts.numbered_acks;
    all >= 20 && large * 10 >= all * 6 && dropped
}
