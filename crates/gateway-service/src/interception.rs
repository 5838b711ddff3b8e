//! What brings the traffic of a router to the gateway: two devices, and rules that lead there. A gateway with
//! a peer has one device: the other side is the tunnel.
//!
//! All of it ends with the process: the devices and the routes vanish, and rules without routes fall
//! through to the main table. So after a crash connections pass by the kernel at once.

use super::config::GatewayFile;
use super::pair::GatewayPair;
use super::peer_file::PeerFile;
use anyhow::{Context, Result, anyhow, bail};
use farpace_live::Device;
use farpace_live::device::{Tun, TunConfig};
use farpace_live::system::{
    IpFamily, OwnedTable, Setup, SystemError, SystemInterface, interface_facts, packet_filter,
    restore_default_route, routes_of, set_own_mtu, sysctl,
};
use farpace_path::Prefix;

/// Names of the devices, with a number.
const DEVICES: [&str; 2] = ["fplan", "fpwan"];
/// Gateways in a network namespace at most.
const MAX_GATEWAYS: u32 = 64;
/// Name of the journal, and of that of the rules that lead to a peer.
const JOURNAL: &str = "gateway";
const PEER_JOURNAL: &str = "gateway-peer";

/// An interface with a smaller MTU carries no IPv4.
const MIN_INTERFACE_MTU: u16 = 68;

/// Words of a packet filter that tracks connections, or rewrites addresses by what it has tracked.
const TRACKING: [&str; 5] = ["ct ", "masquerade", "snat ", "dnat ", "redirect"];

/// The devices of a gateway, and what leads to them.
pub struct Interception {
    /// For each thread its queues of the devices: that of the LAN side, and without a peer that of the WAN
    /// side.
    pub queues: Vec<Vec<Box<dyn Device>>>,
    /// Their names.
    pub names: Vec<String>,
    /// MTU of each side, in bytes.
    pub mtus: [u16; 2],
    /// What is off, and why.
    pub notes: Vec<String>,
    setup: Setup,
    /// What leads to a peer, while it does.
    to_peer: Option<Setup>,
    /// Keeps tracking of connections off the LAN side.
    untracked: Option<OwnedTable>,
    families: Vec<IpFamily>,
    /// Traffic comes to the devices, without a peer.
    is_caught: bool,
}

impl Interception {
    /// Makes the devices. Nothing leads to them yet.
    pub fn begin(file: &GatewayFile, pair: Option<&GatewayPair>) -> Result<Self> {
        let wan = match pair {
            Some(pair) => pair.mtu(),
            None => side_mtu(&file.wan)?,
        };
        let mtus = [side_mtu(&file.lan)?, wan];
        let setup = Setup::begin(JOURNAL)?;
        let number = (0..MAX_GATEWAYS)
            .find(|number| {
                DEVICES.iter().all(|name| !SystemInterface::here(&format!("{name}{number}")).exists())
            })
            .context("there are too many gateways already: `farpace gateway status`")?;
        let names: Vec<_> = DEVICES.iter().map(|name| format!("{name}{number}")).collect();
        let (names, mtu) = match pair {
            // What is longer than the tunnel bears is told so by the kernel, or cut.
            Some(_) => (names.into_iter().take(1).collect(), mtus[1]),
            // What passes unsplit may be as long as either side allows.
            None => (names, mtus[0].max(mtus[1])),
        };
        let threads = file.threads();
        let mut queues: Vec<Vec<Box<dyn Device>>> = (0..threads).map(|_| Vec::new()).collect();
        for name in &names {
            let config = TunConfig { mtu, ..TunConfig::new(name) };
            let device = match threads {
                1 => vec![Tun::open(&config)?],
                _ => Tun::open_queues(&config, threads)?,
            };
            queues.iter_mut().zip(device).for_each(|(of_thread, queue)| of_thread.push(Box::new(queue)));
        }
        let mut notes = Vec::new();
        let mut families = vec![IpFamily::V4];
        // Where `default.disable_ipv6` is set, the devices have none until it is switched on for them.
        let switch_on = |name: &String| {
            let of_device = format!("net.ipv6.conf.{name}.disable_ipv6");
            let is_off = sysctl::read(&of_device).is_ok_and(|off| off != "0");
            !is_off || sysctl::write(&of_device, "0").is_ok()
        };
        match sysctl::read("net.ipv6.conf.all.disable_ipv6") {
            Ok(off) if off == "0" && names.iter().all(switch_on) => families.push(IpFamily::V6),
            Ok(off) if off == "0" => notes.push(
                "IPv6 is off on new devices (net.ipv6.conf.default.disable_ipv6), and is not split"
                    .to_owned(),
            ),
            _ => notes.push("IPv6 is off on this host, and is not split".to_owned()),
        }
        Ok(Interception {
            queues,
            names,
            mtus,
            notes,
            setup,
            to_peer: None,
            untracked: None,
            families,
            is_caught: false,
        })
    }

