//! A socket in all its states, with the calls that change them: bind, listen, accept, connect, shutdown,
//! close.

use super::values::OptionValues;
use super::{address, errno};
use crate::socket::posix::table::Opt;
use crate::socket::{
    BoundSocket, Listening, LiveListener, LiveUdpSocket, Readiness, ReadinessWatch, SocketOptions, Stack,
    Stream,
};
use farpace_host::{Bind, LocalAddress, is_host_address};
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum backlog of a listener (net.core.somaxconn).
const MAX_BACKLOG: i32 = 4096;

/// The state of a socket.
#[derive(Clone)]
pub(super) enum SocketState {
    /// TCP without a connection, perhaps bound.
    Idle,
    /// TCP, listening.
    Listening(Arc<LiveListener>),
    /// TCP: connecting, connected, or ended.
    Stream(Stream),
    /// UDP, not bound yet.
    Unbound,
    /// UDP.
    Datagram(Arc<LiveUdpSocket>),
    /// Closed.
    Closed,
}

/// A socket of a stack with the calls, options and errors of Linux. No call waits: a call that would wait
/// returns `EAGAIN`, and [`watch`](PosixSocket::watch) reports when to retry. It has no descriptor; the users
/// of this type add one.
pub struct PosixSocket {
    pub(super) stack: Stack,
    pub(super) v6: bool,
    pub(super) datagram: bool,
    pub(super) cookie: u64,
    state: Mutex<SocketState>,
    /// The bound port.
    bound: Mutex<Option<Arc<BoundSocket>>>,
    values: Mutex<OptionValues>,
    /// The watch, until there is a stream to watch.
    watch: Mutex<Option<Box<dyn ReadinessWatch>>>,
    /// The connection is being opened or established, and connect(2) has not reported success.
    unreported: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PosixSocket {
    /// socket(2): an AF_INET or AF_INET6 socket of type SOCK_STREAM or SOCK_DGRAM (without flags). Its
    /// connections use `options` by default.
    ///
    /// # Errors
    /// `EAFNOSUPPORT`, `EPROTONOSUPPORT`, `ESOCKTNOSUPPORT`.
    pub fn new(
        stack: Stack,
        domain: i32,
        kind: i32,
        protocol: i32,
        options: SocketOptions,
    ) -> nix::Result<Arc<Self>> {
        use nix::libc;
        let v6 = match domain {
            libc::AF_INET => false,
            libc::AF_INET6 => true,
            _ => return Err(Errno::EAFNOSUPPORT),
        };
        let datagram = match (kind, protocol) {
            (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => false,
            (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => true,
            (libc::SOCK_STREAM | libc::SOCK_DGRAM | libc::SOCK_RAW, _) => return Err(Errno::EPROTONOSUPPORT),
            (1..11, _) => return Err(Errno::ESOCKTNOSUPPORT),
            _ => return Err(Errno::EINVAL),
        };
        let state = if datagram { SocketState::Unbound } else { SocketState::Idle };
        Ok(PosixSocket::with(stack, v6, datagram, state, OptionValues::new(options)))
    }

    fn with(stack: Stack, v6: bool, datagram: bool, state: SocketState, values: OptionValues) -> Arc<Self> {
        static COOKIES: AtomicU64 = AtomicU64::new(1);
        Arc::new(PosixSocket {
            stack,
            v6,
            datagram,
            cookie: COOKIES.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(state),
            bound: Mutex::default(),
            values: Mutex::new(values),
            watch: Mutex::default(),
            unreported: AtomicBool::new(false),
        })
    }

    pub(super) fn state(&self) -> SocketState {
        locked(&self.state).clone()
    }
    pub(super) fn values(&self) -> MutexGuard<'_, OptionValues> {
        locked(&self.values)
    }
    /// True for an IPv6 socket.
    pub const fn is_v6(&self) -> bool {
        self.v6
    }
    /// True for a UDP socket.
    pub const fn is_datagram(&self) -> bool {
        self.datagram
    }
    /// True for a listener.
    pub fn is_listening(&self) -> bool {
        matches!(self.state(), SocketState::Listening(_))
    }
    /// True for a TCP socket that neither listens nor has a connection.
    pub fn is_idle(&self) -> bool {
        matches!(self.state(), SocketState::Idle)
    }
    /// True if no watch is set, neither now nor for a later stream.
    pub fn is_unwatched(&self) -> bool {
        locked(&self.watch).is_none()
    }
    /// True while a connection is being opened.
    pub fn is_connecting(&self) -> bool {
        matches!(self.state(), SocketState::Stream(stream) if stream.is_connecting())
    }
    /// True if its connection has ended, so that connect(2) would begin another.
    pub fn is_over(&self) -> bool {
        matches!(self.state(), SocketState::Stream(stream) if stream.has_ended())
    }
    /// Timeout of receiving calls (SO_RCVTIMEO).
    pub fn receive_timeout(&self) -> Option<std::time::Duration> {
        self.values().receive_timeout
    }
    /// Timeout of sending calls (SO_SNDTIMEO).
    pub fn send_timeout(&self) -> Option<std::time::Duration> {
        self.values().send_timeout
    }
    /// Minimum number of bytes that a receiving call waits for (SO_RCVLOWAT).
    pub fn low_water(&self) -> usize {
        usize::try_from(self.values().get(Opt::ReceiveLow)).unwrap_or(1).max(1)
    }

    /// Sets the watch for changes of the readiness.
    pub fn watch(&self, watch: Box<dyn ReadinessWatch>) {
        *locked(&self.watch) = Some(watch);
        self.hand_on_watch();
    }
    /// Removes the watch.
    pub fn unwatch(&self) {
        drop(locked(&self.watch).take());
        match self.state() {
            SocketState::Listening(listener) => listener.unwatch(),
            SocketState::Stream(stream) => stream.unwatch(),
            SocketState::Datagram(udp) => udp.unwatch(),
            SocketState::Idle | SocketState::Unbound | SocketState::Closed => {}
        }
    }
    fn hand_on_watch(&self) {
        let state = self.state();
        if matches!(state, SocketState::Idle | SocketState::Unbound | SocketState::Closed) {
            return;
        }
        let Some(watch) = locked(&self.watch).take() else { return };
        match state {
            SocketState::Listening(listener) => listener.watch(watch),
            SocketState::Stream(stream) => stream.watch(watch),
            SocketState::Datagram(udp) => udp.watch(watch),
            SocketState::Idle | SocketState::Unbound | SocketState::Closed => {}
        }
    }
    /// The operations that are possible without waiting.
    pub fn readiness(&self) -> Readiness {
        match self.state() {
            SocketState::Listening(listener) => listener.readiness(),
            SocketState::Stream(stream) => stream.readiness(),
            SocketState::Datagram(udp) => udp.readiness(),
            // As in Linux: both directions of an unconnected socket have ended.
            SocketState::Idle => Readiness { writable: true, over: true, ..Readiness::default() },
            SocketState::Unbound => Readiness { writable: true, ..Readiness::default() },
            SocketState::Closed => {
                Readiness { readable: true, writable: true, over: true, ..Readiness::default() }
            }
        }
    }

    fn any(&self) -> SocketAddr {
        let ip = if self.v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
        SocketAddr::new(ip, 0)
    }
    /// The address that a program means: IPv4 addresses on IPv6 sockets are mapped (RFC 4291 §2.5.5.2).
    pub(super) fn inward(&self, address: SocketAddr) -> nix::Result<SocketAddr> {
        let ip = address.ip().to_canonical();
        match (self.v6, ip.is_ipv4()) {
            (true, true) if self.values().is_on(Opt::V6Only) => Err(Errno::ENETUNREACH),
            _ => Ok(SocketAddr::new(ip, address.port())),
        }
    }
    /// The address as reported to the program: the inverse of `inward`.
    pub fn outward(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(v4) if self.v6 => {
                let any = v4.is_unspecified() && address.port() == 0;
                let ip = if any { Ipv6Addr::UNSPECIFIED } else { v4.to_ipv6_mapped() };
                SocketAddr::new(ip.into(), address.port())
            }
            _ => address,
        }
    }

    fn bind_for(&self, at: SocketAddr) -> Bind {
        let values = self.values();
        let all = at.ip().is_unspecified();
        let freely = values.is_on(Opt::FreeBind) || values.is_on(Opt::V6FreeBind);
        Bind {
            address: at.ip(),
            port: at.port(),
            both_families: self.v6 && all && !values.is_on(Opt::V6Only),
            reuse_address: values.is_on(Opt::ReuseAddress),
            reuse_port: values.is_on(Opt::ReusePort),
            // Linux also binds to multicast and broadcast addresses; only datagrams can arrive there.
            any_address: freely || at.ip().is_multicast() || at.ip() == IpAddr::V4(Ipv4Addr::BROADCAST),
        }
    }

    /// bind(2).
    ///
    /// # Errors
    /// As in its manual page.
    pub fn bind(&self, to: &[u8]) -> nix::Result<()> {
        let at = match address::family(to) {
            // Old programs do not set the family (inet_bind).
            Some(address::UNSPECIFIED) if !self.v6 && to.len() >= address::V4 && to[4..8] == [0; 4] => {
                let port = to.get(2..4).and_then(|port| port.try_into().ok()).map_or(0, u16::from_be_bytes);
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)
            }
            _ => address::decode(to, self.v6)?,
        };
        match self.state() {
            SocketState::Closed => return Err(Errno::EBADF),
            SocketState::Idle if locked(&self.bound).is_none() => {}
            SocketState::Unbound => {}
            // Linux checks an IPv4 address before the socket (__inet_bind).
            _ if at.is_ipv4() && !at.ip().is_unspecified() && !self.is_local(at.ip()) => {
                return Err(Errno::EADDRNOTAVAIL);
            }
            _ => return Err(Errno::EINVAL),
        }
        let mapped = self.v6 && at.ip().to_canonical().is_ipv4();
        if mapped && self.values().is_on(Opt::V6Only) {
            return Err(Errno::EINVAL);
        }
        if at.is_ipv6() && !mapped && !at.ip().is_unspecified() {
            // As in Linux it is limited to IPv6 from now on (__inet6_bind).
            self.values().put(Opt::V6Only, 1);
        }
        let at = SocketAddr::new(if mapped { at.ip().to_canonical() } else { at.ip() }, at.port());
        if self.datagram { self.open_datagram(at).map(drop) } else { self.take_port(at).map(drop) }
    }
    fn is_local(&self, address: IpAddr) -> bool {
        self.stack.call(move |host, _| host.addresses().contains(&address)).unwrap_or(false)
    }
    fn take_port(&self, at: SocketAddr) -> nix::Result<Arc<BoundSocket>> {
        let bound = Arc::new(self.stack.bind(self.bind_for(at)).map_err(|e| errno(&e))?);
        *locked(&self.bound) = Some(bound.clone());
        Ok(bound)
    }
    fn open_datagram(&self, at: SocketAddr) -> nix::Result<Arc<LiveUdpSocket>> {
        let udp = Arc::new(self.stack.bind_udp_at(self.bind_for(at)).map_err(|e| errno(&e))?);
        udp.set_nonblocking(true);
        let buffer = self.values().buffer(Opt::ReceiveBuffer);
        if let Some(bytes) = buffer {
            udp.set_receive_buffer(bytes);
        }
        *locked(&self.state) = SocketState::Datagram(udp.clone());
        self.hand_on_watch();
        Ok(udp)
    }
    /// Its UDP socket, bound if necessary.
    pub(super) fn udp(&self) -> nix::Result<Arc<LiveUdpSocket>> {
        match self.state() {
            SocketState::Datagram(udp) => Ok(udp),
            SocketState::Unbound => self.open_datagram(self.any()),
            SocketState::Closed => Err(Errno::EBADF),
            SocketState::Idle | SocketState::Listening(_) | SocketState::Stream(_) => Err(Errno::EOPNOTSUPP),
        }
    }

