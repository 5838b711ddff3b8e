//! The configuration of a stack as text: device, addresses, options.

use crate::ffi::{borrowed, options, set_own_numbers};
use crate::home::Home;
use crate::reaper;
use farpace_host::LocalLink;
use farpace_live::DeviceError;
use farpace_live::device::udp_tunnel::WireguardFile;
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig, UdpTunnel};
use farpace_live::socket::{Stack, StackError, StackOptions};
use farpace_live::system::{InterfaceLock, LockedDevice, SystemError, state_folder};
use farpace_live::{Device, Wait, check_addresses};
use farpace_units::ByteCount;
use farpace_wire::MacAddr;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockType, SockaddrLike, SockaddrStorage, getsockname, getsockopt, sockopt,
};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a WireGuard peer with an endpoint is waited for.
const DIAL_TIME: Duration = Duration::from_secs(5);

/// An address and its prefix length.
type AddressPrefix = (IpAddr, u8);

/// The configuration text of `fp_stack_open`.
#[derive(Default)]
pub struct InterfaceConfig {
    tun: Option<String>,
    tap: Option<String>,
    iface: Option<String>,
    wireguard: Option<String>,
    kernels: Vec<AddressPrefix>,
    ours: Vec<AddressPrefix>,
    gateways: Vec<IpAddr>,
    mac: Option<MacAddr>,
    mtu: Option<u16>,
    profile: Option<String>,
    capture: Option<String>,
    memory: Option<ByteCount>,
    /// The name in the output of `farpace ss`.
    control: Option<String>,
    /// The whole text.
    words: String,
}

/// Why there is no stack: for the program, and for users.
#[derive(Debug)]
pub struct ConfigRefusal(pub Errno, pub String);

fn wrong(line: &str, wanted: &str) -> ConfigRefusal {
    ConfigRefusal(Errno::EINVAL, format!("`{line}`: expected {wanted}"))
}

/// `10.77.0.1/24`.
fn prefix(text: &str) -> Option<AddressPrefix> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits): AddressPrefix = (address.parse().ok()?, bits.parse().ok()?);
    (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
}

/// `02:00:00:00:00:01`.
fn mac(text: &str) -> Option<MacAddr> {
    let bytes: Option<Vec<_>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    Some(MacAddr(bytes?.try_into().ok()?))
}

