//! The clock of this machine, as the engine needs it.

use farpace_units::{Instant, Span};

/// `CLOCK_MONOTONIC` since the creation of the clock. It never goes backwards by itself. It stops during
/// system suspend, and continues while the process is stopped: all deadlines of that time have expired
/// afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
    /// Total time by which it was set back.
    behind: Span,
}

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Clock { origin: std::time::Instant::now(), behind: Span::ZERO }
    }
    /// The current time.
    #[inline]
    pub fn now(&self) -> Instant {
        // Enough for 584 years.
        let passed = Span::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        Instant::ZERO + (passed - self.behind)
    }
    /// Sets the clock back by `by`. No past event may have a time later than the new present.
    pub fn put_back(&mut self, by: Span) {
        self.behind += by;
    }
    /// Total time by which it was set back.
    pub const fn behind(&self) -> Span {
        self.behind
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}
