//! Large packets vanish.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;

pub(super) const INFO: Info = Info {
    id: "mtu_black_hole",
    title: "path MTU black hole",
    what: "Packets above some size vanish without a word, smaller ones arrive.",
    cure: "let ICMP `fragmentation needed` and `packet too big` pass; clamp the MSS at the tunnel \
           (`iptables ... --clamp-mss-to-pmtu`); Linux `net.ipv4.tcp_mtu_probing = 1`; `mtu_probing` in \
           farpace",
    kind: Kind::Fault,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    if !crate::losses::is_black_hole(view) {
        return None;
    }
    let half = view.half;
    let told = if view.flow.too_big.is_empty() {
        "no ICMP message came"
    } else {
        "ICMP messages came, and were not heeded"
    };
    let evidence = format!(
        "segments of {} B were sent up to {} times and never acknowledged; the largest that arrived had \
         {} B; {told}",
        half.counts.largest, half.most_sent, half.largest_delivered
    );
    let frames = view
        .losses()
        .filter(|l| l.len > half.largest_delivered)
        .take(10)
        .flat_map(|l| [l.frame, l.resent_frame])
        .collect();
    Some(view.finding(Cause::MtuBlackHole, 0.9, evidence, frames))
}
