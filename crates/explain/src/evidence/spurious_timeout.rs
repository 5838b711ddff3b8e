//! The timer fired, or the sender waited, although nothing was lost.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "spurious_timeout",
    title: "delay spike (spurious timeout)",
    what: "The path paused for longer than usual: ACKs came late, and the timer may have fired although \
           nothing was lost.",
    cure: "F-RTO or Eifel at the sender (Linux: `net.ipv4.tcp_frto = 2`, timestamps on), AEN in farpace; \
           find what delays: hand-overs, radio retransmission, a queue behind a scheduler",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let (stalls, longest) = transfer.stalled(Cause::SpuriousTimeout);
    if stalls == 0 {
        return None;
    }
    let needless = transfer.stalls_of(Cause::SpuriousTimeout).filter(|s| s.spurious).count();
    let period = transfer.period_of(Cause::SpuriousTimeout);
    let regular =
        period.map_or(String::new(), |p| format!("; they come every {}, as hand-overs do", seconds(p)));
    let evidence = format!(
        "{} of up to {} after which ACKs of the first transmissions came; {} needless{regular}",
        count(stalls as u64, "pause", "pauses"),
        seconds(longest),
        count(needless as u64, "timeout was", "timeouts were")
    );
    Some(transfer.finding(
        Cause::SpuriousTimeout,
        0.8,
        evidence,
        transfer.stall_frames(Cause::SpuriousTimeout),
    ))
}
