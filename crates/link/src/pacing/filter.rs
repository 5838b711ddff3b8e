//! Filters, which assign packets to classes.

use super::Protocol;
use farpace_path::Prefix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which packets belong to a class: those that match all given fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassFilter {
    /// The class.
    pub class: String,
    /// Filters with lower values are evaluated first.
    #[serde(default)]
    pub priority: u16,
    /// The protocol above IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Source address or prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<Prefix>,
    /// Destination address or prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Prefix>,
    /// Source port, TCP or UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src_port: Option<u16>,
    /// Destination port, TCP or UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_port: Option<u16>,
    /// Differentiated services code point, 0 to 63.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 63))]
    pub dscp: Option<u8>,
}
