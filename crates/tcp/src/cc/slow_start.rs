//! Slow start by what is acknowledged (RFC 5681 §3.1, RFC 3465), with HyStart++ if wanted.

use super::AckSample;
use super::fast_start::{FastStart, StartPace};
use super::hystart::HyStart;
use crate::window::Window;
use farpace_events::RecoveryState;
use farpace_units::Packets;

/// How the window grows below its threshold: by a segment for each segment acknowledged.
///
/// RFC 3465 §2.2 bounds the growth by L segments an ACK, and recommends 2, because a stretch ACK lets as many
/// segments leave in one burst as it makes the window grow. Receivers that coalesce (LRO, aggregating radio
/// links, thinned ACKs) answer ten or more segments with one ACK, though, and L = 2 makes slow start on such
/// paths a crawl. So there is no bound unless one is asked for; pacing is the cure for bursts. A split ACK
/// gains nothing: it acknowledges no whole segment until the last part.
#[derive(Clone, Debug)]
pub struct SlowStart {
    /// L; [`Packets::MAX`] for none.
    limit: Packets,
    hystart: Option<HyStart>,
    fast: Option<FastStart>,
    /// Slow start has ended because the window fills the path, and nothing was lost since.
    full: bool,
}

impl SlowStart {
    /// Slow start by at most `limit` segments an ACK (none: all that it acknowledges).
    pub fn new(limit: Option<Packets>, hystart: Option<HyStart>) -> Self {
        SlowStart {
            limit: limit.unwrap_or(Packets::MAX).max(Packets::new(1)),
            hystart,
            fast: None,
            full: false,
        }
    }

    /// The same, and faster while the window is far below what the path holds.
    #[must_use]
    pub fn with_fast_start(mut self, fast: bool) -> Self {
        self.fast = fast.then(FastStart::default);
        self
    }

    /// How fast segments leave, for a window that grows like this.
    pub fn pace(&self, window: &Window) -> StartPace {
        if window.cwnd() >= window.ssthresh() {
            return if self.full { FastStart::full_pace() } else { StartPace::STEADY };
        }
        if window.ssthresh() != Packets::MAX {
            return StartPace::DOUBLES;
        }
        if self.hystart.as_ref().is_some_and(HyStart::doubts) {
            return StartPace::STEADY;
        }
        self.fast.as_ref().map_or(StartPace::DOUBLES, |fast| fast.pace(window.cwnd(), window.mss()))
    }

    /// The window has been cut: what the start told is no longer of use.
    pub fn on_cut(&mut self) {
        self.full = false;
        self.fast = None;
    }

    /// Raises the window as far as slow start goes; returns the acknowledged segments left for congestion
    /// avoidance.
    ///
    /// At the threshold slow start is over. RFC 5681 leaves it open and RFC 9438 §4.10 says it is not, but
    /// the window equals the threshold after each recovery, and then the ACK that ends it, which covers a
    /// whole window, would undo the reduction.
    pub fn on_ack(&mut self, window: &mut Window, ack: &AckSample) -> Packets {
        let (cwnd, ssthresh) = (window.cwnd(), window.ssthresh());
        if cwnd >= ssthresh {
            return ack.acked;
        }
        // RFC 9406 §4.3: only while nothing is known of the path.
        let first = ssthresh == Packets::MAX;
        let mut hystart = self.hystart.as_mut().filter(|_| first);
        if !ack.cwnd_limited {
            if let Some(h) = hystart {
                h.on_ack(ack);
            }
            return Packets::ZERO;
        }
        // RFC 3465 §2.3: after a timeout an ACK may cover what arrived long before.
        let limit = if ack.state == RecoveryState::Loss { Packets::new(1) } else { self.limit };
        let acked = ack.acked.min(limit);
        if !first {
            let step = acked.min(ssthresh - cwnd);
            window.set_cwnd(cwnd + step);
            return acked - step;
        }
        let step = match (hystart.as_deref_mut(), &mut self.fast) {
            (Some(h), Some(fast)) if !h.doubts() => fast.step(cwnd, acked),
            (Some(h), _) => h.growth(acked),
            (None, Some(fast)) => fast.step(cwnd, acked),
            (None, None) => acked,
        };
        window.set_cwnd(cwnd + step);
        if let Some(fast) = &mut self.fast
            && fast.on_ack(ack)
            && fast.may_double_again(window.cwnd())
        {
            window.set_cwnd(window.cwnd() + window.cwnd());
        }
        self.full = self.fast.as_ref().is_some_and(|fast| fast.is_full(window.cwnd()));
        if hystart.is_some_and(|h| h.on_ack(ack)) || self.full {
            window.set_ssthresh(window.cwnd());
        }
        Packets::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::window;
    use farpace_units::Instant;

    fn ack(acked: u32) -> AckSample {
        AckSample::of(Instant::ZERO, Packets::new(acked))
    }

    /// Breaks: slow start: what an ACK is worth by its size, its limit, and the state.
    #[test]
    fn steps() {
        let stretched = AckSample { state: RecoveryState::Loss, ..ack(10) };
        let idle = AckSample { cwnd_limited: false, ..ack(10) };
        // (limit, ack, window, threshold) -> (window, left for congestion avoidance)
        let table = [
            (None, ack(10), (20, 1000), (30, 0)),
            (None, ack(0), (20, 1000), (20, 0)),
            (Some(2), ack(10), (20, 1000), (22, 0)),
            (None, stretched, (20, 1000), (21, 0)),
            (None, idle, (20, 1000), (20, 0)),
            (None, ack(10), (20, 24), (24, 6)),
            (None, ack(10), (24, 24), (24, 10)),
        ];
        for (limit, ack, (cwnd, ssthresh), expected) in table {
            let mut w = window(cwnd, ssthresh);
            let left = SlowStart::new(limit.map(Packets::new), None).on_ack(&mut w, &ack);
            assert_eq!((w.cwnd().get(), left.get()), expected, "{limit:?} {ack:?}");
        }
    }
}
