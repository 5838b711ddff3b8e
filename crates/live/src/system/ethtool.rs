//! What a network card does with packets on its own, asked and told by the requests of ethtool.
//!
//! Invariants of all blocks here: the request and the value that it points to live until the call returns, and are as long
//! as the system takes them to be.

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

/// Something that an interface does to packets, so that fewer of them go through the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// It cuts TCP super-segments itself.
    Tso,
    /// The system cuts super-segments as late as it can.
    Gso,
    /// The system puts segments together that came one after the other.
    Gro,
    /// The card does, and forgets how they were.
    Lro,
}

impl Offload {
    /// All that change how many packets there are.
    pub const ALL: [Offload; 4] = [Offload::Tso, Offload::Gso, Offload::Gro, Offload::Lro];

    /// Its name in ethtool's `-k` and `-K`.
    pub fn name(self) -> &'static str {
        match self {
            Offload::Tso => "tso",
            Offload::Gso => "gso",
            Offload::Gro => "gro",
            Offload::Lro => "lro",
        }
    }
    /// Requests that read and write it (`linux/ethtool.h`).
    fn requests(self) -> (u32, u32) {
        match self {
            Offload::Tso => (0x1e, 0x1f),
            Offload::Gso => (0x23, 0x24),
            Offload::Gro => (0x2b, 0x2c),
            Offload::Lro => (0x25, 0x26),
        }
    }
    /// The bit of it in the value; the others stay as they are.
    fn bit(self) -> u32 {
        if self == Offload::Lro { 1 << 15 } else { 1 }
    }
}

impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// True if the interface does it.
///
/// # Errors
/// There is no such interface in this network namespace.
pub fn offload(interface: &str, what: Offload) -> io::Result<bool> {
    match request(interface, what.requests().0, 0) {
        // An interface that has never heard of it does not do it.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        answer => answer.map(|value| value & what.bit() != 0),
    }
}

/// Switches it on or off.
///
/// # Errors
/// There is no such interface in this network namespace, no right to change it, or it cannot.
pub(super) fn set_offload(interface: &str, what: Offload, on: bool) -> io::Result<()> {
    let (read, write) = what.requests();
    let before = request(interface, read, 0)?;
    let value = if on { before | what.bit() } else { before & !what.bit() };
    request(interface, write, value).map(drop)
}

/// How many queues the interface receives by now; one if it does not know of queues.
pub(crate) fn receive_queues(interface: &str) -> u32 {
    const GET_CHANNELS: u32 = 0x3c;
    // `struct ethtool_channels`: the command, the most of each kind, and what there is now.
    let mut channels = [0; 9];
    channels[0] = GET_CHANNELS;
    match ask(interface, &mut channels) {
        Ok(()) => channels[5].saturating_add(channels[8]).max(1),
        Err(_) => 1,
    }
}

/// True if no card is behind the interface, only memory.
pub(crate) fn is_virtual(interface: &str) -> bool {
    const GET_DRIVER: u32 = 0x3;
    // `struct ethtool_drvinfo`: after the command four texts of 32 bytes, the last of which is the place on the bus.
    let mut driver = [0; 49];
    driver[0] = GET_DRIVER;
    ask(interface, &mut driver).is_ok() && driver[25] == 0
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

fn request(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    ask(interface, &mut value)?;
    Ok(value.data)
}

/// `value` begins with the number of a request, and is as long as the system takes it to be.
fn ask<T>(interface: &str, value: &mut T) -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeros is a valid value.
    let mut about: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = about.ifr_name.len() - 1;
    about.ifr_name[..room]
        .iter_mut()
        .zip(interface.bytes())
        .for_each(|(to, from)| *to = from as libc::c_char);
    about.ifr_ifru.ifru_data = std::ptr::from_mut(value).cast();
    // SAFETY: the requests above read and write one structure that `value` is as long as, and it outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut about) };
    Ok(Errno::result(done).map(drop)?)
}
