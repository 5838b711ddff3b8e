//! Which connections are split, and how.

use crate::limits::{DEFAULT_BUFFER, DEFAULT_MIN_RTT};
use farpace_path::Prefix;
use farpace_tcp::config::Config;
use farpace_units::{ByteCount, Rate, Span};
use std::net::IpAddr;
use std::sync::Arc;

/// What is done with a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Split, unless the round trip of the handshake is short.
    #[default]
    Auto,
    /// Split, however short the path is.
    Split,
    /// Passed unchanged.
    Pass,
}

impl Action {
    /// As configuration files write it.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Auto => "auto",
            Action::Split => "split",
            Action::Pass => "pass",
        }
    }
}

/// How connections to a prefix are treated.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// What is done with them.
    pub action: Action,
    /// TCP of the WAN leg.
    pub wan: Arc<Config>,
    /// TCP of the LAN leg.
    pub lan: Arc<Config>,
    /// Payload leaves on the WAN leg of each connection at this rate at most.
    pub rate: Option<Rate>,
    /// With [`Action::Auto`], connections with a shorter handshake pass.
    pub min_rtt: Span,
    /// Bytes at most that a leg keeps in each direction.
    pub buffer: ByteCount,
}

impl Policy {
    /// Splits by these configurations, with the defaults of the limits.
    pub fn new(lan: Config, wan: Config) -> Self {
        Policy {
            action: Action::default(),
            wan: Arc::new(wan),
            lan: Arc::new(lan),
            rate: None,
            min_rtt: DEFAULT_MIN_RTT,
            buffer: DEFAULT_BUFFER,
        }
    }
}

/// Policies by prefix of the host on the WAN side. The longest prefix decides.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyTable {
    /// Longest prefix first.
    rules: Vec<(Prefix, Policy)>,
    default: Policy,
}

impl PolicyTable {
    /// A table of `rules`, in any order, and what holds for all other hosts.
    pub fn new(mut rules: Vec<(Prefix, Policy)>, default: Policy) -> Self {
        rules.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.bits()));
        PolicyTable { rules, default }
    }

    /// The policy for connections with `host` on the WAN side.
    pub fn find(&self, host: IpAddr) -> &Policy {
        self.rules
            .iter()
            .find(|(prefix, _)| prefix.contains(host))
            .map_or(&self.default, |(_, policy)| policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::config::Settings;

    fn prefix(address: &str, bits: u8) -> Prefix {
        Prefix::new(address.parse().unwrap(), bits).unwrap()
    }

    // Breaks: a general rule hides a special one.
    #[test]
    fn the_longest_prefix_decides() {
        let config = Settings::default().resolve().unwrap();
        let with = |action| Policy { action, ..Policy::new(config.clone(), config.clone()) };
        let table = PolicyTable::new(
            vec![(prefix("10.0.0.0", 8), with(Action::Split)), (prefix("10.1.0.0", 16), with(Action::Pass))],
            with(Action::Auto),
        );
        assert_eq!(table.find("10.1.2.3".parse().unwrap()).action, Action::Pass);
        assert_eq!(table.find("10.2.2.3".parse().unwrap()).action, Action::Split);
        assert_eq!(table.find("192.0.2.1".parse().unwrap()).action, Action::Auto);
    }
}
