//! UDP sockets (RFC 768, RFC 1122 §4.1): who has which port, what waits to be read, and what waits to be sent.

use super::icmp::{PathMessage, PathTrouble};
use crate::FIRST_EPHEMERAL;
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
    /// Another socket at this port is connected to there.
    #[error("another socket is connected to {0} already")]
    Taken(SocketAddr),
    /// Too many wait already. Try again later.
    #[error("too many datagrams wait to be sent")]
    Full,
}

/// A datagram that came in, or that goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// When it arrived, or was given to be sent.
    pub at: Instant,
    /// Whence. Of one that goes out the address may be unspecified: then the host chooses it.
    pub from: SocketAddr,
    /// Whither.
    pub to: SocketAddr,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// What it carries.
    pub payload: Bytes,
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
struct Socket {
    local: SocketAddr,
    remote: Option<SocketAddr>,
    queue: VecDeque<Datagram>,
    queued: ByteCount,
    buffer: ByteCount,
    trouble: Option<PathTrouble>,
    received: u64,
    dropped: u64,
}

/// All UDP sockets of a host.
#[derive(Debug, Default)]
pub struct UdpSockets {
    sockets: BTreeMap<UdpId, Socket>,
    /// Those that are not connected.
    by_local: BTreeMap<(u16, IpAddr), UdpId>,
    by_pair: BTreeMap<(u16, SocketAddr, IpAddr), UdpId>,
    /// Sockets with something new since they were last told.
    ready: BTreeSet<UdpId>,
    outgoing: VecDeque<Datagram>,
    next: u64,
    no_socket: u64,
}

impl UdpSockets {
    /// A socket at `local`. With an unspecified address (`0.0.0.0`, `::`) it takes datagrams to every own address
    /// of that family, also those that another socket would have. Connected sockets leave their port to others: of what comes
    /// there they hear their peer, as servers want it that connect one socket for each client.
    ///
    /// # Errors
    /// Port 0, a port that is taken at that address or at all of its family, or too many sockets.
    pub fn bind(&mut self, local: SocketAddr) -> Result<UdpId, BindError> {
        if local.port() == 0 {
            return Err(BindError::Zero);
        }
        if self.sockets.len() >= MAX_SOCKETS {
            return Err(BindError::NoneLeft);
        }
        if self.is_taken(local) {
            return Err(BindError::Taken(local.port()));
        }
        let id = UdpId(self.next);
        self.next += 1;
        self.by_local.insert((local.port(), local.ip()), id);
        let socket = Socket {
            local,
            remote: None,
            queue: VecDeque::new(),
            queued: ByteCount::new(0),
            buffer: DEFAULT_RECEIVE_BUFFER,
            trouble: None,
            received: 0,
            dropped: 0,
        };
        self.sockets.insert(id, socket);
        Ok(id)
    }

    /// A socket at any free port of `address`. `dice` is a random number: a port that cannot be guessed keeps
    /// forged answers out (RFC 6056).
    ///
    /// # Errors
    /// No port is left, or too many sockets.
    pub fn bind_any(&mut self, address: IpAddr, dice: u64) -> Result<UdpId, BindError> {
        let count = u64::from(u16::MAX - FIRST_EPHEMERAL) + 1;
        let port = |n: u64| FIRST_EPHEMERAL + ((dice % count + n) % count) as u16;
        let is_free = |port| !self.is_connected(port) && !self.is_taken(SocketAddr::new(address, port));
        let free = (0..count).map(port).find(|port| is_free(*port));
        self.bind(SocketAddr::new(address, free.ok_or(BindError::NoneLeft)?))
    }

    /// True if nobody else can have `local`: somebody has it, or all addresses of its family at that port; or it is
    /// all, and somebody has one.
    fn is_taken(&self, local: SocketAddr) -> bool {
        let port = local.port();
        let mut at_port =
            self.by_local.range((port, IpAddr::from([0; 4]))..).take_while(|((p, _), _)| *p == port);
        at_port.any(|((_, theirs), _)| {
            let alike = theirs.is_ipv4() == local.is_ipv4();
            alike && (*theirs == local.ip() || theirs.is_unspecified() || local.ip().is_unspecified())
        })
    }

    /// True if a connected socket has this port.
    fn is_connected(&self, port: u16) -> bool {
        let nobody = IpAddr::from([0; 4]);
        let first = (port, SocketAddr::new(nobody, 0), nobody);
        self.by_pair.range(first..).next().is_some_and(|((theirs, ..), _)| *theirs == port)
    }

