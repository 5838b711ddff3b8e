//! Streams of UDP datagrams in a scenario.

use farpace_units::{ByteCount, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// UDP datagrams from one host to another at a rate, without congestion control: like video, or as a
/// background load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatagramFlow {
    /// Name, unique among flows of either kind.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives and counts.
    pub to: String,
    /// UDP port of the receiver; omitted: 6001 for the first of these flows, 6002 for the second, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// When the first datagram is sent.
    #[serde(default)]
    pub start: Span,
    /// For how long datagrams are sent; omitted: to the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Rate of the payloads, without headers.
    pub rate: Rate,
    /// Whether datagrams leave at equal distances or as a Poisson process of that rate.
    #[serde(default, skip_serializing_if = "DatagramSpacing::is_constant")]
    pub spacing: DatagramSpacing,
    /// Payload of each datagram, from 8 B. Above 1472 B (over IPv6: 1452 B) it is fragmented.
    #[serde(default = "default_payload")]
    pub payload: ByteCount,
}

/// The distances between datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DatagramSpacing {
    /// Equal.
    #[default]
    Constant,
    /// Exponential: a Poisson process.
    Poisson,
}

impl DatagramSpacing {
    fn is_constant(&self) -> bool {
        *self == DatagramSpacing::Constant
    }
}

fn default_payload() -> ByteCount {
    ByteCount::new(1_000)
}

impl super::Scenario {
    /// The port the receiver of datagram flow `index` listens on.
    pub fn datagram_port(&self, index: usize) -> u16 {
        let automatic = u16::try_from(index).unwrap_or(u16::MAX).saturating_add(6_001);
        self.datagrams.get(index).and_then(|flow| flow.port).unwrap_or(automatic)
    }
}
