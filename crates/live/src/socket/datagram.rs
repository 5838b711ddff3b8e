//! UDP sockets as programs use them.

use super::datagram_bridge::DatagramBridge;
use super::engine::{Engine, ask};
use super::registry::{Interrupt, Registry};
use super::shared::{IoDirection, Readiness, ReadinessWatch, Ready, SharedState, deadline};
use bytes::Bytes;
use farpace_host::Bind;
use farpace_host::ip::udp::{BindError, IpFields, MAX_PAYLOAD, UdpDatagram, UdpId};
use farpace_units::ByteCount;
use nix::errno::Errno;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Datagrams that wait to be read in the program's part of a socket at most; the host's part holds some more.
const MAX_INCOMING: usize = 256;
/// Datagrams that wait to be sent at most; then sending waits.
const MAX_OUTGOING: usize = 256;

/// A UDP socket of a stack. Dropping it closes it.
pub struct LiveUdpSocket {
    wire: Arc<DatagramWire>,
    id: UdpId,
    local: SocketAddr,
    remote: Mutex<Option<SocketAddr>>,
    nonblocking: AtomicBool,
    timeout: Mutex<Option<Duration>>,
}

/// What a socket and the station share.
pub(super) struct DatagramWire {
    pub shared: SharedState<DatagramQueue>,
    engine: Arc<dyn Engine>,
    registry: Arc<Registry>,
    place: u64,
}

#[derive(Default)]
pub(super) struct DatagramQueue {
    incoming: VecDeque<UdpDatagram>,
    pub outgoing: VecDeque<OutgoingDatagram>,
    pub kicked: bool,
    /// The host's socket holds more than was moved.
    starved: bool,
    arrivals: u64,
    reads: u64,
    /// The program reads no more, or writes no more.
    deaf: bool,
    mute: bool,
    pub closed: bool,
    /// The end of the socket.
    pub error: Option<Errno>,
    /// What the network said of a datagram; told once.
    pub trouble: Option<Errno>,
}

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// Where to.
    pub to: SocketAddr,
    /// From which address of the host; none: that of the socket, or the host chooses.
    pub from: Option<IpAddr>,
    /// What its IP header says.
    pub ip: IpFields,
    /// What it carries.
    pub payload: Bytes,
}

impl DatagramQueue {
    pub fn has_room(&mut self) -> bool {
        self.starved = self.incoming.len() >= MAX_INCOMING;
        !self.starved
    }
    pub fn push(&mut self, datagram: UdpDatagram) {
        self.incoming.push_back(datagram);
        self.arrivals += 1;
    }
}

impl Ready for DatagramQueue {
    fn readiness(&self) -> Readiness {
        let failed = self.error.is_some();
        let troubled = self.trouble.is_some();
        Readiness {
            readable: failed || troubled || self.closed || self.deaf || !self.incoming.is_empty(),
            writable: failed || troubled || self.closed || self.outgoing.len() < MAX_OUTGOING,
            read_ended: self.closed || self.deaf,
            over: self.closed || (self.deaf && self.mute),
            // What passes leaves the socket as it is, and so must not look like its end.
            failed,
            urgent: false,
            arrivals: self.arrivals + u64::from(troubled),
            reads: self.reads,
        }
    }
}

impl Interrupt for DatagramWire {
    fn interrupt(&self) {
        self.shared.interrupt();
    }
}

impl Drop for DatagramWire {
    fn drop(&mut self) {
        self.registry.leave(self.place);
    }
}

impl DatagramWire {
    /// Bytes that wait to be read, and to be sent.
    pub fn waiting(&self) -> (usize, usize) {
        self.shared.with(|box_| {
            let outgoing = box_.outgoing.iter().map(|datagram| datagram.payload.len()).sum();
            (box_.incoming.iter().map(|datagram| datagram.payload.len()).sum(), outgoing)
        })
    }
    fn kick(self: &Arc<Self>, id: UdpId) {
        let ended = self.engine.run(Box::new(move |host, cx| host.run_udp(id, cx))).is_err();
        if ended {
            self.shared.with(|box_| (box_.closed, box_.error) = (true, Some(Errno::ENETDOWN)));
        }
    }
}

