//! Which connections somebody asks for.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// An address, a port, or both, of either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFilter {
    address: Option<IpAddr>,
    port: Option<u16>,
}

/// What was written is no [`FlowFilter`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no filter of connections: expected an address, a port, or both, like \"10.0.0.1\", \"5001\", \
     \"10.0.0.1:5001\" or \"[2001:db8::1]:5001\""
)]
pub struct FilterError(String);

impl FromStr for FlowFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if let Ok(both) = text.parse::<SocketAddr>() {
            return Ok(FlowFilter { address: Some(both.ip()), port: Some(both.port()) });
        }
        if let Ok(address) = text.parse() {
            return Ok(FlowFilter { address: Some(address), port: None });
        }
        match text.strip_prefix(':').unwrap_or(text).parse() {
            Ok(port) => Ok(FlowFilter { address: None, port: Some(port) }),
            Err(_) => Err(FilterError(text.to_owned())),
        }
    }
}

impl FlowFilter {
    /// True if an end of the connection is what was asked for.
    pub fn matches(&self, ends: [SocketAddr; 2]) -> bool {
        let is = |end: &SocketAddr| {
            self.address.is_none_or(|ip| end.ip() == ip) && self.port.is_none_or(|port| end.port() == port)
        };
        ends.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: `--flow` as people write it.
    #[test]
    fn addresses_ports_and_both_are_understood() {
        for good in ["10.0.0.1", "5001", ":5001", "10.0.0.1:5001", "2001:db8::1", "[2001:db8::1]:5001"] {
            assert!(good.parse::<FlowFilter>().is_ok(), "{good}");
        }
        for bad in ["", "host", "10.0.0.1:", "99999"] {
            assert!(bad.parse::<FlowFilter>().is_err(), "{bad}");
        }
    }
}
