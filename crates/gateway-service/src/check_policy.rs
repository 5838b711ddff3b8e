//! Rules of the routing policy that keep traffic from the gateway: of others before its own, and those with
//! `iif lo`, which are about this host's own packets.
//!
//! `iif lo` also decides about packets that hosts send to this router: a strict reverse-path filter asks for
//! the way back to them as if this host sent it.

use super::config::GatewayFile;
use super::interception::{peer_rules, protocols};
use super::peer_file::PeerFile;
use farpace_live::doctor::DoctorFinding;
use farpace_live::system::{IpFamily, route_of_own, routes_of, routing_rules};
use farpace_path::Prefix;
use std::net::IpAddr;

/// Words of a rule that choose packets by what a router cannot know of others: marks, users, ports.
const FURTHER: [&str; 8] = ["fwmark", "uidrange", "sport", "dport", "tos", "dsfield", "oif", "tun_id"];
/// Actions that take a packet without a table.
const REFUSALS: [&str; 3] = ["blackhole", "unreachable", "prohibit"];
/// Before its rules, others belong to the kernel.
const OF_KERNEL: u32 = 0;

/// A rule as `ip rule` shows it, or as it is added.
struct PolicyRule {
    pref: u32,
    words: Vec<String>,
}

impl PolicyRule {
    /// From a line as in `100: from all iif lo lookup 7710`.
    fn parse(line: &str) -> Option<Self> {
        let (pref, rest) = line.split_once(':')?;
        let words = rest.split_whitespace().map(str::to_owned).collect();
        Some(PolicyRule { pref: pref.trim().parse().ok()?, words })
    }

    /// From words as in `pref 100 iif lo lookup 7710`.
    fn added(words: &str) -> Option<Self> {
        let rest = words.strip_prefix("pref ")?;
        let (pref, rest) = rest.split_once(' ')?;
        PolicyRule::parse(&format!("{pref}: {rest}"))
    }

    fn value(&self, key: &str) -> Option<&str> {
        let at = self.words.iter().position(|word| word == key)?;
        self.words.get(at + 1).map(String::as_str).filter(|value| *value != "all")
    }

    fn prefix(&self, key: &str) -> Option<Prefix> {
        self.value(key)?.parse().ok().filter(|prefix: &Prefix| prefix.bits() > 0)
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    /// What makes two rules the same.
    fn identity(&self) -> (u32, [Option<&str>; 4], [Option<Prefix>; 2]) {
        let keys = ["iif", "ipproto", "lookup", "suppress_prefixlength"].map(|key| self.value(key));
        (self.pref, keys, ["from", "to"].map(|key| self.prefix(key)))
    }

    /// It takes packets of an interface with this protocol to these networks, or some of them.
    fn takes(&self, family: IpFamily, interface: &str, protocols: &[&str], to: Option<Prefix>) -> bool {
        let is_one_of = |key: &str, values: &[&str]| self.value(key).is_none_or(|own| values.contains(&own));
        let overlaps = |a: Prefix, b: Prefix| a.contains(b.net()) || b.contains(a.net());
        let leads = match self.value("lookup") {
            Some(table) => routes_of(family, table).is_ok_and(|routes| !routes.trim().is_empty()),
            None => REFUSALS.iter().any(|word| self.has(word)),
        };
        // A rule that leaves the default route to later ones takes what has a route of its own, as it should.
        let is_partial = self.has("suppress_prefixlength");
        leads
            && !is_partial
            && !FURTHER.iter().any(|word| self.has(word))
            && is_one_of("iif", &[interface])
            && is_one_of("ipproto", protocols)
            && self.prefix("to").zip(to).is_none_or(|(own, to)| overlaps(own, to))
    }

    /// As a command deletes it.
    fn deletion(&self, family: IpFamily) -> String {
        let option = if family == IpFamily::V4 { "-4" } else { "-6" };
        format!("ip {option} rule delete pref {} {}", self.pref, self.words.join(" "))
    }

    fn shown(&self) -> String {
        format!("{}: {}", self.pref, self.words.join(" "))
    }
}

fn rules_of(family: IpFamily) -> Vec<PolicyRule> {
    let text = routing_rules(family).unwrap_or_default();
    text.lines().filter_map(PolicyRule::parse).collect()
}

/// Rules of others before those of the gateway that take what comes from its interfaces.
pub fn earlier_rules<'a>(
    file: &GatewayFile,
    interfaces: impl Iterator<Item = &'a String> + Clone,
    to: &[Prefix],
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for family in IpFamily::ALL {
        let of_family = |prefix: &&Prefix| prefix.net().is_ipv4() == (family == IpFamily::V4);
        let to: Vec<Option<Prefix>> = match to {
            [] => vec![None],
            some => some.iter().filter(of_family).map(|prefix| Some(*prefix)).collect(),
        };
        let protocols = if file.peer.is_some() { &["tcp", "udp"][..] } else { &protocols(family)[..] };
        for rule in rules_of(family) {
            if rule.pref == OF_KERNEL || rule.pref >= file.rule_priority {
                continue;
            }
            let takes = |name: &&String| to.iter().any(|to| rule.takes(family, name, protocols, *to));
            let Some(name) = interfaces.clone().find(takes) else { continue };
            findings.push(DoctorFinding::problem(
                format!("rules {family:?}"),
                format!(
                    "`{}` comes before those of the gateway, which gets nothing that it takes from {name}",
                    rule.shown()
                ),
                format!(
                    "set rule_priority to less than {} in the configuration, and start the gateway again",
                    rule.pref
                ),
            ));
        }
    }
    findings
}

