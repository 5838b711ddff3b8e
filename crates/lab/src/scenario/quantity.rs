//! The limit of a queue: so many packets, or so many bytes.

use farpace_units::{ByteCount, Packets, UnitError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// How much a drop-tail queue holds before it drops: `"1000 packets"` or `"256 kB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets of any size.
    Packets(Packets),
    /// So many bytes of frames.
    Bytes(ByteCount),
}

impl QueueLimit {
    /// True for a queue that holds nothing.
    pub const fn is_zero(self) -> bool {
        match self {
            QueueLimit::Packets(p) => p.is_zero(),
            QueueLimit::Bytes(b) => b.is_zero(),
        }
    }
    /// The limit in bytes, where every packet is a frame of `frame` bytes.
    pub fn in_bytes(self, frame: ByteCount) -> ByteCount {
        match self {
            QueueLimit::Packets(p) => ByteCount::new(u64::from(p.get()).saturating_mul(frame.get())),
            QueueLimit::Bytes(b) => b,
        }
    }
}

impl Default for QueueLimit {
    /// 1000 packets, the transmit queue that Linux gave Ethernet devices for long.
    fn default() -> Self {
        QueueLimit::Packets(Packets::new(1_000))
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Packets(p) => p.fmt(f),
            QueueLimit::Bytes(b) => b.fmt(f),
        }
    }
}

impl FromStr for QueueLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let packets = match text.parse::<Packets>() {
            Ok(p) => return Ok(QueueLimit::Packets(p)),
            Err(e) => e,
        };
        match (text.parse::<ByteCount>(), packets) {
            (Ok(b), _) => Ok(QueueLimit::Bytes(b)),
            // The right unit, but a number that does not fit: that reading knows best.
            (Err(e @ UnitError::NotExact { .. }), _) | (_, e @ UnitError::NotExact { .. }) => {
                Err(e.to_string())
            }
            _ => Err(format!(
                "`{text}` is not a queue limit: expected packets or a size, like \"1000 packets\" or \"256 kB\""
            )),
        }
    }
}

impl Serialize for QueueLimit {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for QueueLimit {
    fn schema_name() -> Cow<'static, str> {
        "QueueLimit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "a number of packets or a size with its unit, like \"1000 packets\" or \"256 kB\"",
            "pattern": "^[0-9_]+([.][0-9_]+)? *(packets|packet|B|kB|MB|GB|TB|KiB|MiB|GiB)$",
        })
    }
}