    /// listen(2).
    ///
    /// # Errors
    /// As in its manual page.
    pub fn listen(&self, backlog: i32) -> nix::Result<()> {
        // One more connection than `backlog` may wait, and a negative value means the maximum.
        let max = if (0..MAX_BACKLOG).contains(&backlog) { backlog } else { MAX_BACKLOG };
        let backlog = usize::try_from(max).unwrap_or(0) + 1;
        match self.state() {
            SocketState::Idle => {}
            SocketState::Listening(listener) => {
                listener.retune(Listening { backlog, ..listener.how() });
                return Ok(());
            }
            SocketState::Closed => return Err(Errno::EBADF),
            SocketState::Stream(_) => return Err(Errno::EINVAL),
            SocketState::Unbound | SocketState::Datagram(_) => return Err(Errno::EOPNOTSUPP),
        }
        let bound = locked(&self.bound).clone();
        let bound = bound.map_or_else(|| self.take_port(self.any()), Ok)?;
        let how = Listening { backlog, ..self.listening()? };
        let listener = self.stack.listen_at(bound, how, None).map_err(|e| errno(&e))?;
        let _ = listener.set_nonblocking(true);
        *locked(&self.state) = SocketState::Listening(Arc::new(listener));
        self.hand_on_watch();
        Ok(())
    }

