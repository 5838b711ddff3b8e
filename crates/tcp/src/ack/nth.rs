//! Every n-th full-size segment, and after a while whatever waits: the form of RFC 5681, and stretched ones.

use super::DataArrival;
use farpace_units::{Instant, Packets, Span};

/// Longest wait; RFC 5681 §4.2 allows 500 ms, today's stacks take 40.
const DELAY: Span = Span::from_millis(40);
/// Segments for each stretched acknowledgment.
const STRETCH: Packets = Packets::new(8);
/// Segments that are acknowledged at once when the program asks for that (TCP_QUICKACK).
const QUICK: u32 = 16;

/// An acknowledgment for every n-th full-size segment.
#[derive(Clone, Debug)]
pub struct EveryNth {
    every: u32,
    delay: Span,
    /// Segments that are still acknowledged at once.
    quick: u32,
    /// The program has said that nothing need be quick.
    slow: bool,
}

impl EveryNth {
    /// Every second one (RFC 5681 §4.2).
    pub fn second(delay: Option<Span>) -> Self {
        EveryNth { every: 2, delay: delay.unwrap_or(DELAY), quick: 0, slow: false }
    }

    /// Fewer than the RFC wants, as receivers do that merge segments, and devices that thin ACKs out.
    pub fn stretch(delay: Option<Span>, every: Option<Packets>) -> Self {
        let every = every.unwrap_or(STRETCH).get();
        EveryNth { every, delay: delay.unwrap_or(DELAY), quick: 0, slow: false }
    }

    /// Until when the acknowledgment may wait; none: not at all.
    pub fn on_data(&mut self, a: &DataArrival, full_size: u32) -> Option<Instant> {
        if self.quick > 0 {
            self.quick -= 1;
            return None;
        }
        (a.unacknowledged < self.every.saturating_mul(full_size)).then(|| a.now + self.delay)
    }

    /// The bytes for which there is an acknowledgment.
    pub fn part(&self, full_size: u32) -> u32 {
        self.every.saturating_mul(full_size)
    }

    /// Some segments are acknowledged at once from now on, or none is.
    pub fn set_quick(&mut self, quick: bool) {
        (self.quick, self.slow) = (if quick { QUICK } else { 0 }, !quick);
    }

    /// The program has not said otherwise.
    pub fn is_quick(&self) -> bool {
        !self.slow
    }
}
