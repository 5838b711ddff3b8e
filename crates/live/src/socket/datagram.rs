//! UDP sockets for programs.

use super::datagram_bridge::DatagramBridge;
use super::datagram_wire::{DatagramWire, MAX_INCOMING, MAX_OUTGOING, OutgoingDatagram};
use super::engine::{Engine, call_host};
use super::registry::Registry;
use super::shared::{IoDirection, Readiness, ReadinessWatch, deadline};
#[cfg(feature = "tokio")]
use super::{datagram_wire::DatagramQueue, shared::SharedState};
use bytes::Bytes;
use farpace_host::Bind;
use farpace_host::ip::udp::{BindError, IpFields, MAX_PAYLOAD, UdpDatagram, UdpId};
use farpace_units::ByteCount;
use nix::errno::Errno;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A UDP socket of a stack. Dropping it closes it.
pub struct LiveUdpSocket {
    wire: Arc<DatagramWire>,
    id: UdpId,
    local: SocketAddr,
    remote: Mutex<Option<SocketAddr>>,
    nonblocking: AtomicBool,
    timeout: Mutex<Option<Duration>>,
}

impl LiveUdpSocket {
    pub(super) fn open(engine: &Arc<dyn Engine>, registry: &Arc<Registry>, bind: Bind) -> io::Result<Self> {
        let wire = DatagramWire::new(engine, registry);
        let bridge = DatagramBridge(wire.clone());
        let opened = call_host(wire.engine(), move |host, _| {
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

    fn call<T>(&self, direction: IoDirection, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
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
            self.wire.shared.wait(direction, until)?;
        }
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// Message too long; invalid destination; network down; a pending error of the network.
    pub fn send_to(&self, payload: &[u8], to: SocketAddr) -> io::Result<usize> {
        let payload = Bytes::copy_from_slice(payload);
        let len = payload.len();
        self.send_with(OutgoingDatagram { to, from: None, ip: IpFields::default(), payload }).map(|()| len)
    }
    /// Sends a datagram with more fields.
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
                if let Some(error) = box_.error.or_else(|| box_.soft_error.take()) {
                    return Err(error.into());
                }
                if box_.write_shutdown {
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
    /// Sends a datagram to the connected peer.
    ///
    /// # Errors
    /// Destination required; otherwise as [`send_to`](Self::send_to).
    pub fn send(&self, payload: &[u8]) -> io::Result<usize> {
        let to = self.peer_addr().ok_or(Errno::EDESTADDRREQ)?;
        self.send_to(payload, to)
    }
    /// Receives the next datagram, with the address of its sender. The part that does not fit into `buffer`
    /// is discarded.
    ///
    /// # Errors
    /// `WouldBlock`: there is no datagram, and the socket is non-blocking or the timeout has expired. Network
    /// down. [`Interrupted`](super::Interrupted).
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let UdpDatagram { from, payload, .. } = self.recv()?;
        Ok((copy(&payload, buffer), from))
    }
    /// Like [`recv_from`](Self::recv_from), but keeps the datagram.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let UdpDatagram { from, payload, .. } = self.peek()?;
        Ok((copy(&payload, buffer), from))
    }
    /// Receives the next datagram, without a copy.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn recv_bytes(&self) -> io::Result<(Bytes, SocketAddr)> {
        self.recv().map(|datagram| (datagram.payload, datagram.from))
    }
    /// Receives the next datagram with all its metadata.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn recv(&self) -> io::Result<UdpDatagram> {
        self.call(IoDirection::In, || self.next(true))
    }
    /// Like [`recv`](Self::recv), but keeps the datagram.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn peek(&self) -> io::Result<UdpDatagram> {
        self.call(IoDirection::In, || self.next(false))
    }
    /// The pending error; returned once (SO_ERROR).
    pub fn take_error(&self) -> Option<io::Error> {
        self.wire.shared.with(|box_| box_.soft_error.take().or(box_.error)).map(Into::into)
    }
    /// Its identifier in the host.
    pub fn id(&self) -> UdpId {
        self.id
    }

    fn next(&self, take: bool) -> io::Result<UdpDatagram> {
        let only = self.peer_addr();
        let (next, kick) = self.wire.shared.with(|box_| {
            // A connected socket receives only from its peer.
            while box_.incoming.front().is_some_and(|first| only.is_some_and(|only| only != first.from)) {
                box_.incoming.pop_front();
            }
            box_.reads += 1;
            let next = if take { box_.incoming.pop_front() } else { box_.incoming.front().cloned() };
            let kick = box_.starved && box_.incoming.len() <= MAX_INCOMING / 2;
            box_.starved &= !kick;
            if let Some(soft_error) = box_.soft_error.take() {
                // As in Linux, the error precedes queued datagrams, which stay.
                if let (Some(datagram), true) = (next, take) {
                    box_.incoming.push_front(datagram);
                }
                return (Err(soft_error.into()), kick);
            }
            (next.ok_or_else(|| box_.error.map_or(io::ErrorKind::WouldBlock.into(), Into::into)), kick)
        });
        if kick {
            self.wire.kick(self.id);
        }
        next
    }

    /// Connects the socket: it receives from `remote` only, [`send`](Self::send) uses it as destination, and
    /// another socket can use its port. None: disconnects it.
    pub fn connect(&self, remote: Option<SocketAddr>) {
        *self.remote.lock().unwrap_or_else(PoisonError::into_inner) = remote;
        let id = self.id;
        // If the host cannot connect it, the host's socket still receives from all, and others are filtered
        // here; an ended stack has closed the socket.
        let _ = self.wire.engine().run(Box::new(move |host, _| _ = host.connect_udp(id, remote)));
    }
    /// The connected peer.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        *self.remote.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Its local address and port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }
    /// Length of the next datagram in bytes.
    pub fn available(&self) -> usize {
        self.wire.shared.with(|box_| box_.incoming.front().map_or(0, |first| first.payload.len()))
    }
    /// Sets the receive buffer, in bytes.
    pub fn set_receive_buffer(&self, bytes: u64) {
        let id = self.id;
        let _ =
            self.wire.engine().run(Box::new(move |host, _| host.set_udp_buffer(id, ByteCount::new(bytes))));
    }
    /// Changes SO_REUSEADDR and SO_REUSEPORT.
    pub fn set_reuse(&self, reuse_address: bool, reuse_port: bool) {
        let id = self.id;
        let _ = self
            .wire
            .engine()
            .run(Box::new(move |host, _| host.set_udp_reuse(id, reuse_address, reuse_port)));
    }
    /// Ends one or both directions for the program; nothing is sent.
    pub fn shutdown(&self, how: Shutdown) {
        self.wire.shared.with(|box_| {
            box_.read_shutdown |= matches!(how, Shutdown::Read | Shutdown::Both);
            box_.write_shutdown |= matches!(how, Shutdown::Write | Shutdown::Both);
        });
    }
    /// True after the end of reading.
    pub fn is_read_shutdown(&self) -> bool {
        self.wire.shared.with(|box_| box_.read_shutdown)
    }
    /// Bytes to read, and bytes to send.
    pub fn waiting(&self) -> (usize, usize) {
        self.wire.waiting()
    }
    /// Calls that would wait fail with `WouldBlock` instead.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }
    /// Calls fail with `WouldBlock` after waiting for this time.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }
    /// All threads that wait in the socket get [`Interrupted`](super::Interrupted).
    pub fn interrupt(&self) {
        self.wire.shared.interrupt();
    }
    /// The operations that are possible without waiting.
    pub fn readiness(&self) -> Readiness {
        self.wire.shared.readiness()
    }
    #[cfg(feature = "tokio")]
    pub(super) fn shared(&self) -> &SharedState<DatagramQueue> {
        &self.wire.shared
    }
    /// Sets the watch for changes of the readiness.
    pub fn watch(&self, watch: Box<dyn ReadinessWatch>) {
        self.wire.shared.watch(watch);
    }
    /// Removes the watch.
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
        // An ended engine has closed it.
        let _ = self.wire.engine().run(Box::new(move |host, _| host.close_udp(id)));
    }
}
