//! What releases data behind a short segment: the program's own clock, or the ACK that makes room in the send
//! buffer.

use farpace_units::{Instant, Span};

/// Chance does it more rarely.
const MAX_CHANCE: f64 = 0.01;

/// How often data behind a short segment left as soon as an ACK had come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refills {
    all: u32,
    at_once: u32,
    /// Time that lies directly behind an ACK, of all the time since the first ACK.
    covered: Span,
    acks: Option<(Instant, Instant)>,
}

impl Refills {
    /// An ACK of new data; what leaves within `soon` counts as released by it.
    pub fn acked(&mut self, now: Instant, soon: Span) {
        let (first, last) = self.acks.unwrap_or((now, now));
        self.covered += now.since(last).min(soon);
        self.acks = Some((first, now));
    }

    /// Data left behind a short segment, after a pause.
    pub fn refilled(&mut self, at_once: bool) {
        self.all = self.all.saturating_add(1);
        self.at_once = self.at_once.saturating_add(u32::from(at_once));
    }

    /// ACKs release this data: more often directly behind an ACK than chance would have it. A program that
    /// fills its send buffer is woken by the ACK that frees a part of it.
    pub fn by_acks(&self) -> bool {
        let Some((first, last)) = self.acks else { return false };
        let whole = last.since(first).as_secs_f64();
        if whole <= 0.0 || self.at_once * 10 < self.all * 9 {
            return false;
        }
        let share = (self.covered.as_secs_f64() / whole).min(1.0);
        libm::pow(share, f64::from(self.at_once)) < MAX_CHANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Span = Span::from_micros(200);

    /// Ten ACKs at the beginning of each of so many round trips of 50 ms, `spaced` apart.
    fn acks(rounds: u64, spaced: Span) -> Refills {
        let mut refills = Refills::default();
        for round in 0..rounds {
            for ack in 0..10 {
                refills.acked(Instant::ZERO + Span::from_millis(50) * round + spaced * ack, SOON);
            }
        }
        refills
    }

    /// Breaks: a send buffer is taken for a program that pauses, or the reverse.
    #[test]
    fn what_leaves_behind_acks_is_released_by_them() {
        let mut refills = acks(20, SOON);
        assert!(!refills.by_acks());
        refills.refilled(true);
        assert!(!refills.by_acks(), "once may be chance");
        (0..9).for_each(|_| refills.refilled(true));
        assert!(refills.by_acks());
        refills.refilled(false);
        assert!(refills.by_acks(), "a program that is woken late once");
        refills.refilled(false);
        assert!(!refills.by_acks(), "a clock of its own");
    }

    /// Breaks: where ACKs come all the time, each segment follows one, which tells nothing.
    #[test]
    fn dense_acks_tell_nothing() {
        let mut refills = acks(20, Span::from_millis(5));
        (0..10).for_each(|_| refills.refilled(true));
        assert!(refills.by_acks());
        let mut dense = Refills::default();
        (0..1_000).for_each(|n| dense.acked(Instant::ZERO + Span::from_micros(150) * n, SOON));
        (0..10).for_each(|_| dense.refilled(true));
        assert!(!dense.by_acks());
    }
}
