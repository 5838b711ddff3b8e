//! A cap on the rate of a stream that has no pacing of its own.

use farpace_units::Rate;
use std::time::{Duration, Instant};

/// What may be sent at once, as time at the rate.
const BURST: Duration = Duration::from_millis(10);
/// Sleeps are not longer, so that an interruption is seen.
const NAP: Duration = Duration::from_millis(50);

/// Lets bytes pass at a rate: time not used is lost, but for a short burst.
pub(crate) struct Throttle {
    /// Bytes per second; at least one.
    rate: f64,
    /// When the next byte may leave.
    next: Instant,
}

impl Throttle {
    pub fn new(rate: Rate) -> Self {
        Throttle { rate: rate.as_bytes_per_sec_f64().max(1.0), next: Instant::now() }
    }
    /// Bytes to write at once: a few milliseconds of the rate.
    pub fn slice(&self) -> usize {
        (self.rate * BURST.as_secs_f64()).clamp(1_024.0, 1_048_576.0) as usize
    }
    /// Waits until `bytes` may leave. Ends early if `stopped`.
    pub fn wait(&mut self, bytes: usize, stopped: impl Fn() -> bool) {
        let now = Instant::now();
        self.next = self.next.max(now.checked_sub(BURST).unwrap_or(now));
        while !stopped() {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
        self.next += Duration::from_secs_f64((bytes as f64 / self.rate).min(1e6));
    }
}
