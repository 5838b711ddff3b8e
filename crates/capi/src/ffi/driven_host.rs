//! A host whose packets and time its program gives.

#![allow(unsafe_code, reason = "one `unsafe impl Send`")]

use bytes::Bytes;
use farpace_host::{Host, LocalLink, Secret};
use farpace_live::socket::Engine;
use farpace_live::{Ended, HostJob};
use farpace_path::world::{ElementId, World};
use farpace_path::{BoundaryPort, Port};
use farpace_units::{ByteCount, Instant, RandomStream};
use farpace_wire::{MacAddr, Packet};
use nix::errno::Errno;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Packets that wait to be fetched; of more, the last are dropped.
const LONGEST_QUEUE: usize = 16_384;

/// The host, its world, and its time.
pub struct DrivenHost {
    world: World,
    host: ElementId,
    door: ElementId,
    now: Instant,
    /// What goes out, and when it left.
    out: VecDeque<(Instant, Packet)>,
    ethernet: bool,
}

// SAFETY: a world is not `Send` because elements and applications may be anything. In this one there are a `Host`, a `Door`,
// and applications of `farpace_live::socket`. None of them is tied to a thread: the host's own state has neither `Rc` nor
// `RefCell` nor thread-locals, and the applications hold `Arc`s of values behind locks. `Engine` is the only way in, and it
// takes the lock.
unsafe impl Send for DrivenHost {}

/// A machine behind a lock; none after its end.
pub struct Driven(Mutex<Option<DrivenHost>>);

impl Driven {
    /// A host that gives packets of up to `mtu` bytes. All its dice follow from `seed`. With `mac`, on an Ethernet with `prefix` around it, perhaps with a gateway.
    pub fn new(
        address: IpAddr,
        seed: u64,
        mtu: u16,
        ethernet: Option<(MacAddr, u8, Option<IpAddr>)>,
    ) -> nix::Result<Self> {
        let mut host = Host::new(address, Secret::from_stream(&mut RandomStream::new(seed, "secret")));
        host.set_mtu(mtu);
        if let Some((mac, bits, gateway)) = ethernet {
            let gateways = gateway.into_iter().collect();
            host.join_link(mac, LocalLink { prefixes: vec![(address, bits)], gateways });
        }
        let mut world = World::new(seed);
        let broken = |_| Errno::EIO;
        let host = world.add("host", Box::new(host)).map_err(broken)?;
        let door = world.add("device", Box::new(BoundaryPort::timed())).map_err(broken)?;
        world.connect((host, Port(0)), (door, Port(0))).map_err(broken)?;
        let (now, out) = (Instant::ZERO, VecDeque::new());
        let machine = DrivenHost { world, host, door, now, out, ethernet: ethernet.is_some() };
        Ok(Driven(Mutex::new(Some(machine))))
    }

    /// The host is gone; its sockets fail.
    pub fn end(&self) {
        let machine = self.lock().take();
        drop(machine);
    }

    fn lock(&self) -> MutexGuard<'_, Option<DrivenHost>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its present; the end of time after its end.
    pub fn now(&self) -> Instant {
        self.lock().as_ref().map_or(Instant::FAR_FUTURE, |machine| machine.now)
    }

    /// What its connections may hold from now on; none: as before. And what they hold.
    pub fn memory(&self, limit: Option<ByteCount>) -> nix::Result<ByteCount> {
        let mut locked = self.lock();
        let machine = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        let host = machine.host;
        let held = machine.world.call(host, &mut (), |host: &mut Host, _| {
            if let Some(limit) = limit {
                host.set_memory_limit(limit);
            }
            host.memory().held
        });
        held.map_err(|_| Errno::EIO)
    }

    /// A packet comes.
    pub fn input(&self, bytes: &[u8], now: Instant) -> nix::Result<()> {
        let mut locked = self.lock();
        let machine = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        machine.pass(now)?;
        let bytes = Bytes::copy_from_slice(bytes);
        let packet = match machine.ethernet {
            true => Packet::from_shared_frame(bytes),
            false => Packet::from_shared_ip(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), bytes),
        };
        let packet = packet.map_err(|_| Errno::EINVAL)?;
        let door = machine.door;
        let entered = machine.world.call(door, &mut (), |door: &mut BoundaryPort, cx| door.enter(packet, cx));
        entered.map_err(|_| Errno::EIO)?;
        machine.pass(now)
    }

    /// It is `now`, and timers that have come due fire late.
    pub fn oversleep(&self, now: Instant) -> nix::Result<()> {
        let mut locked = self.lock();
        let machine = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        machine.world.oversleep(now);
        machine.pass(now)
    }

    /// The next packet that the host sends, into `buffer`, and when it left; a length of zero: none.
    pub fn output(&self, buffer: &mut [u8], now: Instant) -> nix::Result<(usize, Instant)> {
        let mut locked = self.lock();
        let machine = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        machine.pass(now)?;
        let ethernet = machine.ethernet;
        loop {
            let Some((at, mut packet)) = machine.out.pop_front() else { return Ok((0, now)) };
            if !ethernet && !packet.has_ip() {
                continue;
            }
            if packet.segment_size().is_some() {
                let mut parts = VecDeque::new();
                packet.split_segments(|part| parts.push_back((at, part)));
                parts.into_iter().rev().for_each(|part| machine.out.push_front(part));
                continue;
            }
            packet.complete_checksum();
            let headers = if ethernet { packet.headers() } else { packet.headers_from_ip() };
            let (head, len) = (headers.len(), headers.len() + packet.payload().len());
            let Some(into) = buffer.get_mut(..len) else {
                // Not lost: the caller may come again with more room.
                machine.out.push_front((at, packet));
                return Err(Errno::EMSGSIZE);
            };
            into[..head].copy_from_slice(headers);
            into[head..].copy_from_slice(packet.payload());
            return Ok((len, at));
        }
    }

    /// When it wants to be called again; none: when a packet comes.
    pub fn deadline(&self) -> Option<Instant> {
        let locked = self.lock();
        let machine = locked.as_ref()?;
        if machine.out.is_empty() { machine.world.next_event_time() } else { Some(machine.now) }
    }
}

impl DrivenHost {
    /// Time passes; it never goes backwards.
    fn pass(&mut self, now: Instant) -> nix::Result<()> {
        self.now = self.now.max(now);
        self.world.run_until(self.now, &mut ()).map_err(|_| Errno::EIO)?;
        if let Some(door) = self.world.element_mut::<BoundaryPort>(self.door) {
            let left = std::mem::take(door.left());
            let dues = door.dues().map(std::mem::take).unwrap_or_default();
            self.out.extend(dues.into_iter().zip(left));
            self.out.truncate(LONGEST_QUEUE);
        }
        Ok(())
    }
}

impl Engine for Driven {
    fn is_driven(&self) -> bool {
        true
    }
    fn run(&self, job: HostJob) -> Result<(), Ended> {
        let mut locked = self.lock();
        let machine = locked.as_mut().ok_or(Ended)?;
        let (host, now) = (machine.host, machine.now);
        machine.world.call(host, &mut (), |host: &mut Host, cx| job(host, cx)).map_err(|_| Ended)?;
        machine.pass(now).map_err(|_| Ended)
    }
}
