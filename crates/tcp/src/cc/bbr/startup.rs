//! Startup and Drain: the bandwidth is found in a logarithmic number of round trips, and the queue that this
//! made is taken away again (§5.3.1, §5.3.2).

use super::{Bbr, BbrState};

/// Growth of the delivery rate in a round trip that shows that the pipe is not full.
const FULL_BW_GROWTH: f64 = 1.25;
/// Round trips without it after which the pipe is full.
const FULL_BW_ROUNDS: u32 = 3;
/// BBRStartupFullLossCnt: discontiguous ranges lost in a round trip that end Startup.
const STARTUP_FULL_LOSS_CNT: u32 = 6;
/// Round trips after which Drain ends in any case.
const DRAIN_ROUNDS: u64 = 3;

impl Bbr {
    pub(super) fn enter_startup(&mut self) {
        self.state = BbrState::Startup;
    }

    pub(super) fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// §5.3.1.2.
    pub(super) fn check_full_bw_reached(&mut self) {
        if self.full_bw_now || !self.rounds.start || self.rs.app_limited {
            return;
        }
        if self.rs.delivery_rate >= self.full_bw * FULL_BW_GROWTH {
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    pub(super) fn check_startup_done(&mut self) {
        self.check_startup_high_loss();
        if self.state == BbrState::Startup && self.full_bw_reached {
            self.state = BbrState::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    /// §5.3.1.3. The end of a loss round trip comes a full round trip after the first loss.
    fn check_startup_high_loss(&mut self) {
        let ranges = self.lost_ranges;
        if self.loss_round_start {
            self.lost_ranges = 0;
        }
        let enough = ranges >= STARTUP_FULL_LOSS_CNT || !self.has_sack;
        if self.state == BbrState::Startup
            && !self.full_bw_reached
            && self.loss_round_start
            && self.in_loss_recovery
            && enough
            && self.is_inflight_too_high()
        {
            self.undo.state = Some(BbrState::Startup);
            (self.full_bw_now, self.full_bw_reached) = (true, true);
            let bdp = self.bdp(self.bw, 1.0).unwrap_or(0.0);
            self.inflight_longterm = bdp.max(self.inflight_latest).floor();
        }
    }

    pub(super) fn check_drain_done(&mut self) {
        if self.state == BbrState::Drain
            && (self.in_flight <= self.inflight(self.bw, 1.0)
                || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down();
        }
    }
}
