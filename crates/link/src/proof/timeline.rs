//! A value over time in a fixed number of bins.

use farpace_units::{Instant, Span};

/// A value per bin of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofTimeline {
    start: Instant,
    width: Span,
    bins: Vec<u64>,
}

impl ProofTimeline {
    /// `bins` bins (at least one) from `start` to `end`, inclusive.
    pub(super) fn new(start: Instant, end: Instant, bins: usize) -> Self {
        let bins = bins.max(1);
        let width = end.since(start).as_nanos() / bins as u64 + 1;
        ProofTimeline { start, width: Span::from_nanos(width), bins: vec![0; bins] }
    }
    /// Start of the first bin.
    pub fn start(&self) -> Instant {
        self.start
    }
    /// Width of a bin.
    pub fn width(&self) -> Span {
        self.width
    }
    /// The values.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }
    /// The bin of `time`; times outside of the range count as the nearest inside.
    pub(super) fn bin(&self, time: Instant) -> usize {
        let bin = time.since(self.start).as_nanos() / self.width.as_nanos().max(1);
        (bin as usize).min(self.bins.len() - 1)
    }
    /// Start of a bin.
    pub(super) fn start_of(&self, bin: usize) -> Instant {
        self.start + self.width * bin as u64
    }
    /// Raises a bin to at least `value`.
    pub(super) fn at_least(&mut self, bin: usize, value: u64) {
        if let Some(current) = self.bins.get_mut(bin) {
            *current = (*current).max(value);
        }
    }
    /// Adds to a bin.
    pub(super) fn add(&mut self, bin: usize, value: u64) {
        if let Some(current) = self.bins.get_mut(bin) {
            *current = current.saturating_add(value);
        }
    }
}
