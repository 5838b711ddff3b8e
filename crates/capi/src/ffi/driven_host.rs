//! A host whose packets and time are supplied by its program.

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

/// Maximum number of packets that wait to be fetched. Further packets are dropped.
const LONGEST_QUEUE: usize = 16_384;

/// The host, its world and its time.
pub struct DrivenHost {
    world: World,
    host: ElementId,
    port: ElementId,
    now: Instant,
    /// Sent packets with their departure times.
    out: VecDeque<(Instant, Packet)>,
    ethernet: bool,
}

// SAFETY: a world is not `Send` because elements and applications may be of any type. This one contains a
// `Host`, a `BoundaryPort`, and applications of `farpace_live::socket`. None of them is tied to a thread: the
// state of the host has no `Rc`, `RefCell` or thread-local, and the applications hold `Arc`s of values behind
// locks. The only access is `Engine`, which takes the lock.
unsafe impl Send for DrivenHost {}

/// A host behind a lock; none after its end.
pub struct Driven(Mutex<Option<DrivenHost>>);

impl Driven {
    /// A host that sends packets of up to `mtu` bytes. All its random numbers derive from `seed`. With `mac`
    /// it is on an Ethernet with this prefix, and with a gateway if given.
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
        let port = world.add("device", Box::new(BoundaryPort::timed())).map_err(broken)?;
        world.connect((host, Port(0)), (port, Port(0))).map_err(broken)?;
        let (now, out) = (Instant::ZERO, VecDeque::new());
        let driven = DrivenHost { world, host, port, now, out, ethernet: ethernet.is_some() };
        Ok(Driven(Mutex::new(Some(driven))))
    }

    /// Ends the host; its sockets fail.
    pub fn end(&self) {
        let driven = self.lock().take();
        drop(driven);
    }

    fn lock(&self) -> MutexGuard<'_, Option<DrivenHost>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its current time; the maximum after its end.
    pub fn now(&self) -> Instant {
        self.lock().as_ref().map_or(Instant::FAR_FUTURE, |driven| driven.now)
    }

    /// Sets the memory limit of its connections if given, and returns the memory in use.
    pub fn memory(&self, limit: Option<ByteCount>) -> nix::Result<ByteCount> {
        let mut locked = self.lock();
        let driven = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        let host = driven.host;
        let held = driven.world.call(host, &mut (), |host: &mut Host, _| {
            if let Some(limit) = limit {
                host.set_memory_limit(limit);
            }
            host.memory().held
        });
        held.map_err(|_| Errno::EIO)
    }

    /// Handles a received packet.
    pub fn input(&self, bytes: &[u8], now: Instant) -> nix::Result<()> {
        let mut locked = self.lock();
        let driven = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        driven.pass(now)?;
        let bytes = Bytes::copy_from_slice(bytes);
        let packet = match driven.ethernet {
            true => Packet::from_shared_frame(bytes),
            false => Packet::from_shared_ip(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), bytes),
        };
        let packet = packet.map_err(|_| Errno::EINVAL)?;
        let port = driven.port;
        let entered = driven.world.call(port, &mut (), |port: &mut BoundaryPort, cx| port.enter(packet, cx));
        entered.map_err(|_| Errno::EIO)?;
        driven.pass(now)
    }

    /// Sets the time to `now`. Expired timers fire late.
    pub fn oversleep(&self, now: Instant) -> nix::Result<()> {
        let mut locked = self.lock();
        let driven = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        driven.world.oversleep(now);
        driven.pass(now)
    }

    /// Writes the next sent packet to `buffer`, and returns its length and departure time; a length of zero:
    /// none.
    pub fn output(&self, buffer: &mut [u8], now: Instant) -> nix::Result<(usize, Instant)> {
        let mut locked = self.lock();
        let driven = locked.as_mut().ok_or(Errno::ENETDOWN)?;
        driven.pass(now)?;
        let ethernet = driven.ethernet;
        loop {
            let Some((at, mut packet)) = driven.out.pop_front() else { return Ok((0, now)) };
            if !ethernet && !packet.has_ip() {
                continue;
            }
            if packet.segment_size().is_some() {
                let mut parts = VecDeque::new();
                packet.split_segments(|part| parts.push_back((at, part)));
                parts.into_iter().rev().for_each(|part| driven.out.push_front(part));
                continue;
            }
            packet.complete_checksum();
            let headers = if ethernet { packet.headers() } else { packet.headers_from_ip() };
            let (head, len) = (headers.len(), headers.len() + packet.payload().len());
            let Some(into) = buffer.get_mut(..len) else {
                // The packet stays: the caller can retry with a larger buffer.
                driven.out.push_front((at, packet));
                return Err(Errno::EMSGSIZE);
            };
            into[..head].copy_from_slice(headers);
            into[head..].copy_from_slice(packet.payload());
            return Ok((len, at));
        }
    }

    /// When it must be called again; none: when a packet arrives.
    pub fn deadline(&self) -> Option<Instant> {
        let locked = self.lock();
        let driven = locked.as_ref()?;
        if driven.out.is_empty() { driven.world.next_event_time() } else { Some(driven.now) }
    }
}

impl DrivenHost {
    /// Advances the time, which never goes backwards.
    fn pass(&mut self, now: Instant) -> nix::Result<()> {
        self.now = self.now.max(now);
        self.world.run_until(self.now, &mut ()).map_err(|_| Errno::EIO)?;
        if let Some(port) = self.world.element_mut::<BoundaryPort>(self.port) {
            let left = std::mem::take(port.left());
            let dues = port.dues().map(std::mem::take).unwrap_or_default();
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
        let driven = locked.as_mut().ok_or(Ended)?;
        let (host, now) = (driven.host, driven.now);
        driven.world.call(host, &mut (), |host: &mut Host, cx| job(host, cx)).map_err(|_| Ended)?;
        driven.pass(now).map_err(|_| Ended)
    }
}
