//! A retransmission was lost, and the sender did not notice.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "lost_retransmission",
    title: "lost retransmission",
    what: "A retransmission was lost as well. ACKs showed it, but the sender waited for its timer.",
    cure: "a sender that notices: RACK (Linux 4.4 and later, `net.ipv4.tcp_recovery = 1`), farpace \
           profile `linux` or `modern`",
    kind: Kind::Fault,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    let (stalls, longest) = view.stalled(Cause::LostRetransmission);
    if stalls == 0 {
        return None;
    }
    let evidence = format!(
        "{} retransmissions were lost; before {} timeouts data sent after the retransmission had been \
         SACKed; the longest pause \
         was {}",
        view.half.counts.lost_again,
        view.half.counts.overlooked.max(stalls as u64),
        seconds(longest)
    );
    Some(view.finding(
        Cause::LostRetransmission,
        0.85,
        evidence,
        view.stall_frames(Cause::LostRetransmission),
    ))
}
