//! UDP sockets (RFC 768, RFC 1122 §4.1): who has which port, what waits to be read, and what waits to be
//! sent.

use super::icmp::{PathMessage, SoftError};
use crate::FIRST_EPHEMERAL;
use crate::binds::Bind;
use bytes::Bytes;
use farpace_units::{ByteCount, Instant};
use farpace_wire::ip::PROTOCOL_UDP;
use farpace_wire::{Ecn, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Sockets of one host at most.
pub const MAX_SOCKETS: usize = 65_536;
/// What may wait in a socket to be read unless it is told otherwise, each datagram counted with
/// [`DATAGRAM_COST`].
pub const DEFAULT_RECEIVE_BUFFER: ByteCount = ByteCount::new(212_992);
/// What a datagram costs besides its payload, so that many empty ones do not come cheap.
pub const DATAGRAM_COST: ByteCount = ByteCount::new(256);
/// Datagrams that wait to be taken by the host at most.
pub const MAX_OUTGOING: usize = 4096;
/// Bytes of a datagram at most: what fits into an IPv4 packet.
pub const MAX_PAYLOAD: usize = 65_507;

/// A socket. It never means another one after it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UdpId(u64);

/// Why there is no socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BindError {
    /// Somebody has the port at this address.
    #[error("UDP port {0} is taken already")]
    Taken(u16),
    /// Not an address of the host.
    #[error("{0} is not an address of this host")]
    NotOurs(IpAddr),
    /// Port 0 is none.
    #[error("UDP port 0 cannot be bound")]
    Zero,
    /// Too many sockets, or no port left.
    #[error("no UDP socket is left")]
    NoneLeft,
}

/// Why a datagram was not taken for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The socket was closed.
    #[error("the socket is closed")]
    Closed,
    /// The socket is not connected, and no destination was given.
    #[error("no destination")]
    NoDestination,
    /// IPv4 from an IPv6 address or the other way round, or port 0.
    #[error("{0} cannot be reached from this socket")]
    Destination(SocketAddr),
    /// More than [`MAX_PAYLOAD`].
    #[error("{0} bytes are more than a datagram holds")]
    TooLong(usize),
    /// Too many wait already. Try again later.
    #[error("too many datagrams wait to be sent")]
    Full,
}

/// A datagram that came in, or that goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpDatagram {
    /// When it arrived, or was given to be sent.
    pub at: Instant,
    /// Whence. Of one that goes out the address may be unspecified: then the host chooses it.
    pub from: SocketAddr,
    /// Whither.
    pub to: SocketAddr,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// What its IP header says besides.
    pub ip: IpFields,
    /// What it carries.
    pub payload: Bytes,
}

/// Fields of the IP header that programs may see and set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpFields {
    /// DSCP, in the upper six bits of the type of service or traffic class.
    pub dscp: u8,
    /// Time to live, or hop limit; none: the host's.
    pub hops: Option<u8>,
    /// May not be cut on the way, and is not cut here.
    pub whole: bool,
}

/// What became of a datagram that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It waits in this socket to be read.
    Queued(UdpId),
    /// The buffer of this socket is full: drop it.
    Full(UdpId),
    /// Nobody has the port: drop it, and complain (RFC 1122 §4.1.3.1).
    NoSocket,
    /// It is no whole UDP datagram: drop it.
    Malformed,
}

#[derive(Debug)]
struct UdpEndpoint {
    bind: Bind,
    remote: Option<SocketAddr>,
    queue: VecDeque<UdpDatagram>,
    queued: ByteCount,
    buffer: ByteCount,
    soft_error: Option<SoftError>,
    received: u64,
    dropped: u64,
}

/// All UDP sockets of a host.
#[derive(Debug, Default)]
pub struct UdpSockets {
    sockets: BTreeMap<UdpId, UdpEndpoint>,
    /// All at a port, in the order in which they were bound.
    by_port: BTreeMap<u16, Vec<UdpId>>,
    /// Those that are not connected.
    by_local: BTreeMap<(u16, IpAddr), Vec<UdpId>>,
    by_pair: BTreeMap<(u16, SocketAddr, IpAddr), Vec<UdpId>>,
    /// Sockets with something new since they were last told.
    ready: BTreeSet<UdpId>,
    outgoing: VecDeque<UdpDatagram>,
    next: u64,
    no_socket: u64,
}