/// Rules that lead packets of this router itself to a gateway without a peer: it cannot carry them. What it
/// writes back has an address of this router as its source, and the kernel drops that.
pub fn own_traffic_alone(file: &GatewayFile) -> Vec<DoctorFinding> {
    let tables = [file.table, file.table + 1].map(|table| table.to_string());
    let mut findings = Vec::new();
    for family in IpFamily::ALL {
        for rule in rules_of(family) {
            let to_gateway = rule.value("lookup").is_some_and(|own| tables.iter().any(|table| table == own));
            if to_gateway && matches!(rule.value("iif"), None | Some("lo")) {
                findings.push(DoctorFinding::problem(
                    format!("own traffic {family:?}"),
                    format!(
                        "`{}` leads what this router itself sends to the gateway, and it is lost: the \
                         gateway splits what passes the router",
                        rule.shown()
                    ),
                    rule.deletion(family),
                ));
            }
        }
    }
    findings
}

/// What this router itself sends to the networks behind a peer: its ICMP goes through the tunnel, and the
/// rest only by a rule of the administrator. `device` is that of the gateway; `strict` says that its
/// reverse-path filter is.
pub fn own_traffic_of_pair(
    file: &GatewayFile,
    peer: &PeerFile,
    device: &str,
    strict: bool,
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for family in IpFamily::ALL {
        let what = format!("own traffic {family:?}");
        let is_v4 = family == IpFamily::V4;
        let mut theirs =
            peer.peer_prefixes.iter().filter(|prefix| prefix.net().is_ipv4() == is_v4).peekable();
        if theirs.peek().is_none() {
            continue;
        }
        let rules = rules_of(family);
        let wanted: Vec<_> =
            peer_rules(file, peer, family).iter().filter_map(|w| PolicyRule::added(w)).collect();
        let is_there = |own: &PolicyRule| rules.iter().any(|rule| rule.identity() == own.identity());
        let gone: Vec<_> = wanted
            .iter()
            .filter(|rule| rule.value("iif") == Some("lo") && !is_there(rule))
            .map(|rule| format!("`{}`", rule.shown()))
            .collect();
        if !gone.is_empty() {
            findings.push(DoctorFinding::problem(
                what.clone(),
                format!(
                    "gone: {}: ICMP of this router to hosts behind the peer is not encrypted",
                    gone.join(", ")
                ),
                "start the gateway again; if systemd-networkd removes rules, set \
                 ManageForeignRoutingPolicyRules=no in networkd.conf",
            ));
        }
        let [_, icmp] = protocols(family);
        let table = file.table.to_string();
        for prefix in theirs.filter(|prefix| prefix.bits() > 0) {
            let host = first_host(*prefix);
            let by = |protocol: &str| route_of_own(host, protocol).ok();
            if gone.is_empty()
                && let Some(by) = by(icmp)
                && by.as_deref() != Some(device)
            {
                let earlier = rules.iter().find(|rule| {
                    (1..=file.rule_priority).contains(&rule.pref)
                        && rule.value("lookup") != Some(&table)
                        && rule.takes(family, "lo", &[icmp], Some(*prefix))
                });
                let (value, mend) = match earlier {
                    Some(rule) => (
                        format!(
                            "`{}` takes ICMP of this router to {prefix}: it is not encrypted",
                            rule.shown()
                        ),
                        format!(
                            "set rule_priority to less than {} in the configuration, and start the gateway \
                             again; or {}",
                            rule.pref,
                            rule.deletion(family)
                        ),
                    ),
                    None => (
                        format!("ICMP of this router to {prefix} does not go through the tunnel"),
                        format!("`ip route get {host} ipproto {icmp}` shows where it goes"),
                    ),
                };
                findings.push(DoctorFinding::problem(what.clone(), value, mend));
            }
            // Answers to the peer's hosts have a source of this site.
            let Some(own) = peer.prefixes.iter().find(|own| own.net().is_ipv4() == is_v4 && own.bits() > 0)
            else {
                continue;
            };
            let has_rule = rules.iter().any(|rule| {
                rule.value("iif") == Some("lo")
                    && rule.value("ipproto").is_none()
                    && rule.value("lookup") == Some(&table)
                    && rule
                        .prefix("to")
                        .is_none_or(|to| to.contains(prefix.net()) && to.bits() <= prefix.bits())
            });
            if has_rule || by("tcp").flatten().as_deref() == Some(device) {
                continue;
            }
            let dropped = match strict {
                true => {
                    format!(", and what hosts there send to it is dropped (rp_filter is strict on {device})")
                }
                false => String::new(),
            };
            let way = match by("tcp").flatten() {
                Some(other) => format!("leaves by {other}, unencrypted"),
                None => "has no route".to_owned(),
            };
            let option = if is_v4 { "-4" } else { "-6" };
            findings.push(DoctorFinding::note(
                what.clone(),
                format!("TCP and UDP of this router itself to {prefix} {way}{dropped}"),
                format!(
                    "if it is to go through the tunnel: ip {option} rule add pref {} iif lo from {own} to \
                     {prefix} lookup {table}",
                    file.rule_priority
                ),
            ));
        }
        if findings.iter().all(|finding| finding.what != what) {
            findings
                .push(DoctorFinding::ok(what, "of this router to hosts behind the peer: through the tunnel"));
        }
    }
    findings
}