    /// From now on traffic comes to the devices. While the packet filter is set, `waiting` is called each
    /// 100 ms.
    pub fn catch(&mut self, file: &GatewayFile, waiting: &mut dyn FnMut()) -> Result<()> {
        self.untrack(file, waiting)?;
        // Marked packets go past the rules of the gateway, to whatever comes behind them.
        let (first, behind) = (file.rule_priority, file.rule_priority + 2);
        let marks: Vec<String> = match file.pass_marks.is_empty() {
            true => Vec::new(),
            false => std::iter::once(format!("pref {behind} nop"))
                .chain(
                    file.pass_marks.iter().map(|mark| format!("pref {first} fwmark {mark:#x} goto {behind}")),
                )
                .collect(),
        };
        let routes: Vec<(&str, u32)> = self.names.iter().map(String::as_str).zip(file.table..).collect();
        for family in &self.families {
            let mut rules = marks.clone();
            // First the way back, so that no answer to what is caught passes by.
            for (at, interfaces) in [(1, &file.wan), (0, &file.lan)] {
                let (priority, table) = (file.rule_priority + at, file.table + at);
                for interface in interfaces {
                    rules.extend(protocols(*family).map(|protocol| {
                        format!("pref {priority} iif {interface} ipproto {protocol} lookup {table}")
                    }));
                }
            }
            self.setup.routes_and_rules(*family, &routes, &rules)?;
        }
        self.is_caught = true;
        Ok(())
    }

    /// From now on everything from the LAN to the networks behind the peer comes to the device. What comes
    /// from the peer is written to it, and is routed by the main table. The kernel sees each connection once,
    /// so that it may track it.
    ///
    /// # Errors
    /// The system refuses. Nothing is set then.
    pub fn catch_for_peer(&mut self, file: &GatewayFile, peer: &PeerFile) -> Result<()> {
        if self.to_peer.is_some() {
            // What a failed attempt to take it away has left.
            self.pass_by_kernel()?;
        }
        let device = self.names.first().context("there is no device")?;
        let setup = Setup::begin(PEER_JOURNAL)?;
        for family in &self.families {
            let rules = peer_rules(file, peer, *family);
            if !rules.is_empty() {
                setup.routes_and_rules(*family, &[(device, file.table)], &rules)?;
            }
        }
        self.to_peer = Some(setup);
        Ok(())
    }

    /// What is for the networks behind the peer passes by the kernel.
    ///
    /// # Errors
    /// The system refuses. What is left can be taken away later.
    pub fn pass_by_kernel(&mut self) -> Result<()> {
        let Some(setup) = &mut self.to_peer else { return Ok(()) };
        setup.try_undo().map_err(|errors| anyhow!("{}", in_words(&errors)))?;
        self.to_peer = None;
        Ok(())
    }

    /// Routes to the devices that are gone are set again: the kernel removes them when a device is set down.
    /// What was done, for people. `file` has the tables.
    pub fn restore_routes(&self, file: &GatewayFile) -> Vec<String> {
        let mut done = Vec::new();
        for (at, name) in self.names.iter().enumerate().filter(|_| self.is_caught || self.leads_to_peer()) {
            let table = file.table + at as u32;
            for family in &self.families {
                let shown = routes_of(*family, &table.to_string());
                let is_gone = shown.is_ok_and(|text| !text.contains(&format!("dev {name}")));
                // A device that is down has no routes: this is tried again when it is up.
                if is_gone && restore_default_route(*family, name, table).is_ok() {
                    done.push(format!(
                        "the route to {name} in table {table} was gone ({family:?}): it is restored"
                    ));
                }
            }
        }
        done
    }

    /// Follows the MTU of the interfaces; of the WAN side only without a peer. True if one has changed.
    pub fn follow_mtus(&mut self, file: &GatewayFile) -> bool {
        let before = self.mtus;
        for (mtu, names) in self.mtus.iter_mut().zip([&file.lan, &file.wan]) {
            // An interface may be gone for a while.
            if let (false, Ok(now)) = (names.is_empty(), side_mtu(names)) {
                *mtu = now.max(MIN_INTERFACE_MTU);
            }
        }
        let [lan, wan] = self.mtus;
        if before != self.mtus && file.peer.is_none() {
            // What passes unsplit may be as long as either side allows.
            self.names.iter().for_each(|name| drop(set_own_mtu(name, lan.max(wan))));
        }
        before != self.mtus
    }

    /// True while something leads to the peer.
    pub const fn leads_to_peer(&self) -> bool {
        self.to_peer.is_some()
    }

