//! Taking an interface of the system, and what to do when it cannot be had.

use crate::terminal;
use anyhow::Result;
use farpace_live::DeviceError;
use farpace_live::device::{XdpConfig, XdpSocket};
use farpace_live::system::{Setup, SystemInterface};
use farpace_wire::MacAddr;
use std::io::ErrorKind;

/// How a host is on an interface that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum InterfaceMode {
    /// A packet socket, beside the system's own use of the interface
    #[default]
    AfPacket,
    /// AF_XDP: before the system, which hears nothing there meanwhile; single packets
    AfXdp,
}

/// Takes an interface by AF_XDP. First it is told to leave packets as they are, since one that was put
/// together fits no frame: so is the other end of a veth where it is in sight. A veth whose driver takes XDP
/// tells its other end itself.
///
/// # Errors
/// It is not there, there is no right to take it, or it cannot be taken.
pub fn open_xdp(name: &str, mac: Option<MacAddr>, setup: &Setup) -> Result<XdpSocket> {
    setup.offload_off(&SystemInterface::here(name))?;
    if let Some(other) = other_end(name) {
        setup.offload_off(&SystemInterface::here(&other))?;
    }
    let config = XdpConfig { mac, promiscuous: true, ..XdpConfig::new(name) };
    XdpSocket::open(&config).map_err(|error| advise(error, name))
}

/// The other end of a veth, if it is in this network namespace.
fn other_end(name: &str) -> Option<String> {
    let read = |name: &str, what: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/{what}")).ok();
    let (own, other) = (read(name, "ifindex")?, read(name, "iflink")?);
    let names = std::fs::read_dir("/sys/class/net").ok()?;
    let mut names = names.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    // Numbers are those of a namespace: only if each names the other they are two ends.
    let is_it = |candidate: &String| {
        own != other
            && read(candidate, "ifindex").as_ref() == Some(&other)
            && read(candidate, "iflink").as_ref() == Some(&own)
    };
    names.find(is_it)
}

/// What to do about an error.
pub fn advise(error: DeviceError, name: &str) -> anyhow::Error {
    let advice = match &error {
        DeviceError::System { error, .. } => match (error.kind(), error.raw_os_error()) {
            (ErrorKind::PermissionDenied, _) => {
                "run it as root, or give the command the rights once: sudo setcap \
                 cap_net_admin,cap_net_raw+ep \"$(command -v farpace)\""
            }
            (ErrorKind::ResourceBusy, _) => "a program has this device already: choose another name",
            (ErrorKind::NotFound, Some(2)) => {
                "there is no /dev/net/tun: load the module with `sudo modprobe tun`"
            }
            (_, Some(19)) => "`ip link` shows which interfaces there are",
            _ => "`farpace doctor` tells what this machine allows",
        },
        DeviceError::Loopback(_) => "`ip link` shows which interfaces there are",
        DeviceError::NotEthernet(_) => "a packet socket needs Ethernet; use --tun on a machine without",
        DeviceError::TooLongForXdp { .. } => "a packet socket takes all lengths: --mode af-packet",
        DeviceError::BadName(_) => "choose another name",
    };
    terminal::note(&format!("hint: {name}: {advice}"));
    error.into()
}
