//! Rules of what is recorded.

use super::super::document::DocumentStep;
use super::super::nearest::list;
use super::{Checker, steps};

/// Most bins of one run: it limits the memory that a small `trace.bin` takes.
pub const MAX_BINS: u64 = 10_000_000;
/// Bytes kept of each frame: enough for all headers, and at most what pcap readers accept.
const SNAPLEN: std::ops::RangeInclusive<u64> = 96..=262_144;

impl Checker<'_> {
    /// Bins, captured bytes, and the places of captures.
    pub(super) fn trace(&mut self) {
        let s = self.s;
        if s.trace.bin.is_zero() {
            self.value(steps!["trace", "bin"], "a bin of 0 s holds nothing").hint("the paper uses \"10 ms\"");
        } else if s.duration.as_nanos() / s.trace.bin.as_nanos() > MAX_BINS {
            self.value(
                steps!["trace", "bin"],
                format!("{} in bins of {} are too many", s.duration, s.trace.bin),
            )
            .hint(format!("at most {MAX_BINS} bins: widen them, or shorten `duration`"));
        }
        if !SNAPLEN.contains(&s.trace.snaplen.get()) {
            self.value(
                steps!["trace", "snaplen"],
                format!("a snaplen of {} is not possible", s.trace.snaplen),
            )
            .hint("it must be from 96 B, which hold all headers, to 262144 B");
        }
        let places: Vec<&str> =
            s.hosts.keys().chain(s.links.iter().map(|l| &l.name)).map(String::as_str).collect();
        for (i, tap) in s.trace.taps.iter().enumerate() {
            let path = steps!["trace", "taps", i];
            if let Some(kind) = s.forwarder_kind(tap) {
                let links: Vec<&str> =
                    s.links.iter().filter(|l| l.between.contains(tap)).map(|l| l.name.as_str()).collect();
                self.value(path, format!("`{tap}` is a {kind}; captures are made at hosts and on links"))
                    .hint(format!("its links are {}", list(&links)));
            } else if !places.contains(&tap.as_str()) {
                self.value(path, format!("no host or link is called `{tap}`")).hint_nearest(tap, &places);
            }
        }
    }
}
