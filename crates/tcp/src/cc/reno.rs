//! Reno (RFC 5681 §3.1): one segment per round trip, half on loss.

use super::{AckSample, CongestionControl, Cut, Event};
use crate::window::Window;
use farpace_trace::RecoveryState;
use farpace_units::Packets;

/// Reno keeps nothing besides the window.
#[derive(Clone, Debug, Default)]
pub struct Reno;

impl CongestionControl for Reno {
    fn on_acked(&mut self, _: Packets, _: RecoveryState) {}

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

    fn ssthresh(&mut self, window: &Window, _: Cut) -> Packets {
        Packets::new((window.cwnd().get() / 2).max(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        Packets::new(window.ssthresh().get() / 2)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        Packets::new(window.cwnd().get().max(window.ssthresh().get().saturating_mul(2)))
    }

    fn on_event(&mut self, _: Event) {}

    fn name(&self) -> &'static str {
        "reno"
    }
}
