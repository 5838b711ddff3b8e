//! Losses that were none: what they changed is put back (§5.5.11).

use super::{Bbr, BbrState};

/// What was so when the recovery began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BbrUndo {
    /// The probe that the losses have ended.
    pub state: Option<BbrState>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

impl Bbr {
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = BbrUndo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full_bw_reached = false;
                if self.state != BbrState::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(BbrState::ProbeBwUp) if !matches!(self.state, BbrState::ProbeBwUp | BbrState::ProbeRtt) => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}