    /// The configuration of the listener.
    fn listening(&self) -> nix::Result<Listening> {
        let values = self.values();
        Ok(Listening {
            config: values.config(self.stack.mtu(), self.v6)?,
            rate_cap: values.rate_cap(),
            cookies: values.options.cookies,
            backlog: 1,
            extra: Some(Arc::new(values.child())),
        })
    }

    /// Applies a changed option to the connection of this socket, or to future connections of this listener.
    pub(super) fn follow_values(&self) -> nix::Result<()> {
        match self.state() {
            SocketState::Listening(listener) => {
                let backlog = listener.how().backlog;
                listener.retune(Listening { backlog, ..self.listening()? });
            }
            SocketState::Stream(stream) => {
                let over_v6 = stream.peer_addr().map_or(self.v6, |peer| peer.is_ipv6());
                let config = self.values().config(self.stack.mtu(), over_v6)?;
                // A connection that has ended is not changed.
                let _ = stream.tune_later(move |connection, _| connection.retune(&config));
            }
            SocketState::Idle | SocketState::Unbound | SocketState::Datagram(_) | SocketState::Closed => {}
        }
        if let Some(bound) = &*locked(&self.bound) {
            let values = self.values();
            bound.set_reuse(values.is_on(Opt::ReuseAddress), values.is_on(Opt::ReusePort));
        }
        Ok(())
    }

