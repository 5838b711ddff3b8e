//! The device that a host is brought up on, and its addresses there.

use super::Args;
use crate::device::{InterfaceMode, advise, open_xdp};
use crate::terminal;
use anyhow::{Context, Result, bail};
use farpace_host::LocalLink;
use farpace_live::device::udp_tunnel::{Dialled, WireguardFile};
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig, UdpTunnel, who_has};
use farpace_live::system::{InterfaceLock, LockedDevice, Setup, SystemInterface};
use farpace_live::{Device, InterfacePrefix, check_addresses, check_not_own, kernel_addresses};
use farpace_process::interrupt;
use farpace_wire::MacAddr;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// How long a WireGuard peer with an endpoint is waited for.
const DIAL_TIME: Duration = Duration::from_secs(5);

/// A device, ready.
pub struct HostDevice {
    /// The device.
    pub device: Box<dyn Device>,
    /// What it is, in words.
    pub what: String,
    /// Our address on the Ethernet, and what we know of it; none: there is no Ethernet.
    pub link: Option<(MacAddr, LocalLink)>,
    /// Our addresses.
    pub ours: Vec<InterfacePrefix>,
    /// The kernel's, which were given to it for this.
    pub kernels: Vec<InterfacePrefix>,
    /// What was set on the machine beside.
    pub setup: Option<Setup>,
}

/// An address of our own, the same for the same name in each run, so that neighbours need not learn anew.
pub fn own_mac(name: &str, ours: &[InterfacePrefix]) -> MacAddr {
    let words = format!("{name} {ours:?}");
    // FNV-1a.
    let hash = words
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    // Locally administered, of one station.
    MacAddr([0x02, a, b, c, d, e])
}

/// Opens what the arguments name.
///
/// # Errors
/// It cannot be opened, with how to mend it.
pub fn open(args: &Args) -> Result<HostDevice> {
    match (&args.iface, &args.wireguard) {
        (Some(interface), _) => beside(args, interface),
        (None, Some(file)) => tunnel(args, file),
        (None, None) => own(args),
    }
}

/// Reads a WireGuard configuration, and says which of its keys mean nothing here.
///
/// # Errors
/// It cannot be read or used.
pub fn wireguard(path: &Path) -> Result<WireguardFile> {
    let shown = path.display();
    let file = WireguardFile::read(path).with_context(|| format!("--wireguard {shown}"))?;
    if file.config.addresses.is_empty() {
        bail!("--wireguard {shown}: Address of [Interface] is missing: the host needs one");
    }
    if !file.ignored.is_empty() {
        let keys = file.ignored.join(", ");
        terminal::note(&format!(
            "{shown}: {keys}: not used, because no device and no route of the system is set up"
        ));
    }
    Ok(file)
}

/// Opens the tunnel. A peer with an endpoint must answer.
///
/// # Errors
/// The UDP socket cannot be had, or nobody answers.
pub fn dial(file: &WireguardFile) -> Result<(UdpTunnel, Option<Dialled>)> {
    let mut device = UdpTunnel::open(&file.config)?;
    let dialled = file.dials().then(|| device.dial(DIAL_TIME, &interrupt::asked)).transpose();
    let dialled =
        dialled.context("check Endpoint, PublicKey and PresharedKey of the peer, and its firewall")?;
    Ok((device, dialled))
}

/// An end of WireGuard tunnels.
fn tunnel(args: &Args, path: &Path) -> Result<HostDevice> {
    let mut file = wireguard(path)?;
    file.config.mtu = args.mtu.or(file.config.mtu);
    let (device, dialled) = dial(&file)?;
    let port = device.local_addr().context("the UDP socket has no address")?.port();
    let peers = match (file.config.peers.len(), dialled) {
        (_, Some(Dialled { endpoint, .. })) => format!("the peer at {endpoint} answers"),
        (1, None) => "1 peer may begin".to_owned(),
        (many, None) => format!("{many} peers may begin"),
    };
    let ours = device.addresses().iter().map(|own| (*own, if own.is_ipv4() { 32 } else { 128 })).collect();
    let what = format!("WireGuard at UDP port {port}, {peers}");
    Ok(HostDevice { device: Box::new(device), what, link: None, ours, kernels: Vec::new(), setup: None })
}

