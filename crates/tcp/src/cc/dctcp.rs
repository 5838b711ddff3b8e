//! DCTCP (RFC 8257): the window falls by half of the part of the segments that was marked.
//!
//! M is the marked part of what was delivered in a round trip, α = (1−g)·α + g·M (§3.3). A mark cuts the
//! window to cwnd·(1−α/2), once for each window; a loss cuts it as in Reno (§3.5), and Reno is how it grows
//! (§3.4).
//!
//! Where the RFC leaves SACK out and counts bytes acknowledged, segments delivered are counted here, as
//! AccECN counts marks when segments arrive, in order or not.

use super::rounds::SeqRounds;
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, Cut, Reno};
use crate::window::Window;
use farpace_units::{Instant, Packets};

/// Estimation gain g (RFC 8257 §4.2).
const G: f64 = 1.0 / 16.0;

/// State of DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: Reno,
    /// DCTCP.Alpha, 0..1.
    alpha: f64,
    round: SeqRounds,
    /// Segments of this round trip: delivered, and of them marked.
    delivered: u64,
    marked: u64,
}

impl Dctcp {
    /// DCTCP that grows like this below its threshold. α begins at 1: the first mark halves the window.
    pub fn new(slow_start: SlowStart) -> Self {
        Dctcp {
            reno: Reno::new(slow_start),
            alpha: 1.0,
            round: SeqRounds::default(),
            delivered: 0,
            marked: 0,
        }
    }
}

impl CongestionControl for Dctcp {
    fn on_acked(&mut self, ack: &AckSample) {
        self.delivered += u64::from(ack.delivered.get());
        self.marked += u64::from(ack.marked.get());
        if self.round.on_ack(ack) {
            let delivered = std::mem::take(&mut self.delivered).max(1);
            let m = std::mem::take(&mut self.marked) as f64 / delivered as f64;
            self.alpha = (1.0 - G) * self.alpha + G * m.min(1.0); // RFC 8257 §3.3 steps 5, 6
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.reno.on_ack(window, ack);
    }

    fn ssthresh(&mut self, now: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets {
        let halved = self.reno.ssthresh(now, window, flight, cut);
        if cut != Cut::Ecn {
            return halved;
        }
        // Of the window, because what the ACK took off FlightSize may be more than the cut; but a window of
        // which not even half was used must not count (RFC 7661). At least one segment goes, however small α
        // has become.
        let used = if flight.get() >= window.cwnd().get() / 2 { window.cwnd() } else { flight };
        let left = f64::from(used.get()) * (1.0 - self.alpha / 2.0); // RFC 8257 §3.3 step 9
        Packets::new(left as u32).min(used - Packets::new(1)).max(Packets::new(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        self.reno.undo_cwnd(window)
    }

    fn name(&self) -> &'static str {
        "dctcp"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::window;
    use farpace_units::Seq;

    /// So many round trips of 100 segments, of which `marked` are marked.
    fn rounds(cc: &mut Dctcp, n: u32, marked: u32) {
        for _ in 0..n {
            let ack = AckSample {
                snd_una: Seq::new(1000),
                snd_nxt: Seq::new(1000),
                marked: Packets::new(marked),
                ..AckSample::of(Instant::ZERO, Packets::new(100))
            };
            cc.on_acked(&ack);
        }
    }

    fn dctcp() -> Dctcp {
        let mut cc = Dctcp::new(SlowStart::new(None, None));
        cc.round.on_ack(&AckSample { snd_nxt: Seq::new(500), ..AckSample::of(Instant::ZERO, Packets::ZERO) });
        cc
    }

    fn cut(cc: &mut Dctcp, flight: u32, cut: Cut) -> u32 {
        cc.ssthresh(Instant::ZERO, &window(1000, 2), Packets::new(flight), cut).get()
    }

    /// Breaks: the estimator: α = 1, then 15/16, (15/16)², and with a fifth marked towards 1/5.
    #[test]
    fn alpha_follows_the_marks() {
        let mut cc = dctcp();
        rounds(&mut cc, 2, 0);
        assert_eq!(cc.alpha, 0.878_906_25);
        rounds(&mut cc, 1, 20);
        assert!((cc.alpha - 0.836_474_609).abs() < 1e-9, "{}", cc.alpha);
        rounds(&mut cc, 200, 20);
        assert!((cc.alpha - 0.2).abs() < 1e-5);
    }

    /// Breaks: the cuts: by α/2 for marks, by half for losses, by a segment at least, never below two.
    #[test]
    fn cuts() {
        let mut cc = dctcp();
        assert_eq!(cut(&mut cc, 1000, Cut::Ecn), 500);
        cc.alpha = 0.2;
        assert_eq!([1000, 500, 400].map(|flight| cut(&mut cc, flight, Cut::Ecn)), [900, 900, 360]);
        assert_eq!(cut(&mut cc, 1000, Cut::FastRetransmit), 500);
        rounds(&mut cc, 400, 0);
        assert_eq!([1000, 5, 2].map(|flight| cut(&mut cc, flight, Cut::Ecn)), [999, 4, 2]);
        assert_eq!(cc.undo_cwnd(&window(500, 500)).get(), 1000);
    }
}
