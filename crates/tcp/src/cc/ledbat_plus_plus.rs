//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus, LP below; RFC 6817): a transfer that gives way to all others.
//!
//! With `base` the least round trip and `delay` the least of the last four less `base`, for each round trip:
//! * GAIN = 1/min(16, ceil(2·60 ms/base)); slow start grows by GAIN for each segment acknowledged;
//! * delay < 60 ms: W += GAIN; else W += max(GAIN − W·(delay/60 ms − 1), −W/2);
//! * the first slow start ends at delay > 45 ms.
//!
//! Two round trips later, and then each time nine times as long as it took, comes a slowdown: two segments
//! for two round trips, and slow start to the window before. In it the queue of this transfer goes, and
//! `base` is seen. All of it runs on the ACK clock: a sender that waits for its application does not slow
//! down.

use super::rounds::SeqRounds;
use super::{AckSample, CongestionControl, CongestionEvent, Cut};
use crate::rto::MinRtt;
use crate::window::Window;
use farpace_events::RecoveryState;
use farpace_units::{Instant, Packets, Span};

/// The queueing delay that it keeps to (LP §4.5).
const TARGET: Span = Span::from_millis(60);
/// The smallest GAIN is 1 by this (LP §4.2).
const MAX_DIVISOR: f64 = 16.0;
/// The window in a slowdown, and the least one, segments (LP §4.4).
const MIN_CWND: u32 = 2;
/// Round trips that a slowdown waits, and from the first slow start to the first slowdown.
const SLOWDOWN_ROUNDS: u64 = 2;
/// The time between slowdowns is this times the length of the last one: a tenth of the rate at most is lost.
const SLOWDOWN_INTERVAL: u64 = 9;
/// Samples that the current delay is the least of (RFC 6817 §4.2: CURRENT_FILTER).
const CURRENT_FILTER: usize = 4;

/// Where it is between slowdowns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowdownPhase {
    /// The first slow start.
    Start,
    /// The next slowdown comes then.
    Steady { slowdown_at: Instant },
    /// Two segments in flight, for so many more round trips.
    Frozen { since: Instant, rounds: u64 },
    /// Slow start to the window before.
    Climbing { since: Instant },
}

/// State of LEDBAT++.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    phase: SlowdownPhase,
    /// Round trips of a slowdown.
    round: SeqRounds,
    base: MinRtt,
    current: [Span; CURRENT_FILTER],
    samples: usize,
    /// The part of a segment by which the window should be larger, in -1..1.
    fraction: f64,
    /// Window and phase before the last reduction.
    prior: Option<(Packets, SlowdownPhase)>,
}

impl Default for LedbatPlusPlus {
    fn default() -> Self {
        LedbatPlusPlus {
            phase: SlowdownPhase::Start,
            round: SeqRounds::default(),
            base: MinRtt::default(),
            current: [Span::ZERO; CURRENT_FILTER],
            samples: 0,
            fraction: 0.0,
            prior: None,
        }
    }
}

impl LedbatPlusPlus {
    /// GAIN, 1/16 to 1 (LP §4.2); the least before the first sample.
    fn gain(&self) -> f64 {
        let base = self.base.get().map_or(0.0, Span::as_secs_f64);
        1.0 / (2.0 * TARGET.as_secs_f64() / base).ceil().clamp(1.0, MAX_DIVISOR)
    }

    /// The current queueing delay.
    fn delay(&self) -> Span {
        let least = self.current.iter().take(self.samples).min();
        least.zip(self.base.get()).map_or(Span::ZERO, |(least, base)| *least - base)
    }

    /// Grows by `step` segments, or falls.
    fn add(&mut self, window: &mut Window, step: f64) {
        let cwnd = f64::from(window.cwnd().get());
        let sum = self.fraction + step;
        self.fraction = sum.fract();
        // A cast from floating point saturates.
        let cwnd = Packets::new((cwnd + sum.trunc()) as u32).max(Packets::new(MIN_CWND));
        window.set_cwnd(cwnd);
    }

