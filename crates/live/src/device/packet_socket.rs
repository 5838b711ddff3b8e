//! AF_PACKET: the frames of an existing interface, in addition to the system's own use of it.

use super::buffers::FrameBuffers;
use super::sys::{self, MAX, ReceivedFrame};
use super::virtio::{self, VIRTIO_LEN};
use super::{Device, DeviceCounters, DeviceError, DeviceInfo, is_interface_name, removed};
use bytes::{Bytes, BytesMut};
use farpace_wire::{MacAddr, Packet};
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::{if_indextoname, if_nametoindex};
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum length of a frame: a super-segment with Ethernet header and tags.
const LONGEST: usize = 65_535 + 22;
/// Length of the two addresses before the type or tag of a frame.
const ADDRESSES: usize = 12;
/// Link types with Ethernet frames (`ARPHRD_ETHER`, `ARPHRD_LOOPBACK`).
pub(super) const ETHERNET_LIKE: [u16; 2] = [1, LOOPBACK];
/// The link type of the loopback interface.
const LOOPBACK: u16 = 772;

/// Configuration of a packet socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketConfig {
    /// Name of the interface.
    pub interface: String,
    /// MAC address of the host; none: that of the interface, which the system uses too.
    pub mac: Option<MacAddr>,
    /// Receive frames for other MAC addresses. Bridges need it, and a host with its own MAC address.
    pub promiscuous: bool,
    /// Super-segments in both directions. Otherwise received super-segments are split, and nothing longer
    /// than the MTU is sent.
    pub super_segments: bool,
    /// Bypass the queueing discipline of the interface: sent frames go directly to its driver.
    pub bypass_queue: bool,
    /// What the system itself sends is heard, too: for whoever only listens.
    pub own: bool,
    /// Memory for packets that wait, in bytes, for each direction.
    pub memory: usize,
}

impl PacketConfig {
    /// Frames for the MAC address of the interface, with super-segments, through the queueing discipline,
    /// with buffers of 16 MiB.
    pub fn new(interface: &str) -> Self {
        PacketConfig {
            interface: interface.to_owned(),
            mac: None,
            promiscuous: false,
            super_segments: true,
            bypass_queue: false,
            own: false,
            memory: 16 << 20,
        }
    }
}

/// A packet socket on an interface. What the system itself sends there is heard only if it is asked for
/// ([`PacketConfig::own`]).
pub struct PacketSocket {
    socket: OwnedFd,
    index: u32,
    info: DeviceInfo,
    super_segments: bool,
    buffers: FrameBuffers,
    counters: DeviceCounters,
    /// Packets dropped for lack of memory. The system resets the number when it is read.
    dropped: Cell<u64>,
    /// The interface has been down. From then on it is checked whenever no frame arrives: the system reports
    /// a removal only for an interface that was up.
    doubtful: bool,
}

impl PacketSocket {
    /// Opens a socket on an interface. Requires CAP_NET_RAW.
    ///
    /// # Errors
    /// See [`DeviceError`].
    pub fn open(config: &PacketConfig) -> Result<Self, DeviceError> {
        let name = &config.interface;
        if !is_interface_name(name) {
            return Err(DeviceError::BadName(name.clone()));
        }
        let what = |what: &str| {
            let what = format!("{what} `{name}`");
            move |error: Errno| DeviceError::System { what, error: error.into() }
        };
        let index = if_nametoindex(name.as_str()).map_err(what("find the interface"))?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        // Without a protocol it receives nothing before it is bound: no frames of other interfaces.
        let none = None::<SockProtocol>;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, none);
        let socket = socket.map_err(what("open a packet socket on"))?;
        let fd = socket.as_fd();
        let option = |option, value| {
            sys::set(fd, option, value)
                .map_err(DeviceError::system(format!("set up a packet socket on `{name}`")))
        };
        // The header is required in any case: it also reports incomplete checksums.
        option(libc::PACKET_VNET_HDR, 1)?;
        option(libc::PACKET_AUXDATA, 1)?;
        option(libc::PACKET_IGNORE_OUTGOING, i32::from(!config.own))?;
        option(libc::PACKET_QDISC_BYPASS, i32::from(config.bypass_queue))?;
        // The forced options exceed the system's limits and require more privileges.
        let _ =
            setsockopt(&fd, RcvBufForce, &config.memory).or_else(|_| setsockopt(&fd, RcvBuf, &config.memory));
        let _ =
            setsockopt(&fd, SndBufForce, &config.memory).or_else(|_| setsockopt(&fd, SndBuf, &config.memory));
        sys::bind(fd, index).map_err(DeviceError::system(format!("bind a packet socket to `{name}`")))?;
        if config.promiscuous || config.mac.is_some() {
            let promiscuous = sys::be_promiscuous(fd, index as i32);
            promiscuous.map_err(DeviceError::system(format!("receive all frames on `{name}`")))?;
        }
        let address = sys::address(fd, name);
        let (kind, own) = address.map_err(DeviceError::system(format!("read the address of `{name}`")))?;
        if !ETHERNET_LIKE.contains(&kind) {
            return Err(DeviceError::NotEthernet(name.clone()));
        }
        // A host of its own there would reach nobody.
        if kind == LOOPBACK && config.mac.is_some() {
            return Err(DeviceError::Loopback(name.clone()));
        }
        let mtu = sys::mtu(fd, name).map_err(DeviceError::system(format!("read the MTU of `{name}`")))?;
        let info = DeviceInfo {
            name: name.clone(),
            mtu,
            mac: Some(config.mac.unwrap_or(MacAddr(own))),
            super_segment: if config.super_segments { 65_535 } else { 0 },
        };
        Ok(PacketSocket {
            socket,
            index,
            info,
            super_segments: config.super_segments,
            buffers: FrameBuffers::new(LONGEST),
            counters: DeviceCounters::default(),
            dropped: Cell::new(0),
            doubtful: false,
        })
    }

    /// An error if the interface was removed. An interface that is only down may come up again.
    fn check_removal(&mut self) -> io::Result<()> {
        self.doubtful = true;
        // nix 0.31 treats the null pointer of a missing interface as an empty name.
        match if_indextoname(self.index) {
            Ok(name) if !name.is_empty() => Ok(()),
            _ => Err(removed()),
        }
    }

    fn packet(
        &mut self,
        header: &[u8; VIRTIO_LEN],
        number: usize,
        received: ReceivedFrame,
    ) -> Option<Packet> {
        let mut bytes = self.buffers.take_at(number, received.len.saturating_sub(VIRTIO_LEN));
        if let Some(tag) = received.tag {
            bytes = tagged(&bytes, tag)?;
        }
        let mut packet = Packet::from_shared_frame(bytes).ok()?;
        (!received.truncated && virtio::apply(header, &mut packet)).then_some(packet)
    }
}