    /// accept(2): the next connection, with the address of its peer.
    ///
    /// # Errors
    /// As in its manual page; `EAGAIN`: there is none.
    pub fn accept(&self) -> nix::Result<(Arc<PosixSocket>, SocketAddr)> {
        let listener = match self.state() {
            SocketState::Listening(listener) => listener,
            SocketState::Closed => return Err(Errno::EBADF),
            SocketState::Idle | SocketState::Stream(_) => return Err(Errno::EINVAL),
            SocketState::Unbound | SocketState::Datagram(_) => return Err(Errno::EOPNOTSUPP),
        };
        let (stream, from) = listener.accept().map_err(|e| errno(&e))?;
        let extra = stream.extra().and_then(|extra| extra.downcast::<OptionValues>().ok());
        let values = extra.map_or_else(|| self.values().child(), |values| (*values).clone());
        let socket =
            PosixSocket::with(self.stack.clone(), self.v6, false, SocketState::Stream(stream), values);
        socket.prepare();
        Ok((socket, self.outward(from)))
    }

    /// Prepares a new stream: options that must be set from the beginning.
    fn prepare(&self) {
        let SocketState::Stream(stream) = self.state() else { return };
        let values = self.values();
        let _ = stream.set_nonblocking(true);
        stream.set_linger(values.linger);
        stream.set_low_water(usize::try_from(values.get(Opt::ReceiveLow)).unwrap_or(1));
        stream.set_urgent_inline(values.is_on(Opt::OobInline));
    }

