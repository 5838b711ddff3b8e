//! The clock of this machine, as the engine wants it.

use farpace_units::Instant;

/// `CLOCK_MONOTONIC`, counted from when the clock was made. It never goes backwards; while the machine sleeps it stands
/// still, and while the process is stopped it goes on: all deadlines of that time have come then.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn new() -> Self {
        Clock { origin: std::time::Instant::now() }
    }
    /// The present.
    #[inline]
    pub fn now(&self) -> Instant {
        // 584 years fit.
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}
