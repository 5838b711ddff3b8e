//! One UDP socket: many datagrams in a call (GSO, GRO), with their marks and addresses.

use super::DeviceError;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{BindToDevice, RcvBuf, SndBuf};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::ffi::OsString;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

/// Longest datagram, and longest batch of datagrams in one call (UDP over IPv4).
pub(super) const LONGEST: usize = 65_507;
/// Batches of datagrams that are read in one call.
pub(super) const BATCHES: usize = 8;
/// What the system is to keep of what comes and what leaves; it may allow less (`net.core.rmem_max`).
const MEMORY: usize = 8 << 20;

/// Where a socket is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpBind {
    /// An address of this machine; none: all of them.
    pub address: Option<IpAddr>,
    /// A port; 0: the system chooses one.
    pub port: u16,
    /// The only interface that it uses; none: the routes decide.
    pub interface: Option<String>,
}

/// The socket.
pub(super) struct TunnelSocket {
    io: UdpSocket,
    state: Mutex<UdpSocketState>,
    v6: bool,
}

/// Datagrams of one size to one address; the last may be shorter.
pub(super) struct OutgoingBatch<'a> {
    pub to: SocketAddr,
    /// By which address of this machine, if that is not left to the routes.
    pub from: Option<IpAddr>,
    pub ecn: Option<EcnCodepoint>,
    pub segment: usize,
    pub bytes: &'a [u8],
}

/// What has become of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendFate {
    Sent,
    /// There is no room now.
    Blocked,
    /// They are too long for the interface.
    TooLong,
    /// The system refuses them: no route, an interface that is down.
    Refused,
}

impl TunnelSocket {
    pub fn open(bind: &UdpBind) -> Result<Self, DeviceError> {
        let open = |address: IpAddr| UdpSocket::bind(SocketAddr::new(address, bind.port));
        let io = match bind.address {
            Some(address) => open(address),
            // A system without IPv6 has all addresses of IPv4 left.
            None => open(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| open(Ipv4Addr::UNSPECIFIED.into())),
        };
        let at = || bind.address.map_or("all addresses".to_owned(), |address| address.to_string());
        let io = io.map_err(DeviceError::system(format!("open UDP port {} at {}", bind.port, at())))?;
        if let Some(name) = &bind.interface {
            let bound = setsockopt(&io, BindToDevice, &OsString::from(name)).map_err(io::Error::from);
            bound.map_err(DeviceError::system(format!("bind a UDP socket to the interface `{name}`")))?;
        }
        // As much as is allowed.
        let _ = setsockopt(&io, RcvBuf, &MEMORY);
        let _ = setsockopt(&io, SndBuf, &MEMORY);
        let what = || DeviceError::system("set up a UDP socket");
        let state = UdpSocketState::new((&io).into()).map_err(what())?;
        let v6 = io.local_addr().map_err(what())?.is_ipv6();
        Ok(TunnelSocket { io, state: Mutex::new(state), v6 })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
    /// Datagrams that may leave in one call.
    pub fn max_segments(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).max_gso_segments().max(1)
    }

    /// The longest datagram that the interface towards `to` takes, its IP header included; none: there is no
    /// route.
    pub fn interface_mtu(&self, to: SocketAddr) -> Option<u16> {
        // A socket of its own: this one must stay open for everybody.
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let probe = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        probe.connect(to).ok()?;
        super::super::sys::path_mtu(probe.as_fd(), to.is_ipv6()).ok()
    }

    /// Sends without waiting.
    pub fn send(&self, out: &OutgoingBatch<'_>) -> SendFate {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let OutgoingBatch { to, from, ecn, segment, bytes } = *out;
        let to = if self.v6 { mapped(to) } else { to };
        let from = from.filter(|from| self.v6 || from.is_ipv4());
        let segments = bytes.len().div_ceil(segment.max(1));
        let send = |state: &UdpSocketState, contents: &[u8], segment_size: Option<usize>, src_ip| {
            state.try_send(
                (&self.io).into(),
                &Transmit { destination: to, ecn, contents, segment_size, src_ip },
            )
        };
        let mut sent = send(&state, bytes, (segments > 1).then_some(segment), from);
        // The address by which the peer reached us may be gone.
        if from.is_some() && sent.as_ref().is_err_and(|error| !is_full(error)) {
            sent = send(&state, bytes, (segments > 1).then_some(segment), None);
        }
        let error = match sent {
            Ok(()) => return SendFate::Sent,
            Err(error) if is_full(&error) => return SendFate::Blocked,
            Err(error) => error,
        };
        let invalid = matches!(error.raw_os_error(), Some(nix::libc::EINVAL | nix::libc::EIO));
        if segments == 1 || !invalid {
            return SendFate::of(&error);
        }
        // A NIC that cannot cut, or a route to an interface with a smaller MTU: one by one it is seen which.
        for datagram in bytes.chunks(segment) {
            match send(&state, datagram, None, None) {
                Ok(()) => {}
                Err(error) => {
                    let fate = SendFate::of(&error);
                    // What was taken for a NIC that cannot cut was the MTU.
                    if fate == SendFate::TooLong
                        && let Ok(fresh) = UdpSocketState::new((&self.io).into())
                    {
                        *state = fresh;
                    }
                    // The rest is lost, as on any path.
                    return if fate == SendFate::Blocked { SendFate::Sent } else { fate };
                }
            }
        }
        SendFate::Sent
    }

    /// Receives without waiting into buffers of [`LONGEST`] bytes; how many were filled, and what with.
    pub fn receive(&self, buffers: &mut [Vec<u8>], metas: &mut [RecvMeta]) -> io::Result<usize> {
        let mut slices: Vec<IoSliceMut<'_>> =
            buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match state.recv((&self.io).into(), &mut slices, metas) {
            Ok(count) => count,
            Err(error) if is_full(&error) => return Ok(0),
            // About what was sent before: the peer's port is closed, or a router complains.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionRefused
                        | ErrorKind::HostUnreachable
                        | ErrorKind::NetworkUnreachable
                        | ErrorKind::Interrupted
                ) =>
            {
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        for meta in &mut metas[..count] {
            meta.addr.set_ip(meta.addr.ip().to_canonical());
            meta.dst_ip = meta.dst_ip.map(|ip| ip.to_canonical());
        }
        Ok(count)
    }
}

impl SendFate {
    fn of(error: &io::Error) -> SendFate {
        match error.raw_os_error() {
            Some(nix::libc::EMSGSIZE) => SendFate::TooLong,
            _ if is_full(error) => SendFate::Blocked,
            _ => SendFate::Refused,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(nix::libc::ENOBUFS)
}

/// An address of IPv4 as a socket of IPv6 names it.
fn mapped(to: SocketAddr) -> SocketAddr {
    match to.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), to.port()),
        IpAddr::V6(_) => to,
    }
}
