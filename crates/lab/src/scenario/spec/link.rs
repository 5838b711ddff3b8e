//! The links of a network.

use super::super::aqm::Aqm;
use super::super::schedule::ScheduleSpec;
use super::DirectionSpec;
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A full-duplex link. In each direction a packet first meets the impairments, in the order of the keys of
/// `forward`, then the queue, the rate and the delay; `bit_errors` and `interrupts` follow the delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name, unique among hosts, routers, switches and links.
    pub name: String,
    /// The two ends, by name. Forward is from the first to the second.
    pub between: [String; 2],
    /// Rate in both directions; omitted: infinitely fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation time, one way.
    #[serde(default)]
    pub delay: Span,
    /// Queue of each direction, the frame that is being sent included. A packet that finds it full is
    /// dropped.
    #[serde(default)]
    pub queue: QueueLimit,
    /// Active queue management: `red`, `codel` or `fq_codel`; omitted: a queue that drops only when it is
    /// full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<Aqm>,
    /// Rate and delay over time, in place of the constant ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSpec>,
    /// Bytes that each frame takes on the link beyond its own: 24 B are Ethernet's checksum, preamble and
    /// gap. With 0 B, short frames are not padded to Ethernet's minimum either.
    #[serde(default = "default_overhead")]
    pub overhead: ByteCount,
    /// What is different from the first end to the second, and the impairments there.
    #[serde(default, skip_serializing_if = "DirectionSpec::is_default")]
    pub forward: DirectionSpec,
    /// What is different from the second end to the first, and the impairments there.
    #[serde(default, skip_serializing_if = "DirectionSpec::is_default")]
    pub backward: DirectionSpec,
}

fn default_overhead() -> ByteCount {
    ByteCount::new(24)
}