impl UdpSockets {
    /// A socket where `bind` says. With an unspecified address (`0.0.0.0`, `::`) it takes datagrams to every
    /// own address of that family, or of both. A port is shared where all that have it bear that; then the
    /// last one that was bound hears what is for several, but connected ones hear their peers.
    ///
    /// # Errors
    /// Port 0, a port that somebody has and does not share, or too many sockets.
    pub fn bind(&mut self, bind: Bind) -> Result<UdpId, BindError> {
        if bind.port == 0 {
            return Err(BindError::Zero);
        }
        if self.sockets.len() >= MAX_SOCKETS {
            return Err(BindError::NoneLeft);
        }
        if self.is_taken(&bind) {
            return Err(BindError::Taken(bind.port));
        }
        let id = UdpId(self.next);
        self.next += 1;
        let socket = UdpEndpoint {
            bind,
            remote: None,
            queue: VecDeque::new(),
            queued: ByteCount::new(0),
            buffer: DEFAULT_RECEIVE_BUFFER,
            soft_error: None,
            received: 0,
            dropped: 0,
        };
        self.sockets.insert(id, socket);
        self.by_port.entry(bind.port).or_default().push(id);
        self.enter(id);
        Ok(id)
    }

    /// A socket as `bind` says, but at any port that nobody has. `dice` is a random number: a port that
    /// cannot be guessed keeps forged answers out (RFC 6056).
    ///
    /// # Errors
    /// No port is left, or too many sockets.
    pub fn bind_any(&mut self, bind: Bind, rng: u64) -> Result<UdpId, BindError> {
        let count = u64::from(u16::MAX - FIRST_EPHEMERAL) + 1;
        let port = |n: u64| FIRST_EPHEMERAL + ((rng % count + n) % count) as u16;
        let free = (0..count).map(port).find(|port| !self.by_port.contains_key(port));
        self.bind(Bind { port: free.ok_or(BindError::NoneLeft)?, ..bind })
    }

    /// True if somebody has the port of `bind` at an address that it covers, and does not share it with it.
    fn is_taken(&self, bind: &Bind) -> bool {
        let at_port = self.by_port.get(&bind.port).into_iter().flatten();
        at_port.filter_map(|id| self.sockets.get(id)).any(|other| {
            let shared = (bind.reuse_address && other.bind.reuse_address)
                || (bind.reuse_port && other.bind.reuse_port);
            bind.overlaps(&other.bind) && !shared
        })
    }

