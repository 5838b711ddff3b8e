//! 4.3BSD to 4.4BSD: a window update for every second segment, and the fast timer for the rest.
//!
//! These systems do not count segments. Reading makes room, and the window is told when its edge has moved by
//! two segments of the maximum size, or by half of the receive buffer: that carries the acknowledgment. So
//! segments that are smaller than they could be are acknowledged less often than every second one (RFC 2525
//! §2.13 and §2.14 know the effect). What is left goes at the next tick of a timer that runs for all
//! connections together since the boot: an acknowledgment is held back for anything from nothing to one tick.

use super::DataArrival;
use farpace_units::{Instant, Span};

/// Tick of `tcp_fasttimo`.
const TICK: Span = Span::from_millis(200);

/// The fast timer.
#[derive(Clone, Debug)]
pub struct FastTimer {
    tick: Span,
}

impl FastTimer {
    /// A timer with this tick (default 200 ms).
    pub fn new(tick: Option<Span>) -> Self {
        FastTimer { tick: tick.unwrap_or(TICK).max(Span::from_nanos(1)) }
    }

    /// The tick at which the acknowledgment leaves; none: now. The application is taken to read at once.
    pub fn on_data(&self, a: &DataArrival) -> Option<Instant> {
        let due = a.unacknowledged >= a.mss.saturating_mul(2) || a.unacknowledged >= a.window.div_ceil(2);
        let ticks = a.now.as_nanos() / self.tick.as_nanos() + 1;
        (!due).then(|| Instant::ZERO + self.tick * ticks)
    }
}
