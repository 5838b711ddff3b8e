//! The timeout from ACKs that were not held back (the thesis's RTO of CDL): what the path takes, and apart
//! from it what the receiver may hold an ACK back.
//!
//! RTO = srtt + max(G, 4 rttvar, margin) + D. srtt and rttvar are those of RFC 6298, from the undelayed round
//! trips alone. D is zero if every segment that the timer guards has asked for its ACK at once, else the most
//! by which late samples that were not confirmed exceeded srtt. The margin is that of [`Rfc6298::margin`]:
//! round trips without the receiver's delay vary even less than others, so what it guards against (a
//! variation of nothing, RACK's wait) is as true here; and D is a delay that is known to happen, so it is
//! added, not taken into the margin.

use super::{Rfc6298, RttSample};
use farpace_units::{Instant, Span};

/// So many samples that were not confirmed are looked back at.
const LOOK_BACK: usize = 16;
/// D before the first of them, and as long as one of these still stands among them.
const INITIAL_DELAY: Span = Span::from_millis(200);
/// Most that a receiver may hold an ACK back (RFC 5681 §4.2).
const MAX_DELAY: Span = Span::from_millis(500);
/// So many confirmed samples make the estimate usable.
const ENOUGH: u32 = 3;
/// It is usable no more when so many of its round trips have brought none.
const FRESH: u64 = 10;

/// Two estimators: of the confirmed samples, and, for as long as there are too few, of all.
#[derive(Clone, Debug)]
pub struct Cdl {
    undelayed: Rfc6298,
    all: Rfc6298,
    /// Confirmed samples so far.
    confirmed: u32,
    confirmed_at: Instant,
    sampled_at: Instant,
    /// By how much the last unconfirmed samples exceeded the undelayed srtt, in a ring.
    held_back: [Span; LOOK_BACK],
    next: usize,
    guarded_asked: bool,
}

impl Cdl {
    /// No sample yet; `min` and `granularity` are those of RFC 6298.
    pub fn new(min: Span, granularity: Span) -> Self {
        let estimator = Rfc6298::new(min, granularity);
        Cdl {
            undelayed: estimator.clone(),
            all: estimator,
            confirmed: 0,
            confirmed_at: Instant::ZERO,
            sampled_at: Instant::ZERO,
            held_back: [INITIAL_DELAY; LOOK_BACK],
            next: 0,
            guarded_asked: false,
        }
    }

    /// Takes a sample in.
    pub fn sample(&mut self, s: &RttSample) {
        self.sampled_at = s.now;
        self.all.sample(s.rtt);
        if let Some(rtt) = s.undelayed {
            self.undelayed.sample(rtt);
            self.confirmed = self.confirmed.saturating_add(1);
            self.confirmed_at = s.now;
        } else if self.confirmed > 0
            && let Some(slot) = self.held_back.get_mut(self.next)
        {
            *slot = (s.rtt - self.undelayed.srtt()).min(MAX_DELAY);
            self.next = (self.next + 1) % LOOK_BACK;
        }
    }

    /// See [`RtoEstimator::set_guarded_asked`](super::RtoEstimator::set_guarded_asked).
    pub fn set_guarded_asked(&mut self, asked: bool) {
        self.guarded_asked = asked;
    }

    /// See [`RtoEstimator::restart_after_syn_timeout`](super::RtoEstimator::restart_after_syn_timeout).
    pub fn restart_after_syn_timeout(&mut self) {
        self.all.restart_after_syn_timeout();
    }

    /// Confirmed samples are there, and the last one is not too old. As of the latest sample: without any,
    /// nothing speaks for another estimate.
    fn is_usable(&self) -> bool {
        self.confirmed >= ENOUGH && self.sampled_at.since(self.confirmed_at) <= self.undelayed.srtt() * FRESH
    }

    /// The estimator in force.
    fn current(&self) -> &Rfc6298 {
        if self.is_usable() { &self.undelayed } else { &self.all }
    }

    /// What the receiver may hold back of the segments that the timer guards.
    fn delay(&self) -> Span {
        if self.guarded_asked {
            return Span::ZERO;
        }
        self.held_back.iter().copied().max().unwrap_or(INITIAL_DELAY)
    }