impl InterfaceConfig {
    /// Parses lines of `name=value`.
    ///
    /// # Errors
    /// `EINVAL`: an invalid line.
    pub fn parse(words: &str) -> Result<Self, ConfigRefusal> {
        let mut place = InterfaceConfig { words: words.to_owned(), ..InterfaceConfig::default() };
        for line in words.lines().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once('=').ok_or_else(|| wrong(line, "name=value"))?;
            // These values have no `=`: whoever writes all in one line means several.
            let is_plain = !matches!(name, "profile" | "pcap" | "wireguard" | "control");
            if is_plain && value.contains('=') {
                return Err(wrong(line, "one name=value a line"));
            }
            let text = || Some(value.to_owned());
            let network = || prefix(value).ok_or_else(|| wrong(line, "an address like 10.77.0.2/24"));
            match name {
                "tun" => place.tun = text(),
                "tap" => place.tap = text(),
                "iface" => place.iface = text(),
                "wireguard" => place.wireguard = text(),
                "kernel" => place.kernels.push(network()?),
                "address" => place.ours.push(network()?),
                "gateway" => {
                    place.gateways.push(value.parse().map_err(|_| wrong(line, "the address of a router"))?);
                }
                "mac" => {
                    place.mac =
                        Some(mac(value).ok_or_else(|| wrong(line, "six bytes like 02:00:00:00:00:01"))?)
                }
                "mtu" => place.mtu = Some(value.parse().map_err(|_| wrong(line, "bytes"))?),
                "profile" => place.profile = text(),
                "pcap" => place.capture = text(),
                "memory" => place.memory = Some(value.parse().map_err(|_| wrong(line, "bytes like 1 GiB"))?),
                "control" => place.control = text(),
                "descriptors" => {
                    let first = value.parse().ok().filter(|first| *first > 0);
                    set_own_numbers(first.ok_or_else(|| wrong(line, "the number of a descriptor"))?);
                }
                _ => {
                    return Err(wrong(
                        line,
                        "tun, tap, iface, wireguard, kernel, address, gateway, mac, mtu, profile, memory, \
                         pcap, control or descriptors",
                    ));
                }
            }
        }
        Ok(place)
    }

    /// Starts the stack.
    ///
    /// # Errors
    /// Errors of the system; `EINVAL`: a contradictory configuration; `ENOENT`: no such profile.
    pub fn open(self) -> Result<Arc<Home>, ConfigRefusal> {
        let addresses: Vec<_> = self.ours.iter().map(|(address, _)| *address).collect();
        if addresses.is_empty() {
            return Err(ConfigRefusal(Errno::EINVAL, "a stack needs an address".to_owned()));
        }
        let options = options(self.profile.as_deref())?;
        let kernels: &[AddressPrefix] = if self.iface.is_some() { &[] } else { &self.kernels };
        check_addresses(&self.ours, kernels, &self.gateways, self.mtu)
            .map_err(|error| ConfigRefusal(Errno::EINVAL, error.to_string()))?;
        let before = descriptors();
        let (device, on_ethernet) = self.device()?;
        let link = LocalLink { prefixes: self.ours.clone(), gateways: self.gateways.clone() };
        let ethernet = match (on_ethernet, self.mac) {
            (true, None) => return Err(ConfigRefusal(Errno::EINVAL, "an Ethernet needs mac=".to_owned())),
            (true, Some(mac)) => Some((mac, link)),
            (false, _) => None,
        };
        let (capture, memory, networks) = (self.capture.map(Into::into), self.memory, self.ours);
        let besides = StackOptions { ethernet, capture, memory, networks };
        let stack = Stack::on_device_with(device, &addresses, Wait::Sleep, besides)
            .map_err(|error| ConfigRefusal(errno(&error), error.to_string()))?;
        if let Some(name) = &self.control {
            let offered = stack.offer_list(name);
            offered.map_err(|error| ConfigRefusal(Errno::EACCES, error.to_string()))?;
        }
        let private = descriptors().difference(&before).copied().filter(|fd| is_private(*fd)).collect();
        let none = |error| ConfigRefusal(error, "no descriptors or threads are left".to_owned());
        let home = Home::new(stack, None, options, &self.words, private).map_err(none)?;
        reaper::start(&home).map_err(none)?;
        Ok(home)
    }

    fn device(&self) -> Result<(Box<dyn Device>, bool), ConfigRefusal> {
        let refuse = |error: DeviceError| {
            let text = error.to_string();
            ConfigRefusal(errno(&StackError::Device(error)), text)
        };
        let locked = |error: SystemError| ConfigRefusal(Errno::EADDRINUSE, error.to_string());
        let mut config = PacketConfig::new("");
        Ok(match (&self.tun, &self.tap, &self.iface, &self.wireguard) {
            (None, None, None, Some(file)) => (Box::new(self.tunnel(file)?), false),
            (None, None, Some(name), None) => {
                (config.mac, config.promiscuous, config.interface) = (self.mac, true, name.clone());
                let device = PacketSocket::open(&config).map_err(refuse)?;
                let locks = InterfaceLock::share(name).map_err(locked)?;
                (Box::new(LockedDevice::new(Box::new(device), locks)), true)
            }
            (Some(name), None, None, None) | (None, Some(name), None, None) => {
                let tap = self.tap.is_some();
                let (mtu, addresses) = (self.mtu.unwrap_or(1500), self.kernels.clone());
                let config = TunConfig { tap, mtu, addresses, ..TunConfig::new(name) };
                let addresses = self.ours.iter().map(|(address, _)| *address);
                let locks = InterfaceLock::take_addresses(addresses, name).map_err(locked)?;
                let device = Tun::open(&config).map_err(refuse)?;
                (Box::new(LockedDevice::new(Box::new(device), locks)), tap)
            }
            _ => {
                return Err(ConfigRefusal(
                    Errno::EINVAL,
                    "one of tun=, tap=, iface= and wireguard= is needed".to_owned(),
                ));
            }
        })
    }

    /// An end of WireGuard tunnels, with the addresses and the MTU of these words. A peer with an endpoint
    /// must answer.
    fn tunnel(&self, path: &str) -> Result<UdpTunnel, ConfigRefusal> {
        let refuse =
            |errno: Errno, error: &dyn std::fmt::Display| ConfigRefusal(errno, format!("{path}: {error}"));
        let mut file = WireguardFile::read(Path::new(path)).map_err(|error| refuse(Errno::EINVAL, &error))?;
        file.config.addresses = self.ours.iter().map(|(address, _)| *address).collect();
        file.config.mtu = self.mtu.or(file.config.mtu);
        let device = UdpTunnel::open(&file.config);
        let mut device = device.map_err(|error| refuse(Errno::EADDRINUSE, &error))?;
        if file.dials() {
            let dialled = device.dial(DIAL_TIME, &|| false);
            dialled.map_err(|error| refuse(Errno::EHOSTUNREACH, &error))?;
        }
        Ok(device)
    }
}

