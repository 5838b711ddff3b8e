//! A layer below the kernel's own stack: a TAP device in front, which has the address, and real interfaces behind, whose
//! frames the kernel must not take for its own.

use anyhow::{Context, Result, bail};
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig};
use farpace_live::{DeviceInfo, Process};
use farpace_units::Rate;
use farpace_wire::MacAddr;
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where it is written down what is to be put back.
const FOLDER: &str = "/run/farpace/below";

/// An address with the bits of its network: `10.9.0.1/24`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("`{text}` is not an address: expected one with its network, like 10.9.0.1/24");
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let (address, bits): (IpAddr, u8) = (address.parse().map_err(|_| wrong())?, bits.parse().map_err(|_| wrong())?);
    if bits > if address.is_ipv4() { 32 } else { 128 } {
        return Err(wrong());
    }
    Ok((address, bits))
}

/// A setting of the kernel, and what it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Setting {
    path: PathBuf,
    before: String,
}

/// What a process has changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Changes {
    pid: i32,
    started: u64,
    settings: Vec<Setting>,
}

/// Interfaces whose frames are ours: the kernel answers no ARP there and takes no packets. When this is dropped, it does again.
#[derive(Debug)]
pub struct Behind {
    changes: Changes,
    file: PathBuf,
}

impl Behind {
    /// Takes the interfaces from the kernel's stack.
    ///
    /// # Errors
    /// An interface that is not there, or no right to.
    pub fn take(interfaces: &[&str]) -> Result<Self> {
        let own = Process::own();
        let mut changes = Changes { pid: own.pid, started: own.started, settings: Vec::new() };
        let mut wanted = Vec::new();
        for interface in interfaces {
            let v4 = PathBuf::from("/proc/sys/net/ipv4/conf").join(interface);
            // It answers for no address; and what comes here from where the way back leads elsewhere is dropped (RFC 3704).
            wanted.extend([(v4.join("arp_ignore"), "8"), (v4.join("rp_filter"), "1")]);
            let v6 = PathBuf::from("/proc/sys/net/ipv6/conf").join(interface).join("disable_ipv6");
            if v6.exists() {
                wanted.push((v6, "1"));
            }
        }
        for (path, _) in &wanted {
            let before = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            changes.settings.push(Setting { path: path.clone(), before: before.trim().to_owned() });
        }
        let file = PathBuf::from(FOLDER).join(format!("{}.json", own.pid));
        fs::create_dir_all(FOLDER).with_context(|| format!("cannot make `{FOLDER}`; this needs root"))?;
        fs::write(&file, serde_json::to_string(&changes)?).with_context(|| format!("cannot write `{}`", file.display()))?;
        let behind = Behind { changes, file };
        for (path, value) in &wanted {
            fs::write(path, value).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        Ok(behind)
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        put_back(&self.changes, &self.file);
    }
}

fn put_back(changes: &Changes, file: &Path) {
    for setting in &changes.settings {
        // An interface that is gone has no settings.
        let _ = fs::write(&setting.path, &setting.before);
    }
    let _ = fs::remove_file(file);
}

/// Puts back what processes have changed that were killed; how many there were. To be called in their network namespace.
pub fn clean() -> usize {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut cleaned = 0;
    for path in entries.map(|entry| entry.path()) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let Ok(changes) = serde_json::from_str::<Changes>(&text) else { continue };
        if !(Process { pid: changes.pid, started: changes.started }).is_alive() {
            put_back(&changes, &path);
            cleaned += 1;
        }
    }
    cleaned
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

/// What the driver says of the line; none, if it does not.
pub fn line_rate(interface: &str) -> Option<Rate> {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    text.trim().parse().ok().filter(|mbit| *mbit > 0).map(Rate::from_mbit)
}


#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an address means another network than was typed, or nonsense is taken.
    #[test]
    fn addresses_have_networks() {
        assert_eq!(address("10.9.0.1/24"), Ok((IpAddr::from([10, 9, 0, 1]), 24)));
        assert_eq!(address("fd00::1/64"), Ok(("fd00::1".parse().unwrap(), 64)));
        for bad in ["10.9.0.1", "10.9.0.1/33", "fd00::1/129", "eth0/24", "10.9.0.1/", ""] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
