//! Packets overtake each other.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "reordering",
    title: "reordering",
    what: "Packets arrive in another order than they were sent; the sender takes some for lost, sends \
           them again, and reduces its window.",
    cure: "RACK (Linux: `net.ipv4.tcp_recovery = 1`) and undo by D-SACK at the sender; a path per flow \
           instead of per packet on bonded links (`xmit_hash_policy layer3+4`); farpace nics puts frames \
           in order",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let counts = &transfer.view.half.counts;
    let needless = transfer.episodes_of(Cause::Reordering).count();
    // The network made copies: D-SACKs tell of them where nothing was sent again.
    let doubled = counts.reordered == 0 && counts.dsacks > counts.retransmissions;
    if counts.reordered == 0 && needless == 0 || doubled && !transfer.matters(Cause::Reordering) {
        return None;
    }
    let late = if counts.reordered > 0 {
        format!(
            "{} late, by up to {} and {:.1} kB; ",
            count(counts.reordered, "segment came", "segments came"),
            seconds(transfer.view.half.lateness.1),
            transfer.view.half.lateness.0 as f64 / 1e3
        )
    } else {
        String::new()
    };
    let evidence = format!(
        "{late}{} needless; {} so",
        count(counts.spurious, "retransmission was", "retransmissions were"),
        count(counts.dsacks, "D-SACK says", "D-SACKs say")
    );
    let mut frames = transfer.loss_frames(Cause::Reordering);
    frames.extend(transfer.view.half.first_late.map(|(frame, _)| frame));
    frames.extend(transfer.view.half.first_dsack);
    Some(transfer.finding(Cause::Reordering, if counts.reordered > 0 { 0.9 } else { 0.8 }, evidence, frames))
}