/// Returns `frame` with its VLAN tag, which the system has removed, in its place.
fn tagged(frame: &[u8], (protocol, control): (u16, u16)) -> Option<Bytes> {
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    let mut whole = BytesMut::with_capacity(frame.len() + 4);
    whole.extend_from_slice(addresses);
    whole.extend_from_slice(&protocol.to_be_bytes());
    whole.extend_from_slice(&control.to_be_bytes());
    whole.extend_from_slice(rest);
    Some(whole.freeze())
}

impl Device for PacketSocket {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        let budget = budget.min(MAX);
        let mut headers = [[0; VIRTIO_LEN]; MAX];
        let mut about = [ReceivedFrame::default(); MAX];
        let buffers = self.buffers.buffers_for(budget).iter_mut();
        let slices = headers.iter_mut().zip(buffers);
        let mut slices: Vec<_> =
            slices.map(|(header, room)| [IoSliceMut::new(header), IoSliceMut::new(room)]).collect();
        self.counters.reads += 1;
        let count = match sys::receive_many(self.socket.as_fd(), &mut slices, &mut about) {
            Ok(count) => count,
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) if self.doubtful => {
                return self.check_removal();
            }
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => return Ok(()),
            Err(Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO) => return self.check_removal(),
            // The header cannot describe this packet.
            Err(Errno::EINVAL) => {
                self.counters.malformed += 1;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        drop(slices);
        for (number, (header, received)) in headers.iter().zip(about).take(count).enumerate() {
            let Some(packet) = self.packet(header, number, received) else {
                self.counters.malformed += 1;
                continue;
            };
            self.counters.received += 1;
            self.counters.segments_received += packet.segments() as u64;
            self.counters.bytes_received += packet.len().get();
            match packet.segment_size() {
                Some(_) if !self.super_segments => packet.split_segments(|part| into.push(part)),
                _ => into.push(packet),
            }
        }
        Ok(())
    }

    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        while !packets.is_empty() {
            let first = packets.len().min(MAX);
            if !self.super_segments && packets.range(..first).any(|packet| packet.segment_size().is_some()) {
                let whole = std::mem::take(packets);
                whole.into_iter().for_each(|packet| packet.split_segments(|part| packets.push_back(part)));
                continue;
            }
            let mut headers = [[0; VIRTIO_LEN]; MAX];
            for (header, packet) in headers.iter_mut().zip(packets.iter_mut()) {
                *header = virtio::encode(packet, 0);
            }
            let slices = headers.iter().zip(packets.iter());
            let slices = slices.map(|(header, packet)| {
                [IoSlice::new(header), IoSlice::new(packet.headers()), IoSlice::new(packet.payload())]
            });
            let slices: Vec<_> = slices.collect();
            self.counters.writes += 1;
            let sent = sys::send_many(self.socket.as_fd(), &slices);
            drop(slices);
            let refused = match sent {
                Ok(sent) => {
                    for packet in packets.drain(..sent) {
                        self.counters.sent += 1;
                        self.counters.segments_sent += packet.segments() as u64;
                        self.counters.bytes_sent += packet.len().get();
                    }
                    continue;
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                // The queue of the interface is full, and has dropped the packet.
                Err(Errno::ENOBUFS) => &mut self.counters.overflowed,
                // The interface of the socket was removed.
                Err(Errno::ENXIO | Errno::ENODEV) => return Err(removed()),
                Err(Errno::ENETDOWN) => {
                    self.check_removal()?;
                    &mut self.counters.refused
                }
                Err(error @ (Errno::EBADF | Errno::ENOTSOCK)) => return Err(error.into()),
                Err(_) => &mut self.counters.refused,
            };
            *refused += 1;
            packets.pop_front();
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn counters(&self) -> DeviceCounters {
        let dropped = self.dropped.get() + sys::take_drops(self.socket.as_fd());
        self.dropped.set(dropped);
        DeviceCounters { overflowed: self.counters.overflowed + dropped, ..self.counters }
    }
}
