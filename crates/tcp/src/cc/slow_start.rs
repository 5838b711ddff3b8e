//! Slow start by what is acknowledged (RFC 5681 §3.1, RFC 3465), with HyStart++ if wanted.

use super::AckSample;
use super::hystart::HyStart;
use crate::window::Window;
use farpace_trace::RecoveryState;
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
}

impl SlowStart {
    /// Slow start by at most `limit` segments an ACK (none: all that it acknowledges).
    pub fn new(limit: Option<Packets>, hystart: Option<HyStart>) -> Self {
        SlowStart { limit: limit.unwrap_or(Packets::MAX).max(Packets::new(1)), hystart }
    }

    /// Raises the window as far as slow start goes; returns the acknowledged segments left for congestion
    /// avoidance.
    ///
    /// At the threshold slow start is over. RFC 5681 leaves it open and RFC 9438 §4.10 says it is not, but
    /// the window equals the threshold after each recovery, and then the ACK that ends it, which covers a whole
    /// window, would undo the reduction.
    pub fn on_ack(&mut self, window: &mut Window, ack: &AckSample) -> Packets {
        let (cwnd, ssthresh) = (window.cwnd(), window.ssthresh());
        if cwnd >= ssthresh {
            return ack.acked;
        }
        // RFC 9406 §4.3: only while nothing is known of the path.
        let hystart = self.hystart.as_mut().filter(|_| ssthresh == Packets::MAX);
        if !ack.cwnd_limited {
            if let Some(h) = hystart {
                h.on_ack(ack);
            }
            return Packets::ZERO;
        }
        // RFC 3465 §2.3: after a timeout an ACK may cover what arrived long before.
        let limit = if ack.state == RecoveryState::Loss { Packets::new(1) } else { self.limit };
        let acked = ack.acked.min(limit);
        let Some(hystart) = hystart else {
            let step = acked.min(ssthresh - cwnd);
            window.set_cwnd(cwnd + step);
            return acked - step;
        };
        window.set_cwnd(cwnd + hystart.growth(acked));
        if hystart.on_ack(ack) {
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
