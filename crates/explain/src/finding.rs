//! What one cause has done to a transfer.

use crate::cause::Cause;
use farpace_units::{Instant, Span};

/// What one cause has done, with the evidence.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// Time it cost.
    pub time: Span,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// What was seen, in words.
    pub evidence: String,
    /// Some of the frames that show it, in order.
    pub frames: Vec<u64>,
    /// A Wireshark display filter that shows them.
    pub filter: String,
    /// What would help here.
    pub cure: String,
    /// When it first mattered.
    pub first: Option<Instant>,
}
