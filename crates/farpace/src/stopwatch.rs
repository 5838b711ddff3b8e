//! Wall time, for progress and speed only: no result depends on it. The one place of the command that reads a
//! clock.

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
}