    /// From now on the socket hears and talks to `remote` alone, from its address `local` if it had all
    /// before. Datagrams of others that wait already stay.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to) about the destination.
    pub fn connect(&mut self, id: UdpId, remote: SocketAddr) -> Result<(), SendError> {
        let socket = self.sockets.get(&id).ok_or(SendError::Closed)?;
        socket.check(remote)?;
        self.leave(id);
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.remote = Some(remote);
        }
        self.enter(id);
        Ok(())
    }

    /// From now on the socket hears everybody.
    pub fn disconnect(&mut self, id: UdpId) {
        self.leave(id);
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.remote = None;
        }
        self.enter(id);
    }

    /// What comes for the socket finds it.
    fn enter(&mut self, id: UdpId) {
        let Some(UdpEndpoint { bind, remote, .. }) = self.sockets.get(&id) else { return };
        match remote {
            Some(remote) => self.by_pair.entry((bind.port, *remote, bind.address)).or_default().push(id),
            None => self.by_local.entry((bind.port, bind.address)).or_default().push(id),
        }
    }

    /// Nothing that comes is for the socket.
    fn leave(&mut self, id: UdpId) {
        let Some(UdpEndpoint { bind, remote, .. }) = self.sockets.get(&id) else { return };
        let without = |list: &mut Vec<UdpId>| {
            list.retain(|other| *other != id);
            list.is_empty()
        };
        match remote {
            Some(remote) => {
                let key = (bind.port, *remote, bind.address);
                if self.by_pair.get_mut(&key).is_some_and(without) {
                    self.by_pair.remove(&key);
                }
            }
            None => {
                let key = (bind.port, bind.address);
                if self.by_local.get_mut(&key).is_some_and(without) {
                    self.by_local.remove(&key);
                }
            }
        }
    }

    /// What may wait in the socket to be read, with [`DATAGRAM_COST`] each. What waits already stays.
    pub fn set_receive_buffer(&mut self, id: UdpId, buffer: ByteCount) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.buffer = buffer;
        }
    }

    /// Gives a datagram to be sent to `to`.
    ///
    /// # Errors
    /// See [`SendError`]; nothing is sent.
    pub fn send_to(
        &mut self,
        now: Instant,
        id: UdpId,
        to: SocketAddr,
        payload: Bytes,
    ) -> Result<(), SendError> {
        self.send_with(now, id, to, None, IpFields::default(), payload)
    }

    /// The same from one of the host's addresses, if that is given, and with more to say in the IP header.
    ///
    /// # Errors
    /// See [`SendError`]; nothing is sent.
    pub fn send_with(
        &mut self,
        now: Instant,
        id: UdpId,
        to: SocketAddr,
        from: Option<IpAddr>,
        ip: IpFields,
        payload: Bytes,
    ) -> Result<(), SendError> {
        let socket = self.sockets.get(&id).ok_or(SendError::Closed)?;
        socket.check(to)?;
        if payload.len() > MAX_PAYLOAD {
            return Err(SendError::TooLong(payload.len()));
        }
        if self.outgoing.len() >= MAX_OUTGOING {
            return Err(SendError::Full);
        }
        let from = SocketAddr::new(from.unwrap_or(socket.bind.address), socket.bind.port);
        self.outgoing.push_back(UdpDatagram { at: now, from, to, ecn: Ecn::NotEct, ip, payload });
        Ok(())
    }

    /// Gives a datagram to be sent to where the socket is connected.
    ///
    /// # Errors
    /// See [`SendError`]; nothing is sent.
    pub fn send(&mut self, now: Instant, id: UdpId, payload: Bytes) -> Result<(), SendError> {
        let remote = self.sockets.get(&id).ok_or(SendError::Closed)?.remote;
        self.send_to(now, id, remote.ok_or(SendError::NoDestination)?, payload)
    }

    /// The next datagram that the host shall send.
    pub fn poll_transmit(&mut self) -> Option<UdpDatagram> {
        self.outgoing.pop_front()
    }

    /// A datagram to one of the host's addresses has come, with checksums that were verified.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) -> Delivery {
        let (Some(ip), Ok(udp)) = (packet.ip(), packet.udp()) else { return Delivery::Malformed };
        let from = SocketAddr::new(ip.src(), udp.src_port());
        let to = SocketAddr::new(ip.dst(), udp.dst_port());
        let id = self.connected(to, from).or_else(|| self.bound(to, from));
        let Some((id, socket)) = id.and_then(|id| Some((id, self.sockets.get_mut(&id)?))) else {
            self.no_socket += 1;
            return Delivery::NoSocket;
        };
        let fields = IpFields { dscp: ip.tos() & !3, hops: Some(ip.ttl()), whole: false };
        let payload = packet.payload().clone();
        let cost = cost(&payload);
        if socket.queued + cost > socket.buffer {
            socket.dropped += 1;
            return Delivery::Full(id);
        }
        socket.queued += cost;
        socket.received += 1;
        socket.queue.push_back(UdpDatagram { at: now, from, to, ecn: ip.ecn(), ip: fields, payload });
        self.ready.insert(id);
        Delivery::Queued(id)
    }

    /// An ICMP error has come: the socket that is connected to where the packet went learns of it (RFC 1122
    /// §4.1.3.3). Others would not know what to do with it.
    pub fn on_path_message(&mut self, message: &PathMessage) {
        let quoted = &message.quoted;
        let (PROTOCOL_UDP, Some((from, to))) = (quoted.protocol, quoted.ports) else { return };
        let local = SocketAddr::new(quoted.addresses.src(), from);
        let remote = SocketAddr::new(quoted.addresses.dst(), to);
        if let Some(id) = self.connected(local, remote)
            && let Some(socket) = self.sockets.get_mut(&id)
        {
            socket.soft_error = Some(message.soft_error);
            self.ready.insert(id);
        }
    }

    /// The socket at `local` that is connected to `remote`.
    fn connected(&self, local: SocketAddr, remote: SocketAddr) -> Option<UdpId> {
        let at = |address| self.by_pair.get(&(local.port(), remote, address))?.last().copied();
        let either = || self.of_both(at(IpAddr::from([0; 16])), local);
        at(local.ip()).or_else(|| at(all(local))).or_else(either)
    }

    /// The socket that has `local`, for everybody. Of several that share it with SO_REUSEPORT, the sender
    /// decides.
    fn bound(&self, local: SocketAddr, remote: SocketAddr) -> Option<UdpId> {
        let at = |address| {
            let list = self.by_local.get(&(local.port(), address))?;
            let shares = |id: &&UdpId| self.sockets.get(id).is_some_and(|socket| socket.bind.reuse_port);
            if list.len() > 1 && list.iter().all(|id| shares(&id)) {
                return list.get(spread(remote) % list.len()).copied();
            }
            list.last().copied()
        };
        let either = || self.of_both(at(IpAddr::from([0; 16])), local);
        at(local.ip()).or_else(|| at(all(local))).or_else(either)
    }

    /// `id`, a socket at `::`, if what is for `local` is for it.
    fn of_both(&self, id: Option<UdpId>, local: SocketAddr) -> Option<UdpId> {
        id.filter(|id| self.sockets.get(id).is_some_and(|socket| socket.bind.covers(local.ip())))
    }

    /// The next datagram that waits in the socket.
    pub fn receive(&mut self, id: UdpId) -> Option<UdpDatagram> {
        let socket = self.sockets.get_mut(&id)?;
        let datagram = socket.queue.pop_front()?;
        socket.queued -= cost(&datagram.payload);
        Some(datagram)
    }

    /// What went wrong on the way to where the socket is connected, once.
    pub fn take_soft_error(&mut self, id: UdpId) -> Option<SoftError> {
        self.sockets.get_mut(&id)?.soft_error.take()
    }

    /// A socket to which something has come since it was last named here.
    pub fn poll_ready(&mut self) -> Option<UdpId> {
        self.ready.pop_first()
    }

    /// Closes the socket. What waits in it is lost; what was given to be sent goes out.
    pub fn close(&mut self, id: UdpId) {
        self.leave(id);
        if let Some(UdpEndpoint { bind: Bind { port, .. }, .. }) = self.sockets.remove(&id)
            && let Some(at_port) = self.by_port.get_mut(&port)
        {
            at_port.retain(|other| *other != id);
            if at_port.is_empty() {
                self.by_port.remove(&port);
            }
        }
        self.ready.remove(&id);
    }

    /// Where the socket is.
    pub fn local(&self, id: UdpId) -> Option<SocketAddr> {
        self.sockets.get(&id).map(|socket| SocketAddr::new(socket.bind.address, socket.bind.port))
    }
    /// Where the socket is connected to.
    pub fn remote(&self, id: UdpId) -> Option<SocketAddr> {
        self.sockets.get(&id)?.remote
    }
    /// What waits in the socket to be read, as its buffer counts it.
    pub fn queued(&self, id: UdpId) -> ByteCount {
        self.sockets.get(&id).map_or(ByteCount::ZERO, |socket| socket.queued)
    }
    /// All sockets.
    pub fn ids(&self) -> impl Iterator<Item = UdpId> {
        self.sockets.keys().copied()
    }
    /// Changes whom a socket bears beside it at its port.
    pub fn set_reuse(&mut self, id: UdpId, reuse_address: bool, reuse_port: bool) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            (socket.bind.reuse_address, socket.bind.reuse_port) = (reuse_address, reuse_port);
        }
    }
    /// Sockets there are.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }
    /// Datagrams that the socket took so far.
    pub fn received(&self, id: UdpId) -> u64 {
        self.sockets.get(&id).map_or(0, |socket| socket.received)
    }
    /// Datagrams that found the socket's buffer full so far.
    pub fn dropped(&self, id: UdpId) -> u64 {
        self.sockets.get(&id).map_or(0, |socket| socket.dropped)
    }
    /// Datagrams to ports that nobody had so far.
    pub const fn no_socket(&self) -> u64 {
        self.no_socket
    }
}

/// All addresses of a family.
fn all(like: SocketAddr) -> IpAddr {
    match like {
        SocketAddr::V4(_) => IpAddr::from([0; 4]),
        SocketAddr::V6(_) => IpAddr::from([0; 16]),
    }
}

/// A number that follows from a sender alone.
fn spread(remote: SocketAddr) -> usize {
    let address = match remote.ip() {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    let mixed = (address >> 64) as u64 ^ address as u64 ^ u64::from(remote.port()) << 32;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

impl UdpEndpoint {
    fn check(&self, to: SocketAddr) -> Result<(), SendError> {
        let own = self.bind.address;
        let reaches =
            if own.is_unspecified() { self.bind.covers(to.ip()) } else { own.is_ipv4() == to.is_ipv4() };
        let bad = !reaches || to.port() == 0 || to.ip().is_unspecified();
        if bad { Err(SendError::Destination(to)) } else { Ok(()) }
    }
}

fn cost(payload: &Bytes) -> ByteCount {
    ByteCount::of_len(payload.len()) + DATAGRAM_COST
}

#[cfg(test)]
mod tests;
