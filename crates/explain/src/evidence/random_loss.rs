//! Random loss.

use super::{AttributedView, BLIND, Cause, Finding, Info, Kind};
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "random_loss",
    title: "random loss",
    what: "Segments are lost one at a time, whatever the queue and the rate.",
    cure: "a sender that does not take every loss for congestion: congestion control bbr, or farpace and \
           star-robust for satellite and radio; repair of the link (FEC, retransmission below IP)",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    transfer.episodes_of(Cause::RandomLoss).next()?;
    let losses: u32 = transfer.episodes_of(Cause::RandomLoss).map(|e| e.losses).sum();
    let episodes = transfer.episodes_of(Cause::RandomLoss).count();
    let evidence = format!(
        "{} lost in {} ({:.3} % of all), mostly alone, and no queue was \
         there when they were lost. Bit errors look the same where all segments have one length",
        count(losses, "segment was", "segments were"),
        count(episodes as u64, "place", "places"),
        transfer.view.loss_rate() * 100.0
    );
    // A full queue before the capture point drops what is missing here.
    let missing = transfer.episodes_of(Cause::RandomLoss).any(|e| e.upstream);
    let (most, evidence) = if missing && !transfer.view.sees_near_queues() {
        let blind = "; queues before the capture point are not seen without timestamps, and a full one looks \
                     the same";
        (BLIND, evidence + blind)
    } else {
        (0.9, evidence)
    };
    Some(transfer.finding(
        Cause::RandomLoss,
        (0.5 + 0.05 * episodes as f64).min(most),
        evidence,
        transfer.loss_frames(Cause::RandomLoss),
    ))
}
