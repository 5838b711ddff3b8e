//! AF_XDP: the frames of an interface, before the system's stack sees them.
//!
//! Start reading at [`XdpSocket`]; `queue` is one socket, `ring` and `memory` are shared with the system,
//! `program` is the BPF program that passes frames to the sockets, `sys` has the system calls.

mod memory;
mod program;
mod queue;
mod ring;
mod sys;

use super::sys as packet;
use super::{Device, DeviceCounters, DeviceError, DeviceInfo, is_interface_name};
use crate::system::ethtool;
use bytes::Bytes;
use farpace_wire::{MacAddr, Packet};
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::{if_indextoname, if_nametoindex};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use program::Program;
use queue::XdpQueue;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Length of a chunk: one frame with the space that drivers require before and after it.
const CHUNK: u32 = 2048;
/// Length of a chunk for longer frames: a page, which is the system's maximum.
const LARGE_CHUNK: u32 = 4096;
/// Maximum headroom of a driver in a chunk (`XDP_PACKET_HEADROOM`).
const HEADROOM: u32 = 256;
/// Ethernet header with two tags.
const HEADER: u32 = 22;
/// Maximum number of queues of an interface.
const MAX_QUEUES: u32 = 64;
/// Frames per batch.
const BATCH: usize = 64;

/// How frames are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// The NIC writes them to the memory of this process.
    ZeroCopy,
    /// The driver passes them on, and they are copied once.
    Copy,
    /// The system passes them on before its own stack, because the driver does not support XDP: not faster
    /// than a packet socket.
    Generic,
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            XdpMode::ZeroCopy => "zero copy",
            XdpMode::Copy => "copy mode: the driver has no zero copy",
            XdpMode::Generic => "generic mode: the driver knows nothing of XDP, which makes it slow",
        })
    }
}

/// Configuration of an AF_XDP device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpConfig {
    /// Name of the interface.
    pub interface: String,
    /// MAC address of the host; none: that of the interface.
    pub mac: Option<MacAddr>,
    /// Receive frames for other MAC addresses.
    pub promiscuous: bool,
    /// Use this mode only; none: the best available mode.
    pub mode: Option<XdpMode>,
}

impl XdpConfig {
    /// The best mode, with the MAC address of the interface.
    pub fn new(interface: &str) -> Self {
        XdpConfig { interface: interface.to_owned(), mac: None, promiscuous: false, mode: None }
    }
}

/// The frames of an interface, on all its queues, before the system sees them. The system receives nothing
/// there while this value exists. It receives everything again when this is dropped or the process ends for
/// any reason. Without super-segments; checksums are computed here.
pub struct XdpSocket {
    // Dropped in this order: the program first, then the sockets that it passes frames to.
    program: Program,
    queues: Vec<XdpQueue>,
    /// Waits for all sockets; none: there is only one.
    epoll: Option<Epoll>,
    /// Keeps the interface promiscuous.
    _listener: OwnedFd,
    index: u32,
    info: DeviceInfo,
    /// Received packets may have incomplete checksums, because the interface is virtual.
    is_virtual: bool,
    /// The next queue to read.
    next_queue: usize,
    waits_for_room: bool,
    frame: Vec<u8>,
    counters: DeviceCounters,
}

