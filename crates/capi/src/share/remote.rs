//! The side of a process without a stack: requests to the owner.

use super::frame::{MAX_CONTROL, MAX_DATA, MAX_FRAME, MAX_VALUE, Op, ShareFrame};
use crate::ffi::{aside, owned, put_at};
use farpace_live::socket::posix::{AncillaryMessage, ReceivedMessage, SendTo};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg,
    socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// True if this process uses the stack of another.
static IS_REMOTE: AtomicBool = AtomicBool::new(false);
/// The inherited rendezvous socket.
static RENDEZVOUS: AtomicI32 = AtomicI32::new(-1);
/// The channel; none: no request was sent yet.
static CHANNEL: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// True if the stack belongs to another process.
pub fn is_remote() -> bool {
    IS_REMOTE.load(Ordering::Acquire)
}
/// From now on this process sends requests, through the rendezvous socket `rendezvous`.
pub fn begin(rendezvous: RawFd) {
    RENDEZVOUS.store(rendezvous, Ordering::Release);
    IS_REMOTE.store(true, Ordering::Release);
}
/// The channel, locked.
pub fn hold() -> MutexGuard<'static, Option<OwnedFd>> {
    CHANNEL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a channel through the rendezvous socket.
fn open_channel() -> nix::Result<OwnedFd> {
    let (ours, inheritable) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    let rights = [inheritable.as_raw_fd()];
    let rendezvous = RENDEZVOUS.load(Ordering::Acquire);
    let control = [ControlMessage::ScmRights(&rights)];
    loop {
        match sendmsg::<()>(rendezvous, &[IoSlice::new(&[0])], &control, MsgFlags::MSG_NOSIGNAL, None) {
            // Its queue is full.
            Err(Errno::EAGAIN) => std::thread::sleep(Duration::from_millis(1)),
            Err(Errno::EINTR) => {}
            Err(_) => return Err(Errno::ENETDOWN),
            Ok(_) => return Ok(aside(ours)),
        }
    }
}

/// The answer of the owner.
struct RemoteAnswer {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl RemoteAnswer {
    fn frame(&self) -> nix::Result<ShareFrame<'_>> {
        ShareFrame::read(&self.bytes).ok_or(Errno::EIO)
    }
    /// The answer, or its error.
    fn well(self) -> nix::Result<Self> {
        match self.frame()?.word {
            0 => Ok(self),
            error => Err(Errno::from_raw(error.cast_signed())),
        }
    }
    fn address(&self) -> nix::Result<SocketAddr> {
        self.frame()?.name.and_then(decode_address).ok_or(Errno::EIO)
    }
}