impl LiveUdpSocket {
    pub(super) fn open(engine: &Arc<dyn Engine>, registry: &Arc<Registry>, bind: Bind) -> io::Result<Self> {
        let place = registry.reserve();
        let (engine, registry) = (engine.clone(), registry.clone());
        let wire = Arc::new(DatagramWire {
            shared: SharedState::new(DatagramQueue::default()),
            engine,
            registry,
            place,
        });
        let weak: Weak<dyn Interrupt> = Arc::<DatagramWire>::downgrade(&wire);
        wire.registry.enter(place, weak);
        let bridge = DatagramBridge(wire.clone());
        let opened = ask(&*wire.engine, move |host, _| {
            let id = host.open_udp_at(bind, Box::new(bridge)).map_err(|error| match error {
                BindError::Taken(_) => Errno::EADDRINUSE,
                BindError::NotOurs(_) | BindError::Zero | BindError::NoneLeft => Errno::EADDRNOTAVAIL,
            })?;
            let local = host.udp_local(id).unwrap_or(SocketAddr::new(bind.address, bind.port));
            Ok::<_, Errno>((id, local))
        })?;
        let (id, local) = opened?;
        Ok(LiveUdpSocket {
            wire,
            id,
            local,
            remote: Mutex::default(),
            nonblocking: AtomicBool::new(false),
            timeout: Mutex::default(),
        })
    }

