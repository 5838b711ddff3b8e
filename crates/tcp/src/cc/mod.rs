//! Congestion control: one algorithm a file, behind one contract.

mod bic;
mod reno;

pub use bic::Bic;
pub use reno::Reno;

use crate::config::Congestion;
use crate::window::Window;
use farpace_trace::RecoveryState;
use farpace_units::{Instant, Packets};

/// Why the window has to come down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Loss found by duplicate ACKs or SACK.
    FastRetransmit,
    /// The network marked a packet (RFC 3168).
    Ecn,
    /// The retransmission timer fired.
    Timeout,
}

/// What an ACK that may raise the window brought.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Arrival of the ACK.
    pub now: Instant,
    /// Segments newly acknowledged.
    pub acked: Packets,
    /// Segments in flight before this ACK was processed.
    pub in_flight_before: Packets,
}

/// Something congestion control should know besides ACKs and cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A retransmission timeout has been handled (Linux: the state becomes Loss).
    EnterLoss,
}

/// How a connection sizes its congestion window.
///
/// The contract: recovery decides when each method is called, because the order is part of the algorithm.
/// `on_acked` comes for every ACK that acknowledges data; `on_ack` only for those that may raise the window
/// (never in fast recovery). `ssthresh` is asked once per reduction and changes nothing in the window itself.
pub trait CongestionControl: Send {
    /// Data was acknowledged in `state`; only measures.
    fn on_acked(&mut self, acked: Packets, state: RecoveryState);
    /// Raises the window.
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample);
    /// The new slow-start threshold for a reduction now, in segments, at least 2.
    fn ssthresh(&mut self, window: &Window, cut: Cut) -> Packets;
    /// Lower bound of a gradual reduction (rate halving).
    fn min_cwnd(&self, window: &Window) -> Packets;
    /// The window to return to when a reduction proves to be a mistake.
    fn undo_cwnd(&self, window: &Window) -> Packets;
    /// Something happened.
    fn on_event(&mut self, event: Event);
    /// The algorithm's name, as scenarios write it.
    fn name(&self) -> &'static str;
}

/// Makes the algorithm that was chosen.
pub(crate) fn make(kind: Congestion) -> Box<dyn CongestionControl> {
    match kind {
        Congestion::Reno => Box::new(Reno),
        Congestion::Bic => Box::new(Bic::default()),
    }
}
