//! What brings the traffic of a router to the gateway: two devices, and rules that lead there.
//!
//! All of it ends with the process: the devices and the routes vanish, and rules without routes fall
//! through to the main table. So after a crash connections pass by the kernel at once.

use super::config::GatewayFile;
use anyhow::{Context, Result, bail};
use farpace_live::device::{Tun, TunConfig};
use farpace_live::system::{
    IpFamily, OwnedTable, Setup, SystemInterface, interface_facts, packet_filter, sysctl,
};

/// Names of the devices, with a number.
const DEVICES: [&str; 2] = ["fplan", "fpwan"];
/// Gateways in a network namespace at most.
const MAX_GATEWAYS: u32 = 64;
/// Name of the journal.
pub const JOURNAL: &str = "gateway";

/// Words of a packet filter that tracks connections, or rewrites addresses by what it has tracked.
const TRACKING: [&str; 5] = ["ct ", "masquerade", "snat ", "dnat ", "redirect"];

/// The devices of a gateway, and what leads to them.
pub struct Interception {
    /// The device of the LAN side, and of the WAN side.
    pub devices: Option<[Tun; 2]>,
    /// Their names.
    pub names: [String; 2],
    /// MTU of each side, in bytes.
    pub mtus: [u16; 2],
    /// What is off, and why.
    pub notes: Vec<String>,
    setup: Setup,
    /// Keeps tracking of connections off the LAN side.
    _untracked: Option<OwnedTable>,
    families: Vec<IpFamily>,
}

impl Interception {
    /// Makes the devices. Nothing leads to them yet.
    pub fn begin(file: &GatewayFile) -> Result<Self> {
        let mtus = [side_mtu(&file.lan)?, side_mtu(&file.wan)?];
        let setup = Setup::begin(JOURNAL)?;
        let number = (0..MAX_GATEWAYS)
            .find(|number| {
                DEVICES.iter().all(|name| !SystemInterface::here(&format!("{name}{number}")).exists())
            })
            .context("there are too many gateways already: `farpace gateway status`")?;
        let names = DEVICES.map(|name| format!("{name}{number}"));
        // What passes unsplit may be as long as either side allows.
        let mtu = mtus[0].max(mtus[1]);
        let open = |name: &String| Tun::open(&TunConfig { mtu, ..TunConfig::new(name) });
        let devices = [open(&names[0])?, open(&names[1])?];
        let mut notes = Vec::new();
        let mut families = vec![IpFamily::V4];
        match sysctl::read("net.ipv6.conf.all.disable_ipv6") {
            Ok(off) if off == "0" => families.push(IpFamily::V6),
            _ => notes.push("IPv6 is off on this host, and is not split".to_owned()),
        }
        Ok(Interception { devices: Some(devices), names, mtus, notes, setup, _untracked: None, families })
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
        names.push(format!("\"{}\"", self.names[0]));
        let chain = format!(
            "chain untracked {{ type filter hook prerouting priority raw; iifname {{ {} }} \
             meta l4proto {{ tcp, icmp, ipv6-icmp }} fib daddr type != local notrack; }}",
            names.join(", ")
        );
        let table = format!("farpace_{}", self.names[0]);
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
        self.setup.steps().iter().map(ToString::to_string).collect()
    }

    /// Nothing comes to the devices any more.
    pub fn release(self) -> Result<()> {
        let Interception { setup, .. } = self;
        match setup.undo() {
            Ok(()) => Ok(()),
            Err(errors) => {
                let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
                bail!("{}; `farpace doctor --clean` tries again", all.join("; "))
            }
        }
    }
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
