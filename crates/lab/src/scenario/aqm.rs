//! `aqm` of a link: the discipline of its queue. Defaults are the constants of the papers and RFCs.

use super::spec::ResolvedDirection;
use farpace_path as path;
use farpace_path::{QueueDiscipline, QueueError};
use farpace_units::{ByteCount, Packets, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Active queue management: one of `red`, `codel` and `fq_codel`. `{}` after its name takes all defaults.
/// Packets that exceed `queue` are dropped in any case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Aqm {
    /// RED: drops at random, with a probability that grows with the mean queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub red: Option<RedSpec>,
    /// CoDel (RFC 8289): drops by the time that packets have waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codel: Option<CoDelSpec>,
    /// FQ-CoDel (RFC 8290): a queue for each flow, each under CoDel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fq_codel: Option<FqCoDelSpec>,
}

/// RED (Floyd and Jacobson 1993, with Floyd's later recommendations).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedSpec {
    /// Mean queue above which packets are dropped; 5 packets if omitted.
    pub min: Packets,
    /// Mean queue at which the probability is `max_p`; 15 packets if omitted.
    pub max: Packets,
    /// Probability at `max`; 0.1 if omitted.
    #[schemars(range(min = 0, max = 1))]
    pub max_p: f64,
    /// Weight of each packet's queue in the mean; 0.002 if omitted.
    #[schemars(range(min = 0, max = 1))]
    pub weight: f64,
    /// Beyond `max` the probability grows to 1 at twice `max`; if false, everything is dropped there.
    pub gentle: bool,
    /// Packets of senders with ECN are marked instead of dropped.
    pub ecn: bool,
}

impl Default for RedSpec {
    fn default() -> Self {
        let path::RedConfig { min, max, max_p, weight, gentle, ecn, idle_packet: _ } =
            path::RedConfig::default();
        RedSpec { min, max, max_p, weight, gentle, ecn }
    }
}

impl RedSpec {
    /// As an element is made from it, on a link of `rate`.
    fn config(&self, rate: Option<Rate>) -> path::RedConfig {
        /// Bytes of a usual packet.
        const USUAL: ByteCount = ByteCount::new(1_000);
        let RedSpec { min, max, max_p, weight, gentle, ecn } = *self;
        let idle_packet = rate.map_or(Span::ZERO, |rate| rate.time_for(USUAL));
        path::RedConfig { min, max, max_p, weight, gentle, ecn, idle_packet }
    }
}

/// CoDel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoDelSpec {
    /// A standing queue of this delay is accepted; 5 ms if omitted.
    pub target: Span,
    /// Time within which the delay must be below `target` once; 100 ms if omitted. It should be as long as
    /// the longest usual round trip: longer than 500 ms over a geostationary satellite.
    pub interval: Span,
    /// Packets of senders with ECN are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CoDelSpec {
    fn default() -> Self {
        let path::CoDelConfig { target, interval, ecn } = path::CoDelConfig::default();
        CoDelSpec { target, interval, ecn }
    }
}

impl CoDelSpec {
    const fn config(&self) -> path::CoDelConfig {
        let CoDelSpec { target, interval, ecn } = *self;
        path::CoDelConfig { target, interval, ecn }
    }
}

/// FQ-CoDel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FqCoDelSpec {
    /// A standing queue of this delay is accepted in each flow; 5 ms if omitted.
    pub target: Span,
    /// Time within which the delay must be below `target` once; 100 ms if omitted.
    pub interval: Span,
    /// Packets of senders with ECN are marked instead of dropped; true if omitted.
    pub ecn: bool,
    /// Bytes of frames that a flow may send in each round; 1514 B if omitted.
    pub quantum: ByteCount,
    /// Queues into which flows are hashed, 1 to 65536; 1024 if omitted.
    #[schemars(range(min = 1, max = 65_536))]
    pub flows: u32,
}

impl Default for FqCoDelSpec {
    fn default() -> Self {
        let path::FqCoDelConfig { codel, quantum, flows } = path::FqCoDelConfig::default();
        let path::CoDelConfig { target, interval, ecn } = codel;
        FqCoDelSpec { target, interval, ecn, quantum, flows }
    }
}

impl FqCoDelSpec {
    const fn config(&self) -> path::FqCoDelConfig {
        let FqCoDelSpec { target, interval, ecn, quantum, flows } = *self;
        path::FqCoDelConfig { codel: path::CoDelConfig { target, interval, ecn }, quantum, flows }
    }
}

impl ResolvedDirection<'_> {
    /// The queue that is made from `queue` and `aqm`.
    ///
    /// # Errors
    /// What a checked scenario does not have: limits and parameters that are impossible.
    pub fn discipline(&self) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        let limit = self.link().queue;
        Ok(match self.aqm {
            Some(Aqm { red: Some(red), .. }) => Box::new(path::Red::new(limit, red.config(self.max_rate()))?),
            Some(Aqm { codel: Some(codel), .. }) => Box::new(path::CoDel::new(limit, codel.config())?),
            Some(Aqm { fq_codel: Some(fq), .. }) => Box::new(path::FqCoDel::new(limit, fq.config())?),
            _ => Box::new(path::DropTail::new(limit)?),
        })
    }
}
