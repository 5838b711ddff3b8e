//! Devices: sources and sinks of packets.

mod buffers;
mod conflict;
mod packet_socket;
mod sys;
mod too_big;
mod tun;
pub mod udp_tunnel;
mod virtio;
mod xdp;

pub use conflict::{own_interface_of, who_has};
pub use packet_socket::{PacketConfig, PacketSocket};
pub use too_big::TooBigErrors;
pub use tun::{Tun, TunConfig};
pub use udp_tunnel::{TunnelConfig, UdpTunnel};
pub use xdp::{XdpConfig, XdpMode, XdpSocket};

use farpace_units::Span;
use farpace_wire::{MacAddr, Packet};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use thiserror::Error;

/// Properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name in the system, such as `fp0`.
    pub name: String,
    /// MTU in bytes.
    pub mtu: u16,
    /// Ethernet address. None: the device carries IP packets without Ethernet headers, and all hosts behind
    /// it are one neighbour.
    pub mac: Option<MacAddr>,
    /// Maximum length of a super-segment in bytes of the IP packet, if the device segments it itself; zero:
    /// not supported.
    pub super_segment: u32,
}

/// Counters of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Packets read, super-segments counted once.
    pub received: u64,
    /// Packets written, super-segments counted once.
    pub sent: u64,
    /// Segments in the packets read.
    pub segments_received: u64,
    /// Segments in the packets written.
    pub segments_sent: u64,
    /// Bytes of IP packets, or of frames, read.
    pub bytes_received: u64,
    /// Bytes of IP packets, or of frames, written.
    pub bytes_sent: u64,
    /// System calls that read.
    pub reads: u64,
    /// System calls that wrote.
    pub writes: u64,
    /// Malformed packets read and dropped.
    pub malformed: u64,
    /// Packets that the system refused for a reason other than a full queue; dropped.
    pub refused: u64,
    /// Packets dropped because a buffer of the device was full, as far as known.
    pub overflowed: u64,
}

impl std::ops::Add for DeviceCounters {
    type Output = DeviceCounters;
    /// Those of two queues of a device.
    fn add(self, other: DeviceCounters) -> DeviceCounters {
        DeviceCounters {
            received: self.received + other.received,
            sent: self.sent + other.sent,
            segments_received: self.segments_received + other.segments_received,
            segments_sent: self.segments_sent + other.segments_sent,
            bytes_received: self.bytes_received + other.bytes_received,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            malformed: self.malformed + other.malformed,
            refused: self.refused + other.refused,
            overflowed: self.overflowed + other.overflowed,
        }
    }
}

/// A device for packets. Its calls do not wait.
///
/// The contract:
/// * [`receive`](Device::receive) appends the available packets, up to about `budget`, and returns without
///   waiting.
/// * [`send`](Device::send) removes packets from the front as long as the system accepts them. Packets that
///   remain did not fit; [`Device::fd`] signals when they do. Packets that can never be sent are dropped and
///   counted.
/// * An error of either means that the device has failed permanently.
pub trait Device: Send {
    /// The properties.
    fn info(&self) -> &DeviceInfo;
    /// Reads the available packets.
    ///
    /// # Errors
    /// The device is gone, or has failed permanently.
    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()>;
    /// Writes packets.
    ///
    /// # Errors
    /// As [`receive`](Device::receive).
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()>;
    /// The descriptor to wait for: readable when a packet can be received, writable when one can be sent.
    fn fd(&self) -> BorrowedFd<'_>;
    /// The counters.
    fn counters(&self) -> DeviceCounters;
    /// How long it may be left alone though nothing comes: [`receive`](Device::receive) is called then. None:
    /// without end.
    fn due_in(&self) -> Option<Span> {
        None
    }
    /// True once after something has come from an end that was silent for a while, where the device knows
    /// ends: connections need not wait for their timeouts any longer.
    fn is_heard_again(&mut self) -> bool {
        false
    }
}

/// Why a device cannot be opened.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The system refuses.
    #[error("cannot {what}: {error}")]
    System {
        /// The operation.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The interface does not carry Ethernet frames.
    #[error("`{0}` is no Ethernet interface")]
    NotEthernet(String),
    /// The loopback interface.
    #[error("`{0}` is the loopback interface, which reaches no other machine: choose another")]
    Loopback(String),
    /// An invalid interface name.
    #[error("`{0}` cannot be the name of an interface: 1 to 15 characters, no `/`, no `%`, no blanks")]
    BadName(String),
    /// Packets of the interface do not fit into the chunks of AF_XDP.
    #[error(
        "AF_XDP takes packets of up to {max} B, but `{name}` has an MTU of {mtu} B: `ip link set dev {name} \
         mtu {max}`"
    )]
    TooLongForXdp {
        /// Name of the interface.
        name: String,
        /// Its MTU in bytes.
        mtu: u16,
        /// Maximum MTU, in bytes.
        max: u32,
    },
}

impl DeviceError {
    /// For `map_err`, with the operation.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| DeviceError::System { what: what.into(), error }
    }
}

/// The error of a device whose interface was removed.
fn removed() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the interface has been removed")
}

/// True if the system accepts this name for an interface as it is: it replaces `%d` by a number.
pub fn is_interface_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte))
}
