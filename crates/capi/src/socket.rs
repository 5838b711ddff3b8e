//! One socket of a C program, in all its states. Nothing here waits.

use crate::choices::Choices;
use crate::descriptor::{Mirror, pair};
use crate::ffi::{identity, put_at};
use crate::home::Home;
use crate::table;
use farpace_live::socket::{Listener, Stream, UdpSocket, Watch};
use nix::errno::Errno;
use nix::sys::socket::SockFlag;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a socket is by now.
#[derive(Clone)]
pub enum State {
    /// TCP, perhaps bound.
    Fresh(Option<SocketAddr>),
    /// TCP, listening.
    Listening(Arc<Listener>),
    /// TCP, connecting or connected.
    Stream(Stream),
    /// UDP, not bound yet.
    Unbound,
    /// UDP.
    Datagram(Arc<UdpSocket>),
    /// Closed.
    Gone,
}

/// A socket.
pub struct Socket {
    /// Whose it is.
    pub home: Arc<Home>,
    /// It is an IPv6 socket.
    pub v6: bool,
    state: Mutex<State>,
    choices: Mutex<Choices>,
    /// Until somebody has something to show.
    link: Mutex<Option<OwnedFd>>,
    gone: Arc<AtomicBool>,
    user: RawFd,
    inode: u64,
}

/// What an error of the sockets is in C.
pub fn errno(error: &io::Error) -> Errno {
    if let Some(code) = error.raw_os_error() {
        return Errno::from_raw(code);
    }
    match error.kind() {
        io::ErrorKind::WouldBlock => Errno::EAGAIN,
        io::ErrorKind::TimedOut => Errno::ETIMEDOUT,
        io::ErrorKind::InvalidInput => Errno::EINVAL,
        io::ErrorKind::BrokenPipe => Errno::EPIPE,
        _ if farpace_live::socket::Interrupted::is(error) => Errno::EINTR,
        _ => Errno::EIO,
    }
}

impl Socket {
    /// A new socket and its descriptor, which is `at` if that is given.
    pub fn open(
        home: Arc<Home>,
        v6: bool,
        state: State,
        choices: Choices,
        flags: SockFlag,
        at: Option<RawFd>,
    ) -> nix::Result<RawFd> {
        let (mut user, link) = pair(flags)?;
        if let Some(at) = at {
            user = put_at(user, at, flags.contains(SockFlag::SOCK_CLOEXEC))?;
        }
        let fd = user.as_raw_fd();
        let inode = identity(fd).ok_or(Errno::EMFILE)?;
        home.notice(&link, fd)?;
        let socket = Socket {
            home,
            v6,
            state: Mutex::new(state),
            choices: Mutex::new(choices),
            link: Mutex::new(Some(link)),
            gone: Arc::new(AtomicBool::new(false)),
            user: fd,
            inode,
        };
        let socket = Arc::new(socket);
        match socket.state() {
            State::Stream(stream) => socket.show(|mirror| stream.watch(mirror)),
            State::Datagram(udp) => socket.show(|mirror| udp.watch(mirror)),
            _ => {}
        }
        table::put(user.into_raw_fd(), socket);
        Ok(fd)
    }

    /// What it is now.
    pub fn state(&self) -> State {
        self.lock().clone()
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Its options.
    pub fn choices(&self) -> MutexGuard<'_, Choices> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn show(&self, watch: impl FnOnce(Box<dyn Watch>)) {
        if let Some(link) = self.link.lock().unwrap_or_else(PoisonError::into_inner).take() {
            watch(Box::new(Mirror::new(self.user, link, self.gone.clone())));
        }
    }

