//! Changes of the one-way delay from a host to the capture point, by the timestamps it puts into its
//! segments.

use farpace_units::{Instant, Span};

/// Ticks per second that timestamp clocks have.
const RATES: [f64; 8] = [1_000.0, 1_000_000.0, 250.0, 100.0, 10.0, 2.0, 10_000.0, 500.0];
/// Ticks and time that must have passed before the rate is estimated.
const MIN_TICKS: u32 = 40;
const MIN_TIME: Span = Span::from_millis(100);
/// A queue that builds makes a clock look slow. As long as a queue of so many seconds explains it, a clock of
/// at least this many ticks a second counts as one of 1,000, as today's systems have.
const MAX_QUEUE: f64 = 2.0;
const MIN_SLOWED: f64 = 330.0;
/// After this time such a queue no longer hides the rate, and it stays.
const SETTLED: Span = Span::from_secs(10);

/// The delay from a sender's clock to the capture point, without the unknown offset between the two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OneWay {
    first: Option<(Instant, u32)>,
    rate: Option<f64>,
    settled: bool,
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
        let possible = |at: &usize| !self.settled || *at == self.known;
        for at in (0..RATES.len()).filter(possible) {
            self.least[at] = self.least[at].min(offset(RATES[at]));
        }
        if !self.settled && ticks >= MIN_TICKS && elapsed >= MIN_TIME {
            let measured = f64::from(ticks) / elapsed.as_secs_f64();
            let slowed = (MIN_SLOWED..RATES[0]).contains(&measured) && offset(RATES[0]) < MAX_QUEUE;
            let near = |rate: f64| (measured / rate - 1.0).abs() < 0.2;
            let found = if slowed { Some(0) } else { RATES.into_iter().position(near) };
            self.known = found.unwrap_or_default();
            self.rate = found.and_then(|at| RATES.get(at)).copied();
            self.settled = elapsed >= SETTLED && found.is_some();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: behind a queue that builds from the first segment on, a clock of 1 kHz counts as a slower one,
    /// and a queue that stands as none.
    #[test]
    fn a_queue_that_builds_does_not_hide_the_rate() {
        // (growth of the queue in ms per ms, its length in ms)
        for (growth, most) in [(1.5, 110.0), (1.0, 1_900.0), (0.5, 1_500.0)] {
            let mut trip = OneWay::default();
            for ms in 0..20_000_u32 {
                let queue = (f64::from(ms) * growth).min(most);
                trip.see(Instant::from_nanos(((f64::from(ms) + queue) * 1e6) as u64), ms);
                if queue == most {
                    let excess = trip.excess().unwrap().as_secs_f64() * 1e3;
                    assert!((most - 1.0..most + 3.0).contains(&excess), "{ms}: {excess} of {most} ms");
                }
            }
            assert_eq!(trip.rate(), Some(1_000.0));
        }
    }

    /// Breaks: the clocks of older systems are not recognised.
    #[test]
    fn each_rate_is_found() {
        for rate in RATES {
            let mut trip = OneWay::default();
            for step in 0..3_000_u32 {
                let at = f64::from(step) / 100.0;
                trip.see(Instant::from_nanos((at * 1e9) as u64), (at * rate) as u32);
            }
            assert_eq!(trip.rate(), Some(rate));
        }
    }
}
