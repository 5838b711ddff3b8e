//! The window was still growing.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::seconds;

pub(super) const INFO: Info = Info {
    id: "slow_start",
    title: "slow start",
    what: "The congestion window was still growing when the transfer ended or the path became full.",
    cure: "larger initial windows, fewer and longer connections; `fast_start` and `initial_window` in \
           farpace; a split-TCP gateway shortens the round trip that counts",
    kind: Kind::Limit,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    if !transfer.matters(Cause::SlowStart) {
        return None;
    }
    let flights: Vec<u64> = transfer.view.stretches.iter().map(|s| s.slice.flight).collect();
    let first = flights.iter().find(|f| **f > 0).copied().unwrap_or_default();
    let most = flights.iter().max().copied().unwrap_or_default();
    let evidence = format!(
        "the flight grew from {:.1} kB to {:.1} kB in {} of round trips of {}",
        first as f64 / 1e3,
        most as f64 / 1e3,
        seconds(transfer.time.of(Cause::SlowStart)),
        seconds(transfer.view.base)
    );
    Some(transfer.finding(Cause::SlowStart, 0.85, evidence, transfer.stretch_frames(Cause::SlowStart)))
}
