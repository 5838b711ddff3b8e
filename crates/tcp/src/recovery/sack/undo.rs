//! Taking a reduction back: a loss that was none must not cost the window (RFC 4015).
//!
//! Three proofs: the echoed timestamp is older than the retransmission (Eifel, RFC 3522); D-SACKs say that
//! everything sent again had arrived (RFC 2883, RFC 3708 in spirit); after a timeout, data sent before it is
//! acknowledged without having been sent again (F-RTO, RFC 5682).

use crate::cc::CongestionEvent;
use crate::recovery::Context;
use farpace_events::Cause;
use farpace_units::{Instant, Packets, Seq};

/// Segments that may leave in one burst when the window is put back (RFC 4015 §3.2 step 7 allows the initial
/// window).
const MAX_BURST: u32 = 10;

/// What it takes to undo the last reduction.
#[derive(Clone, Copy, Debug)]
pub struct SackUndo {
    cwnd: Packets,
    ssthresh: Packets,
    /// SND.UNA when the episode began.
    pub marker: Seq,
    /// Our clock, as TSval, at the first retransmission of the episode.
    first_retransmit: Option<u32>,
    /// Retransmissions of the episode before were under way when it began. Their echoes are older than its
    /// own first one, and prove nothing.
    follows: bool,
    /// Retransmissions that no D-SACK has answered yet.
    unanswered: u32,
    retransmitted: bool,
}

impl SackUndo {
    /// Remembers window and threshold before a reduction. `in_flight` retransmissions count as the episode's.
    pub fn new(cx: &Context<'_>, marker: Seq, in_flight: Packets) -> Self {
        SackUndo {
            cwnd: cx.window.cwnd(),
            ssthresh: cx.window.ssthresh(),
            marker,
            first_retransmit: None,
            follows: !in_flight.is_zero(),
            unanswered: in_flight.get(),
            retransmitted: !in_flight.is_zero(),
        }
    }

    /// A segment was sent again.
    pub fn on_retransmit(&mut self, timestamp: u32) {
        self.first_retransmit.get_or_insert(timestamp);
        self.unanswered = self.unanswered.saturating_add(1);
        self.retransmitted = true;
    }

    /// A D-SACK covers `segments` of what was sent since the episode began. True: all of it was in vain.
    pub fn on_dsack(&mut self, segments: u32) -> bool {
        self.unanswered = self.unanswered.saturating_sub(segments);
        self.retransmitted && self.unanswered == 0
    }

    /// RFC 3522 §3.2: the first acknowledgment after the retransmission echoes an older timestamp. `tsecr` of
    /// an ACK that advances SND.UNA.
    pub fn is_spurious_by(&self, tsecr: Option<u32>) -> bool {
        match (tsecr, self.first_retransmit) {
            (Some(echo), Some(first)) if !self.follows => (echo.wrapping_sub(first) as i32) < 0,
            _ => false,
        }
    }

    /// RFC 4015 §3.2: puts the window back, as far as that makes no burst; what is missing comes back by slow
    /// start.
    pub fn apply(self, now: Instant, cause: Cause, cx: &mut Context<'_>) {
        cx.causes.push(cause);
        if cx.cc.owns_window() {
            return cx.cc.on_event(now, cx.window, CongestionEvent::Undo);
        }
        let was = self.cwnd.max(cx.window.cwnd());
        let most = cx.segments.in_flight() + Packets::new(MAX_BURST);
        let ssthresh = if most < was { self.ssthresh.max(was) } else { self.ssthresh };
        cx.window.set_ssthresh(ssthresh.max(cx.window.ssthresh()));
        cx.window.set_cwnd(was.min(most).max(cx.window.cwnd()));
        cx.cc.on_event(now, cx.window, CongestionEvent::Undo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undo(follows: bool) -> SackUndo {
        SackUndo {
            cwnd: Packets::new(20),
            ssthresh: Packets::MAX,
            marker: Seq::new(1),
            first_retransmit: None,
            follows,
            unanswered: u32::from(follows),
            retransmitted: follows,
        }
    }

    /// Breaks: on far paths with losses in every round trip an episode follows the last while its
    /// retransmissions are under way. What answers those was taken for a proof that nothing was lost, and
    /// RACK waited a quarter of a round trip longer from then on.
    #[test]
    fn an_answer_to_the_episode_before_proves_nothing() {
        for (follows, spurious) in [(false, true), (true, false)] {
            let mut undo = undo(follows);
            undo.on_retransmit(500);
            assert_eq!(undo.is_spurious_by(Some(499)), spurious, "follows: {follows}");
            assert!(!undo.is_spurious_by(Some(500)));
        }
    }
}
