//! Protocols above IP, as filters name them.

use farpace_wire::ip::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A protocol above IP: its number in the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Protocol(u8);

/// Names that filters may use; others are written as numbers.
const NAMES: [(&str, u8); 4] =
    [("tcp", PROTOCOL_TCP), ("udp", PROTOCOL_UDP), ("icmp", PROTOCOL_ICMP), ("icmpv6", PROTOCOL_ICMPV6)];

impl Protocol {
    /// TCP.
    pub const TCP: Protocol = Protocol(PROTOCOL_TCP);
    /// UDP.
    pub const UDP: Protocol = Protocol(PROTOCOL_UDP);

    /// The protocol of this number.
    pub const fn new(number: u8) -> Self {
        Protocol(number)
    }
    /// The number in the IP header.
    pub const fn number(self) -> u8 {
        self.0
    }
    /// True for protocols whose ports filters can match: TCP and UDP.
    pub const fn has_ports(self) -> bool {
        matches!(self.0, PROTOCOL_TCP | PROTOCOL_UDP)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

impl FromStr for Protocol {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        let number = named.or_else(|| text.parse().ok());
        number.map(Protocol).ok_or_else(|| {
            format!(
                "`{text}` is not a protocol: expected tcp, udp, icmp, icmpv6, or a number from 0 to 255, \
                     like \"47\""
            )
        })
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Protocol {
    fn schema_name() -> Cow<'static, str> {
        "Protocol".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "a protocol above IP: tcp, udp, icmp, icmpv6, or its number, like \"47\"",
            "pattern": "^(tcp|udp|icmp|icmpv6|[0-9]{1,3})$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: protocols read back as they were written.
    #[test]
    fn protocols_have_names_or_numbers() {
        for number in 0..=255 {
            let text = Protocol::new(number).to_string();
            assert_eq!(text.parse(), Ok(Protocol::new(number)), "{text}");
        }
        assert_eq!((Protocol::TCP.to_string(), Protocol::new(47).to_string()), ("tcp".into(), "47".into()));
        for bad in ["256", "gre", "", "-1", "TCP"] {
            assert!(bad.parse::<Protocol>().unwrap_err().contains("expected tcp, udp"), "{bad}");
        }
    }
}
