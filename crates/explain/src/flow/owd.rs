//! Changes of the one-way delay from a host to the capture point, by the timestamps it puts into its
//! segments.

use farpace_units::{Instant, Span};

/// Ticks per second that timestamp clocks have.
const RATES: [f64; 8] = [1_000.0, 1_000_000.0, 250.0, 100.0, 10.0, 2.0, 10_000.0, 500.0];
/// Ticks and time that must have passed before the rate is believed.
const MIN_TICKS: u32 = 40;
const MIN_TIME: Span = Span::from_millis(100);

/// The delay from a sender's clock to the capture point, without the unknown offset between the two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OneWay {
    first: Option<(Instant, u32)>,
    rate: Option<f64>,
    /// The least of `time - stamp` seen, in seconds, for each rate: the queue may stand before the rate is
    /// known.
    least: [f64; RATES.len()],
    /// Which rate it is.
    known: usize,
    now: f64,
}

impl OneWay {
    pub fn see(&mut self, now: Instant, value: u32) {
        let Some((since, from)) = self.first else {
            self.first = Some((now, value));
            return;
        };
        let ticks = value.wrapping_sub(from);
        // A clock that goes backwards is another clock.
        if (ticks as i32) < 0 {
            return;
        }
        let elapsed = now.since(since);
        let offset = |rate: f64| elapsed.as_secs_f64() - f64::from(ticks) / rate;
        let possible = |at: &usize| self.rate.is_none() || *at == self.known;
        for at in (0..RATES.len()).filter(possible) {
            self.least[at] = self.least[at].min(offset(RATES[at]));
        }
        if self.rate.is_none() && ticks >= MIN_TICKS && elapsed >= MIN_TIME {
            let measured = f64::from(ticks) / elapsed.as_secs_f64();
            let found = RATES.into_iter().position(|rate| (measured / rate - 1.0).abs() < 0.2);
            self.known = found.unwrap_or_default();
            self.rate = found.and_then(|at| RATES.get(at)).copied();
        }
        let Some(rate) = self.rate else { return };
        self.now = offset(rate);
    }

    /// Ticks per second, once it is known.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// When a segment with this TSval would have come with the least delay, to a tick; none if the clock
    /// is not known.
    pub fn undelayed(&self, tsval: u32) -> Option<Instant> {
        let (since, from) = self.first?;
        let ticks = f64::from(tsval.wrapping_sub(from) as i32);
        let seconds = since.as_secs_f64() + ticks / self.rate? + self.least.get(self.known)?;
        Some(Instant::from_nanos((seconds * 1e9) as u64))
    }

    /// By how much the delay exceeds the least one, a tick included; none if the clock is not known.
    pub fn excess(&self) -> Option<Span> {
        let rate = self.rate?;
        let excess = (self.now - self.least.get(self.known)?).max(0.0) + 1.0 / rate;
        Some(Span::from_nanos((excess * 1e9) as u64))
    }
}
