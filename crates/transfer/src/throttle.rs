//! A rate limit for streams without pacing.

use farpace_units::Rate;
use std::time::{Duration, Instant};

/// Maximum burst, as time at the rate.
const BURST: Duration = Duration::from_millis(10);
/// Maximum sleep, so that an interruption is noticed.
const NAP: Duration = Duration::from_millis(50);

/// Limits the rate of bytes: unused time is lost, except for a short burst.
pub(crate) struct Throttle {
    /// Bytes per second; at least one.
    rate: f64,
    /// Time at which the next byte may be sent.
    next: Instant,
}

impl Throttle {
    pub fn new(rate: Rate) -> Self {
        Throttle { rate: rate.as_bytes_per_sec_f64().max(1.0), next: Instant::now() }
    }
    /// Number of bytes per write: a few milliseconds of the rate.
    pub fn slice(&self) -> usize {
        (self.rate * BURST.as_secs_f64()).clamp(1_024.0, 1_048_576.0) as usize
    }
    /// Waits until `bytes` may be sent. Returns early if `stopped`.
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