    fn call<T>(&self, way: IoDirection, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let until = deadline(*self.timeout.lock().unwrap_or_else(PoisonError::into_inner));
        loop {
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.nonblocking.load(Ordering::Relaxed) {
                        return Err(error);
                    }
                }
                done => return done,
            }
            self.wire.shared.wait(way, until)?;
        }
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// Message too long; not an address to send to; network down; what the network said of an earlier one.
    pub fn send_to(&self, payload: &[u8], to: SocketAddr) -> io::Result<usize> {
        let payload = Bytes::copy_from_slice(payload);
        let len = payload.len();
        self.send_with(OutgoingDatagram { to, from: None, ip: IpFields::default(), payload }).map(|()| len)
    }
    /// The same with more to say.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to).
    pub fn send_with(&self, datagram: OutgoingDatagram) -> io::Result<()> {
        let to = datagram.to;
        if datagram.payload.len() > MAX_PAYLOAD {
            return Err(Errno::EMSGSIZE.into());
        }
        if to.port() == 0 || to.ip().is_unspecified() {
            return Err(Errno::EINVAL.into());
        }
        let any = self.local.ip().is_unspecified() && self.local.is_ipv6();
        if to.is_ipv4() != self.local.is_ipv4() && !any {
            return Err(Errno::EAFNOSUPPORT.into());
        }
        self.call(IoDirection::Out, || {
            let kick = self.wire.shared.with(|box_| {
                if let Some(error) = box_.error.or_else(|| box_.trouble.take()) {
                    return Err(error.into());
                }
                if box_.mute {
                    return Err(Errno::EPIPE.into());
                }
                if box_.outgoing.len() >= MAX_OUTGOING {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                box_.outgoing.push_back(datagram.clone());
                io::Result::Ok(!std::mem::replace(&mut box_.kicked, true))
            })?;
            if kick {
                self.wire.kick(self.id);
            }
            Ok(())
        })
    }
    /// Sends a datagram to where the socket is connected.
    ///
    /// # Errors
    /// Destination required; else as [`send_to`](Self::send_to).
    pub fn send(&self, payload: &[u8]) -> io::Result<usize> {
        let to = self.peer_addr().ok_or(Errno::EDESTADDRREQ)?;
        self.send_to(payload, to)
    }
    /// The next datagram and who it is from. What does not fit into `buffer` is lost.
    ///
    /// # Errors
    /// `WouldBlock`: there is none and the socket does not wait (any longer). Network down.
    /// [`Interrupted`](super::Interrupted).
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let UdpDatagram { from, payload, .. } = self.recv()?;
        Ok((copy(&payload, buffer), from))
    }
    /// The same; the datagram stays.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let UdpDatagram { from, payload, .. } = self.peek()?;
        Ok((copy(&payload, buffer), from))
    }
    /// The next datagram, without copying.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn recv_bytes(&self) -> io::Result<(Bytes, SocketAddr)> {
        self.recv().map(|datagram| (datagram.payload, datagram.from))
    }
    /// The next datagram with all that is known of it.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn recv(&self) -> io::Result<UdpDatagram> {
        self.call(IoDirection::In, || self.next(true))
    }
    /// The same; the datagram stays.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn peek(&self) -> io::Result<UdpDatagram> {
        self.call(IoDirection::In, || self.next(false))
    }
    /// The error that waits, once (SO_ERROR).
    pub fn take_error(&self) -> Option<io::Error> {
        self.wire.shared.with(|box_| box_.trouble.take().or(box_.error)).map(Into::into)
    }
    /// Its place in the host.
    pub fn id(&self) -> UdpId {
        self.id
    }

    fn next(&self, take: bool) -> io::Result<UdpDatagram> {
        let only = self.peer_addr();
        let (next, kick) = self.wire.shared.with(|box_| {
            // Of a connected socket nobody else is heard.
            while box_.incoming.front().is_some_and(|first| only.is_some_and(|only| only != first.from)) {
                box_.incoming.pop_front();
            }
            box_.reads += 1;
            let next = if take { box_.incoming.pop_front() } else { box_.incoming.front().cloned() };
            let kick = box_.starved && box_.incoming.len() <= MAX_INCOMING / 2;
            box_.starved &= !kick;
            if let Some(trouble) = box_.trouble.take() {
                // As in Linux it comes before what waits, which stays.
                if let (Some(datagram), true) = (next, take) {
                    box_.incoming.push_front(datagram);
                }
                return (Err(trouble.into()), kick);
            }
            (next.ok_or_else(|| box_.error.map_or(io::ErrorKind::WouldBlock.into(), Into::into)), kick)
        });
        if kick {
            self.wire.kick(self.id);
        }
        next
    }

    /// From now on the socket hears `remote` alone, [`send`](Self::send) goes there, and another socket can have its port;
    /// none: as before.
    pub fn connect(&self, remote: Option<SocketAddr>) {
        *self.remote.lock().unwrap_or_else(PoisonError::into_inner) = remote;
        let id = self.id;
        // Where the host cannot do it, it goes on to hear everybody, and others are left out here; one that has ended has
        // closed the socket.
        let _ = self.wire.engine.run(Box::new(move |host, _| _ = host.connect_udp(id, remote)));
    }
    /// Where it is connected to.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        *self.remote.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Where it is.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
    /// Bytes of the datagram that comes next.
    pub fn available(&self) -> usize {
        self.wire.shared.with(|box_| box_.incoming.front().map_or(0, |first| first.payload.len()))
    }
    /// What may wait in it to be read, in bytes.
    pub fn set_receive_buffer(&self, bytes: u64) {
        let id = self.id;
        let _ = self.wire.engine.run(Box::new(move |host, _| host.set_udp_buffer(id, ByteCount::new(bytes))));
    }
    /// Changes whom it bears beside it at its port (SO_REUSEADDR, SO_REUSEPORT).
    pub fn set_reuse(&self, reuse_address: bool, reuse_port: bool) {
        let id = self.id;
        let _ =
            self.wire.engine.run(Box::new(move |host, _| host.set_udp_reuse(id, reuse_address, reuse_port)));
    }
    /// Ends one direction or both for the program; the network does not hear of it.
    pub fn shutdown(&self, how: Shutdown) {
        self.wire.shared.with(|box_| {
            box_.deaf |= matches!(how, Shutdown::Read | Shutdown::Both);
            box_.mute |= matches!(how, Shutdown::Write | Shutdown::Both);
        });
    }
    /// Its program reads no more.
    pub fn is_deaf(&self) -> bool {
        self.wire.shared.with(|box_| box_.deaf)
    }
    /// Bytes that wait to be read, and to be sent.
    pub fn waiting(&self) -> (usize, usize) {
        self.wire.waiting()
    }
    /// Calls that would wait fail with `WouldBlock` instead.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }
    /// Calls fail with `WouldBlock` when they have waited so long.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }
    /// Everybody who waits in it now gets [`Interrupted`](super::Interrupted).
    pub fn interrupt(&self) {
        self.wire.shared.interrupt();
    }
    /// What it lets its program do without waiting.
    pub fn readiness(&self) -> Readiness {
        self.wire.shared.readiness()
    }
    #[cfg(feature = "tokio")]
    pub(super) fn shared(&self) -> &SharedState<DatagramQueue> {
        &self.wire.shared
    }
    /// From now on `watch` is told of its readiness.
    pub fn watch(&self, watch: Box<dyn ReadinessWatch>) {
        self.wire.shared.watch(watch);
    }
    /// From now on nobody is told.
    pub fn unwatch(&self) {
        self.wire.shared.unwatch();
    }
}

fn copy(payload: &[u8], buffer: &mut [u8]) -> usize {
    let len = payload.len().min(buffer.len());
    buffer[..len].copy_from_slice(&payload[..len]);
    len
}

impl Drop for LiveUdpSocket {
    fn drop(&mut self) {
        let id = self.id;
        // An engine that has ended has closed it.
        let _ = self.wire.engine.run(Box::new(move |host, _| host.close_udp(id)));
    }
}
