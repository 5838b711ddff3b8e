//! Reno.

use super::{additive_increase, slow_start};
use crate::cc::{AckSample, CongestionControl, Cut};
use crate::window::Window;
use farpace_units::{Instant, Packets};

/// Reno of profile `linux`.
#[derive(Clone, Debug, Default)]
pub struct LinuxReno {
    /// The window before the last reduction.
    prior: Packets,
}

impl CongestionControl for LinuxReno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked.get();
        if window.cwnd() < window.ssthresh() {
            acked = slow_start(window, acked);
        }
        if acked > 0 {
            additive_increase(window, window.cwnd().get(), acked);
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        self.prior = window.cwnd();
        Packets::new((window.cwnd().get() / 2).max(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        Packets::new(window.ssthresh().get() / 2)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior)
    }

    fn name(&self) -> &'static str {
        "reno"
    }
}