    /// Where the kernel tracks connections, it would see each one twice, and bind the addresses when it
    /// first sees it. So it tracks the WAN side alone.
    fn untrack(&mut self, file: &GatewayFile, waiting: &mut dyn FnMut()) -> Result<()> {
        let note = match packet_filter() {
            Ok(Some(filter)) if tracks(&filter) => return self.untrack_by_filter(file, waiting),
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {
                "`nft` is missing: with NAT or a stateful firewall on this host, install nftables".into()
            }
            // As where the kernel has no nf_tables.
            Err(error) => {
                format!("cannot see whether this host tracks connections, as NAT needs it: {error}")
            }
        };
        self.notes.push(note);
        Ok(())
    }

    fn untrack_by_filter(&mut self, file: &GatewayFile, waiting: &mut dyn FnMut()) -> Result<()> {
        let mut names: Vec<_> = file.lan.iter().map(|name| format!("\"{name}\"")).collect();
        let Some(device) = self.names.first() else { return Ok(()) };
        names.push(format!("\"{device}\""));
        let marks: Vec<_> = file.pass_marks.iter().map(u32::to_string).collect();
        let passed = match marks.is_empty() {
            true => String::new(),
            false => format!("meta mark != {{ {} }} ", marks.join(", ")),
        };
        let chain = format!(
            "chain untracked {{ type filter hook prerouting priority raw; iifname {{ {} }} \
             {passed}meta l4proto {{ tcp, icmp, ipv6-icmp }} fib daddr type != local notrack; }}",
            names.join(", ")
        );
        let table = format!("farpace_{device}");
        let added = OwnedTable::add(&table, &chain, waiting)
            .context("cannot keep connection tracking off the LAN side")?;
        self.untracked = Some(added);
        self.notes.push(
            "this host tracks connections: those of the LAN side are exempt (nft, `notrack`)".to_owned(),
        );
        Ok(())
    }

    /// What was set, as commands that take it away.
    pub fn steps(&self) -> Vec<String> {
        let all = [Some(&self.setup), self.to_peer.as_ref()];
        all.into_iter().flatten().flat_map(Setup::steps).flat_map(|step| step.commands()).collect()
    }

    /// Nothing comes to the devices any more.
    pub fn release(self) -> Result<()> {
        let Interception { setup, to_peer, .. } = self;
        let first = to_peer.map_or(Ok(()), undo);
        undo(setup).and(first)
    }
}

fn undo(setup: Setup) -> Result<()> {
    match setup.undo() {
        Ok(()) => Ok(()),
        Err(errors) => bail!("{}; `farpace doctor --clean` tries again", in_words(&errors)),
    }
}

fn in_words(errors: &[SystemError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The rules that lead to a peer, in their order: the first that matches decides. Empty if the
/// peer has no network of the family.
///
/// A network of this site that lies within one of the peer stays with the main table. Besides what comes from
/// the LAN, ICMP of the router itself to the peer's networks goes into the tunnel: errors about packets that
/// came out of it quote them. What is dropped there, as its source is not of this site, leaves nowhere.
pub fn peer_rules(file: &GatewayFile, peer: &PeerFile, family: IpFamily) -> Vec<String> {
    let of_family = |prefix: &&Prefix| prefix.net().is_ipv4() == (family == IpFamily::V4);
    let theirs: Vec<Prefix> = peer.peer_prefixes.iter().filter(of_family).copied().collect();
    let is_within = |prefix: &&Prefix| {
        theirs.iter().any(|wider| wider.bits() < prefix.bits() && wider.contains(prefix.net()))
    };
    let ours = peer.prefixes.iter().filter(of_family).filter(is_within);
    let table = file.table.to_string();
    let mut ways: Vec<(Prefix, &str)> = theirs.iter().map(|prefix| (*prefix, table.as_str())).collect();
    ways.extend(ours.map(|prefix| (*prefix, "main")));
    ways.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.bits()));
    // A rule without addresses is the same to the kernel as any rule of its priority with them: it refuses to
    // add it, and deletes the wrong one. So it has the next priority.
    let (pref, last) = (file.rule_priority, file.rule_priority + 1);
    let mut rules = Vec::new();
    for interface in &file.lan {
        for (prefix, table) in &ways {
            let pref = if prefix.bits() == 0 { last } else { pref };
            rules.push(format!("pref {pref} iif {interface} to {prefix} lookup {table}"));
        }
    }
    let [_, icmp] = protocols(family);
    let own = format!("pref {pref} iif lo ipproto {icmp}");
    for (prefix, table) in ways.iter().filter(|(prefix, _)| prefix.bits() > 0) {
        rules.push(format!("{own} to {prefix} lookup {table}"));
    }
    if theirs.iter().any(|prefix| prefix.bits() == 0) {
        // The Internet is behind the peer: what has no route but the default one, if its source is of this
        // site, or not chosen yet, as that of an error about a packet on its way. Answers from an address of
        // a link stay with the main table.
        rules.push(format!("{own} lookup main suppress_prefixlength 0"));
        let ours = peer.prefixes.iter().filter(of_family);
        rules.extend(ours.map(|prefix| format!("{own} from {prefix} lookup {table}")));
        match family {
            IpFamily::V4 => rules.push(format!("{own} from 0.0.0.0 lookup {table}")),
            // A rule for IPv6 cannot ask for no source.
            IpFamily::V6 => {
                rules.extend(["::/1", "8000::/1"].map(|any| format!("{own} from {any} lookup main")));
                rules.push(format!("pref {last} iif lo ipproto {icmp} lookup {table}"));
            }
        }
    }
    rules
}

