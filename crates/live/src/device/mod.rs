//! What packets come from and go to.

mod buffers;
mod conflict;
mod packet_socket;
mod sys;
mod tun;
pub mod udp_tunnel;
mod virtio;
mod xdp;

pub use conflict::{own_interface_of, who_has};
pub use packet_socket::{PacketConfig, PacketSocket};
pub use tun::{Tun, TunConfig};
pub use udp_tunnel::{TunnelConfig, UdpTunnel};
pub use xdp::{XdpConfig, XdpMode, XdpSocket};

use farpace_units::Span;
use farpace_wire::{MacAddr, Packet};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use thiserror::Error;

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name in the system, like `fp0`.
    pub name: String,
    /// Longest IP packet that goes over it, in bytes.
    pub mtu: u16,
    /// Its Ethernet address; none: it carries IP packets without Ethernet headers, and everybody behind it is one neighbour.
    pub mac: Option<MacAddr>,
    /// It takes super-segments of up to so many bytes of IP packet and cuts them itself; zero: it does not.
    pub super_segment: u32,
}

/// What went over a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Packets read, super-segments counted once.
    pub received: u64,
    /// Packets written, super-segments counted once.
    pub sent: u64,
    /// Segments that the packets read stand for.
    pub segments_received: u64,
    /// Segments that the packets written stand for.
    pub segments_sent: u64,
    /// Bytes of IP packets, or of frames, read.
    pub bytes_received: u64,
    /// Bytes of IP packets, or of frames, written.
    pub bytes_sent: u64,
    /// System calls that read.
    pub reads: u64,
    /// System calls that wrote.
    pub writes: u64,
    /// What was read and is no packet: dropped.
    pub malformed: u64,
    /// What the system did not take for other reasons than a full queue: dropped.
    pub refused: u64,
    /// What the device had no room for, as far as it is known: dropped.
    pub overflowed: u64,
}

/// A device that packets can be read from and written to, without waiting.
///
/// The contract:
/// * [`receive`](Device::receive) appends what is there, up to about `budget` packets, and returns without waiting.
/// * [`send`](Device::send) takes packets from the front as long as the system takes them; what stays did not fit now, and
///   [`Device::fd`] tells when it does. What can never be sent is dropped and counted.
/// * An error of either means that the device is of no use any more.
pub trait Device: Send {
    /// What it is.
    fn info(&self) -> &DeviceInfo;
    /// Reads what is there.
    ///
    /// # Errors
    /// The device is gone, or the system says that it never will work again.
    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()>;
    /// Writes what there is.
    ///
    /// # Errors
    /// As [`receive`](Device::receive).
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()>;
    /// What to wait for: readable when there is something to receive, writable when there is room.
    fn fd(&self) -> BorrowedFd<'_>;
    /// What went over it so far.
    fn counters(&self) -> DeviceCounters;
    /// How long it may be left alone though nothing comes: [`receive`](Device::receive) is called then. None: without end.
    fn due_in(&self) -> Option<Span> {
        None
    }
}

/// Why a device cannot be opened.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The system says no.
    #[error("cannot {what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What it said.
        error: io::Error,
    },
    /// It does not carry Ethernet frames.
    #[error("`{0}` is no Ethernet interface")]
    NotEthernet(String),
    /// A name that no interface can have.
    #[error("`{0}` cannot be the name of an interface: 1 to 15 characters, no `/`, no blanks")]
    BadName(String),
    /// Its packets do not fit into the chunks of AF_XDP.
    #[error(
        "AF_XDP takes packets of up to {most} B, but `{name}` has an MTU of {mtu} B: `ip link set dev {name} mtu {most}`"
    )]
    TooLongForXdp {
        /// Name of the interface.
        name: String,
        /// Its MTU in bytes.
        mtu: u16,
        /// The largest MTU that goes, in bytes.
        most: u32,
    },
}

impl DeviceError {
    /// For `map_err`: what was tried.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| DeviceError::System { what: what.into(), error }
    }
}

/// What a device says when its interface is gone.
fn removed() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the interface has been removed")
}

/// True if the system lets an interface have this name.
pub fn is_interface_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':')
}