/// The descriptors of this process.
fn descriptors() -> BTreeSet<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
/// True for descriptors that must close with the stack, and would not if a child of fork(2) had them too.
fn is_private(fd: RawFd) -> bool {
    let file = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    let is_lock = file.extension().is_some_and(|end| end == "lock") && file.starts_with(state_folder());
    if file.as_os_str() == "/dev/net/tun" || is_lock {
        return true;
    }
    let Ok(socket) = borrowed(fd) else { return false };
    let packet =
        getsockname::<SockaddrStorage>(fd).is_ok_and(|name| name.family() == Some(AddressFamily::Packet));
    // The socket of a tunnel.
    let udp = getsockopt(&socket, sockopt::SockType).is_ok_and(|kind| kind == SockType::Datagram)
        && getsockname::<SockaddrStorage>(fd)
            .is_ok_and(|name| matches!(name.family(), Some(AddressFamily::Inet | AddressFamily::Inet6)));
    packet || udp || getsockopt(&socket, sockopt::AcceptConn).unwrap_or(false)
}

fn errno(error: &StackError) -> Errno {
    match error {
        StackError::Device(DeviceError::System { error, .. }) => {
            error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw)
        }
        StackError::Capture(_) => Errno::EIO,
        _ => Errno::EINVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the configuration text of a stack takes effect, or an error names the reason.
    #[test]
    fn words_are_understood_or_refused() {
        let words =
            "tap=fp0\naddress=10.7.0.2/24\naddress=fd77::2/64\nmac=02:00:00:00:00:0a\nmtu=9000\npcap=/a b";
        let place = InterfaceConfig::parse(words).unwrap_or_else(|ConfigRefusal(_, why)| panic!("{why}"));
        assert_eq!(place.ours, [prefix("10.7.0.2/24").unwrap(), prefix("fd77::2/64").unwrap()]);
        assert_eq!((place.mac, place.mtu), (Some(MacAddr([2, 0, 0, 0, 0, 10])), Some(9000)));
        assert_eq!(place.capture.as_deref(), Some("/a b"));
        for bad in [
            "tun",
            "tun=fq address=10.79.0.2/24",
            "address=10.7.0.2",
            "address=10.7.0.2/33",
            "mac=1:2",
            "mtu=70000",
            "x=y",
        ] {
            let refused = InterfaceConfig::parse(bad).err().unwrap_or_else(|| panic!("{bad}"));
            assert!(refused.0 == Errno::EINVAL && refused.1.contains(bad), "{}", refused.1);
        }
        for (bad, code) in [
            ("tun=fp0", Errno::EINVAL),
            ("address=10.7.0.2/24", Errno::EINVAL),
            ("tun=fp0\naddress=10.7.0.2/24\nprofile=none", Errno::ENOENT),
            ("tun=fp0\naddress=10.7.0.2/24\nkernel=10.7.0.2/24", Errno::EINVAL),
            ("tun=fp%d\naddress=10.7.0.2/24", Errno::EINVAL),
            ("iface=lo\naddress=10.7.0.2/24\nmac=02:00:00:00:00:01", Errno::EINVAL),
            ("iface=does/not\naddress=10.7.0.2/24\nmac=02:00:00:00:00:01", Errno::EINVAL),
        ] {
            let place = InterfaceConfig::parse(bad).unwrap_or_else(|ConfigRefusal(_, why)| panic!("{why}"));
            assert_eq!(place.open().err().map(|ConfigRefusal(code, _)| code), Some(code), "{bad}");
        }
    }
}
