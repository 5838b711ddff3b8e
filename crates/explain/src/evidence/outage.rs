//! Nothing passes for a time.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "outage",
    title: "outage",
    what: "For a time nothing passed at all: a hand-over, a route that changes, a link that is down.",
    cure: "for short outages a sender that probes at once: tail loss probes, F-RTO or AEN; a second path \
           (`farpace nics`); Linux 6.15 and later: `net.ipv4.tcp_rto_max_ms`",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let (stalls, longest) = transfer.stalled(Cause::Outage);
    if stalls == 0 && transfer.episodes_of(Cause::Outage).next().is_none() {
        return None;
    }
    let lost: u32 = transfer.episodes_of(Cause::Outage).map(|e| e.losses).sum();
    let period = transfer.period_of(Cause::Outage);
    let regular =
        period.map_or(String::new(), |p| format!("; they come every {}, as hand-overs do", seconds(p)));
    let what = if lost > 0 {
        format!("all that was in flight was lost ({})", count(lost, "segment", "segments"))
    } else {
        String::from("nothing passed, and no ACK came")
    };
    let pauses = match stalls {
        0 => String::new(),
        1 => format!("; a pause of {} ended", seconds(longest)),
        _ => format!("; {stalls} pauses ended, the longest of {}", seconds(longest)),
    };
    let evidence = format!("{what}{pauses}{regular}");
    let mut frames = transfer.stall_frames(Cause::Outage);
    if frames.is_empty() {
        frames = transfer.loss_frames(Cause::Outage);
    }
    Some(transfer.finding(Cause::Outage, 0.85, evidence, frames))
}
