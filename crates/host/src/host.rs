//! The host: from frames to connections and back.

use crate::application::Application;
use crate::timers::Timers;
use farpace_path::{Cx, DropReason, Element, Inspection, Port};
use farpace_tcp::config::Config;
use farpace_tcp::{Connection, Outgoing, Ports, Segment, State, Transmit};
use farpace_trace::Record;
use farpace_units::{Instant, Seq};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{Ipv4Tcp, MacAddr, Packet};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use thiserror::Error;

/// Connections that one host keeps at once. SYNs beyond it are dropped and counted.
pub const MAX_CONNECTIONS: usize = 1 << 20;
/// First port of the range that outgoing connections take (RFC 6335: dynamic ports).
const FIRST_EPHEMERAL: u16 = 49_152;
/// Segments taken from a connection at a time.
const BATCH: usize = 64;
/// Time to live of what the host sends.
const TTL: u8 = 64;

/// Closed connections that stay for inspection; of more, the oldest are forgotten.
pub const MAX_CLOSED_KEPT: usize = 4096;

/// A connection of a host; stays valid for a while after the connection has closed (see
/// [`MAX_CLOSED_KEPT`]), and never means another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    slot: usize,
    generation: u32,
}

/// Why a port cannot be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ListenError {
    /// Somebody listens there already.
    #[error("port {0} is taken already")]
    Taken(u16),
}

type Factory = Box<dyn FnMut() -> Box<dyn Application>>;

struct Listener {
    config: Config,
    factory: Factory,
    /// Records of accepted connections are made under this number.
    log_as: Option<u32>,
}

struct Entry {
    connection: Connection,
    application: Box<dyn Application>,
    below: Ipv4Tcp,
    peer: Peer,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

/// A connection that is to be opened later.
struct Planned {
    at: Instant,
    slot: usize,
    config: Config,
    ports: Ports,
    to: Ipv4Addr,
    application: Box<dyn Application>,
    log_as: Option<u32>,
}

/// The other end, and our port: what tells connections of one host apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Peer {
    address: Ipv4Addr,
    port: u16,
    local_port: u16,
}

/// One machine with one NIC (port 0).
///
/// Connections are opened with [`connect`](Host::connect) at a time of the future, or accepted by a
/// [`listen`](Host::listen)er. Each has an [`Application`]. The host answers segments that belong to nobody
/// with a reset (RFC 9293 §3.10.7.1).
pub struct Host {
    address: Ipv4Addr,
    listeners: BTreeMap<u16, Listener>,
    planned: Vec<Planned>,
    slots: Vec<Slot>,
    /// Slots to be used again.
    free: Vec<usize>,
    /// Slots of closed connections, oldest first.
    closed: VecDeque<usize>,
    index: BTreeMap<Peer, usize>,
    /// The connection that was found last: bulk data finds it again.
    recent: Option<(Peer, usize)>,
    timers: Timers,
    next_port: u16,
    ident: u16,
    batch: Vec<Outgoing>,
}