/// A TUN or TAP device, which nobody else has.
fn own(args: &Args) -> Result<HostDevice> {
    let (name, tap) = match &args.tap {
        Some(name) => (name.as_str(), true),
        None => (args.tun.as_deref().unwrap_or("fp0"), false),
    };
    let ours = match args.addr.is_empty() {
        true => vec![(IpAddr::from([10, 77, 0, 2]), 24)],
        false => args.addr.clone(),
    };
    let kernels = kernel_addresses(&ours, &args.peer_addr)?;
    let mtu = args.mtu.unwrap_or(1500);
    check_addresses(&ours, &kernels, &args.gateway, Some(mtu))?;
    check_not_own(&ours)?;
    let locks = InterfaceLock::take_addresses(ours.iter().map(|own| own.0), name)?;
    let config =
        TunConfig { tap, mtu, addresses: kernels.clone(), offload: !args.no_offload, ..TunConfig::new(name) };
    let device = Tun::open(&config).map_err(|error| advise(error, name))?;
    let link = tap.then(|| {
        (own_mac(name, &ours), LocalLink { prefixes: ours.clone(), gateways: routers(args, &kernels) })
    });
    let what = if tap { "a TAP device" } else { "a TUN device" };
    let device = Box::new(LockedDevice::new(Box::new(device), locks));
    Ok(HostDevice { device, what: what.to_owned(), link, ours, kernels, setup: None })
}

fn routers(args: &Args, kernels: &[InterfacePrefix]) -> Vec<IpAddr> {
    // What has given us its addresses knows the way to others, if there is one.
    if args.gateway.is_empty() {
        kernels.iter().map(|kernel| kernel.0).collect()
    } else {
        args.gateway.clone()
    }
}

/// An interface that the system has.
fn beside(args: &Args, name: &str) -> Result<HostDevice> {
    if args.addr.is_empty() {
        bail!(
            "--iface needs an address for the host, like --addr 192.168.1.77/24: one that nobody else has \
             there"
        );
    }
    let ours = args.addr.clone();
    check_addresses(&ours, &[], &args.gateway, args.mtu)?;
    let locks = match args.mode {
        InterfaceMode::AfPacket => {
            check_not_own(&ours)?;
            InterfaceLock::share(name)?
        }
        // In place of the machine, the host may have its address.
        InterfaceMode::AfXdp => InterfaceLock::take_all([name].into_iter())?,
    };
    let mac = own_mac(name, &ours);
    let interface = SystemInterface::here(name);
    let (mut device, what, setup): (Box<dyn Device>, String, Setup) = match args.mode {
        InterfaceMode::AfPacket => {
            let config = PacketConfig {
                mac: Some(mac),
                promiscuous: true,
                super_segments: !args.no_offload,
                ..PacketConfig::new(name)
            };
            let device = PacketSocket::open(&config).map_err(|error| advise(error, name))?;
            let setup = Setup::begin("up")?;
            setup.up(&interface)?;
            if let Some(mtu) = args.mtu.filter(|mtu| *mtu != device.info().mtu) {
                setup.mtu(&interface, mtu)?;
            }
            (Box::new(device), "a packet socket beside the system".to_owned(), setup)
        }
        InterfaceMode::AfXdp => {
            let setup = Setup::begin("up").context("AF_XDP needs root")?;
            // The memory for frames is made for the MTU that there is.
            setup.up(&interface)?;
            if let Some(mtu) = args.mtu {
                setup.mtu(&interface, mtu)?;
            }
            let device = open_xdp(name, Some(mac), &setup)?;
            let what = format!("AF_XDP in place of the system, {}", device.mode());
            (Box::new(device), what, setup)
        }
    };
    check_free(device.as_mut(), &ours, mac)?;
    let device = Box::new(LockedDevice::new(device, locks));
    let link = Some((mac, LocalLink { prefixes: ours.clone(), gateways: args.gateway.clone() }));
    Ok(HostDevice { device, what, link, ours, kernels: Vec::new(), setup: Some(setup) })
}

/// Refuses addresses that somebody has: two machines would get the packets of one.
fn check_free(device: &mut dyn Device, ours: &[InterfacePrefix], mac: MacAddr) -> Result<()> {
    let addresses: Vec<IpAddr> = ours.iter().map(|(address, _)| *address).collect();
    let name = device.info().name.clone();
    let asked = who_has(device, &addresses, mac).with_context(|| format!("cannot ask on `{name}`"))?;
    if let Some((address, who)) = asked {
        bail!("{address} is taken on {name}: {who} answers for it; give the host one that nobody has there");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: two hosts of ours on one Ethernet have one address, or it is that of a group.
    #[test]
    fn own_addresses_differ() {
        let a = own_mac("eth0", &[farpace_live::prefix("10.0.0.1/24").unwrap()]);
        let b = own_mac("eth0", &[farpace_live::prefix("10.0.0.2/24").unwrap()]);
        assert!(a != b && a.0[0] == 2 && b.0[0] == 2);
    }
}
