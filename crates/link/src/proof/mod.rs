//! Proof of pacing: how evenly the flows of a capture are paced.
//!
//! Frames with their times come in, in two passes: the [`FirstPass`] says which flows there are, how much each has sent
//! and how long; the [`SecondPass`] then lets each flow through the virtual bottleneck of its own mean rate (paper §4.1) and
//! measures what the paper measures (§4.4). No frame is kept, and memory is bounded whatever is in a capture.
//!
//! A time is that of a frame's start, so that the time from one frame to the next belongs to the first of the two.
//!
//! | concept | file |
//! |---|---|
//! | which flow a frame belongs to | `key` |
//! | the first pass | `census` |
//! | the second pass | `trial` |
//! | rate per n packets | `rates` |
//! | times from frame to frame | `intervals` |
//! | frames back to back | `trains` |
//! | a value over time, in bounded memory | `timeline` |
//! | the rate of the line, if nobody says it | `line` |
//! | what a clock's resolution leaves open | `clock` |
//! | what follows from all that | `verdict` |

mod clock;
mod first_pass;
mod intervals;
mod key;
mod line;
mod rates;
mod second_pass;
mod timeline;
mod trains;
mod verdict;

pub use clock::ClockError;
pub use first_pass::{FirstPass, FlowTotals, GapFrameTotals, InterfaceTotals, Totals};
pub use intervals::Intervals;
pub use key::{Carries, FilterError, FlowFilter, FlowKey};
pub use line::LinkModel;
pub use rates::{PerPackets, RATE_WINDOWS};
pub use second_pass::{FlowProof, Peak, SecondPass};
pub use timeline::Timeline;
pub use trains::CaptureTrain;
pub use verdict::{Doubt, ProofVerdict};

use farpace_units::{ByteCount, Instant, Rate, Span};

/// Flows that are told apart; frames of further ones are counted together.
pub const MAX_FLOWS: usize = 10_000;
/// Interfaces whose line and gap frames are looked at; frames of further ones are counted together.
pub const MAX_INTERFACES: usize = 256;
/// Flows whose queue and rate are kept over time: those with the most bytes.
pub const MAX_TIMELINES: usize = 64;
/// Packets below which nothing is said about a flow.
pub const MIN_PACKETS: u64 = 100;
/// The queue of a flow that is paced precisely, in full frames (paper §4.1).
pub const PRECISE_FRAMES: u64 = 2;

/// A frame as a capture has it.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// Its place in the capture, counted from 1.
    pub number: u64,
    /// Where it was captured.
    pub interface: u32,
    /// When it began.
    pub time: Instant,
    /// A tick of the clock that says so.
    pub tick: Span,
    /// What was kept of it, from the Ethernet header on.
    pub bytes: &'a [u8],
    /// How long it was, without its check sequence.
    pub len: ByteCount,
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct ProofQuestion {
    /// Only flows that one of these matches; all if there is none.
    pub flows: Vec<FlowFilter>,
    /// The rate that flows are held against, of layer 2; none: the mean rate of each.
    pub rate: Option<Rate>,
    /// The longest IP packet; none: the longest of each flow.
    pub mtu: Option<ByteCount>,
    /// The rate of the line; none: what the frames themselves say ([`LinkModel`]).
    pub line: Option<Rate>,
    /// A tick of the clock, if it is coarser than the capture says.
    pub tick: Span,
}

#[cfg(test)]
mod tests;