    /// The timeout.
    pub fn rto(&self) -> Span {
        if !self.is_usable() {
            return self.all.rto();
        }
        let e = &self.undelayed;
        (e.srtt() + e.margin() + self.delay()).max(e.min())
    }

    /// Smoothed round-trip time of the estimator in force.
    pub fn srtt(&self) -> Span {
        self.current().srtt()
    }

    /// Its variation.
    pub fn rttvar(&self) -> Span {
        self.current().rttvar()
    }

    /// Smoothed undelayed round-trip time, from the first confirmed sample on.
    pub fn undelayed_srtt(&self) -> Option<Span> {
        (self.confirmed > 0).then(|| self.undelayed.srtt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Seq;

    const MS: Span = Span::from_millis(1);

    fn feed(e: &mut Cdl, at: u64, rtt: u64, undelayed: Option<u64>) {
        e.sample(&RttSample {
            now: Instant::ZERO + MS * at,
            rtt: MS * rtt,
            undelayed: undelayed.map(|ms| MS * ms),
            snd_una: Seq::new(0),
            snd_nxt: Seq::new(0),
        });
    }

    /// 600 ms without delay, confirmed so often that only the margin (3/8 of srtt) is left of the variation.
    fn steady() -> Cdl {
        let mut e = Cdl::new(MS * 200, MS);
        (0..60).for_each(|i| feed(&mut e, i * 600, 600, Some(600)));
        e
    }

    /// Breaks: the formula: nothing is added for the receiver's delay where all have asked, and what was seen
    /// of it where not.
    #[test]
    fn the_delay_counts_only_where_it_may_happen() {
        let mut e = steady();
        assert_eq!(e.rto(), MS * (600 + 225 + 200), "nothing known of the delay: 200 ms");
        e.set_guarded_asked(true);
        assert_eq!(e.rto(), MS * (600 + 225));
        e.set_guarded_asked(false);
        (0..16).for_each(|i| feed(&mut e, 36_000 + i, 640, None));
        assert_eq!(e.rto(), MS * (600 + 225 + 40));
        assert_eq!(e.srtt(), MS * 600, "unconfirmed samples do not touch it");
        assert_eq!(e.all.srtt().as_millis(), 635);
    }

    /// Breaks: D is the most of the last 16, from 0 to 500 ms; the first guess goes with the sixteenth.
    #[test]
    fn the_delay_is_the_greatest_of_late() {
        let mut e = steady();
        let mut delays = Vec::new();
        for i in 0..32 {
            let rtt = [700, 1_500, 500][usize::from(i >= 1) + usize::from(i >= 2)];
            feed(&mut e, 36_000 + i, rtt, None);
            delays.push(e.delay().as_millis());
        }
        let expected = [vec![200], vec![500; 16], vec![0; 15]].concat();
        assert_eq!(delays, expected);
    }

    /// Breaks: the standard estimate until three were confirmed, and again when none was for ten round trips.
    #[test]
    fn too_few_confirmed_samples() {
        let mut e = Cdl::new(MS * 200, MS);
        assert_eq!((e.rto(), e.undelayed_srtt()), (Span::from_secs(1), None));
        e.restart_after_syn_timeout();
        assert_eq!(e.rto(), Span::from_secs(3));
        for at in [0, 1] {
            feed(&mut e, at, 150, Some(100));
            assert_eq!((e.srtt(), e.undelayed_srtt()), (MS * 150, Some(MS * 100)));
            assert_eq!(e.rto(), e.all.rto());
        }
        feed(&mut e, 2, 150, Some(100));
        assert_eq!(e.srtt(), MS * 100);
        feed(&mut e, 1_002, 150, None);
        assert_eq!(e.srtt(), MS * 100, "ten round trips later");
        feed(&mut e, 1_003, 150, None);
        assert_eq!((e.srtt(), e.rto()), (MS * 150, e.all.rto()));
        feed(&mut e, 1_004, 150, Some(100));
        assert_eq!(e.srtt(), MS * 100, "one confirms the others");
    }
}
