//! Every n-th full-size segment, and after a while whatever waits: the form of RFC 5681, and stretched ones.

use super::DataArrival;
use farpace_units::{Instant, Packets, Span};

/// Longest wait; RFC 5681 §4.2 allows 500 ms, today's stacks take 40.
const DELAY: Span = Span::from_millis(40);
/// Segments for each stretched acknowledgment.
const STRETCH: Packets = Packets::new(8);

/// An acknowledgment for every n-th full-size segment.
#[derive(Clone, Debug)]
pub struct EveryNth {
    every: u32,
    delay: Span,
}

impl EveryNth {
    /// Every second one (RFC 5681 §4.2).
    pub fn second(delay: Option<Span>) -> Self {
        EveryNth { every: 2, delay: delay.unwrap_or(DELAY) }
    }

    /// Fewer than the RFC wants, as receivers do that merge segments, and devices that thin ACKs out.
    pub fn stretch(delay: Option<Span>, every: Option<Packets>) -> Self {
        EveryNth { every: every.unwrap_or(STRETCH).get(), delay: delay.unwrap_or(DELAY) }
    }

    /// Until when the acknowledgment may wait; none: not at all.
    pub fn on_data(&self, a: &DataArrival, full_size: u32) -> Option<Instant> {
        (a.unacknowledged < self.every.saturating_mul(full_size)).then(|| a.now + self.delay)
    }
}
