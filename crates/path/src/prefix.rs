//! A network: the first bits of an address.

use crate::RouterError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The first `bits` bits of an address; those after them are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    bits: u8,
    net: IpAddr,
}

impl Prefix {
    /// The prefix of `bits` bits that contains `address`.
    ///
    /// # Errors
    /// More than 32 bits, or 128 for IPv6.
    pub fn new(address: IpAddr, bits: u8) -> Result<Self, RouterError> {
        masked(address, bits).map(|net| Prefix { bits, net }).ok_or(RouterError::PrefixLength(bits))
    }
    /// Of an address that is masked already.
    pub(crate) const fn masked(bits: u8, net: IpAddr) -> Self {
        Prefix { bits, net }
    }
    /// The number of bits.
    pub const fn bits(self) -> u8 {
        self.bits
    }
    /// The address with all other bits zero.
    pub const fn net(self) -> IpAddr {
        self.net
    }
    /// True if the prefix contains `address`.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.net.is_ipv4() && masked(address, self.bits) == Some(self.net)
    }
}

/// The first `bits` bits of `address`; none if it has fewer.
pub(crate) fn masked(address: IpAddr, bits: u8) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32u32.checked_sub(bits.into())?).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128u32.checked_sub(bits.into())?).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    })
}

impl fmt::Display for Prefix {
    /// `10.0.0.0/24`; a whole address without its length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.net.is_ipv4() { 32 } else { 128 };
        if self.bits == whole { write!(f, "{}", self.net) } else { write!(f, "{}/{}", self.net, self.bits) }
    }
}

impl FromStr for Prefix {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "`{text}` is not an address or a network: expected one like \"10.0.0.1\" or \"10.0.0.0/24\""
            )
        };
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, bits)| (a, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(whole), |bits| bits.parse().map_err(|_| bad()))?;
        let prefix = Prefix::new(address, bits).map_err(|error| error.to_string())?;
        match prefix.net == address {
            true => Ok(prefix),
            // As in `tc` and `ip`: usually a mistake.
            false => Err(format!("`{text}` has bits after its first {bits}: did you mean \"{prefix}\"?")),
        }
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Prefix {
    fn schema_name() -> Cow<'static, str> {
        "Prefix".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "an IPv4 or IPv6 address, or a network like \"10.0.0.0/24\"",
            "pattern": "^[0-9a-fA-F:.]+(/[0-9]+)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the forms in which filters and routes may be written, and which addresses they mean.
    #[test]
    fn prefixes_are_read_and_match() {
        let prefix = |text: &str| text.parse::<Prefix>();
        let net = prefix("10.1.0.0/16").unwrap();
        assert!(net.contains([10, 1, 255, 3].into()) && !net.contains([10, 2, 0, 0].into()));
        assert!(!prefix("0.0.0.0/0").unwrap().contains("::1".parse().unwrap()), "the families are apart");
        for text in ["10.1.0.0/16", "10.0.0.7", "2001:db8::/32", "::/0"] {
            assert_eq!(prefix(text).unwrap().to_string(), text);
        }
        for (text, says) in [
            ("10.1.0.1/16", "10.1.0.0/16"),
            ("10.0.0.0/33", "33"),
            ("ten", "expected one like"),
            ("10.0.0.0/", "expected one like"),
        ] {
            let error = prefix(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
