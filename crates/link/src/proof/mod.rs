//! Proof of pacing: how evenly the flows of a capture are paced.
//!
//! The frames of a capture are read in two passes. The [`FirstPass`] finds the flows and counts their frames.
//! The [`SecondPass`] sends each flow through a virtual bottleneck of its own mean rate (paper §4.1) and
//! measures what the paper measures (§4.4). Frames are not stored, and memory is bounded for every capture.
//!
//! A time is that of the start of a frame, so that the interval between two frames is that of the first.
//!
//! | concept | file |
//! |---|---|
//! | the flow of a frame | `key` |
//! | the first pass | `first_pass` |
//! | the second pass | `second_pass` |
//! | rate per n packets | `rates` |
//! | intervals between frames | `intervals` |
//! | back-to-back frames | `trains` |
//! | a value over time, in bounded memory | `timeline` |
//! | the rate of the link, if it is not configured | `link_model` |
//! | errors due to the resolution of the clock | `clock` |
//! | the conclusion | `verdict` |

mod clock;
mod first_pass;
mod intervals;
mod key;
mod link_model;
mod rates;
mod second_pass;
mod timeline;
mod trains;
mod verdict;

pub use clock::ClockError;
pub use first_pass::{FirstPass, FlowTotals, GapFrameTotals, InterfaceTotals, Totals};
pub use intervals::Intervals;
pub use key::{Carries, FlowKey, ProofFilter, ProofFilterError};
pub use link_model::LinkModel;
pub use rates::{PerPackets, RATE_WINDOWS};
pub use second_pass::{FlowProof, Peak, SecondPass};
pub use timeline::ProofTimeline;
pub use trains::CaptureTrain;
pub use verdict::{Doubt, ProofVerdict};

use farpace_units::{ByteCount, Instant, Rate, Span};

/// Maximum number of flows. Frames of further flows are counted together.
pub const MAX_FLOWS: usize = 10_000;
/// Maximum number of interfaces whose link and gap frames are examined. Frames of further ones are counted
/// together.
pub const MAX_INTERFACES: usize = 256;
/// Maximum number of flows with queue and rate over time: those with the most bytes.
pub const MAX_TIMELINES: usize = 64;
/// Minimum number of packets for a conclusion about a flow.
pub const MIN_PACKETS: u64 = 100;
/// Maximum queue of a precisely paced flow, in full frames (paper §4.1).
pub const PRECISE_FRAMES: u64 = 2;

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame<'a> {
    /// Its number in the capture, from 1.
    pub number: u64,
    /// The interface of the capture.
    pub interface: u32,
    /// When it began.
    pub time: Instant,
    /// Resolution of that time.
    pub tick: Span,
    /// The captured bytes, from the Ethernet header on.
    pub bytes: &'a [u8],
    /// Its length without check sequence.
    pub len: ByteCount,
}

/// Options of the analysis.
#[derive(Clone, Debug, Default)]
pub struct ProofQuestion {
    /// Selects flows that any of these matches; all if empty.
    pub flows: Vec<ProofFilter>,
    /// The rate to which flows are compared, of layer 2; none: the mean rate of each.
    pub rate: Option<Rate>,
    /// The MTU; none: the longest packet of each flow.
    pub mtu: Option<ByteCount>,
    /// The rate of the link; none: derived from the frames ([`LinkModel`]).
    pub link_rate: Option<Rate>,
    /// Resolution of the clock, if it is coarser than the capture states.
    pub tick: Span,
}

#[cfg(test)]
mod tests;
