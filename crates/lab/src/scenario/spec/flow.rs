//! The transfers of a scenario.

use super::super::workload::{MixSpec, SizesSpec, StartsSpec};
use super::Scenario;
use farpace_tcp::config::Settings;
use farpace_units::{ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A transfer from one host to another over one TCP connection. The sender opens it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name, unique among flows.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Port the receiver listens on; omitted: 5001 for the first flow, 5002 for the second, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// When the sender connects.
    #[serde(default)]
    pub start: Span,
    /// How much is sent: a pattern that follows from the seed, or, for the first flow, the file given as
    /// --payload. Omitted only with `sizes`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size: ByteCount,
    /// How many such flows there are, named NAME-1, NAME-2 and so on; omitted: one, named NAME.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// When each of them starts; omitted: all at `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<StartsSpec>,
    /// How much each of them sends; omitted: `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<SizesSpec>,
    /// Which TCP how many of them have; omitted: `sender` and `receiver`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixSpec>,
    /// Flows of one class are summed up together; omitted: flows of one entry with `count`, `starts`, `sizes`
    /// or `mix` are a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The sending program writes so much every so often; omitted: everything as soon as there is room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<PortionsSpec>,
    /// The receiving program reads so much every so often; omitted: everything as soon as it has arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<PortionsSpec>,
    /// Requests and answers, one after the other, and then again from the first, until `size` is sent. Not
    /// together with `writes` or `reads`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub exchanges: Arc<[ExchangeSpec]>,
    /// TCP of the sending host for this flow.
    #[serde(default)]
    pub sender: Arc<Settings>,
    /// TCP of the receiving host for this flow.
    #[serde(default)]
    pub receiver: Arc<Settings>,
}

/// What a program that takes its time writes or reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortionsSpec {
    /// How much at a time, 1 B at least. What there is no room for, or what has not arrived, is made up for
    /// later.
    pub size: ByteCount,
    /// How often: 1 us at least. The first portion is due when the connection is established.
    pub every: Span,
}

/// A request of the sending program and the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeSpec {
    /// What the sending program writes: 1 B at least.
    pub request: ByteCount,
    /// What the receiving program writes then: 1 B at least.
    pub answer: ByteCount,
    /// From the last byte of the request, as read, to the answer. Waits end at multiples of 100 us.
    #[serde(default)]
    pub work: Span,
    /// From the last byte of the answer to the next request.
    #[serde(default)]
    pub think: Span,
}

fn is_zero(size: &ByteCount) -> bool {
    size.is_zero()
}

/// The first port that a receiver listens on, and how many there are.
const FIRST_PORT: u16 = 5_001;
const FLOW_PORTS: usize = 60_000;
/// The first port that a sender connects from where flows share ports of receivers.
const FIRST_SOURCE_PORT: u16 = 1_024;

impl Scenario {
    /// The port the receiver of flow `index` listens on. Beyond 60,000 flows, several share one.
    pub fn port(&self, index: usize) -> u16 {
        let automatic = FIRST_PORT.saturating_add(u16::try_from(index % FLOW_PORTS).unwrap_or(u16::MAX));
        self.flows.get(index).and_then(|f| f.port).unwrap_or(automatic)
    }

    /// The port the sender of flow `index` connects from, if flows share ports of receivers; otherwise its
    /// host chooses.
    pub fn source_port(&self, index: usize) -> Option<u16> {
        let shares = self.flows.len() > FLOW_PORTS;
        shares
            .then(|| FIRST_SOURCE_PORT.saturating_add(u16::try_from(index / FLOW_PORTS).unwrap_or(u16::MAX)))
    }
}