    /// From now on the socket hears and talks to `remote` alone, and others can have its port. Datagrams of others that wait
    /// already stay.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to) about the destination; another socket at this port is connected to there.
    pub fn connect(&mut self, id: UdpId, remote: SocketAddr) -> Result<(), SendError> {
        let socket = self.sockets.get(&id).ok_or(SendError::Closed)?;
        socket.check(remote)?;
        let pair = (socket.local.port(), remote, socket.local.ip());
        if self.by_pair.get(&pair).is_some_and(|other| *other != id) {
            return Err(SendError::Taken(remote));
        }
        self.leave(id);
        self.by_pair.insert(pair, id);
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.remote = Some(remote);
        }
        Ok(())
    }

    /// From now on the socket hears everybody, unless another has taken its port meanwhile: then nobody.
    pub fn disconnect(&mut self, id: UdpId) {
        self.leave(id);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.remote = None;
        let local = socket.local;
        if !self.is_taken(local) {
            self.by_local.insert((local.port(), local.ip()), id);
        }
    }

    /// Nothing that comes is for this socket.
    fn leave(&mut self, id: UdpId) {
        let Some(Socket { local, remote, .. }) = self.sockets.get(&id) else { return };
        let key = (local.port(), local.ip());
        // One that was connected and is not may have lost its port to another.
        if self.by_local.get(&key) == Some(&id) {
            self.by_local.remove(&key);
        }
        if let Some(remote) = remote {
            self.by_pair.remove(&(local.port(), *remote, local.ip()));
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
        let socket = self.sockets.get(&id).ok_or(SendError::Closed)?;
        socket.check(to)?;
        if payload.len() > MAX_PAYLOAD {
            return Err(SendError::TooLong(payload.len()));
        }
        if self.outgoing.len() >= MAX_OUTGOING {
            return Err(SendError::Full);
        }
        self.outgoing.push_back(Datagram { at: now, from: socket.local, to, ecn: Ecn::NotEct, payload });
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
    pub fn poll_transmit(&mut self) -> Option<Datagram> {
        self.outgoing.pop_front()
    }

    /// A datagram to one of the host's addresses has come, with checksums that were verified.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) -> Delivery {
        let (Some(ip), Ok(udp)) = (packet.ip(), packet.udp()) else { return Delivery::Malformed };
        let from = SocketAddr::new(ip.src(), udp.src_port());
        let to = SocketAddr::new(ip.dst(), udp.dst_port());
        let id = self.connected(to, from).or_else(|| self.bound(to));
        let Some((id, socket)) = id.and_then(|id| Some((id, self.sockets.get_mut(&id)?))) else {
            self.no_socket += 1;
            return Delivery::NoSocket;
        };
        let payload = packet.payload().clone();
        let cost = cost(&payload);
        if socket.queued + cost > socket.buffer {
            socket.dropped += 1;
            return Delivery::Full(id);
        }
        socket.queued += cost;
        socket.received += 1;
        socket.queue.push_back(Datagram { at: now, from, to, ecn: ip.ecn(), payload });
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
            socket.trouble = Some(message.trouble);
            self.ready.insert(id);
        }
    }

    /// The socket at `local` that is connected to `remote`.
    fn connected(&self, local: SocketAddr, remote: SocketAddr) -> Option<UdpId> {
        let at = |address| self.by_pair.get(&(local.port(), remote, address)).copied();
        at(local.ip()).or_else(|| at(all(local)))
    }

    /// The socket that has `local`, for everybody.
    fn bound(&self, local: SocketAddr) -> Option<UdpId> {
        let at = |address| self.by_local.get(&(local.port(), address)).copied();
        at(local.ip()).or_else(|| at(all(local)))
    }

    /// The next datagram that waits in the socket.
    pub fn receive(&mut self, id: UdpId) -> Option<Datagram> {
        let socket = self.sockets.get_mut(&id)?;
        let datagram = socket.queue.pop_front()?;
        socket.queued -= cost(&datagram.payload);
        Some(datagram)
    }

    /// What went wrong on the way to where the socket is connected, once.
    pub fn take_trouble(&mut self, id: UdpId) -> Option<PathTrouble> {
        self.sockets.get_mut(&id)?.trouble.take()
    }

    /// A socket to which something has come since it was last named here.
    pub fn poll_ready(&mut self) -> Option<UdpId> {
        self.ready.pop_first()
    }

    /// Closes the socket. What waits in it is lost; what was given to be sent goes out.
    pub fn close(&mut self, id: UdpId) {
        self.leave(id);
        self.sockets.remove(&id);
        self.ready.remove(&id);
    }

    /// Where the socket is.
    pub fn local(&self, id: UdpId) -> Option<SocketAddr> {
        self.sockets.get(&id).map(|socket| socket.local)
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

impl Socket {
    fn check(&self, to: SocketAddr) -> Result<(), SendError> {
        let bad = to.is_ipv4() != self.local.is_ipv4() || to.port() == 0 || to.ip().is_unspecified();
        if bad { Err(SendError::Destination(to)) } else { Ok(()) }
    }
}

fn cost(payload: &Bytes) -> ByteCount {
    ByteCount::of_len(payload.len()) + DATAGRAM_COST
}

#[cfg(test)]
mod tests;
