//! Random loss.

use super::{AttributedView, Cause, Finding, Info, Kind};
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
    Some(transfer.finding(
        Cause::RandomLoss,
        (0.5 + 0.05 * episodes as f64).min(0.9),
        evidence,
        transfer.loss_frames(Cause::RandomLoss),
    ))
}
