//! A layer below the kernel's own stack: a TAP device in front, which has the address, and real interfaces
//! behind, whose frames the kernel must not take for its own.

use anyhow::{Context, Result, bail};
use farpace_live::DeviceInfo;
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig};
use farpace_live::system::{InterfaceLock, Setup};
use farpace_wire::MacAddr;
use nix::sys::socket::SockaddrStorage;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// Interfaces that are taken from the kernel's stack; it has them back when this is dropped.
#[derive(Debug)]
pub struct TakenInterfaces {
    _setup: Setup,
    _locks: Vec<InterfaceLock>,
}

/// Takes interfaces from the kernel's stack: it answers no ARP there and takes no packets, until the setup is
/// dropped.
///
/// # Errors
/// An interface that is not there, that is given twice, that another process has or that still has an
/// address, or no right to.
pub fn take(interfaces: &[&str]) -> Result<TakenInterfaces> {
    for (at, interface) in interfaces.iter().enumerate() {
        if interfaces[..at].contains(interface) {
            bail!("`{interface}` is given twice");
        }
        if is_loopback(interface)? {
            bail!("`{interface}` is the loopback interface, which reaches no other machine: choose another");
        }
        if let Some((address, bits)) = addresses(interface)?.first() {
            bail!(
                "`{interface}` still has the address {address}: what the kernel sends from it would not pass \
                 through farpace. Take the address away with\n  ip address del {address}/{bits} dev \
                 {interface}\nand give it to farpace instead: --addr {address}/{bits}"
            );
        }
    }
    let locks = InterfaceLock::take_all(interfaces.iter().copied())?;
    let setup = Setup::begin("below")?;
    for interface in interfaces {
        // It answers for no address; and what comes here from where the way back leads elsewhere is dropped
        // (RFC 3704). Names of interfaces may have dots, those of parameters have slashes then.
        let name = interface.replace('.', "/");
        setup.sysctl(None, &format!("net.ipv4.conf.{name}.arp_ignore"), "8")?;
        setup.sysctl(None, &format!("net.ipv4.conf.{name}.rp_filter"), "1")?;
        if Path::new("/proc/sys/net/ipv6/conf").join(interface).exists() {
            setup.sysctl(None, &format!("net.ipv6.conf.{name}.disable_ipv6"), "1")?;
        }
    }
    Ok(TakenInterfaces { _setup: setup, _locks: locks })
}

fn is_loopback(interface: &str) -> Result<bool> {
    let mut all = nix::ifaddrs::getifaddrs().context("cannot list the interfaces of this machine")?;
    let loopback = nix::net::if_::InterfaceFlags::IFF_LOOPBACK;
    Ok(all.any(|entry| entry.interface_name == interface && entry.flags.contains(loopback)))
}

/// The addresses of an interface with the bits of their networks. Link-local IPv6 addresses are left out:
/// each interface has one, and [`take`] switches IPv6 off there.
fn addresses(interface: &str) -> Result<Vec<(IpAddr, u8)>> {
    let all = nix::ifaddrs::getifaddrs().context("cannot list the addresses of this machine")?;
    let own = all.filter(|entry| entry.interface_name == interface).filter_map(|entry| {
        let ip = |of: Option<SockaddrStorage>| {
            let of = of?;
            let v4 = of.as_sockaddr_in().map(|of| IpAddr::V4(of.ip()));
            v4.or_else(|| of.as_sockaddr_in6().map(|of| IpAddr::V6(of.ip())))
        };
        let bits = match ip(entry.netmask)? {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        };
        Some((ip(entry.address)?, bits as u8))
    });
    let local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    Ok(own.filter(|(ip, _)| !local(ip)).collect())
}

/// A TAP device with the addresses, and with the MAC address that neighbours are to see.
///
/// # Errors
/// It cannot be made.
pub fn front(name: &str, mac: MacAddr, mtu: u16, addresses: &[(IpAddr, u8)]) -> Result<Tun> {
    let config = TunConfig { tap: true, mtu, addresses: addresses.to_vec(), ..TunConfig::new(name) };
    let tun = Tun::open(&config)?;
    let mut command = Command::new("ip");
    let output = command.args(["link", "set", "dev", name, "address", &mac.to_string()]).output();
    let output = output.context("cannot run `ip`, which is of iproute2")?;
    if !output.status.success() {
        bail!("cannot set the address of `{name}`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(tun)
}

/// A socket on an interface behind: whole frames, one by one.
///
/// # Errors
/// It is not there, or there is no right to use it.
pub fn socket(interface: &str) -> Result<PacketSocket> {
    let config = PacketConfig { super_segments: false, bypass_queue: true, ..PacketConfig::new(interface) };
    Ok(PacketSocket::open(&config)?)
}

/// The MAC address of a device that has one.
///
/// # Errors
/// It has none.
pub fn mac(info: &DeviceInfo) -> Result<MacAddr> {
    info.mac.with_context(|| format!("`{}` is no Ethernet", info.name))
}