impl XdpSocket {
    /// Opens an interface, which must be up. Requires the privileges to load BPF programs and to use raw
    /// sockets.
    ///
    /// # Errors
    /// See [`DeviceError`]: no such interface, missing privileges, a system without AF_XDP, another XDP
    /// program on the interface, or an MTU larger than a chunk.
    pub fn open(config: &XdpConfig) -> Result<Self, DeviceError> {
        let name = &config.interface;
        if !is_interface_name(name) {
            return Err(DeviceError::BadName(name.clone()));
        }
        let what = |what: &str| DeviceError::system(format!("{what} `{name}`"));
        let index = if_nametoindex(name.as_str());
        let index = index.map_err(|error| what("find the interface")(error.into()))?;
        let none = None::<SockProtocol>;
        let listener = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, none);
        let listener = listener.map_err(|error| what("open a packet socket on")(error.into()))?;
        let fd = listener.as_fd();
        let (kind, own) = packet::address(fd, name).map_err(what("read the address of"))?;
        if !super::packet_socket::ETHERNET_LIKE.contains(&kind) {
            return Err(DeviceError::NotEthernet(name.clone()));
        }
        let mtu = packet::mtu(fd, name).map_err(what("read the MTU of"))?;
        let longest = u32::from(mtu) + HEADER + HEADROOM;
        let Some(chunk) = [CHUNK, LARGE_CHUNK].into_iter().find(|chunk| longest <= *chunk) else {
            let max = LARGE_CHUNK - HEADER - HEADROOM;
            return Err(DeviceError::TooLongForXdp { name: name.clone(), mtu, max });
        };
        if config.promiscuous || config.mac.is_some() {
            packet::be_promiscuous(fd, index as i32).map_err(what("receive all frames on"))?;
        }
        let count = ethtool::receive_queues(name).min(MAX_QUEUES);
        let mut program = Program::attach(index, name, count, config.mode)?;
        let (mut all, mut mode) = (Vec::new(), program.mode);
        for number in 0..count {
            let open = |flags| XdpQueue::open(index, number, chunk, flags);
            let zero_copy = match config.mode {
                Some(XdpMode::ZeroCopy) => Some(open(libc::XDP_ZEROCOPY)),
                None if program.mode == XdpMode::Copy => open(libc::XDP_ZEROCOPY).ok().map(Ok),
                _ => None,
            };
            let queue = zero_copy.unwrap_or_else(|| open(libc::XDP_COPY));
            let queue = queue.map_err(what(&format!("bind an AF_XDP socket to queue {number} of")))?;
            if number == 0 && sys::is_zero_copy(queue.socket.as_fd()) {
                mode = XdpMode::ZeroCopy;
            }
            program.enter(number, queue.socket.as_fd()).map_err(what("hand frames to a socket on"))?;
            all.push(queue);
        }
        program.mode = mode;
        let epoll = (all.len() > 1).then(|| wait_for_all(&all)).transpose();
        let epoll = epoll.map_err(|error| what("wait for the queues of")(error.into()))?;
        let mac = Some(config.mac.unwrap_or(MacAddr(own)));
        Ok(XdpSocket {
            program,
            queues: all,
            epoll,
            _listener: listener,
            index,
            info: DeviceInfo { name: name.clone(), mtu, mac, super_segment: 0 },
            is_virtual: ethtool::is_virtual(name),
            next_queue: 0,
            waits_for_room: false,
            frame: Vec::new(),
            counters: DeviceCounters::default(),
        })
    }

    /// Tests whether the system supports and permits AF_XDP. Touches no interface; the support of a driver
    /// shows when an interface is [opened](XdpSocket::open).
    ///
    /// # Errors
    /// Missing privileges, or a system without AF_XDP.
    pub fn probe() -> Result<(), DeviceError> {
        sys::socket().map_err(DeviceError::system("open an AF_XDP socket"))?;
        program::load(1).map(drop).map_err(DeviceError::system("load a BPF program"))
    }

    /// How frames are received.
    pub fn mode(&self) -> XdpMode {
        self.program.mode
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Maps an error of a socket to an error of the device.
    fn judge(&self, error: Errno) -> io::Result<()> {
        match error {
            Errno::EAGAIN | Errno::EINTR | Errno::EBUSY | Errno::ENOBUFS => Ok(()),
            // Down at present, or removed.
            Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV => match if_indextoname(self.index) {
                Ok(name) if !name.is_empty() => Ok(()),
                _ => Err(io::Error::new(io::ErrorKind::NotFound, "the interface has been removed")),
            },
            error => Err(error.into()),
        }
    }

    /// With several queues the common descriptor cannot signal free space, only events.
    fn wait_for_room(&mut self, wait: bool) {
        if let (Some(epoll), Some(first)) = (&self.epoll, self.queues.first())
            && wait != self.waits_for_room
        {
            let room = if wait { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            let mut event = EpollEvent::new(EpollFlags::EPOLLIN | room, 0);
            let _ = epoll.modify(&first.socket, &mut event);
            self.waits_for_room = wait;
        }
    }
}

fn wait_for_all(queues: &[XdpQueue]) -> nix::Result<Epoll> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    queues.iter().try_for_each(|queue| epoll.add(&queue.socket, EpollEvent::new(EpollFlags::EPOLLIN, 0)))?;
    Ok(epoll)
}

