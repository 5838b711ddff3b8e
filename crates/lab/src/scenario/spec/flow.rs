//! The transfers of a scenario.

use super::Scenario;
use farpace_tcp::config::Settings;
use farpace_units::{ByteCount, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// --payload.
    pub size: ByteCount,
    /// TCP of the sending host for this flow.
    #[serde(default)]
    pub sender: Settings,
    /// TCP of the receiving host for this flow.
    #[serde(default)]
    pub receiver: Settings,
}

impl Scenario {
    /// The port the receiver of flow `index` listens on.
    pub fn port(&self, index: usize) -> u16 {
        let automatic = u16::try_from(index).unwrap_or(u16::MAX).saturating_add(5_001);
        self.flows.get(index).and_then(|f| f.port).unwrap_or(automatic)
    }
}
