//! Boxes on the way that look into TCP segments: `middlebox`, a firewall, and `ack_thinning`.

use super::spec::{FlowSpec, LinkSpec, Scenario};
use farpace_path as path;
use farpace_units::Span;
use farpace_wire::TcpFlags;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// What a stateful firewall does to TCP segments. What is not a whole segment (another protocol, a fragment) passes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MiddleboxSpec {
    /// Options that are overwritten with NOPs: a list of kinds, or "unknown" for all but MSS, window scale, SACK and
    /// timestamps (2 to 5, 8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strip_options: Option<StripOptions>,
    /// The segments from which they are stripped; all if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strip_options_on: Option<StripOnSpec>,
    /// The three reserved bits of the header are cleared.
    pub clear_reserved: bool,
    /// The AE bit is cleared too (RFC 9768), as by boxes that count it among the reserved ones.
    pub clear_ae: bool,
    /// Segments without ACK are dropped, except those with SYN or RST.
    pub drop_without_ack: bool,
}

/// Which options are stripped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripOptions {
    /// Every kind but 0 to 5 and 8.
    Unknown,
    /// These kinds, from 2.
    Kinds(BTreeSet<u8>),
}

/// The segments from which options are stripped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StripOnSpec {
    /// Those with SYN.
    Syn,
    /// Those without SYN: data and ACKs.
    Data,
    /// All.
    #[default]
    All,
}

impl MiddleboxSpec {
    /// As an element is made from it.
    pub fn config(&self) -> path::MiddleboxConfig {
        // Every field is named, so that a new one cannot be forgotten.
        let MiddleboxSpec { strip_options, strip_options_on, clear_reserved, clear_ae, drop_without_ack } =
            self;
        let bits = |cleared: bool, bits| if cleared { bits } else { TcpFlags::NONE };
        path::MiddleboxConfig {
            strip: match strip_options {
                None => BTreeSet::new(),
                Some(StripOptions::Unknown) => path::MiddleboxConfig::unknown_options(),
                Some(StripOptions::Kinds(kinds)) => kinds.clone(),
            },
            strip_on: match strip_options_on.unwrap_or_default() {
                StripOnSpec::Syn => path::StripOn::Syn,
                StripOnSpec::Data => path::StripOn::Data,
                StripOnSpec::All => path::StripOn::All,
            },
            clear: bits(*clear_reserved, path::MiddleboxConfig::RESERVED) | bits(*clear_ae, TcpFlags::AE),
            drop_without_ack: *drop_without_ack,
        }
    }
}

impl Scenario {
    /// True if a box on the path takes options of `kind` out of a flow's SYN or the answer: then the ends do not agree
    /// on what it offers.
    pub(super) fn strips_offer(&self, flow: &FlowSpec, kind: u8) -> bool {
        let takes = |link: &LinkSpec| {
            [&link.forward, &link.backward].into_iter().filter_map(|d| d.middlebox.as_ref()).any(
                |middlebox| {
                    let config = middlebox.config();
                    config.strip_on != path::StripOn::Data && config.strip.contains(&kind)
                },
            )
        };
        // The path takes longer to find, and nearly no scenario has such a box.
        self.links.iter().any(takes)
            && self.paths(flow).iter().flatten().filter_map(|hop| self.links.get(hop.link)).any(takes)
    }
}

/// Thinning of acknowledgments: of the pure ACKs of a connection only the newest of several goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckThinningSpec {
    /// One of so many goes on, from 2.
    #[schemars(range(min = 2))]
    pub every: u32,
    /// For how long one waits for others at most; 5 ms if omitted.
    #[serde(default = "default_hold")]
    pub hold: Span,
}

fn default_hold() -> Span {
    Span::from_millis(5)
}

impl AckThinningSpec {
    /// The element that is made from it.
    pub const fn way(&self) -> path::AckThinningDirection {
        path::AckThinningDirection::new(self.every, self.hold)
    }
}

const UNKNOWN: &str = "unknown";

impl Serialize for StripOptions {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            StripOptions::Unknown => s.serialize_str(UNKNOWN),
            StripOptions::Kinds(kinds) => kinds.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for StripOptions {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = StripOptions;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORM)
    }
    fn visit_str<E: Error>(self, word: &str) -> Result<StripOptions, E> {
        if word == UNKNOWN { Ok(StripOptions::Unknown) } else { Err(E::unknown_variant(word, &[UNKNOWN])) }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<StripOptions, A::Error> {
        let mut kinds = BTreeSet::new();
        while let Some(OptionKind(kind)) = seq.next_element()? {
            kinds.insert(kind);
        }
        Ok(StripOptions::Kinds(kinds))
    }
}

/// The kind of an option: 0 and 1 are none, but the end of the list and the filler.
struct OptionKind(u8);

impl<'de> Deserialize<'de> for OptionKind {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(OptionKind(0))
    }
}

impl Visitor<'_> for OptionKind {
    type Value = OptionKind;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the kind of a TCP option, from 2 to 255")
    }
    fn visit_i64<E: Error>(self, n: i64) -> Result<OptionKind, E> {
        match u8::try_from(n) {
            Ok(kind @ 2..) => Ok(OptionKind(kind)),
            _ => Err(E::invalid_value(Unexpected::Signed(n), &self)),
        }
    }
}

/// How it is written.
const FORM: &str = "\"unknown\" or a list of kinds, like [30, 254]";

impl JsonSchema for StripOptions {
    fn schema_name() -> Cow<'static, str> {
        "StripOptions".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "description": FORM, "pattern": "^unknown$" },
                { "type": "array", "items": { "type": "integer", "minimum": 2, "maximum": 255 } },
            ],
        })
    }
}
