//! Losses come in bursts.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "burst_loss",
    title: "burst loss",
    what: "Several segments in a row are lost while no queue is there: fading, interference, a link that \
           changes.",
    cure: "bbr, or farpace and star-robust; SACK on both ends; interleaving or retransmission on the link",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    transfer.episodes_of(Cause::BurstLoss).next()?;
    let losses: u32 = transfer.episodes_of(Cause::BurstLoss).map(|e| e.losses).sum();
    let episodes = transfer.episodes_of(Cause::BurstLoss).count();
    let evidence = format!(
        "{} lost in {}, in runs of {:.1} on average, and no queue was there",
        count(losses, "segment was", "segments were"),
        count(episodes as u64, "place", "places"),
        transfer.time.pattern.run
    );
    Some(transfer.finding(
        Cause::BurstLoss,
        (0.5 + 0.06 * episodes as f64).min(0.85),
        evidence,
        transfer.loss_frames(Cause::BurstLoss),
    ))
}
