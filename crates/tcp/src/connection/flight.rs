//! What is in flight, and what decides about it: loss recovery, congestion control, and the retransmission
//! timeout.

use super::pacer;
use crate::cc::CongestionControl;
use crate::config::Config;
use crate::recovery::{self, Context, LossRecovery, RecoveryTimer};
use crate::rto::{MinRtt, RtoEstimator, TcpClock, Timed};
use crate::segments::Segments;
use crate::window::Window;
use farpace_events::Cause;
use farpace_units::{Instant, Packets};

/// The outstanding segments and their governors. Only [`recovery`](FlightState::recovery) lends them out
/// together.
pub(super) struct FlightState {
    pub segments: Segments,
    pub window: Window,
    pub recovery: Box<dyn LossRecovery>,
    pub cc: Box<dyn CongestionControl>,
    pub rto: RtoEstimator,
    pub min_rtt: MinRtt,
    pub timed: Timed,
    /// When at least half of the congestion window was in use (RFC 7661).
    pub validated_at: Instant,
    pub rto_deadline: Option<Instant>,
    /// Timeouts since the last acknowledgment of something new.
    pub timeouts_in_row: u32,
    /// Reductions and the like of the call under way, for the trace.
    pub causes: Vec<Cause>,
}

impl FlightState {
    /// Nothing is outstanding. The peer's SYN sizes the window.
    pub fn new(now: Instant, config: &Config, cc: Box<dyn CongestionControl>) -> Self {
        FlightState {
            segments: pacer::queue_for(cc.as_ref()),
            window: Window::new(
                Packets::new(1),
                config.initial_ssthresh,
                config.cwnd_clamp,
                config.byte_counting(),
                u32::from(config.mss),
            ),
            recovery: recovery::make(config.recovery, config.sack),
            cc,
            rto: RtoEstimator::new(config.rto, config.min_rto, TcpClock::new(config.clock)),
            min_rtt: MinRtt::default(),
            timed: Timed::default(),
            validated_at: now,
            rto_deadline: None,
            timeouts_in_row: 0,
            causes: Vec::new(),
        }
    }

    /// The recovery, and what it may change.
    pub fn recovery(&mut self, sack: bool) -> (&mut dyn LossRecovery, Context<'_>) {
        let cx = Context {
            segments: &mut self.segments,
            window: &mut self.window,
            cc: self.cc.as_mut(),
            rto: &mut self.rto,
            min_rtt: &mut self.min_rtt,
            sack,
            causes: &mut self.causes,
        };
        (self.recovery.as_mut(), cx)
    }

    /// Recovery has nothing to wait for when nothing is outstanding.
    pub fn recovery_deadline(&self) -> Option<(Instant, RecoveryTimer)> {
        if self.segments.is_empty() { None } else { self.recovery.deadline() }
    }
}