impl Host {
    /// A host without connections.
    pub fn new(address: Ipv4Addr) -> Self {
        Host {
            address,
            listeners: BTreeMap::new(),
            planned: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            closed: VecDeque::new(),
            index: BTreeMap::new(),
            recent: None,
            timers: Timers::default(),
            next_port: FIRST_EPHEMERAL,
            ident: 0,
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Accepts connections to `port`; `factory` makes the application of each. With `log_as`, records are
    /// made of them under that number.
    ///
    /// # Errors
    /// The port is taken.
    pub fn listen(
        &mut self,
        port: u16,
        config: Config,
        log_as: Option<u32>,
        factory: impl FnMut() -> Box<dyn Application> + 'static,
    ) -> Result<(), ListenError> {
        if self.listeners.contains_key(&port) {
            return Err(ListenError::Taken(port));
        }
        self.listeners.insert(port, Listener { config, factory: Box::new(factory), log_as });
        Ok(())
    }

    /// Opens a connection to `port` of `to` when the time `at` comes. With `log_as`, records are made of it
    /// under that number.
    pub fn connect(
        &mut self,
        at: Instant,
        to: Ipv4Addr,
        port: u16,
        config: Config,
        log_as: Option<u32>,
        application: Box<dyn Application>,
    ) -> ConnectionId {
        let slot = self.free_slot();
        let ports = Ports { local: self.free_port(to, port), remote: port };
        self.planned.push(Planned { at, slot, config, ports, to, application, log_as });
        ConnectionId { slot, generation: self.slots[slot].generation }
    }

    fn free_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        })
    }

    /// A connection has closed: it stays for inspection until too many have.
    fn retire(&mut self, slot: usize) {
        self.closed.push_back(slot);
        if self.closed.len() > MAX_CLOSED_KEPT
            && let Some(oldest) = self.closed.pop_front()
        {
            self.slots[oldest].entry = None;
            self.slots[oldest].generation = self.slots[oldest].generation.wrapping_add(1);
            self.free.push(oldest);
        }
    }

    fn entry(&self, id: ConnectionId) -> Option<&Entry> {
        self.slots.get(id.slot).filter(|s| s.generation == id.generation)?.entry.as_ref()
    }

    fn entry_at(&mut self, slot: usize) -> Option<&mut Entry> {
        self.slots.get_mut(slot)?.entry.as_mut()
    }

    /// A local port that no connection or plan to the same place uses.
    fn free_port(&mut self, to: Ipv4Addr, remote: u16) -> u16 {
        for _ in FIRST_EPHEMERAL..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
            let peer = Peer { address: to, port: remote, local_port: port };
            let planned = self.planned.iter().any(|p| p.to == to && p.ports == Ports { local: port, remote });
            if !planned && !self.index.contains_key(&peer) {
                return port;
            }
        }
        self.next_port
    }

    /// A connection, once it has been opened.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.entry(id).map(|e| &e.connection)
    }

    /// The application of a connection, if it is a `T`.
    pub fn application<T: Application>(&self, id: ConnectionId) -> Option<&T> {
        let application: &dyn Any = self.entry(id)?.application.as_ref();
        application.downcast_ref()
    }

    /// The same, to change it between events.
    pub fn application_mut<T: Application>(&mut self, id: ConnectionId) -> Option<&mut T> {
        self.entry(id)?;
        let application: &mut dyn Any = self.entry_at(id.slot)?.application.as_mut();
        application.downcast_mut()
    }

    /// All connections, opened or accepted, the closed ones that are kept included.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.slots.iter().enumerate().filter_map(|(slot, s)| {
            Some((ConnectionId { slot, generation: s.generation }, &s.entry.as_ref()?.connection))
        })
    }

    /// Hands the records of all connections since the last call to `take`, connection by connection.
    pub fn take_records(&mut self, mut take: impl FnMut(Record)) {
        for entry in self.slots.iter_mut().filter_map(|s| s.entry.as_mut()) {
            entry.connection.take_records(&mut take);
        }
    }

    /// Stops making records of all connections.
    pub fn stop_log(&mut self) {
        for entry in self.slots.iter_mut().filter_map(|s| s.entry.as_mut()) {
            entry.connection.stop_log();
        }
    }

    fn find(&mut self, peer: Peer) -> Option<usize> {
        if let Some((recent, slot)) = self.recent
            && recent == peer
        {
            return Some(slot);
        }
        let slot = *self.index.get(&peer)?;
        self.recent = Some((peer, slot));
        Some(slot)
    }

    fn open(&mut self, plan: Planned, cx: &mut Cx<'_>) {
        let iss = Seq::new(cx.rng().next_u64() as u32);
        let connection = Connection::connect(cx.now(), &plan.config, plan.ports, iss);
        let peer = Peer { address: plan.to, port: plan.ports.remote, local_port: plan.ports.local };
        self.install(plan.slot, peer, connection, plan.application, plan.log_as);
        self.service(plan.slot, cx);
    }

    fn install(
        &mut self,
        slot: usize,
        peer: Peer,
        mut connection: Connection,
        application: Box<dyn Application>,
        log_as: Option<u32>,
    ) {
        if let Some(number) = log_as {
            connection.start_log(number);
        }
        let below = self.route_to(peer.address);
        self.index.insert(peer, slot);
        self.slots[slot].entry = Some(Entry { connection, application, below, peer });
    }

    fn route_to(&self, to: Ipv4Addr) -> Ipv4Tcp {
        Ipv4Tcp {
            src_mac: mac_of(self.address),
            dst_mac: mac_of(to),
            src: self.address,
            dst: to,
            ttl: TTL,
            tos: 0,
        }
    }

    /// Tells the application what happened, sends what the connection has to send, re-arms its timer.
    fn service(&mut self, slot: usize, cx: &mut Cx<'_>) {
        let Some(entry) = self.slots.get_mut(slot).and_then(|s| s.entry.as_mut()) else { return };
        let now = cx.now();
        loop {
            while let Some(event) = entry.connection.poll_event() {
                entry.application.on_event(now, &mut entry.connection, event);
            }
            let sent = entry.connection.poll_transmit(now, &mut self.batch, BATCH);
            for out in self.batch.drain(..) {
                self.ident = self.ident.wrapping_add(1);
                let Segment { header, payload } = out.segment;
                cx.made();
                cx.emit(Port(0), entry.below.build(self.ident, &header, payload));
            }
            // A batch that was not filled was ended by the windows or by the data.
            if sent != Transmit::Sent(BATCH) {
                break;
            }
        }
        let closed = entry.connection.state() == State::Closed;
        let deadline = entry.connection.deadline().map(|(at, _)| at);
        if closed {
            let peer = entry.peer;
            self.recent = None;
            if self.index.remove(&peer).is_some() {
                self.retire(slot); // its ports are free again
            }
        }
        self.timers.set(slot, deadline);
    }

    /// A segment for a connection that does not exist.
    fn on_stranger(&mut self, from: Ipv4Addr, header: &TcpHeader, packet: Packet, cx: &mut Cx<'_>) {
        let opens = header.flags.contains(TcpFlags::SYN)
            && !header.flags.intersects(TcpFlags::ACK.with(TcpFlags::RST));
        if opens && let Some(listener) = self.listeners.get_mut(&header.dst_port) {
            if self.index.len() >= MAX_CONNECTIONS {
                cx.drop(packet, DropReason::HostLimit);
                return;
            }
            let ports = Ports { local: header.dst_port, remote: header.src_port };
            let iss = Seq::new(cx.rng().next_u64() as u32);
            let syn = Segment { header: header.clone(), payload: packet.payload().clone() };
            let connection = Connection::accept(cx.now(), &listener.config, ports, iss, &syn);
            let (application, log_as) = ((listener.factory)(), listener.log_as);
            let slot = self.free_slot();
            let peer = Peer { address: from, port: header.src_port, local_port: header.dst_port };
            self.install(slot, peer, connection, application, log_as);
            cx.consume(packet);
            self.service(slot, cx);
            return;
        }
        if !header.flags.contains(TcpFlags::RST) {
            self.ident = self.ident.wrapping_add(1);
            let reset = reset_for(header, packet.payload().len());
            cx.made();
            cx.emit(Port(0), self.route_to(from).build(self.ident, &reset, Default::default()));
        }
        cx.drop(packet, DropReason::NoListener);
    }
}

