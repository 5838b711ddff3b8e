//! Reno as systems had it before byte counting: a step per ACK, however much it acknowledges.

use super::{AckSample, CongestionControl, Cut};
use crate::window::Window;
use farpace_units::{Instant, Packets};

/// Reno of RFC 5681 §3.1 by ACKs. It keeps nothing besides the window.
///
/// The Linux 2.6 profiles and `newreno` have it: their vectors pin each step.
#[derive(Clone, Debug, Default)]
pub struct PerAckReno;

impl CongestionControl for PerAckReno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        // A window that is not used says nothing about the path.
        if ack.in_flight_before < window.cwnd() {
            return;
        }
        if window.in_slow_start() {
            window.slow_start();
        } else {
            // cwnd += 1/cwnd per ACK (RFC 5681 eq. 3)
            window.count_towards(window.cwnd().get().saturating_sub(1));
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        Packets::new((window.cwnd().get() / 2).max(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        Packets::new(window.ssthresh().get() / 2)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        Packets::new(window.cwnd().get().max(window.ssthresh().get().saturating_mul(2)))
    }

    fn name(&self) -> &'static str {
        "reno"
    }
}