/// The protocols that are caught: errors of the network are about connections, too.
pub const fn protocols(family: IpFamily) -> [&'static str; 2] {
    match family {
        IpFamily::V4 => ["tcp", "icmp"],
        IpFamily::V6 => ["tcp", "ipv6-icmp"],
    }
}

/// True if iptables-legacy has tables: `nft` does not show them.
fn has_legacy_tables() -> bool {
    ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"]
        .iter()
        .any(|path| std::fs::read_to_string(path).is_ok_and(|text| !text.trim().is_empty()))
}

/// True if the kernel tracks connections, or rewrites addresses.
pub fn tracks(filter: &str) -> bool {
    has_legacy_tables() || TRACKING.iter().any(|word| filter.contains(word))
}

/// The least MTU of the interfaces of a side.
pub fn side_mtu(names: &[String]) -> Result<u16> {
    let mut least = u16::MAX;
    for name in names {
        let facts = interface_facts(&SystemInterface::here(name))
            .with_context(|| format!("there is no interface `{name}`: `ip link` lists them"))?;
        least = least.min(u16::try_from(facts.mtu).unwrap_or(u16::MAX));
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(own: &str, peer: &str, family: IpFamily) -> Vec<String> {
        let text = format!(
            "site = \"a\"\npeer = \"b\"\nprefixes = [{own}]\npeer_prefixes = [{peer}]\n\
             preshared_key = \"{key}\"\n[[path]]\nprivate_key = \"{key}\"\npeer_public_key = \"{key}\"\n\
             listen_port = 1\n",
            key = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
        );
        let file = GatewayFile { lan: vec!["eth0".into()], ..GatewayFile::default() };
        peer_rules(&file, &PeerFile::parse(&text).unwrap(), family)
    }

    /// Breaks: what is for a network of this site that lies within one of the peer goes to the peer, or the
    /// reverse; ICMP of the router to hosts of this site, or answers from its own addresses, go to the peer.
    #[test]
    fn the_longest_prefix_comes_first() {
        let all =
            rules("\"10.1.0.0/16\", \"192.168.0.0/16\"", "\"10.0.0.0/8\", \"10.1.2.0/24\"", IpFamily::V4);
        assert_eq!(
            all,
            [
                "pref 100 iif eth0 to 10.1.2.0/24 lookup 7710",
                "pref 100 iif eth0 to 10.1.0.0/16 lookup main",
                "pref 100 iif eth0 to 10.0.0.0/8 lookup 7710",
                "pref 100 iif lo ipproto icmp to 10.1.2.0/24 lookup 7710",
                "pref 100 iif lo ipproto icmp to 10.1.0.0/16 lookup main",
                "pref 100 iif lo ipproto icmp to 10.0.0.0/8 lookup 7710",
            ]
        );
        assert!(rules("\"10.1.0.0/16\"", "\"10.2.0.0/16\"", IpFamily::V6).is_empty());
        let all = rules("\"fd01::/64\"", "\"::/0\"", IpFamily::V6);
        assert_eq!(
            all,
            [
                "pref 100 iif eth0 to fd01::/64 lookup main",
                "pref 101 iif eth0 to ::/0 lookup 7710",
                "pref 100 iif lo ipproto ipv6-icmp to fd01::/64 lookup main",
                "pref 100 iif lo ipproto ipv6-icmp lookup main suppress_prefixlength 0",
                "pref 100 iif lo ipproto ipv6-icmp from fd01::/64 lookup 7710",
                "pref 100 iif lo ipproto ipv6-icmp from ::/1 lookup main",
                "pref 100 iif lo ipproto ipv6-icmp from 8000::/1 lookup main",
                "pref 101 iif lo ipproto ipv6-icmp lookup 7710",
            ]
        );
    }
}