impl Element for Host {
    fn on_packet(&mut self, _: Port, packet: Packet, cx: &mut Cx<'_>) {
        if packet.verify_checksums().is_err() {
            return cx.drop(packet, DropReason::BadChecksum);
        }
        let Ok((ip, tcp)) = packet.ipv4_tcp() else {
            return cx.drop(packet, DropReason::Malformed);
        };
        let (from, to, header) = (ip.src(), ip.dst(), tcp.header());
        if to != self.address {
            return cx.drop(packet, DropReason::NoRoute);
        }
        let peer = Peer { address: from, port: header.src_port, local_port: header.dst_port };
        let Some(slot) = self.find(peer) else {
            return self.on_stranger(from, &header, packet, cx);
        };
        let payload = cx.take(packet);
        if let Some(entry) = self.entry_at(slot) {
            entry.connection.on_segment(cx.now(), Segment { header, payload });
        }
        self.service(slot, cx);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        while let Some(i) = self.planned.iter().position(|p| p.at <= now) {
            let plan = self.planned.remove(i);
            self.open(plan, cx);
        }
        while let Some(slot) = self.timers.pop(now) {
            if let Some(entry) = self.entry_at(slot) {
                entry.connection.on_deadline(now);
            }
            self.service(slot, cx);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.planned.iter().map(|p| p.at).chain(self.timers.next()).min()
    }

    fn held(&self) -> u64 {
        0 // what arrives is consumed at once, and the NIC's queue belongs to the link
    }

    fn inspect(&self) -> Inspection {
        vec![
            ("address", self.address.to_string()),
            ("connections", self.index.len().to_string()),
            ("listeners", self.listeners.len().to_string()),
        ]
    }
}

/// RFC 9293 §3.10.7.1: the reset that answers a segment for nobody.
fn reset_for(header: &TcpHeader, payload: usize) -> TcpHeader {
    let mut reset = TcpHeader {
        src_port: header.dst_port,
        dst_port: header.src_port,
        flags: TcpFlags::RST,
        ..TcpHeader::default()
    };
    if header.flags.contains(TcpFlags::ACK) {
        reset.seq = header.ack;
    } else {
        let control =
            u32::from(header.flags.contains(TcpFlags::SYN)) + u32::from(header.flags.contains(TcpFlags::FIN));
        reset.ack = header.seq + (payload as u32 + control);
        reset.flags = TcpFlags::RST.with(TcpFlags::ACK);
    }
    reset
}

/// The MAC address of a lab host: locally administered, made from its IPv4 address.
fn mac_of(address: Ipv4Addr) -> MacAddr {
    let [a, b, c, d] = address.octets();
    MacAddr([0x02, 0x00, a, b, c, d])
}