    /// connect(2): `EINPROGRESS` until the connection is established.
    ///
    /// # Errors
    /// As in its manual page.
    pub fn connect(&self, to: &[u8]) -> nix::Result<()> {
        match address::family(to) {
            None => return Err(Errno::EINVAL),
            Some(address::UNSPECIFIED) => return self.disconnect(),
            Some(_) => {}
        }
        let given = address::decode(to, self.v6);
        match self.state() {
            SocketState::Closed => Err(Errno::EBADF),
            SocketState::Idle => self.begin(self.reachable(given?)?),
            SocketState::Stream(stream) if stream.is_connecting() => Err(Errno::EALREADY),
            // An established connection stays, from the call that reports success on.
            SocketState::Stream(stream) if !stream.has_failed_to_open() && !self.report_open() => {
                Err(Errno::EISCONN)
            }
            SocketState::Stream(stream) if !stream.has_ended() => Ok(()),
            // A connection that was not established, or ended before any call reported it, can be opened
            // again from the next call on.
            SocketState::Stream(stream) => {
                let error = stream.take_error().map_or(Errno::ECONNABORTED, |error| errno(&error));
                self.end_failed(error)
            }
            SocketState::Listening(_) => Err(Errno::EISCONN),
            SocketState::Unbound | SocketState::Datagram(_) => {
                let to = self.inward(given?)?;
                if self.stack.is_broadcast(to.ip()) && !self.values().is_on(Opt::Broadcast) {
                    return Err(Errno::EACCES);
                }
                if !is_host_address(to.ip()) && !to.ip().is_multicast() {
                    let all = to.ip() == IpAddr::V4(Ipv4Addr::BROADCAST);
                    return Err(if all { Errno::EACCES } else { Errno::ENETUNREACH });
                }
                self.udp()?.connect(Some(to));
                Ok(())
            }
        }
    }
    /// The error of a connection that was not established; the socket returns to its former state.
    fn end_failed(&self, error: Errno) -> nix::Result<()> {
        self.forget_stream();
        Err(error)
    }
    /// Returns to the former state after a connection was not established and its error was fetched.
    pub fn forget_failed(&self) {
        if matches!(self.state(), SocketState::Stream(stream) if stream.has_failed_to_open()) {
            self.forget_stream();
        }
    }
    fn forget_stream(&self) {
        let mut state = locked(&self.state);
        if matches!(&*state, SocketState::Stream(_)) {
            *state = SocketState::Idle;
        }
    }
    fn reachable(&self, to: SocketAddr) -> nix::Result<SocketAddr> {
        if self.values().is_on(Opt::BindToIfIndex) {
            return Err(Errno::ENETUNREACH);
        }
        self.inward(to)
    }
    /// Reports success of connect(2) once: true if the connection is established and no call has reported it.
    pub fn report_open(&self) -> bool {
        self.unreported.swap(false, Ordering::AcqRel)
    }
    fn begin(&self, to: SocketAddr) -> nix::Result<()> {
        let own = locked(&self.bound).as_ref().map(|bound| bound.at());
        let values = self.values().clone();
        let config = values.config(self.stack.mtu(), to.is_ipv6())?;
        let from = LocalAddress {
            address: own.map(|own| own.ip()).filter(|ip| !ip.is_unspecified()),
            port: own.map_or(0, |own| own.port()),
            reuse_address: values.is_on(Opt::ReuseAddress),
        };
        if from.address.is_some_and(|ip| ip.is_ipv4() != to.is_ipv4()) {
            return Err(if to.is_ipv4() { Errno::ENETUNREACH } else { Errno::EINVAL });
        }
        let stream = self.stack.begin_connect_from(from, to, config, values.rate_cap());
        let stream = stream.map_err(|e| errno(&e))?;
        *locked(&self.state) = SocketState::Stream(stream);
        self.unreported.store(true, Ordering::Release);
        self.prepare();
        self.hand_on_watch();
        Err(Errno::EINPROGRESS)
    }
    /// connect(2) to AF_UNSPEC: a TCP connection is aborted, a UDP socket is disconnected.
    fn disconnect(&self) -> nix::Result<()> {
        match self.state() {
            SocketState::Closed => return Err(Errno::EBADF),
            SocketState::Datagram(udp) => udp.connect(None),
            SocketState::Stream(stream) => {
                stream.abort();
                self.forget_stream();
            }
            SocketState::Listening(_) => *locked(&self.state) = SocketState::Idle,
            SocketState::Idle | SocketState::Unbound => {}
        }
        Ok(())
    }

