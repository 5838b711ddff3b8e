//! The clock of this machine, as the engine needs it.

use crate::stall_debt::StallDebt;
use farpace_units::{Instant, Span};

/// `CLOCK_MONOTONIC` since the creation of the clock. It never goes backwards by itself. It stops during
/// system suspend, and continues while the process is stopped: all deadlines of that time have expired
/// afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
    /// Total time by which it was set back.
    behind: Span,
    /// What of this is made up for.
    debt: StallDebt,
}

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Clock { origin: std::time::Instant::now(), behind: Span::ZERO, debt: StallDebt::default() }
    }
    /// The current time.
    #[inline]
    pub fn now(&self) -> Instant {
        let passed = self.passed();
        Instant::ZERO + (passed - (self.behind - self.debt.repaid(passed)))
    }
    /// Sets the clock back by `by`. No past event may have a time later than the new present. From now on
    /// the clock runs faster by 2 %, until this is made up for ([`MAX_STALL_DEBT`](crate::MAX_STALL_DEBT)).
    pub fn put_back(&mut self, by: Span) {
        if !by.is_zero() {
            self.debt.add(by, self.passed());
            self.behind += by;
        }
    }
    /// Total time by which it was set back.
    pub const fn behind(&self) -> Span {
        self.behind
    }
    /// What of [`behind`](Self::behind) has been made up for.
    pub fn made_up(&self) -> Span {
        self.debt.repaid(self.passed())
    }
    /// How long to sleep until the clock has advanced by `time`.
    pub fn sleep_for(&self, time: Span) -> Span {
        self.debt.machine_time(time, self.passed())
    }
    /// The machine's time since the creation of the clock. 64 bits are enough for 584 years.
    fn passed(&self) -> Span {
        Span::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}
