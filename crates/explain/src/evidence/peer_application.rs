//! The other side had to speak first.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};
use std::fmt::Write as _;

pub(super) const INFO: Info = Info {
    id: "peer_application",
    title: "wait for the other side",
    what: "Everything was acknowledged, and the sender waited until the other side spoke: a round trip for \
           each exchange, and the time that the program there took.",
    cure: "fewer exchanges: send requests ahead (pipelining), or larger ones; a program on the other side \
           that answers sooner",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::PeerApplication) {
        return None;
    }
    let (pauses, longest) = transfer.stalled(Cause::PeerApplication);
    let turns = transfer.view.half.turns;
    let mut evidence = format!(
        "everything was acknowledged until the other side sent data: {} in all",
        seconds(transfer.time.of(Cause::PeerApplication))
    );
    if turns.n > 0 {
        let trips = (transfer.view.base * u64::from(turns.n)).min(turns.sum);
        let _ = write!(
            evidence,
            ", in {}, of which round trips of {} make {} and the program there {}",
            count(turns.n, "exchange", "exchanges"),
            seconds(transfer.view.base),
            seconds(trips),
            seconds(turns.sum - trips)
        );
    }
    if pauses > 0 {
        let _ = write!(
            evidence,
            "; {}, the longest {}",
            count(pauses as u64, "long pause", "long pauses"),
            seconds(longest)
        );
    }
    Some(transfer.finding(
        Cause::PeerApplication,
        0.9,
        evidence,
        transfer.stall_frames(Cause::PeerApplication),
    ))
}
