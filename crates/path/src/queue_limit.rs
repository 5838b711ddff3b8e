//! The limit of a queue, and its textual form.

use farpace_units::{Amount, ByteCount, Packets};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// How much a queue holds before it drops: `"1000 packets"`, `"256 kB"`, `"unlimited"`. It counts all packets
/// that have arrived and have not yet left the near end completely: the frame that is being sent and those
/// behind it, as the ring of a NIC counts its descriptors until they are complete. Packets in propagation do
/// not count. The bytes are those of the packets in memory, without framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// A packet that would exceed this is dropped.
    Bytes(ByteCount),
    /// The same, in packets.
    Packets(Packets),
    /// Limited only by [`QueueLimit::CAP`].
    Unlimited,
}

impl QueueLimit {
    /// The limit of an unlimited queue: 16 Mi packets, about 24 GB of full frames.
    pub const CAP: Packets = Packets::new(1 << 24);

    /// As the greatest numbers of bytes and of packets.
    pub const fn bounds(self) -> (u64, u64) {
        let cap = Self::CAP.get() as u64;
        match self {
            QueueLimit::Bytes(max) => (max.get(), cap),
            QueueLimit::Packets(max) if max.get() < Self::CAP.get() => (u64::MAX, max.get() as u64),
            QueueLimit::Packets(_) | QueueLimit::Unlimited => (u64::MAX, cap),
        }
    }
    /// True for a queue that holds nothing.
    pub const fn is_zero(self) -> bool {
        match self {
            QueueLimit::Packets(p) => p.is_zero(),
            QueueLimit::Bytes(b) => b.is_zero(),
            QueueLimit::Unlimited => false,
        }
    }
    /// The limit in bytes if every packet is a frame of `frame` bytes.
    pub fn in_bytes(self, frame: ByteCount) -> ByteCount {
        let (bytes, packets) = self.bounds();
        ByteCount::new(bytes.min(packets.saturating_mul(frame.get())))
    }
}

impl Default for QueueLimit {
    /// 1000 packets, for a long time the transmit queue of Ethernet devices in Linux.
    fn default() -> Self {
        QueueLimit::Packets(Packets::new(1_000))
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Packets(p) => p.fmt(f),
            QueueLimit::Bytes(b) => b.fmt(f),
            QueueLimit::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl FromStr for QueueLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(QueueLimit::Unlimited);
        }
        match text.parse() {
            Ok(Amount::Packets(p)) => Ok(QueueLimit::Packets(p)),
            Ok(Amount::Bytes(b)) => Ok(QueueLimit::Bytes(b)),
            Err(error) => Err(format!("{error}; a queue may also be \"unlimited\"")),
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
            "description": "a number of packets or a size with its unit, like \"1000 packets\" or \"256 \
                            kB\", or \"unlimited\"",
            "pattern": format!("^(unlimited|[0-9_]+([.][0-9_]+)? *({}))$", Amount::UNITS),
        })
    }
}
