//! TUN and TAP: packets that the kernel sends to an interface are read here, and written packets are received
//! by the kernel.

use super::buffers::FrameBuffers;
use super::virtio::{self, VIRTIO_LEN};
use super::{Device, DeviceCounters, DeviceError, DeviceInfo, is_interface_name, removed};
use bytes::Bytes;
use farpace_wire::{MacAddr, Packet};
use nix::errno::Errno;
use nix::sys::uio::{readv, writev};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Maximum length of an IP packet with Ethernet header and tags.
const LONGEST: usize = 65_535 + 22;
/// Length of the kernel's queue, in packets.
const QUEUE_LEN: u32 = 10_000;
/// MAC addresses of the two ends of a TUN device.
const KERNEL_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// Configuration of a TUN or TAP device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunConfig {
    /// Name of the interface.
    pub name: String,
    /// TAP: Ethernet frames instead of IP packets.
    pub tap: bool,
    /// MTU of a segment, in bytes.
    pub mtu: u16,
    /// Addresses of the kernel on it, with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Super-segments and partial checksums in both directions (`IFF_VNET_HDR`).
    pub offload: bool,
}

impl TunConfig {
    /// A TUN device with an MTU of 1500 bytes, with offload, without addresses.
    pub fn new(name: &str) -> Self {
        TunConfig { name: name.to_owned(), tap: false, mtu: 1500, addresses: Vec::new(), offload: true }
    }
}

/// A TUN or TAP device. The interface is removed when this is dropped.
pub struct Tun {
    device: SyncDevice,
    info: DeviceInfo,
    /// Its frames have Ethernet headers.
    tap: bool,
    offload: bool,
    buffers: FrameBuffers,
    counters: DeviceCounters,
}

impl Tun {
    /// Creates the device, sets its addresses and brings it up. Requires CAP_NET_ADMIN.
    ///
    /// # Errors
    /// See [`DeviceError`].
    pub fn open(config: &TunConfig) -> Result<Self, DeviceError> {
        let device = Self::make(config, false)?;
        Self::queue(config, device)
    }

    /// Creates a device with `queues` queues (at least 1): one for each of as many drivers, whose hosts have
    /// the same addresses. The kernel distributes flows over the queues, and sends a flow to the queue that
    /// its packets last came from. The interface is removed when all queues are dropped.
    ///
    /// # Errors
    /// See [`DeviceError`]; more queues than the system allows (256).
    pub fn open_queues(config: &TunConfig, queues: usize) -> Result<Vec<Self>, DeviceError> {
        let first = Self::make(config, true)?;
        let what = || DeviceError::system(format!("make queues of `{}`", config.name));
        let more = (1..queues).map(|_| first.try_clone().map_err(what()));
        let mut all = more.collect::<Result<Vec<_>, _>>()?;
        all.insert(0, first);
        all.into_iter().map(|device| Self::queue(config, device)).collect()
    }

    /// Creates the interface.
    fn make(config: &TunConfig, multi_queue: bool) -> Result<SyncDevice, DeviceError> {
        if !is_interface_name(&config.name) {
            return Err(DeviceError::BadName(config.name.clone()));
        }
        let what = |what: &str| DeviceError::system(format!("{what} `{}`", config.name));
        let layer = if config.tap { Layer::L2 } else { Layer::L3 };
        let mut builder = DeviceBuilder::new().name(&config.name).layer(layer).mtu(config.mtu);
        builder = builder.offload(config.offload).tx_queue_len(QUEUE_LEN).multi_queue(multi_queue);
        for (address, bits) in &config.addresses {
            builder = match address {
                IpAddr::V4(v4) => builder.ipv4(*v4, *bits, None),
                IpAddr::V6(v6) => builder.ipv6(*v6, *bits),
            };
        }
        let kind = if config.tap { "make the TAP device" } else { "make the TUN device" };
        let device = builder.build_sync().map_err(what(kind))?;
        if config.addresses.iter().any(|(address, _)| address.is_ipv6()) {
            wait_for_ipv6(&config.name).map_err(what("wait for the IPv6 address of"))?;
        }
        Ok(device)
    }

    /// Opens one of its queues.
    fn queue(config: &TunConfig, device: SyncDevice) -> Result<Self, DeviceError> {
        let what = |what: &str| DeviceError::system(format!("{what} `{}`", config.name));
        device.set_nonblocking(true).map_err(what("set up"))?;
        let mac = match config.tap {
            true => Some(MacAddr(device.mac_address().map_err(what("read the address of"))?)),
            false => None,
        };
        let super_segment = if config.offload { 65_535 } else { 0 };
        let info = DeviceInfo { name: config.name.clone(), mtu: config.mtu, mac, super_segment };
        Ok(Tun {
            device,
            info,
            tap: config.tap,
            offload: config.offload,
            buffers: FrameBuffers::new(VIRTIO_LEN + LONGEST),
            counters: DeviceCounters::default(),
        })
    }

