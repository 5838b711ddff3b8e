//! Bit errors hit long frames.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "bit_errors",
    title: "bit errors",
    what: "Long segments are lost more often than short ones: each bit has its chance.",
    cure: "repair the link: cables, optics, signal; stronger coding on the radio; smaller segments lose \
           less (`mss`), and farpace or star-robust react to loss less",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let half = transfer.view.half;
    let damaged = half.counts.damaged;
    if transfer.episodes_of(Cause::BitErrors).next().is_none() && damaged == 0 {
        return None;
    }
    let [[short, long], [short_lost, long_lost]] = half.by_size;
    let evidence = if damaged > 0 {
        format!("{} wrong checksums", count(damaged, "segment has", "segments have"))
    } else {
        format!("lost segments: {long_lost} of {long} long ones, {short_lost} of {short} short ones")
    };
    let mut frames = transfer.loss_frames(Cause::BitErrors);
    frames.extend(half.first_damaged);
    Some(transfer.finding(Cause::BitErrors, 0.75, evidence, frames))
}
