//! The clock of this machine, as the engine wants it.

use farpace_units::{Instant, Span};

/// `CLOCK_MONOTONIC`, counted from when the clock was made. It never goes backwards by itself; while the machine sleeps it stands
/// still, and while the process is stopped it goes on: all deadlines of that time have come then.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
    /// It has been put back by so much.
    behind: Span,
}

impl Clock {
    /// A clock that begins now.
    pub fn new() -> Self {
        Clock { origin: std::time::Instant::now(), behind: Span::ZERO }
    }
    /// The present.
    #[inline]
    pub fn now(&self) -> Instant {
        // 584 years fit.
        let passed = Span::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        Instant::ZERO + (passed - self.behind)
    }
    /// It is so much earlier from now on. What has been done at its former times must not be later than its new present.
    pub fn put_back(&mut self, by: Span) {
        self.behind += by;
    }
    /// By how much it has been put back.
    pub const fn behind(&self) -> Span {
        self.behind
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}