    /// Parses a packet from the system; none if it is malformed.
    fn packet(&self, header: Option<&[u8; VIRTIO_LEN]>, bytes: Bytes) -> Option<Packet> {
        let packet = match self.tap {
            true => Packet::from_shared_frame(bytes),
            false => Packet::from_shared_ip(KERNEL_MAC, OUR_MAC, bytes),
        };
        let mut packet = packet.ok()?;
        header.is_none_or(|header| virtio::apply(header, &mut packet)).then_some(packet)
    }

    /// Writes one packet. False: the queue is full, and nothing has changed.
    fn write(&mut self, packet: &mut Packet) -> io::Result<bool> {
        let skip = if self.tap { 0 } else { packet.headers().len() - packet.headers_from_ip().len() };
        let mut virtio = [0; VIRTIO_LEN];
        if self.offload {
            virtio = virtio::encode(packet, skip);
        }
        let slices = [
            IoSlice::new(if self.offload { &virtio } else { &[] }),
            IoSlice::new(&packet.headers()[skip..]),
            IoSlice::new(packet.payload()),
        ];
        self.counters.writes += 1;
        match writev(self.device.as_fd(), if self.offload { &slices } else { &slices[1..] }) {
            Ok(_) => {
                self.counters.sent += 1;
                self.counters.segments_sent += packet.segments() as u64;
                self.counters.bytes_sent += packet.len().get() - skip as u64;
                Ok(true)
            }
            Err(Errno::EAGAIN | Errno::ENOBUFS) => Ok(false),
            Err(Errno::EBADFD) => Err(removed()),
            Err(error @ (Errno::EBADF | Errno::ENODEV)) => Err(error.into()),
            // An error of this packet, or of an interface that is down, does not concern the next packet.
            Err(_) => {
                self.counters.refused += 1;
                Ok(true)
            }
        }
    }
}

/// Waits until the addresses of `name` are usable: the system performs duplicate address detection first,
/// even without neighbours, in the background.
fn wait_for_ipv6(name: &str) -> io::Result<()> {
    const TENTATIVE: u8 = 0x40;
    const STEPS: u32 = 300;
    for _ in 0..STEPS {
        let all = std::fs::read_to_string("/proc/thread-self/net/if_inet6")?;
        let waits = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|fields| {
            let flags = fields.get(4).and_then(|flags| u8::from_str_radix(flags, 16).ok());
            fields.get(5) == Some(&name) && flags.is_none_or(|flags| flags & TENTATIVE != 0)
        });
        if !waits {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "it is not ready after 3 s"))
}

impl Device for Tun {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        for _ in 0..budget {
            let mut header = [0; VIRTIO_LEN];
            let skip = if self.offload { VIRTIO_LEN } else { 0 };
            let mut slices = [IoSliceMut::new(&mut header[..skip]), IoSliceMut::new(self.buffers.room())];
            self.counters.reads += 1;
            let read =
                match readv(self.device.as_fd(), if self.offload { &mut slices } else { &mut slices[1..] }) {
                    Ok(0) | Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
                    Ok(read) => read,
                    Err(Errno::EBADFD) => return Err(removed()),
                    Err(error) => return Err(error.into()),
                };
            let bytes = self.buffers.take(read.saturating_sub(skip));
            self.counters.bytes_received += bytes.len() as u64;
            match self.packet(self.offload.then_some(&header), bytes) {
                Some(packet) => {
                    self.counters.received += 1;
                    self.counters.segments_received += packet.segments() as u64;
                    into.push(packet);
                }
                None => self.counters.malformed += 1,
            }
        }
        Ok(())
    }

    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        while let Some(mut packet) = packets.pop_front() {
            if !self.tap && !packet.has_ip() {
                self.counters.refused += 1; // ARP and other protocols cannot be sent on TUN
                continue;
            }
            if !self.offload && packet.segment_size().is_some() {
                let mut parts = Vec::with_capacity(packet.segments());
                packet.split_segments(|part| parts.push(part));
                parts.into_iter().rev().for_each(|part| packets.push_front(part));
                continue;
            }
            if !self.offload {
                packet.complete_checksum();
            }
            if !self.write(&mut packet)? {
                packets.push_front(packet);
                break;
            }
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }
}
