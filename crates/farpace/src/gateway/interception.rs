//! What brings the traffic of a router to the gateway: two devices, and rules that lead there. A gateway with
//! a peer has one device: the other side is the tunnel.
//!
//! All of it ends with the process: the devices and the routes vanish, and rules without routes fall
//! through to the main table. So after a crash connections pass by the kernel at once.

use super::config::GatewayFile;
use super::pair::GatewayPair;
use super::peer_file::PeerFile;
use anyhow::{Context, Result, bail};
use farpace_live::device::{Tun, TunConfig};
use farpace_live::system::{
    IpFamily, OwnedTable, Setup, SystemInterface, interface_facts, packet_filter, sysctl,
};
use farpace_path::Prefix;

/// Names of the devices, with a number.
const DEVICES: [&str; 2] = ["fplan", "fpwan"];
/// Gateways in a network namespace at most.
const MAX_GATEWAYS: u32 = 64;
/// Name of the journal, and of that of the rules that lead to a peer.
const JOURNAL: &str = "gateway";
const PEER_JOURNAL: &str = "gateway-peer";

/// Words of a packet filter that tracks connections, or rewrites addresses by what it has tracked.
const TRACKING: [&str; 5] = ["ct ", "masquerade", "snat ", "dnat ", "redirect"];

/// The devices of a gateway, and what leads to them.
pub struct Interception {
    /// The device of the LAN side, and of the WAN side without a peer.
    pub devices: Vec<Tun>,
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
    _untracked: Option<OwnedTable>,
    families: Vec<IpFamily>,
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
        let open = |name: &String| Tun::open(&TunConfig { mtu, ..TunConfig::new(name) });
        let devices = names.iter().map(open).collect::<Result<_, _>>()?;
        let mut notes = Vec::new();
        let mut families = vec![IpFamily::V4];
        match sysctl::read("net.ipv6.conf.all.disable_ipv6") {
            Ok(off) if off == "0" => families.push(IpFamily::V6),
            _ => notes.push("IPv6 is off on this host, and is not split".to_owned()),
        }
        Ok(Interception { devices, names, mtus, notes, setup, to_peer: None, _untracked: None, families })
    }

    /// From now on traffic comes to the devices.
    pub fn catch(&mut self, file: &GatewayFile) -> Result<()> {
        self.untrack(file)?;
        for family in &self.families {
            for (at, name) in self.names.iter().enumerate() {
                let table = file.table + at as u32;
                self.setup.default_route_in(*family, &SystemInterface::here(name), table)?;
            }
        }
        // First the way back, so that no answer to what is caught passes by.
        for (at, interfaces) in [(1, &file.wan), (0, &file.lan)] {
            let (priority, table) = (file.rule_priority + at, file.table + at);
            for interface in interfaces {
                for family in &self.families {
                    for protocol in protocols(*family) {
                        let words =
                            format!("pref {priority} iif {interface} ipproto {protocol} lookup {table}");
                        self.setup.rule(*family, &words)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// From now on everything from the LAN to the networks behind the peer comes to the device. What comes
    /// from the peer is written to it, and is routed by the main table. The kernel sees each connection once,
    /// so that it may track it.
    pub fn catch_for_peer(&mut self, file: &GatewayFile, peer: &PeerFile) -> Result<()> {
        if self.to_peer.is_some() {
            return Ok(());
        }
        let device =
            self.names.first().map(|name| SystemInterface::here(name)).context("there is no device")?;
        let setup = Setup::begin(PEER_JOURNAL)?;
        for family in &self.families {
            let is_v4 = *family == IpFamily::V4;
            let prefixes: Vec<_> =
                peer.peer_prefixes.iter().filter(|prefix| prefix.net().is_ipv4() == is_v4).collect();
            if prefixes.is_empty() {
                continue;
            }
            setup.default_route_in(*family, &device, file.table)?;
            for interface in &file.lan {
                for prefix in &prefixes {
                    setup.rule(*family, &peer_rule(file, interface, prefix))?;
                }
            }
        }
        self.to_peer = Some(setup);
        Ok(())
    }

    /// What is for the networks behind the peer passes by the kernel.
    pub fn pass_by_kernel(&mut self) -> Result<()> {
        self.to_peer.take().map_or(Ok(()), undo)
    }

    /// True while something leads to the peer.
    pub const fn leads_to_peer(&self) -> bool {
        self.to_peer.is_some()
    }

    /// Where the kernel tracks connections, it would see each one twice, and bind the addresses when it
    /// first sees it. So it tracks the WAN side alone.
    fn untrack(&mut self, file: &GatewayFile) -> Result<()> {
        let Some(filter) = packet_filter().unwrap_or(None) else {
            self.notes.push(
                "`nft` is missing: with NAT or a stateful firewall on this host, install nftables".to_owned(),
            );
            return Ok(());
        };
        if !tracks(&filter) {
            return Ok(());
        }
        let mut names: Vec<_> = file.lan.iter().map(|name| format!("\"{name}\"")).collect();
        let Some(device) = self.names.first() else { return Ok(()) };
        names.push(format!("\"{device}\""));
        let chain = format!(
            "chain untracked {{ type filter hook prerouting priority raw; iifname {{ {} }} \
             meta l4proto {{ tcp, icmp, ipv6-icmp }} fib daddr type != local notrack; }}",
            names.join(", ")
        );
        let table = format!("farpace_{device}");
        let added =
            OwnedTable::add(&table, &chain).context("cannot keep connection tracking off the LAN side")?;
        self._untracked = Some(added);
        self.notes.push(
            "this host tracks connections: those of the LAN side are exempt (nft, `notrack`)".to_owned(),
        );
        Ok(())
    }

    /// What was set, as commands that take it away.
    pub fn steps(&self) -> Vec<String> {
        let all = [Some(&self.setup), self.to_peer.as_ref()];
        all.into_iter().flatten().flat_map(Setup::steps).map(|step| step.to_string()).collect()
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
        Err(errors) => {
            let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
            bail!("{}; `farpace doctor --clean` tries again", all.join("; "))
        }
    }
}

/// The rule that leads from an interface to a peer.
fn peer_rule(file: &GatewayFile, interface: &str, prefix: &Prefix) -> String {
    format!("pref {} iif {interface} to {prefix} lookup {}", file.rule_priority, file.table)
}

/// The protocols that are caught: errors of the network are about connections, too.
pub const fn protocols(family: IpFamily) -> [&'static str; 2] {
    match family {
        IpFamily::V4 => ["tcp", "icmp"],
        IpFamily::V6 => ["tcp", "ipv6-icmp"],
    }
}

/// True if the kernel tracks connections, or rewrites addresses.
pub fn tracks(filter: &str) -> bool {
    let legacy = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"]
        .iter()
        .any(|path| std::fs::read_to_string(path).is_ok_and(|text| !text.trim().is_empty()));
    legacy || TRACKING.iter().any(|word| filter.contains(word))
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
