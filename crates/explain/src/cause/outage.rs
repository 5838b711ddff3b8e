//! Nothing passes for a time.

use super::{Cause, Info, Kind};
use crate::diagnosis::Finding;
use crate::view::View;
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "outage",
    title: "outage",
    what: "For a time nothing passed at all: a hand-over, a route that changes, a link that is down.",
    cure: "for short outages a sender that probes at once: tail loss probes, F-RTO or AEN; a second path \
           (`farpace nics`); Linux 6.15 and later: `net.ipv4.tcp_rto_max_ms`",
    kind: Kind::Fault,
};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    let (stalls, longest) = view.stalled(Cause::Outage);
    if stalls == 0 && view.episodes_of(Cause::Outage).next().is_none() {
        return None;
    }
    let lost: u32 = view.episodes_of(Cause::Outage).map(|e| e.losses).sum();
    let period = view.period_of(Cause::Outage);
    let regular =
        period.map_or(String::new(), |p| format!("; they come every {}, as hand-overs do", seconds(p)));
    let evidence = format!(
        "all that was in flight was lost ({lost} segments); {stalls} pauses ended by timeouts, the \
         longest {}{regular}",
        seconds(longest)
    );
    let mut frames = view.stall_frames(Cause::Outage);
    if frames.is_empty() {
        frames = view.loss_frames(Cause::Outage);
    }
    Some(view.finding(Cause::Outage, 0.85, evidence, frames))
}
