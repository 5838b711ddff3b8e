//! What a run records.

use farpace_units::{ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trace {
    /// Width of the bins of bandwidth and of the samples of connection variables.
    pub bin: Span,
    /// Where packets are captured. A host's name: at its NIC; if it has several, above them and at each, one
    /// capture for each place. A link's name: at both its ends, two captures. A capture holds what goes into
    /// the link at that end (before pacing, impairments and queue) and what comes out of it there.
    pub taps: Vec<String>,
    /// Bytes kept of each captured frame, from 96 B; 128 B hold all headers.
    pub snaplen: ByteCount,
    /// Resolution of the times in captures: `exact`, or that of a measuring device.
    pub clock: CaptureClock,
}

/// Resolution of the times in captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureClock {
    /// A nanosecond.
    #[default]
    Exact,
    /// Multiples of 2^-24 s (59.6 ns), rounded down, as GtrcNET-1 stamps packets.
    Gtrcnet,
}

impl Default for Trace {
    fn default() -> Self {
        Trace {
            bin: Span::from_millis(10),
            taps: Vec::new(),
            snaplen: ByteCount::new(128),
            clock: CaptureClock::Exact,
        }
    }
}
