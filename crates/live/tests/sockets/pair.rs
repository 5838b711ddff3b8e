//! A link in memory between two stacks.

use farpace_live::Wait;
use farpace_live::device::{Device, DeviceCounters, DeviceInfo};
use farpace_live::socket::{LiveListener, SocketOptions, Stack, Stream};
use farpace_wire::Packet;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));
pub const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2));
const LONGEST: usize = 4096;

struct LinkDirection {
    packets: Mutex<VecDeque<Packet>>,
    bell: EventFd,
    /// True if it accepts no packets at present.
    shut: AtomicBool,
    /// True if it loses all packets at present.
    cut: AtomicBool,
    /// True once after an outage, for the end that sends.
    back: AtomicBool,
    /// Number of accepted segments with data.
    data: AtomicU64,
}

impl LinkDirection {
    fn new() -> Arc<Self> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).unwrap();
        Arc::new(LinkDirection {
            packets: Mutex::default(),
            bell,
            shut: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            back: AtomicBool::new(false),
            data: AtomicU64::new(0),
        })
    }
}

/// One end of the link. Packets that do not fit are dropped.
struct End {
    info: DeviceInfo,
    from: Arc<LinkDirection>,
    to: Arc<LinkDirection>,
}

impl Device for End {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        let mut packets = self.from.packets.lock().unwrap();
        let n = packets.len().min(budget);
        into.extend(packets.drain(..n));
        if packets.is_empty() {
            let _ = self.from.bell.read();
        }
        Ok(())
    }
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        if self.to.shut.load(Ordering::SeqCst) {
            // The descriptor of the driver is always ready. Slow the loop down a little.
            std::thread::sleep(std::time::Duration::from_millis(1));
            return Ok(());
        }
        let mut queue = self.to.packets.lock().unwrap();
        let was_empty = queue.is_empty();
        while let Some(mut packet) = packets.pop_front() {
            self.to.data.fetch_add(u64::from(!packet.payload().is_empty()), Ordering::SeqCst);
            if queue.len() < LONGEST && !self.to.cut.load(Ordering::SeqCst) {
                packet.complete_checksum();
                queue.push_back(packet);
            }
        }
        if was_empty && !queue.is_empty() {
            self.to.bell.write(1).unwrap();
        }
        Ok(())
    }
    fn fd(&self) -> BorrowedFd<'_> {
        self.from.bell.as_fd()
    }
    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }
    fn is_heard_again(&mut self) -> bool {
        self.to.back.swap(false, Ordering::SeqCst)
    }
}

/// The direction from [`A`] to [`B`], and the other one.
pub struct LinkControl(Arc<LinkDirection>, Arc<LinkDirection>);

impl LinkControl {
    /// Whether A's device accepts no packets.
    pub fn shut(&self, shut: bool) {
        self.0.shut.store(shut, Ordering::SeqCst);
    }
    /// Loses what A sends.
    pub fn cut(&self) {
        self.0.cut.store(true, Ordering::SeqCst);
    }
    /// Loses nothing more. Where it `tells`, A's device hears of it.
    pub fn mend(&self, tells: bool) {
        self.0.cut.store(false, Ordering::SeqCst);
        self.0.back.store(tells, Ordering::SeqCst);
        self.1.bell.write(1).unwrap();
    }
    /// Number of segments with data that A's device has accepted.
    pub fn data(&self) -> u64 {
        self.0.data.load(Ordering::SeqCst)
    }
}

/// Two stacks on one link: the first is [`A`], the second [`B`].
pub fn stacks() -> (Stack, Stack) {
    let (a, b, _) = stacks_on_link();
    (a, b)
}

/// Like [`stacks`], with control of the link.
pub fn stacks_on_link() -> (Stack, Stack, LinkControl) {
    let (ab, ba) = (LinkDirection::new(), LinkDirection::new());
    let link = LinkControl(ab.clone(), ba.clone());
    let info = |name: &str| DeviceInfo { name: name.into(), mtu: 1500, mac: None, super_segment: 0 };
    let a = End { info: info("a"), from: ba.clone(), to: ab.clone() };
    let b = End { info: info("b"), from: ab, to: ba };
    let stack = |end, address| Stack::on_device(Box::new(end), &[address], Wait::Sleep).unwrap();
    (stack(a, A), stack(b, B), link)
}

/// Two stacks, a listener on the second, and an accepted connection to it.
pub struct Pair {
    pub a: Stack,
    pub b: Stack,
    pub listener: LiveListener,
    pub here: Stream,
    pub there: Stream,
}

pub fn pair(options: &SocketOptions) -> Pair {
    let (a, b) = stacks();
    let listener = b.listen((B, 80), options).unwrap();
    let here = a.connect((B, 80), options).unwrap();
    let (there, from) = listener.accept().unwrap();
    assert_eq!(from, here.local_addr().unwrap());
    assert_eq!(SocketAddr::new(B, 80), here.peer_addr().unwrap());
    Pair { a, b, listener, here, there }
}

/// Bytes in which every shift or swap is visible.
pub fn pattern(len: usize) -> Vec<u8> {
    let mut x = 1u32;
    let step = |_| {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 24) as u8
    };
    (0..len).map(step).collect()
}
