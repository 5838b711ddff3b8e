//! When a peer is taken to be down.

use farpace_units::{Instant, Span};

/// A peer that was not heard for so long, while no path leads to it, is down. A watchdog ends a gateway that
/// hangs in less.
const SILENCE: Span = Span::from_secs(2);
/// A peer that is heard, but has answered on no path for so long, is down: what is for it does not arrive.
const NO_ANSWER: Span = Span::from_secs(10);

/// Watches a peer.
///
/// A path fails when answers to its probes are overdue. Where a gateway has more to do than it can, they wait
/// behind other datagrams for seconds on all paths at once. Connections would end if that were taken for a
/// peer that is gone.
#[derive(Debug, Default)]
pub struct PeerWatch {
    /// Since when no path leads to the peer.
    down: Option<PeerSilence>,
}

#[derive(Clone, Copy, Debug)]
struct PeerSilence {
    since: Instant,
    /// Bytes of the peer that had come, and since when there were no more.
    heard: u64,
    heard_at: Instant,
}

impl PeerWatch {
    /// Takes in whether a path leads to the peer now. `heard` counts the bytes of authentic packets from the
    /// peer; it is asked only while no path leads there. `has_ended`: the peer has said that it ends, and no
    /// connection needs it. Returns true if the peer is down.
    pub fn is_down(
        &mut self,
        now: Instant,
        is_up: bool,
        has_ended: bool,
        heard: impl FnOnce() -> u64,
    ) -> bool {
        if is_up {
            self.down = None;
            return false;
        }
        if has_ended {
            return true;
        }
        let heard = heard();
        let down = self.down.get_or_insert(PeerSilence { since: now, heard, heard_at: now });
        if down.heard != heard {
            (down.heard, down.heard_at) = (heard, now);
        }
        now.since(down.heard_at) >= SILENCE || now.since(down.since) >= NO_ANSWER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: connections end when both gateways are busy for seconds; a peer that is gone holds traffic for
    /// longer than 2 s, or one that does not get what is sent to it holds it for good; one that has said that
    /// it ends holds traffic after its end.
    #[test]
    fn silence_and_missing_answers_end_a_peer() {
        // Until when a path is up, and from when on again; when bytes of the peer come; when the peer must be
        // down: all in ms.
        let cases = [
            ((1_000, 99_999), (0..1_000, 50), Some(3_000)),
            ((1_000, 99_999), (0..2_500, 50), Some(4_450)),
            ((1_000, 99_999), (0..99_999, 1_900), Some(11_000)),
            ((1_000, 10_500), (0..99_999, 1_900), None),
            ((1_000, 2_900), (0..1_000, 50), None),
        ];
        for (number, ((until, again), (heard, every), expected)) in cases.into_iter().enumerate() {
            let mut watch = PeerWatch::default();
            let mut is_down = |at: u64| {
                let is_up = at < until || at >= again;
                let bytes = || heard.clone().step_by(every).filter(|change| *change <= at).count() as u64;
                watch.is_down(Instant::ZERO + Span::from_millis(at), is_up, false, bytes)
            };
            let down = (0..30_000).step_by(50).find(|at| is_down(*at));
            assert_eq!(down, expected, "case {number}");
        }
        let mut watch = PeerWatch::default();
        let mut ended = |is_up| watch.is_down(Instant::ZERO, is_up, true, || 0);
        assert_eq!([true, false].map(&mut ended), [false, true]);
    }
}
