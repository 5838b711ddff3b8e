//! The tables and keys of a scenario file, as plain structs. The descriptions here are what
//! `farpace scenario schema` prints and what error messages quote.

mod direction;
mod flow;
mod link;
mod nodes;
mod trace;

pub use direction::{Direction, DirectionSpec, ResolvedDirection};
pub use flow::{ExchangeSpec, FlowSpec, PortionsSpec};
pub use link::LinkSpec;
pub use nodes::{HostSpec, RouterSpec, SwitchKind, SwitchSpec};
pub use trace::{CaptureClock, Trace};

use super::datagrams::DatagramFlow;
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A network, the transfers through it, and what to record of them.
///
/// The network is a tree: hosts at its ends, routers and switches between them, one path from each to each.
/// Only hosts with several NICs have several links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line that says what this is: the heading of reports.
    pub title: String,
    /// What it shows and why, of any length.
    #[serde(default)]
    pub description: String,
    /// All random numbers of the run follow from this number (0 to 2^63 - 1) and from the names of the
    /// elements.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Virtual time limit: the run ends here even if flows are not done.
    #[serde(default = "default_duration")]
    pub duration: Span,
    /// What to record.
    #[serde(default)]
    pub trace: Trace,
    /// The hosts, by name. Each has one NIC and so one link, unless it has `multi_nic`.
    pub hosts: BTreeMap<String, HostSpec>,
    /// The routers, by name. They forward along the only path there is.
    #[serde(default)]
    pub routers: BTreeMap<String, RouterSpec>,
    /// The switches and hubs, by name. Each joins its links into one Ethernet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switches: BTreeMap<String, SwitchSpec>,
    /// The links between hosts, routers and switches.
    pub links: Vec<LinkSpec>,
    /// The transfers.
    pub flows: Vec<FlowSpec>,
    /// Streams of UDP datagrams in addition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datagrams: Vec<DatagramFlow>,
}

fn default_seed() -> u64 {
    1
}
fn default_duration() -> Span {
    Span::from_secs(600)
}