/// Sends a request, and waits for the answer, which is immediate.
fn send_request(
    subject: Option<RawFd>,
    request: &ShareFrame<'_>,
    data: &[IoSlice<'_>],
) -> nix::Result<RemoteAnswer> {
    let head = request.head().ok_or(Errno::ENOBUFS)?;
    let mut parts = vec![IoSlice::new(&head)];
    parts.extend(data.iter().map(|part| IoSlice::new(part)));
    // A signal handler with a request would wait for its own thread.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).ok();
    let mut channel = hold();
    let room = match Op::of(request.word) {
        Some(Op::Receive) => usize::try_from(request.numbers[0]).unwrap_or(0).min(MAX_DATA),
        _ => MAX_VALUE,
    };
    let answer = exchange(&mut channel, subject, &parts, MAX_FRAME - MAX_DATA + room);
    if matches!(answer, Err(Errno::ENETDOWN)) {
        *channel = None;
    }
    drop(channel);
    if let Some(before) = before {
        let _ = before.thread_set_mask();
    }
    answer
}

fn exchange(
    channel: &mut Option<OwnedFd>,
    subject: Option<RawFd>,
    parts: &[IoSlice<'_>],
    room: usize,
) -> nix::Result<RemoteAnswer> {
    if channel.is_none() {
        *channel = Some(open_channel()?);
    }
    let end = channel.as_ref().ok_or(Errno::ENETDOWN)?.as_raw_fd();
    let rights: Vec<_> = subject.into_iter().collect();
    let control: &[_] = if rights.is_empty() { &[] } else { &[ControlMessage::ScmRights(&rights)] };
    match sendmsg::<()>(end, parts, control, MsgFlags::MSG_NOSIGNAL, None) {
        // The descriptor is invalid.
        Err(Errno::EBADF) => return Err(Errno::EBADF),
        // So is the memory of the program.
        Err(Errno::EFAULT) => return Err(Errno::EFAULT),
        Err(_) => return Err(Errno::ENETDOWN),
        Ok(_) => {}
    }
    let (mut bytes, mut space) = (vec![0; room], cmsg_space!([RawFd; 1]));
    let (len, descriptor) = {
        let mut into = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg::<()>(end, &mut into, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC);
        let got = got.map_err(|_| Errno::ENETDOWN)?;
        let mut descriptor = None;
        for control in got.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmRights(these) = control {
                descriptor = these.into_iter().map(owned).next();
            }
        }
        (got.bytes, descriptor)
    };
    if len == 0 {
        // The owner has ended.
        return Err(Errno::ENETDOWN);
    }
    bytes.truncate(len);
    Ok(RemoteAnswer { bytes, descriptor })
}

/// A descriptor with FD_CLOEXEC as requested.
fn with_cloexec(fd: OwnedFd, cloexec: bool) -> nix::Result<RawFd> {
    if !cloexec {
        fcntl(&fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    }
    Ok(fd.into_raw_fd())
}

/// A socket on another process's stack, by one descriptor.
pub struct Remote {
    fd: RawFd,
    datagram: bool,
    low_water: AtomicUsize,
}

/// The state that a waiting call needs.
pub struct RemoteState {
    /// True while the connection is being opened.
    pub connecting: bool,
    /// True if no more data will arrive.
    pub ended: bool,
    /// SO_RCVTIMEO.
    pub receive_timeout: Option<Duration>,
    /// SO_SNDTIMEO.
    pub send_timeout: Option<Duration>,
}

impl Remote {
    /// For a descriptor of known type.
    pub const fn new(fd: RawFd, datagram: bool) -> Self {
        Remote { fd, datagram, low_water: AtomicUsize::new(1) }
    }
    /// For a descriptor that may be such a socket.
    pub fn know(fd: RawFd) -> nix::Result<Self> {
        let remote = Remote::new(fd, false);
        let answer = remote.send_request(Op::Know, [0; 3])?;
        let datagram = answer.frame()?.numbers[0] != 0;
        Ok(Remote { datagram, ..remote })
    }
    /// socket(2), with the number `at` if given.
    pub fn socket(
        at: Option<RawFd>,
        domain: i32,
        kind: i32,
        protocol: i32,
        flags: SockFlag,
    ) -> nix::Result<Self> {
        let numbers = [domain.into(), kind.into(), protocol.into(), 0];
        let request = ShareFrame { word: Op::Socket.word(), numbers, ..ShareFrame::default() };
        let answer = send_request(None, &request, &[])?.well()?;
        let new = answer.descriptor.ok_or(Errno::EIO)?;
        if flags.contains(SockFlag::SOCK_NONBLOCK) {
            fcntl(&new, FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
        }
        let cloexec = flags.contains(SockFlag::SOCK_CLOEXEC);
        let fd = match at {
            Some(at) => put_at(new, at, cloexec)?.into_raw_fd(),
            None => with_cloexec(new, cloexec)?,
        };
        Ok(Remote::new(fd, kind == nix::libc::SOCK_DGRAM))
    }
    /// Another descriptor of the same socket.
    pub const fn copy(&self, fd: RawFd) -> Self {
        Remote::new(fd, self.datagram)
    }
    /// Its descriptor.
    pub const fn fd(&self) -> RawFd {
        self.fd
    }
    /// True for a UDP socket.
    pub const fn is_datagram(&self) -> bool {
        self.datagram
    }

    fn send_request(&self, op: Op, numbers: [i64; 3]) -> nix::Result<RemoteAnswer> {
        self.send_request_with(op, numbers, None, &[], &[])?.well()
    }
    fn send_request_with(
        &self,
        op: Op,
        [a, b, c]: [i64; 3],
        name: Option<&[u8]>,
        control: &[u8],
        data: &[IoSlice<'_>],
    ) -> nix::Result<RemoteAnswer> {
        let request = ShareFrame { word: op.word(), numbers: [a, b, c, 0], name, control, data: &[] };
        send_request(Some(self.fd), &request, data)
    }

    /// bind(2).
    pub fn bind(&self, at: &[u8]) -> nix::Result<()> {
        self.send_request_with(Op::Bind, [0; 3], Some(at), &[], &[])?.well().map(drop)
    }
    /// listen(2).
    pub fn listen(&self, backlog: i32) -> nix::Result<()> {
        self.send_request(Op::Listen, [backlog.into(), 0, 0]).map(drop)
    }
    /// accept4(2).
    pub fn accept(&self, flags: SockFlag) -> nix::Result<(RawFd, SocketAddr)> {
        let answer = self.send_request(Op::Accept, [flags.bits().into(), 0, 0])?;
        let from = answer.address()?;
        let new = answer.descriptor.ok_or(Errno::EIO)?;
        Ok((with_cloexec(new, flags.contains(SockFlag::SOCK_CLOEXEC))?, from))
    }
    /// connect(2).
    pub fn connect(&self, to: &[u8]) -> nix::Result<()> {
        let flags = crate::ffi::flags_of(self.fd)?;
        let answer = self.send_request_with(Op::Connect, [flags.bits().into(), 0, 0], Some(to), &[], &[])?;
        let error = answer.frame()?.word;
        if let Some(new) = answer.descriptor {
            let _ = put_at(new, self.fd, flags.contains(SockFlag::SOCK_CLOEXEC))?.into_raw_fd();
        }
        if error == 0 { Ok(()) } else { Err(Errno::from_raw(error.cast_signed())) }
    }
    /// shutdown(2).
    pub fn shutdown(&self, how: i32) -> nix::Result<()> {
        self.send_request(Op::Shutdown, [how.into(), 0, 0]).map(drop)
    }
    /// getsockname(2).
    pub fn local(&self) -> nix::Result<SocketAddr> {
        self.send_request(Op::Local, [0; 3])?.address()
    }
    /// getpeername(2).
    pub fn peer(&self) -> nix::Result<SocketAddr> {
        self.send_request(Op::Peer, [0; 3])?.address()
    }
    /// FIONREAD.
    pub fn available(&self) -> nix::Result<usize> {
        Ok(number(&self.send_request(Op::Available, [0; 3])?, 0))
    }
    /// SIOCOUTQ and SIOCOUTQNSD.
    pub fn unacknowledged(&self) -> nix::Result<(usize, usize)> {
        let answer = self.send_request(Op::Unacknowledged, [0; 3])?;
        Ok((number(&answer, 0), number(&answer, 1)))
    }
    /// SIOCATMARK.
    pub fn is_at_mark(&self) -> bool {
        self.send_request(Op::AtMark, [0; 3]).is_ok_and(|answer| number(&answer, 0) != 0)
    }
    /// setsockopt(2).
    pub fn set_option(&self, level: i32, name: i32, value: Option<&[u8]>) -> nix::Result<()> {
        let data = value.unwrap_or_default();
        if data.len() > MAX_DATA {
            return Err(Errno::EINVAL);
        }
        let numbers = [level.into(), name.into(), value.is_some().into()];
        self.send_request_with(Op::SetOption, numbers, None, &[], &[IoSlice::new(data)])?.well().map(drop)
    }
    /// getsockopt(2).
    pub fn option(&self, level: i32, name: i32, room: i32) -> nix::Result<Vec<u8>> {
        let answer = self.send_request(Op::Option, [level.into(), name.into(), room.into()])?;
        Ok(answer.frame()?.data.to_vec())
    }
    /// SO_ERROR.
    pub fn take_error(&self) -> i32 {
        match self.send_request(Op::TakeError, [0; 3]) {
            Ok(answer) => i32::try_from(number(&answer, 0)).unwrap_or(Errno::EIO as i32),
            Err(error) => error as i32,
        }
    }
    /// See [`RemoteState`].
    pub fn state(&self) -> nix::Result<RemoteState> {
        let answer = self.send_request(Op::State, [0; 3])?;
        let [bits, receive, send, low] = answer.frame()?.numbers;
        self.low_water.store(usize::try_from(low).unwrap_or(1), Ordering::Relaxed);
        let time = |millis: i64| u64::try_from(millis).ok().map(Duration::from_millis);
        Ok(RemoteState {
            connecting: bits & 1 != 0,
            ended: bits & 2 != 0,
            receive_timeout: time(receive),
            send_timeout: time(send),
        })
    }
    /// SO_RCVLOWAT as of the last receive.
    pub fn low_water(&self) -> usize {
        self.low_water.load(Ordering::Relaxed)
    }
    /// Records that the program knows of the established connection.
    pub fn report_open(&self) {
        let _ = self.send_request(Op::ReportOpen, [0; 3]);
    }
    /// Records that the program knows of the failed connection.
    pub fn forget_failed(&self) {
        let _ = self.send_request(Op::ForgetFailed, [0; 3]);
    }

    /// recvmsg(2).
    pub fn receive(&self, buffers: &mut [IoSliceMut<'_>], flags: i32) -> nix::Result<ReceivedMessage> {
        let room = buffers.iter().map(|buffer| buffer.len()).fold(0, usize::saturating_add).min(MAX_DATA);
        let room = i64::try_from(room).unwrap_or(0);
        let answer = self.send_request(Op::Receive, [room, flags.into(), 0])?;
        let frame = answer.frame()?;
        let mut rest = frame.data;
        for buffer in buffers.iter_mut() {
            let (now, later) = rest.split_at(rest.len().min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            rest = later;
        }
        self.low_water.store(number(&answer, 2), Ordering::Relaxed);
        Ok(ReceivedMessage {
            len: number(&answer, 0),
            copied: frame.data.len(),
            from: frame.name.and_then(decode_address),
            control: AncillaryMessage::read_all(frame.control)?,
            flags: frame.int(1),
        })
    }
    /// sendmsg(2).
    pub fn send(&self, parts: &[IoSlice<'_>], message: &SendTo<'_>) -> nix::Result<usize> {
        let mut left = MAX_DATA;
        let mut data = Vec::new();
        for part in parts {
            let now = part.get(..part.len().min(left)).unwrap_or_default();
            left -= now.len();
            data.push(IoSlice::new(now));
        }
        let whole: usize = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
        if self.datagram && whole > MAX_DATA {
            return Err(Errno::EMSGSIZE);
        }
        let control = AncillaryMessage::write_all(&message.control, MAX_CONTROL).0;
        let numbers = [message.flags.into(), 0, 0];
        let answer = self.send_request_with(Op::Send, numbers, message.to, &control, &data)?.well()?;
        Ok(number(&answer, 0))
    }
}

/// Decodes a `struct sockaddr_in` or `sockaddr_in6` of the owner.
fn decode_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = match family.into() {
        nix::libc::AF_INET => IpAddr::from(*bytes.get(4..)?.first_chunk::<4>()?),
        nix::libc::AF_INET6 => IpAddr::from(*bytes.get(8..)?.first_chunk::<16>()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn number(answer: &RemoteAnswer, at: usize) -> usize {
    let number = answer.frame().ok().and_then(|frame| frame.numbers.get(at).copied());
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}