    fn slow_start(&mut self, window: &mut Window, ack: &AckSample) {
        if self.phase == SlowdownPhase::Start && self.delay() > TARGET * 3 / 4 {
            window.set_ssthresh(window.cwnd()); // LP §4.3
            return self.leave_start(ack);
        }
        // RFC 3465 §2.3: after a timeout an ACK may cover what arrived long before.
        let limit = if ack.state == RecoveryState::Loss { 1 } else { u32::MAX };
        let room = f64::from((window.ssthresh() - window.cwnd()).get());
        let step = self.gain() * f64::from(ack.acked.get().min(limit));
        self.add(window, step.min(room));
    }

    fn follow_delay(&mut self, window: &mut Window, ack: &AckSample) {
        let cwnd = f64::from(window.cwnd().get());
        let excess = self.delay().as_secs_f64() / TARGET.as_secs_f64() - 1.0;
        let per_round = if excess < 0.0 {
            self.gain()
        } else {
            (self.gain() - cwnd * excess).max(-cwnd / 2.0) // LP §4.2
        };
        self.add(window, per_round * (f64::from(ack.acked.get()) / cwnd).min(1.0));
        // Below the threshold slow start would undo the step.
        window.set_ssthresh(window.ssthresh().min(window.cwnd()));
    }

    fn leave_start(&mut self, ack: &AckSample) {
        self.phase = SlowdownPhase::Steady { slowdown_at: ack.now + ack.srtt * SLOWDOWN_ROUNDS };
    }

    /// The slowdown is over: the next one comes nine times as long from now.
    fn schedule(&mut self, now: Instant, since: Instant) {
        self.phase = SlowdownPhase::Steady { slowdown_at: now + now.since(since) * SLOWDOWN_INTERVAL };
    }
}

impl CongestionControl for LedbatPlusPlus {
    fn on_acked(&mut self, ack: &AckSample) {
        let Some(rtt) = ack.rtt else { return };
        self.base.sample(ack.now, rtt);
        self.base.raise(ack.base_of_paths);
        self.current.rotate_right(1);
        self.current[0] = rtt;
        self.samples = (self.samples + 1).min(CURRENT_FILTER);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.cwnd_limited || ack.acked.is_zero() {
            return;
        }
        if let SlowdownPhase::Frozen { since, rounds } = self.phase {
            // By round trips, not by time: the one that was measured last has the queue in it.
            let rounds = rounds - u64::from(self.round.on_ack(ack));
            self.phase = if rounds > 0 {
                SlowdownPhase::Frozen { since, rounds }
            } else {
                SlowdownPhase::Climbing { since }
            };
            return;
        }
        if window.cwnd() < window.ssthresh() {
            return self.slow_start(window, ack);
        }
        match self.phase {
            SlowdownPhase::Start => self.leave_start(ack),
            SlowdownPhase::Climbing { since } => self.schedule(ack.now, since),
            SlowdownPhase::Steady { slowdown_at } if ack.now >= slowdown_at => {
                window.set_ssthresh(window.cwnd());
                window.set_cwnd(Packets::new(MIN_CWND));
                self.fraction = 0.0;
                self.phase = SlowdownPhase::Frozen { since: ack.now, rounds: SLOWDOWN_ROUNDS };
                self.round = SeqRounds::default();
                self.round.on_ack(ack);
                return;
            }
            _ => {}
        }
        self.follow_delay(window, ack);
    }

    fn ssthresh(&mut self, now: Instant, window: &Window, flight: Packets, _: Cut) -> Packets {
        self.prior = Some((window.cwnd(), self.phase));
        self.fraction = 0.0;
        let mut cwnd = window.cwnd();
        match self.phase {
            SlowdownPhase::Frozen { since, .. } => {
                // What is lost was sent by the window before, and that is what has to come down.
                if cwnd.get() <= MIN_CWND {
                    cwnd = window.ssthresh();
                }
                self.schedule(now, since);
            }
            SlowdownPhase::Climbing { since } => self.schedule(now, since),
            SlowdownPhase::Start | SlowdownPhase::Steady { .. } => {}
        }
        Packets::new((cwnd.min(flight).get() / 2).max(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior.map_or(Packets::ZERO, |p| p.0))
    }

    fn on_event(&mut self, _: Instant, _: &mut Window, event: CongestionEvent) {
        if let (CongestionEvent::Undo, Some((_, phase))) = (event, self.prior) {
            self.phase = phase;
            self.prior = None;
        }
    }

    fn name(&self) -> &'static str {
        "ledbat-plus-plus"
    }
}

#[cfg(test)]
mod tests;
