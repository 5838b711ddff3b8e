//! A retransmission was lost, and the sender did not notice.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "lost_retransmission",
    title: "lost retransmission",
    what: "A retransmission was lost as well. ACKs showed it, but the sender waited for its timer.",
    cure: "a sender that notices: RACK (Linux 4.4 and later, `net.ipv4.tcp_recovery = 1`), farpace \
           profile `linux` or `modern`",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let (stalls, longest) = transfer.stalled(Cause::LostRetransmission);
    if stalls == 0 {
        return None;
    }
    let evidence = format!(
        "{} lost; before {} data sent after the retransmission had been \
         SACKed; the longest pause was {}",
        count(transfer.view.half.counts.lost_again, "retransmission was", "retransmissions were"),
        count(transfer.view.half.counts.overlooked.max(stalls as u64), "timeout", "timeouts"),
        seconds(longest)
    );
    Some(transfer.finding(
        Cause::LostRetransmission,
        0.85,
        evidence,
        transfer.stall_frames(Cause::LostRetransmission),
    ))
}