    /// Its end cannot be seen, because its own end shows as one.
    pub fn is_blind(&self) -> bool {
        match self.state() {
            State::Stream(stream) => stream.readiness().over || stream.readiness().failed,
            State::Listening(listener) => listener.readiness().over,
            State::Datagram(udp) => udp.readiness().over,
            State::Gone => true,
            State::Fresh(_) | State::Unbound => false,
        }
    }
    /// The descriptor still is that of this socket.
    pub fn is_at(&self, fd: RawFd) -> bool {
        identity(fd) == Some(self.inode)
    }
    /// The program has no use for it any more.
    pub fn leave(&self) {
        self.gone.store(true, Ordering::Release);
        let state = std::mem::replace(&mut *self.lock(), State::Gone);
        match state {
            State::Stream(stream) => {
                if self.home.driven {
                    // Waiting would be for ever.
                    let linger = self.choices().options.linger.filter(|linger| linger.is_zero());
                    stream.set_linger(linger);
                }
                let _ = stream.close();
            }
            other => drop(other),
        }
        self.link.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn any(&self) -> SocketAddr {
        let ip = if self.v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
        SocketAddr::new(ip, 0)
    }
    /// What the program means by an address: on IPv6 sockets IPv4 addresses are mapped (RFC 4291 §2.5.5.2).
    pub fn inward(&self, address: SocketAddr) -> nix::Result<SocketAddr> {
        let ip = address.ip().to_canonical();
        match (self.v6, address.is_ipv6(), ip.is_ipv4()) {
            (true, true, true) if self.choices().v6_only => Err(Errno::ENETUNREACH),
            (true, true, true) => Ok(SocketAddr::new(ip, address.port())),
            (v6, is_v6, _) if v6 == is_v6 => Ok(address),
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }
    /// The same the other way round: what the program is told.
    pub fn outward(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(v4) if self.v6 => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
            _ => address,
        }
    }

    /// bind(2).
    pub fn bind(&self, at: SocketAddr) -> nix::Result<()> {
        let at = self.inward(at)?;
        match self.state() {
            State::Fresh(None) => {
                let ours = self.home.stack.call(|host, _| host.addresses().to_vec());
                if !at.ip().is_unspecified() && !ours.map_err(|e| errno(&e))?.contains(&at.ip()) {
                    return Err(Errno::EADDRNOTAVAIL);
                }
                *self.lock() = State::Fresh(Some(at));
                Ok(())
            }
            State::Unbound => self.bind_udp(self.heard(at)?),
            State::Gone => Err(Errno::EBADF),
            _ => Err(Errno::EINVAL),
        }
    }
    /// Servers bind UDP sockets to all IPv6 addresses and mean all of both families. A socket of the host has one: on a host without
    /// IPv6 that is IPv4.
    fn heard(&self, at: SocketAddr) -> nix::Result<SocketAddr> {
        if !at.is_ipv6() || !at.ip().is_unspecified() || self.choices().v6_only {
            return Ok(at);
        }
        let has_v6 = self.home.stack.call(|host, _| host.addresses().iter().any(IpAddr::is_ipv6));
        match has_v6.map_err(|e| errno(&e))? {
            true => Ok(at),
            false => Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port())),
        }
    }
    fn bind_udp(&self, at: SocketAddr) -> nix::Result<()> {
        let udp = Arc::new(self.home.stack.bind_udp(at).map_err(|e| errno(&e))?);
        udp.set_nonblocking(true);
        self.show(|mirror| udp.watch(mirror));
        *self.lock() = State::Datagram(udp);
        Ok(())
    }
    /// listen(2).
    pub fn listen(&self, backlog: i32) -> nix::Result<()> {
        let at = match self.state() {
            State::Fresh(at) => at.filter(|at| at.port() != 0).ok_or(Errno::EINVAL)?,
            State::Listening(_) => return Ok(()),
            State::Gone => return Err(Errno::EBADF),
            State::Stream(_) => return Err(Errno::EINVAL),
            State::Unbound | State::Datagram(_) => return Err(Errno::EOPNOTSUPP),
        };
        let options = self.choices().options.clone().backlog(usize::try_from(backlog).unwrap_or(0).max(1));
        let listener = Arc::new(self.home.stack.listen(at, &options).map_err(|e| errno(&e))?);
        let _ = listener.set_nonblocking(true);
        self.show(|mirror| listener.watch(mirror));
        *self.lock() = State::Listening(listener);
        Ok(())
    }
    /// accept4(2).
    pub fn accept(&self, flags: SockFlag) -> nix::Result<(RawFd, SocketAddr)> {
        let State::Listening(listener) = self.state() else { return Err(Errno::EINVAL) };
        let choices = self.choices().clone();
        let takes = |from: SocketAddr| match self.v6 {
            true => from.is_ipv6() || !choices.v6_only,
            false => from.is_ipv4(),
        };
        let (stream, from) = loop {
            let (stream, from) = listener.accept().map_err(|e| errno(&e))?;
            if takes(from) {
                break (stream, from);
            }
            stream.abort();
        };
        let _ = stream.set_nonblocking(true);
        let fd = Socket::open(self.home.clone(), self.v6, State::Stream(stream), choices, flags, None)?;
        Ok((fd, self.outward(from)))
    }
    /// connect(2): `EINPROGRESS` until it is open.
    pub fn connect(&self, to: SocketAddr) -> nix::Result<()> {
        let to = self.inward(to)?;
        let mut state = self.lock();
        match &*state {
            State::Fresh(at) => {
                let port = at.map_or(0, |at| at.port());
                let options = self.choices().options.clone().local_port(port);
                let stream = self.home.stack.begin_connect(to, &options).map_err(|e| errno(&e))?;
                let _ = stream.set_nonblocking(true);
                self.show(|mirror| stream.watch(mirror));
                *state = State::Stream(stream);
                Err(Errno::EINPROGRESS)
            }
            State::Stream(stream) if stream.is_connecting() => Err(Errno::EALREADY),
            State::Stream(stream) => match stream.take_error() {
                Some(error) => Err(errno(&error)),
                None if stream.readiness().over => Err(Errno::ECONNABORTED),
                None => Err(Errno::EISCONN),
            },
            State::Unbound => {
                drop(state);
                self.datagram_to(Some(to))?.connect(Some(to));
                Ok(())
            }
            State::Datagram(udp) => {
                udp.connect(Some(to));
                Ok(())
            }
            State::Listening(_) => Err(Errno::EISCONN),
            State::Gone => Err(Errno::EBADF),
        }
    }
    /// Its UDP socket, bound if it was not.
    pub fn datagram(&self) -> nix::Result<Arc<UdpSocket>> {
        self.datagram_to(None)
    }
    /// The same; if it must be bound, then to where `to` can be reached from.
    pub fn datagram_to(&self, to: Option<SocketAddr>) -> nix::Result<Arc<UdpSocket>> {
        if matches!(self.state(), State::Unbound) {
            let is_v4 = to.is_some_and(|to| to.is_ipv4());
            let v4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            self.bind_udp(if is_v4 { v4 } else { self.any() })?;
        }
        match self.state() {
            State::Datagram(udp) => Ok(udp),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
    /// Its stream.
    pub fn stream(&self) -> nix::Result<Stream> {
        match self.state() {
            State::Stream(stream) => Ok(stream),
            State::Fresh(_) | State::Listening(_) => Err(Errno::ENOTCONN),
            State::Gone => Err(Errno::EBADF),
            State::Unbound | State::Datagram(_) => Err(Errno::EOPNOTSUPP),
        }
    }
    /// getsockname(2).
    pub fn local(&self) -> SocketAddr {
        self.outward(self.local_within())
    }
    fn local_within(&self) -> SocketAddr {
        match self.state() {
            State::Fresh(at) => at.unwrap_or(self.any()),
            State::Listening(listener) => listener.local_addr(),
            State::Stream(stream) => stream.local_addr().unwrap_or(self.any()),
            State::Datagram(udp) => udp.local_addr(),
            State::Unbound | State::Gone => self.any(),
        }
    }
    /// getpeername(2).
    pub fn peer(&self) -> nix::Result<SocketAddr> {
        let peer = match self.state() {
            State::Stream(stream) if !stream.is_connecting() => stream.peer_addr().ok(),
            State::Datagram(udp) => udp.peer_addr(),
            _ => None,
        };
        peer.map(|peer| self.outward(peer)).ok_or(Errno::ENOTCONN)
    }
    /// SO_ERROR.
    pub fn take_error(&self, user: BorrowedFd<'_>) -> i32 {
        // What poll(2) shows of it is fetched, too.
        let _ = nix::sys::socket::getsockopt(&user, nix::sys::socket::sockopt::SocketError);
        match self.state() {
            State::Stream(stream) => stream.take_error().map_or(0, |error| errno(&error) as i32),
            _ => 0,
        }
    }
}
