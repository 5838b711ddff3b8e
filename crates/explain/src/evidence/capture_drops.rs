//! The capture misses packets.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "capture_drops",
    title: "capture incomplete",
    what: "Segments were acknowledged that are not in the capture.",
    cure: "a larger capture buffer (`tcpdump -B 65536 -s 128`), a shorter snap length, a faster disk",
    kind: Kind::Capture,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let counts = &transfer.view.half.counts;
    if counts.unseen < 2 || counts.unseen * 1_000 < counts.data_segments {
        return None;
    }
    let evidence = format!(
        "the receiver acknowledged about {} ({} kB) that the capture does not have, beside {} that it has",
        count(counts.unseen, "segment", "segments"),
        counts.unseen_bytes / 1_000,
        counts.data_segments
    );
    Some(transfer.finding(Cause::CaptureDrops, 0.9, evidence, Vec::new()))
}
