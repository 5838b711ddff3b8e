//! Large packets vanish.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "mtu_black_hole",
    title: "path MTU black hole",
    what: "Packets above some size vanish without a word, smaller ones arrive.",
    cure: "let ICMP `fragmentation needed` and `packet too big` pass; clamp the MSS at the tunnel (`iptables \
           ... --clamp-mss-to-pmtu`); Linux `net.ipv4.tcp_mtu_probing = 1`; `mtu_probing` in farpace",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !crate::losses::is_black_hole(&transfer.view) {
        return None;
    }
    let half = transfer.view.half;
    let told = if transfer.view.flow.too_big.is_empty() {
        "no ICMP message came"
    } else {
        "ICMP messages came, and were not heeded"
    };
    let evidence = format!(
        "segments of {} B were sent up to {} and never acknowledged; the largest that arrived had \
         {} B; {told}",
        half.counts.largest,
        count(half.most_sent, "time", "times"),
        half.largest_delivered
    );
    let frames = transfer
        .view
        .losses()
        .filter(|l| l.len > half.largest_delivered)
        .take(10)
        .flat_map(|l| [l.frame, l.resent_frame])
        .collect();
    Some(transfer.finding(Cause::MtuBlackHole, 0.9, evidence, frames))
}
