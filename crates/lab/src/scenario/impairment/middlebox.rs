//! `middlebox`: a firewall that changes and drops TCP segments.

use super::super::check::Checker;
use super::super::document::{DocumentStep, below};
use super::super::spec::{Direction, FlowSpec, LinkSpec, ResolvedDirection, Scenario};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, MiddleboxConfig, MiddleboxDirection, StripOn};
use farpace_wire::TcpFlags;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "A firewall at the entrance, which strips options, clears bits and drops segments without \
                  ACK.",
    element: "middlebox",
};

/// What a stateful firewall does to TCP segments. A packet that is not a whole segment (another protocol, a
/// fragment) passes unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MiddleboxSpec {
    /// Options that are overwritten with NOPs: a list of kinds, or "unknown" for all but MSS, window scale,
    /// SACK and timestamps (2 to 5, 8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strip_options: Option<StripOptions>,
    /// The segments from which they are stripped; all if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strip_options_on: Option<StripOnSpec>,
    /// The three reserved bits of the header are cleared.
    pub clear_reserved: bool,
    /// The AE bit is cleared too (RFC 9768), as by middleboxes that count it among the reserved ones.
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
    pub fn config(&self) -> MiddleboxConfig {
        let MiddleboxSpec { strip_options, strip_options_on, clear_reserved, clear_ae, drop_without_ack } =
            self;
        let bits = |cleared: bool, bits| if cleared { bits } else { TcpFlags::NONE };
        MiddleboxConfig {
            strip: match strip_options {
                None => BTreeSet::new(),
                Some(StripOptions::Unknown) => MiddleboxConfig::unknown_options(),
                Some(StripOptions::Kinds(kinds)) => kinds.clone(),
            },
            strip_on: match strip_options_on.unwrap_or_default() {
                StripOnSpec::Syn => StripOn::Syn,
                StripOnSpec::Data => StripOn::Data,
                StripOnSpec::All => StripOn::All,
            },
            clear: bits(*clear_reserved, MiddleboxConfig::RESERVED) | bits(*clear_ae, TcpFlags::AE),
            drop_without_ack: *drop_without_ack,
        }
    }
}

impl Impairment for MiddleboxSpec {
    fn is_active(&self) -> bool {
        true
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        let MiddleboxSpec { strip_options, strip_options_on, clear_reserved, clear_ae, drop_without_ack } =
            self;
        match strip_options {
            Some(StripOptions::Kinds(kinds)) if kinds.is_empty() => {
                checker
                    .value(below(at, &["strip_options"]), "an empty list strips nothing")
                    .hint("leave it out, or name kinds: [254]");
            }
            None if strip_options_on.is_some() => {
                checker
                    .key(below(at, &["strip_options_on"]), "nothing is stripped")
                    .hint("say what: strip_options = \"unknown\"");
            }
            None if !clear_reserved && !clear_ae && !drop_without_ack => {
                checker
                    .value(at.to_vec(), "this middlebox does nothing")
                    .hint("give it strip_options, clear_reserved, clear_ae or drop_without_ack");
            }
            _ => {}
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        let MiddleboxSpec { strip_options, strip_options_on, clear_reserved, clear_ae, drop_without_ack } =
            self;
        let mut parts = Vec::new();
        if let Some(options) = strip_options {
            let which = match options {
                StripOptions::Unknown => "all options but MSS, window scale, SACK and timestamps".to_owned(),
                StripOptions::Kinds(kinds) => {
                    let kinds: Vec<String> = kinds.iter().map(u8::to_string).collect();
                    let noun = if kinds.len() == 1 { "kind" } else { "kinds" };
                    format!("options of {noun} {}", kinds.join(", "))
                }
            };
            let from = match strip_options_on.unwrap_or_default() {
                StripOnSpec::Syn => "segments with SYN",
                StripOnSpec::Data => "segments without SYN",
                StripOnSpec::All => "all segments",
            };
            parts.push(format!("strips {which} from {from}"));
        }
        match (clear_reserved, clear_ae) {
            (true, true) => parts.push("clears the reserved bits and AE".to_owned()),
            (true, false) => parts.push("clears the reserved bits".to_owned()),
            (false, true) => parts.push("clears AE".to_owned()),
            (false, false) => {}
        }
        if *drop_without_ack {
            parts.push("drops segments without ACK, SYN and RST".to_owned());
        }
        ImpairmentText::Sentence(format!("A middlebox at the entrance: it {}.", parts.join("; it ")))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(MiddleboxDirection::new(self.config()), direction))
    }
}

impl Scenario {
    /// True if a middlebox on the path strips options of `kind` from a flow's SYN or SYN-ACK. Then the ends
    /// do not agree on the feature that the option offers.
    pub(in super::super) fn strips_offer(&self, flow: &FlowSpec, kind: u8) -> bool {
        let strips = |link: &LinkSpec| {
            [&link.forward, &link.backward].into_iter().filter_map(|d| d.middlebox.as_ref()).any(
                |middlebox| {
                    let config = middlebox.config();
                    config.strip_on != StripOn::Data && config.strip.contains(&kind)
                },
            )
        };
        // Finding the paths takes longer, and hardly any scenario has such a middlebox.
        self.links.iter().any(strips)
            && self.paths(flow).iter().flatten().filter_map(|hop| self.links.get(hop.link)).any(strips)
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

/// The kind of an option. Kinds 0 and 1 are the end of the list and NOP.
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
