//! Wall time, for progress, speed and deadlines: no result depends on it. The one place of the command that
//! reads a clock.

use std::time::{Duration, Instant};

/// Measures wall time from its making.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins now.
    #[allow(clippy::disallowed_methods, reason = "wall time is shown to people and decides nothing")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }
    /// Wall time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
    /// Waits until so many nanoseconds have passed since the start, or `stop` says that nobody waits any
    /// more.
    #[allow(clippy::disallowed_methods, reason = "to be no faster than the clock was asked for")]
    pub fn wait_until(&self, nanos: u64, stop: impl Fn() -> bool) {
        const STEP: Duration = Duration::from_millis(50);
        while let Some(rest) = Duration::from_nanos(nanos).checked_sub(self.elapsed())
            && !rest.is_zero()
            && !stop()
        {
            std::thread::sleep(rest.min(STEP));
        }
    }
    /// The same, asking each millisecond.
    #[allow(clippy::disallowed_methods, reason = "to be no faster than the clock was asked for")]
    pub fn wait_until_soon(&self, nanos: u64, stop: impl Fn() -> bool) {
        while self.elapsed() < Duration::from_nanos(nanos) && !stop() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The time of day, since 1970-01-01, for captures.
#[allow(clippy::disallowed_methods, reason = "captures of real time have the time of day")]
pub fn since_1970() -> farpace_units::Span {
    let passed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    farpace_units::Span::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
}
