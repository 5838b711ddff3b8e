//! What losses say of the path: short-term bounds, and the volume that was too much (§5.5.10).

use super::{BETA, Bbr, BbrState, LOSS_THRESH};
use crate::segments::LostSegment;

impl Bbr {
    /// Near the begin of an ACK: the best of this round trip so far.
    pub(super) fn update_latest_delivery_signals(&mut self) {
        self.loss_round_start = false;
        if !self.rs.has_data {
            return;
        }
        self.bw_latest = self.bw_latest.max(self.rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(self.rs.delivered);
        if self.rs.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    /// Near its end: the next round trip begins with this sample.
    pub(super) fn advance_latest_delivery_signals(&mut self) {
        if self.loss_round_start {
            self.bw_latest = self.rs.delivery_rate;
            self.inflight_latest = self.rs.delivered;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn update_congestion_signals(&mut self) {
        self.update_max_bw();
        if self.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.is_loss_in_round = false;
        }
    }

    /// Once per round trip: where bandwidth is not being probed, losses mean that the path carries less.
    fn adapt_lower_bounds_from_congestion(&mut self) {
        let probing = matches!(self.state, BbrState::Startup | BbrState::ProbeBwRefill | BbrState::ProbeBwUp);
        if probing || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw.get();
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// More than the tolerable part of what was in flight was lost.
    pub(super) fn is_inflight_too_high(&self) -> bool {
        self.rs.lost > self.rs.tx_in_flight * LOSS_THRESH || (self.rs.lost > 0.0 && !self.has_sack)
    }

    pub(super) fn handle_lost_segment(&mut self, lost: &LostSegment) {
        self.delivered = lost.total_delivered;
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            // Within a recovery the state was saved when it began: what came since is part of the same
            // mistake, if it is one.
            if !self.in_loss_recovery {
                self.save_state_upon_loss();
            }
        }
        self.is_loss_in_round = true;
        self.lost_ranges = self.lost_ranges.saturating_add(u32::from(self.lost_end != Some(lost.seq)));
        self.lost_end = Some(lost.end);
        if !self.is_bw_probe_sample {
            return;
        }
        self.rs.tx_in_flight = f64::from(lost.in_flight_at_send.get());
        self.rs.lost = f64::from(lost.lost.get());
        self.rs.app_limited = lost.app_limited;
        if self.is_inflight_too_high() {
            self.rs.tx_in_flight = self.inflight_at_loss();
            self.handle_inflight_too_high();
        }
    }

    /// The volume in flight at which the loss rate crossed the threshold; the segment is the last part of it.
    fn inflight_at_loss(&self) -> f64 {
        let inflight_prev = (self.rs.tx_in_flight - 1.0).max(0.0);
        let lost_prev = (self.rs.lost - 1.0).max(0.0);
        let prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
        inflight_prev + prefix.max(0.0)
    }

    fn handle_inflight_too_high(&mut self) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !self.rs.app_limited {
            // Whole segments: a window can reach the bound, and that means something.
            self.inflight_longterm = self.rs.tx_in_flight.max(self.target_inflight() * BETA).floor();
        }
        if self.state == BbrState::ProbeBwUp {
            self.undo.state = Some(BbrState::ProbeBwUp);
            self.start_probe_bw_down();
        }
    }

    /// The BDP, unless congestion has cut the window below it.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp(self.bw, 1.0).unwrap_or(self.cwnd).min(self.cwnd)
    }
}