    /// Its stream.
    pub(super) fn stream(&self) -> nix::Result<Stream> {
        match self.state() {
            SocketState::Stream(stream) => Ok(stream),
            SocketState::Idle | SocketState::Listening(_) => Err(Errno::ENOTCONN),
            SocketState::Closed => Err(Errno::EBADF),
            SocketState::Unbound | SocketState::Datagram(_) => Err(Errno::EOPNOTSUPP),
        }
    }

    /// shutdown(2): SHUT_RD, SHUT_WR or SHUT_RDWR.
    ///
    /// # Errors
    /// As in its manual page.
    pub fn shutdown(&self, how: i32) -> nix::Result<()> {
        let how = match how {
            nix::libc::SHUT_RD => Shutdown::Read,
            nix::libc::SHUT_WR => Shutdown::Write,
            nix::libc::SHUT_RDWR => Shutdown::Both,
            _ => return Err(Errno::EINVAL),
        };
        if matches!(self.state(), SocketState::Stream(stream) if !stream.is_connecting()) {
            // In Linux this counts as a report of success (inet_shutdown).
            self.report_open();
        }
        match self.state() {
            SocketState::Closed => Err(Errno::EBADF),
            SocketState::Idle | SocketState::Unbound => Err(Errno::ENOTCONN),
            SocketState::Listening(_) if how == Shutdown::Write => Ok(()),
            SocketState::Listening(_) => self.disconnect(),
            SocketState::Stream(stream) if stream.is_connecting() => {
                stream.abort();
                self.forget_stream();
                Ok(())
            }
            SocketState::Stream(stream) => stream.shutdown(how).map_err(|e| errno(&e)),
            SocketState::Datagram(udp) => match udp.peer_addr() {
                Some(_) => {
                    udp.shutdown(how);
                    Ok(())
                }
                None => Err(Errno::ENOTCONN),
            },
        }
    }

    /// close(2). `wait`: SO_LINGER may make it wait.
    pub fn close(&self, wait: bool) {
        self.unwatch();
        let state = std::mem::replace(&mut *locked(&self.state), SocketState::Closed);
        if let SocketState::Stream(stream) = state {
            if !wait {
                let now = self.values().linger.filter(|linger| linger.is_zero());
                stream.set_linger(now);
            }
            let _ = stream.close();
        }
        drop(locked(&self.bound).take());
    }

    /// getsockname(2).
    pub fn local(&self) -> SocketAddr {
        let bound = locked(&self.bound).as_ref().map(|bound| bound.at());
        let address = match self.state() {
            SocketState::Stream(stream) => stream.local_addr().ok().or(bound),
            SocketState::Datagram(udp) => Some(self.stack.local_of(&udp)),
            SocketState::Idle | SocketState::Listening(_) | SocketState::Unbound | SocketState::Closed => {
                bound
            }
        };
        match address {
            Some(address) if address.ip().is_unspecified() => {
                SocketAddr::new(self.any().ip(), address.port())
            }
            Some(address) => self.outward(address),
            None => self.any(),
        }
    }
    /// getpeername(2).
    ///
    /// # Errors
    /// `ENOTCONN`.
    pub fn peer(&self) -> nix::Result<SocketAddr> {
        let peer = match self.state() {
            SocketState::Stream(stream) if !stream.is_connecting() && !stream.has_ended() => {
                stream.peer_addr().ok()
            }
            SocketState::Datagram(udp) => udp.peer_addr(),
            SocketState::Closed => return Err(Errno::EBADF),
            _ => None,
        };
        peer.map(|peer| self.outward(peer)).ok_or(Errno::ENOTCONN)
    }
    /// The pending error; returned once (SO_ERROR).
    pub fn take_error(&self) -> i32 {
        let error = match self.state() {
            SocketState::Stream(stream) => stream.take_error().or_else(|| stream.take_soft_error()),
            SocketState::Datagram(udp) => udp.take_error(),
            SocketState::Idle | SocketState::Listening(_) | SocketState::Unbound | SocketState::Closed => {
                None
            }
        };
        error.map_or(0, |error| errno(&error) as i32)
    }
    /// The stack of the socket.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }
}

impl Drop for PosixSocket {
    fn drop(&mut self) {
        self.close(false);
    }
}