/// An address of a network that may be that of a host.
fn first_host(prefix: Prefix) -> IpAddr {
    match prefix.net() {
        IpAddr::V4(v4) if prefix.bits() < 31 => IpAddr::V4((v4.to_bits() | 1).into()),
        IpAddr::V6(v6) if prefix.bits() < 127 => IpAddr::V6((v6.to_bits() | 1).into()),
        whole => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a rule that is set is called gone, because `ip` shows it in other words than it was added.
    #[test]
    fn rules_are_known_again() {
        let shown = [
            "100:\tfrom all to 10.2.0.0/24 iif lo ipproto icmp lookup 7710 ",
            "101:\tfrom all iif lo ipproto ipv6-icmp lookup 7710",
            "100:\tfrom all iif lo ipproto icmp lookup main suppress_prefixlength 0",
            "100:\tfrom 10.1.0.0/24 iif lo ipproto icmp lookup 7710",
            "100:\tfrom all to 10.2.0.1 iif lo ipproto icmp lookup 7710",
        ];
        let added = [
            "pref 100 iif lo ipproto icmp to 10.2.0.0/24 lookup 7710",
            "pref 101 iif lo ipproto ipv6-icmp lookup 7710",
            "pref 100 iif lo ipproto icmp lookup main suppress_prefixlength 0",
            "pref 100 iif lo ipproto icmp from 10.1.0.0/24 lookup 7710",
            "pref 100 iif lo ipproto icmp to 10.2.0.1 lookup 7710",
        ];
        for (at, line) in shown.iter().enumerate() {
            for (other, words) in added.iter().enumerate() {
                let (rule, own) = (PolicyRule::parse(line).unwrap(), PolicyRule::added(words).unwrap());
                assert_eq!(rule.identity() == own.identity(), at == other, "{line} {words}");
            }
        }
        assert!(PolicyRule::parse("garbage").is_none());
        assert!(PolicyRule::added("from all").is_none());
    }

    /// Breaks: rules that choose by marks, other interfaces or protocols are said to take everything.
    #[test]
    fn a_rule_takes_what_it_says() {
        let takes = |line: &str| {
            let rule = PolicyRule::parse(line).unwrap();
            rule.takes(IpFamily::V4, "lan0", &["tcp"], Some("10.2.0.0/16".parse().unwrap()))
        };
        for line in ["9: from all blackhole", "9: from all to 10.2.9.0/24 iif lan0 ipproto tcp prohibit"] {
            assert!(takes(line), "{line}");
        }
        for line in [
            "9: from all fwmark 0x1 blackhole",
            "9: from all iif lo blackhole",
            "9: from all ipproto udp blackhole",
            "9: from all to 10.3.0.0/16 unreachable",
            "9: from all goto 100",
        ] {
            assert!(!takes(line), "{line}");
        }
    }
}