/// Completes the checksum of a packet. A checksum field with the sum of the pseudo header only means that the
/// sender has left the rest to a NIC that does not exist.
fn finished(packet: Packet) -> Packet {
    let mut trusted = packet.clone();
    trusted.trust_checksum();
    let mut expected = trusted.clone();
    if expected.partial_sum().is_some() && expected.headers() == packet.headers() {
        return trusted;
    }
    packet
}

impl Device for XdpSocket {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        let (counters, is_virtual) = (&mut self.counters, self.is_virtual);
        let mut left = budget;
        for _ in 0..self.queues.len() {
            self.next_queue = (self.next_queue + 1) % self.queues.len();
            let Some(queue) = self.queues.get_mut(self.next_queue) else { break };
            left -= queue.receive(left, |frame| {
                let packet = frame.and_then(|frame| Packet::from_shared_frame(Bytes::from(frame)).ok());
                let Some(packet) = packet else {
                    counters.malformed += 1;
                    return;
                };
                counters.received += 1;
                counters.segments_received += 1;
                counters.bytes_received += packet.len().get();
                into.push(if is_virtual { finished(packet) } else { packet });
            });
        }
        let idle = left == budget;
        for queue in &self.queues {
            if idle || queue.fill_wants_call() {
                self.counters.reads += 1;
                if let Err(error) = sys::wake(queue.socket.as_fd()) {
                    self.judge(error)?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            // Frames of a connection stay in order: all are sent on one queue.
            let Some(queue) = self.queues.first_mut() else { return Ok(()) };
            let room = queue.room().min(BATCH);
            while batch.len() < room
                && let Some(packet) = packets.pop_front()
            {
                if packet.segment_size().is_some() && packet.tcp().is_ok() {
                    let mut parts = Vec::new();
                    packet.split_segments(|part| parts.push(part));
                    parts.into_iter().rev().for_each(|part| packets.push_front(part));
                    continue;
                }
                self.frame.clear();
                packet.write_frame(&mut self.frame);
                if self.frame.len() > queue.longest() || !queue.push(&self.frame, &mut batch) {
                    self.counters.refused += 1;
                    continue;
                }
                self.counters.sent += 1;
                self.counters.segments_sent += 1;
                self.counters.bytes_sent += packet.len().get();
            }
            queue.commit(&batch);
            let (calls, done) = queue.kick();
            self.counters.writes += calls;
            let more = !packets.is_empty();
            let stuck = match done {
                Ok(all) => !all || batch.is_empty(),
                Err(error) => {
                    self.judge(error)?;
                    true
                }
            };
            if !more || stuck {
                self.wait_for_room(more);
                return Ok(());
            }
            batch.clear();
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match (&self.epoll, self.queues.first()) {
            (None, Some(queue)) => queue.socket.as_fd(),
            (Some(epoll), _) => epoll.0.as_fd(),
            // There is always a queue.
            (None, None) => self._listener.as_fd(),
        }
    }

    fn counters(&self) -> DeviceCounters {
        let dropped = self.queues.iter().map(|queue| sys::dropped(queue.socket.as_fd()));
        DeviceCounters { overflowed: dropped.sum(), ..self.counters }
    }
}
