//! How sure it is that a way loses nothing by itself.

use super::message::Traffic;
use farpace_units::{Instant, Span};

/// What is sent between two looks: queues that overflow lose much of it, chance loses little.
const LOOK: Span = Span::from_millis(20);
/// More than this part lost, and more frames than so many, is a queue that overflows.
const OVERFLOW: f64 = 0.02;
const BY_CHANCE: u64 = 3;
/// After this time what was seen counts half.
const FORGET: Span = Span::from_secs(10);

/// Frames of a way that were sent, and those that were lost though no queue overflowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Frames.
    pub frames: u64,
    /// Of these, those that did not arrive.
    pub lost: u64,
}

impl Evidence {
    /// Share of frames that is lost; zero if nothing is known.
    pub fn loss(self) -> f64 {
        self.lost as f64 / self.frames.max(1) as f64
    }
}

/// Collects [`Evidence`] from what was sent and what arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Witness {
    seen: Evidence,
    /// The last look, which counts if nothing overflows in the next.
    pending: Evidence,
    last: Option<(Instant, Traffic, Traffic)>,
    halved_at: Instant,
}

impl Witness {
    /// A probe was answered: until it was sent at `sent_at`, and came, that much had been sent and had come.
    pub(super) fn add(&mut self, sent_at: Instant, sent: Traffic, received: Traffic) {
        let Some((at, sent_before, received_before)) = self.last else {
            self.last = Some((sent_at, sent, received));
            return;
        };
        if sent_at.since(at) < LOOK {
            return;
        }
        self.last = Some((sent_at, sent, received));
        let counts = sent.since(sent_before).zip(received.since(received_before));
        let Some((out, came)) = counts else { return self.interrupt() };
        let (frames, lost) = (out.frames, out.frames.saturating_sub(came.frames));
        if lost > BY_CHANCE && lost as f64 > frames as f64 * OVERFLOW {
            self.pending = Evidence::default();
            return;
        }
        self.seen.frames += self.pending.frames;
        self.seen.lost += self.pending.lost;
        self.pending = Evidence { frames, lost };
        if sent_at.since(self.halved_at) >= FORGET {
            self.halved_at = sent_at;
            self.seen.frames /= 2;
            self.seen.lost /= 2;
        }
    }
    /// What is lost now says nothing.
    pub(super) fn interrupt(&mut self) {
        (self.last, self.pending) = (None, Evidence::default());
    }
    /// All that was seen.
    pub(super) const fn evidence(&self) -> Evidence {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::ByteCount;

    /// Intervals of 25 ms with so many frames sent and lost.
    fn seen(intervals: &[(u64, u64)]) -> Evidence {
        let mut witness = Witness::default();
        let traffic = |frames| Traffic { frames, bytes: ByteCount::new(frames * 84) };
        let (mut sent, mut came) = (0, 0);
        witness.add(Instant::ZERO, traffic(0), traffic(0));
        for (n, (out, lost)) in intervals.iter().enumerate() {
            sent += out;
            came += out - lost;
            let at = Instant::ZERO + Span::from_millis(25 * (n as u64 + 1));
            witness.add(at, traffic(sent), traffic(came));
        }
        witness.evidence()
    }

    /// Breaks: a queue that we overflow ourselves is taken for a way that loses frames, or such a way for a clean one.
    #[test]
    fn chance_is_told_from_overflow() {
        assert_eq!(seen(&[(100, 0), (100, 1), (100, 0), (100, 0)]), Evidence { frames: 300, lost: 1 });
        let overflows = [(100, 0), (100, 1), (100, 60), (100, 0), (100, 0)];
        assert_eq!(seen(&overflows), Evidence { frames: 200, lost: 0 }, "nor what was just before");
        assert_eq!(seen(&[(50, 3), (50, 0)]).lost, 3);
        assert_eq!(seen(&[]).loss(), 0.0);
    }

    /// Breaks: what a way lost once is held against it for ever.
    #[test]
    fn what_was_long_ago_counts_less() {
        let mut intervals = vec![(1_000, 3); 10];
        intervals.extend([(10, 0); 4_000]);
        assert!(seen(&intervals).lost <= 1, "{:?}", seen(&intervals));
    }
}
