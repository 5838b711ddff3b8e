//! The last segments of a flight were lost.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "tail_loss",
    title: "tail loss",
    what: "The last segments of what was sent were lost. Nothing came after them that would have told, so \
           a timer had to.",
    cure: "tail loss probes (Linux: `net.ipv4.tcp_early_retrans = 3`), RACK-TLP in farpace; shorter \
           minimum timeout on short paths (`ip route ... rto_min`)",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let (stalls, longest) = transfer.stalled(Cause::TailLoss);
    if stalls == 0 {
        return None;
    }
    let evidence = format!(
        "{} after which the end of a flight was sent again, the longest {}; no ACK could \
         have told of the loss",
        count(stalls as u64, "pause", "pauses"),
        seconds(longest)
    );
    Some(transfer.finding(Cause::TailLoss, 0.8, evidence, transfer.stall_frames(Cause::TailLoss)))
}
