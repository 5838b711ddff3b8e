//! Routing by policy: rules and tables, and the packet filters beside them.

use super::undo::SystemUndo;
use super::{Setup, SystemError, tool};
use std::net::IpAddr;

/// The two families of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// Both.
    pub const ALL: [IpFamily; 2] = [IpFamily::V4, IpFamily::V6];

    const fn option(self) -> &'static str {
        match self {
            IpFamily::V4 => "-4",
            IpFamily::V6 => "-6",
        }
    }
}

impl Setup {
    /// Adds default routes, each through an interface to a table of the routing policy, and then rules, in
    /// the syntax of `ip rule`: `pref 100 iif eth0 ipproto tcp lookup 7710`. One process of `ip` does it, in
    /// milliseconds, however many there are. If one fails, none is left.
    ///
    /// # Errors
    /// See [`SystemError`].
    pub fn routes_and_rules(
        &self,
        family: IpFamily,
        routes: &[(&str, u32)],
        rules: &[String],
    ) -> Result<(), SystemError> {
        let program = tool::line("ip", None, family.option());
        let lines = |verb: &str| {
            let route =
                |(name, table): &(&str, u32)| format!("route {verb} default dev {name} table {table}");
            let rules = rules.iter().map(|words| format!("rule {verb} {words}"));
            routes.iter().map(route).chain(rules).collect::<Vec<_>>()
        };
        let back = lines("delete").into_iter().rev().collect();
        let undo = SystemUndo::Batch { program: program.clone(), lines: back };
        self.step(undo.clone(), || {
            // What came before the line that failed stays set.
            tool::batch(&program, &lines("add"), false).inspect_err(|_| drop(undo.run()))
        })
    }
}

/// The routing policy: a rule a line, as `ip rule` shows it.
///
/// # Errors
/// See [`SystemError`].
pub fn routing_rules(family: IpFamily) -> Result<String, SystemError> {
    tool::run(&tool::line("ip", None, &format!("{} rule show", family.option())))
}

/// The routes of a table, as `ip route` shows them. Empty if there is no such table.
///
/// # Errors
/// See [`SystemError`].
pub fn routes_of(family: IpFamily, table: &str) -> Result<String, SystemError> {
    match tool::run(&tool::line("ip", None, &format!("{} route show table {table}", family.option()))) {
        Err(SystemError::Tool { message, .. }) if message.contains("does not exist") => Ok(String::new()),
        other => other,
    }
}

/// Sets a default route in a table again that a [`Setup`] has set before, and will take away.
///
/// # Errors
/// See [`SystemError`].
pub fn restore_default_route(family: IpFamily, interface: &str, table: u32) -> Result<(), SystemError> {
    let words = format!("{} route replace default dev {interface} table {table}", family.option());
    tool::run(&tool::line("ip", None, &words)).map(drop)
}

/// Sets the MTU of an interface that this process has made.
///
/// # Errors
/// See [`SystemError`].
pub fn set_own_mtu(interface: &str, mtu: u16) -> Result<(), SystemError> {
    tool::run(&tool::line("ip", None, &format!("link set dev {interface} mtu {mtu}"))).map(drop)
}

/// The device by which this host itself sends packets of a protocol, such as `icmp`, to an address; none:
/// there is no route. Rules with `iif lo` take part.
///
/// # Errors
/// See [`SystemError`].
pub fn route_of_own(to: IpAddr, protocol: &str) -> Result<Option<String>, SystemError> {
    let family = if to.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
    let words = format!("{} -o route get {to} ipproto {protocol}", family.option());
    match tool::run(&tool::line("ip", None, &words)) {
        Ok(text) => Ok(text.split_whitespace().skip_while(|word| *word != "dev").nth(1).map(str::to_owned)),
        // Unreachable networks, and routes that refuse: the messages differ.
        Err(SystemError::Tool { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The packet filter of this namespace, as `nft list ruleset` shows it. None: `nft` is not installed.
///
/// # Errors
/// `nft` fails.
pub fn packet_filter() -> Result<Option<String>, SystemError> {
    listed_filter("nft list ruleset")
}

/// The same as JSON, and as text with the handles of rules. None: `nft` is not installed.
///
/// # Errors
/// `nft` fails, or was built without JSON.
pub fn packet_filter_rules() -> Result<Option<(String, String)>, SystemError> {
    let json = listed_filter("nft -j list ruleset")?;
    Ok(json.zip(listed_filter("nft -a list ruleset")?))
}

/// The rules of iptables-legacy, as `tool` (`iptables-legacy-save`, `ip6tables-legacy-save`) shows them.
/// None: it is not installed.
///
/// # Errors
/// It fails.
pub fn legacy_rules(tool: &str) -> Result<Option<String>, SystemError> {
    listed_filter(tool)
}

fn listed_filter(line: &str) -> Result<Option<String>, SystemError> {
    match tool::run(&tool::words(line)) {
        Ok(text) => Ok(Some(text)),
        Err(SystemError::NoTool(_)) => Ok(None),
        Err(other) => Err(other),
    }
}
