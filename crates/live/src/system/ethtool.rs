//! Offloads and queues of NICs, through the ethtool requests.
//!
//! Invariants of all blocks here: the request and the value that it points to live until the call returns,
//! and have the length that the system assumes.

#![allow(
    unsafe_code,
    reason = "a request of the system without a safe wrapper; each block says why it is sound"
)]

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;

/// An offload that changes the number of packets that pass through the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// TCP segmentation offload by the NIC.
    Tso,
    /// Generic segmentation offload: the system segments as late as possible.
    Gso,
    /// Generic receive offload: the system merges consecutive segments.
    Gro,
    /// Large receive offload by the NIC, which cannot be reversed exactly.
    Lro,
}

impl Offload {
    /// All offloads.
    pub const ALL: [Offload; 4] = [Offload::Tso, Offload::Gso, Offload::Gro, Offload::Lro];

    /// Its name in `ethtool -k` and `-K`.
    pub fn name(self) -> &'static str {
        match self {
            Offload::Tso => "tso",
            Offload::Gso => "gso",
            Offload::Gro => "gro",
            Offload::Lro => "lro",
        }
    }
    /// The requests that read and write it (`linux/ethtool.h`).
    fn requests(self) -> (u32, u32) {
        match self {
            Offload::Tso => (0x1e, 0x1f),
            Offload::Gso => (0x23, 0x24),
            Offload::Gro => (0x2b, 0x2c),
            Offload::Lro => (0x25, 0x26),
        }
    }
    /// The bit of the offload in the value; the other bits stay unchanged.
    fn bit(self) -> u32 {
        if self == Offload::Lro { 1 << 15 } else { 1 }
    }
}

impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// True if the offload is on.
///
/// # Errors
/// There is no such interface in this network namespace.
pub fn offload(interface: &str, what: Offload) -> io::Result<bool> {
    match request(interface, what.requests().0, 0) {
        // An interface without support for the request does not have the offload.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        answer => answer.map(|value| value & what.bit() != 0),
    }
}

/// Switches an offload on or off.
///
/// # Errors
/// There is no such interface in this network namespace, the privilege is missing, or the interface cannot
/// change it.
pub(super) fn set_offload(interface: &str, what: Offload, on: bool) -> io::Result<()> {
    let (read, write) = what.requests();
    let before = request(interface, read, 0)?;
    let value = if on { before | what.bit() } else { before & !what.bit() };
    request(interface, write, value).map(drop)
}

/// Current number of receive queues of the interface; one if it does not report queues.
pub(crate) fn receive_queues(interface: &str) -> u32 {
    const GET_CHANNELS: u32 = 0x3c;
    // `struct ethtool_channels`: the command, the maximum of each kind, and the current numbers.
    let mut channels = [0; 9];
    channels[0] = GET_CHANNELS;
    match ethtool_request(interface, &mut channels) {
        Ok(()) => channels[5].saturating_add(channels[8]).max(1),
        Err(_) => 1,
    }
}

/// True if the interface is virtual.
pub(crate) fn is_virtual(interface: &str) -> bool {
    const GET_DRIVER: u32 = 0x3;
    // `struct ethtool_drvinfo`: after the command four strings of 32 bytes, the last of which is the bus
    // address.
    let mut driver = [0; 49];
    driver[0] = GET_DRIVER;
    ethtool_request(interface, &mut driver).is_ok() && driver[25] == 0
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

fn request(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    ethtool_request(interface, &mut value)?;
    Ok(value.data)
}

/// `value` begins with the number of the request, and has the length that the system assumes.
fn ethtool_request<T>(interface: &str, value: &mut T) -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeros is a valid value.
    let mut about: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = about.ifr_name.len() - 1;
    about.ifr_name[..room]
        .iter_mut()
        .zip(interface.bytes())
        .for_each(|(to, from)| *to = from as libc::c_char);
    about.ifr_ifru.ifru_data = std::ptr::from_mut(value).cast();
    // SAFETY: the requests above read and write a structure of the length of `value`, which outlives the
    // call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut about) };
    Ok(Errno::result(done).map(drop)?)
}
