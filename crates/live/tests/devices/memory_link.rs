//! A link in memory, whose ends are devices.

use farpace_live::{Device, DeviceCounters, DeviceInfo};
use farpace_wire::Packet;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than the first timeout of any profile (RFC 6298: 1 s).
pub const STALL: Duration = Duration::from_millis(1_700);

pub type Queue = Arc<Mutex<VecDeque<Packet>>>;
pub type Stalls = Arc<AtomicBool>;

/// One end of a link in memory.
pub struct LinkEnd {
    info: DeviceInfo,
    /// Never readable: the test runs the rounds.
    quiet: UnixDatagram,
    from: Queue,
    to: Queue,
    /// Set: the next packets that it delivers have waited for [`STALL`] between device and driver.
    stalls: Stalls,
}

impl Device for LinkEnd {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        let mut queue = self.from.lock().unwrap();
        let count = queue.len().min(budget);
        into.extend(queue.drain(..count));
        if count > 0 && self.stalls.swap(false, Ordering::Relaxed) {
            std::thread::sleep(STALL);
        }
        Ok(())
    }
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        let complete = |mut packet: Packet| {
            packet.complete_checksum();
            packet
        };
        self.to.lock().unwrap().extend(packets.drain(..).map(complete));
        Ok(())
    }
    fn fd(&self) -> BorrowedFd<'_> {
        self.quiet.as_fd()
    }
    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }
}

impl LinkEnd {
    pub fn new(from: &Queue, to: &Queue, stalls: &Stalls) -> Self {
        let info = DeviceInfo { name: "end".into(), mtu: 1500, mac: None, super_segment: 0 };
        let quiet = UnixDatagram::unbound().unwrap();
        LinkEnd { info, quiet, from: from.clone(), to: to.clone(), stalls: stalls.clone() }
    }
}
