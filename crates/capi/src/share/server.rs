//! The owner's side: the rendezvous socket, the channels, and the requests of other processes.

use super::frame::{MAX_CONTROL, MAX_DATA, MAX_FRAME, MAX_VALUE, Op, ShareFrame};
use crate::descriptor::acting;
use crate::ffi::{aside, guarded, has_hung_up, identity, owned};
use crate::home::Home;
use crate::socket::{CapiSocket, LocalBinding};
use crate::table;
use farpace_live::socket::posix::{self, AncillaryMessage, SendTo, encode_address};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, bind,
    recvmsg, sendmsg, socketpair,
};
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The rendezvous socket has a number from here on in all processes, above those of programs.
pub const MIN_RENDEZVOUS_FD: RawFd = 900;
/// Prefix of the name of the rendezvous socket, by which programs that inherit it recognise it. A hash of the
/// stack's configuration follows.
pub const RENDEZVOUS_PREFIX: &[u8] = b"farpace-stack-";
/// Maximum number of processes with a channel.
const MAX_CHANNELS: usize = 4096;
/// Maximum number of descriptors per request; all but the first are closed.
const MAX_RIGHTS: usize = 4;

/// The rendezvous socket and the channels of a stack.
pub struct ShareServer {
    /// The end that receives channels.
    rendezvous: OwnedFd,
    /// The end that other processes inherit.
    inheritable: Mutex<Option<OwnedFd>>,
    channels: Mutex<BTreeMap<RawFd, OwnedFd>>,
    buffer: Mutex<Vec<u8>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name that distinguishes the rendezvous sockets of stacks: FNV-1a of the configuration text.
pub fn rendezvous_name(words: &str) -> Vec<u8> {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = words.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    [RENDEZVOUS_PREFIX, format!("{hash:016x}").as_bytes()].concat()
}

impl ShareServer {
    /// Creates a rendezvous socket.
    pub fn open(words: &str) -> nix::Result<Self> {
        let (rendezvous, inheritable) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        )?;
        // The process ID makes the name unique.
        let name = [&rendezvous_name(words)[..], format!("-{}", std::process::id()).as_bytes()].concat();
        // Without the name only children find it, and not the programs that they execute.
        let _ = UnixAddr::new_abstract(&name).and_then(|name| bind(rendezvous.as_raw_fd(), &name));
        let high = fcntl(&inheritable, FcntlArg::F_DUPFD(MIN_RENDEZVOUS_FD))
            .or_else(|_| fcntl(&inheritable, FcntlArg::F_DUPFD(0)))?;
        let (channels, buffer) = (Mutex::default(), Mutex::new(vec![0; MAX_FRAME]));
        Ok(ShareServer { rendezvous, inheritable: Mutex::new(Some(owned(high))), channels, buffer })
    }
    /// Readable when a process requests a channel.
    pub const fn rendezvous(&self) -> &OwnedFd {
        &self.rendezvous
    }
    /// The end that other processes inherit.
    pub fn inheritable(&self) -> Option<RawFd> {
        locked(&self.inheritable).as_ref().map(AsRawFd::as_raw_fd)
    }
    /// True if no other process has the rendezvous socket. From now on no new one gets it.
    pub fn is_left(&self) -> bool {
        *locked(&self.inheritable) = None;
        has_hung_up(self.rendezvous.as_raw_fd())
    }
    /// Number of processes with a channel.
    pub fn channels(&self) -> usize {
        locked(&self.channels).len()
    }
    /// Descriptors that a child of fork(2) must not keep.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let mut all: Vec<_> = locked(&self.channels).keys().copied().collect();
        all.push(self.rendezvous.as_raw_fd());
        all
    }

    /// Accepts a channel of another process, and returns its descriptor.
    pub fn admit(&self, notice: impl FnOnce(&OwnedFd) -> nix::Result<()>) {
        let mut byte = [0; 1];
        let (_, rights) = take(&self.rendezvous, &mut byte);
        let mut channels = locked(&self.channels);
        if let Some(channel) = rights.into_iter().next()
            && channels.len() < MAX_CHANNELS
        {
            let channel = aside(channel);
            if notice(&channel).is_ok() {
                channels.insert(channel.as_raw_fd(), channel);
            }
        }
    }

    /// Answers one request of a channel.
    pub fn serve(&self, home: &Arc<Home>, channel: RawFd) {
        let mut channels = locked(&self.channels);
        let Some(end) = channels.get(&channel) else { return };
        let mut buffer = locked(&self.buffer);
        let (len, rights) = take(end, &mut buffer);
        let Some(len) = len else { return };
        let request = buffer.get(..len).and_then(ShareFrame::read);
        let done = request.and_then(|request| {
            let op = Op::of(request.word)?;
            let subject = rights.first();
            let answer = guarded(|| act(home, op, &request, subject)).unwrap_or(Err(Errno::EIO));
            let answer = answer
                .unwrap_or_else(|error| ServerAnswer { error: error as u32, ..ServerAnswer::default() });
            answer.send(end).ok()
        });
        if done.is_none() {
            // The process has ended, or its message is invalid.
            channels.remove(&channel);
        }
    }
}

/// A received message with its descriptors; no length: nothing was received.
fn take(from: &OwnedFd, into: &mut [u8]) -> (Option<usize>, Vec<OwnedFd>) {
    let mut space = cmsg_space!([RawFd; MAX_RIGHTS]);
    let mut parts = [IoSliceMut::new(into)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let got = recvmsg::<()>(from.as_raw_fd(), &mut parts, Some(&mut space), flags);
    let Ok(got) = got else {
        let nothing = matches!(got, Err(Errno::EAGAIN | Errno::EINTR));
        return (if nothing { None } else { Some(0) }, Vec::new());
    };
    let mut rights = Vec::new();
    for control in got.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::ScmRights(these) = control {
            rights.extend(these.into_iter().map(owned));
        }
    }
    (Some(got.bytes), rights)
}

/// An answer.
#[derive(Default)]
struct ServerAnswer {
    error: u32,
    numbers: [i64; 4],
    name: Option<Vec<u8>>,
    control: Vec<u8>,
    data: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl ServerAnswer {
    fn number(number: impl Into<i64>) -> Self {
        ServerAnswer { numbers: [number.into(), 0, 0, 0], ..ServerAnswer::default() }
    }
    fn send(&self, to: &OwnedFd) -> nix::Result<()> {
        let ServerAnswer { error, numbers, name, control, data, descriptor } = self;
        let frame = ShareFrame { word: *error, numbers: *numbers, name: name.as_deref(), control, data };
        let head = frame.head().ok_or(Errno::EMSGSIZE)?;
        let rights: Vec<_> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let control: &[_] = if rights.is_empty() { &[] } else { &[ControlMessage::ScmRights(&rights)] };
        let parts = [IoSlice::new(&head), IoSlice::new(data)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(to.as_raw_fd(), &parts, control, flags, None).map(drop)
    }
}

fn small(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
fn millis(time: Option<std::time::Duration>) -> i64 {
    time.map_or(-1, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// Performs a requested operation.
fn act(
    home: &Arc<Home>,
    op: Op,
    request: &ShareFrame<'_>,
    subject: Option<&OwnedFd>,
) -> nix::Result<ServerAnswer> {
    if op == Op::Socket {
        let inner = posix::PosixSocket::new(
            home.stack.clone(),
            request.int(0),
            request.int(1),
            request.int(2),
            home.options.clone(),
        )?;
        let user = LocalBinding::open(home.clone(), inner, SockFlag::SOCK_CLOEXEC)?.0;
        return Ok(ServerAnswer { descriptor: Some(user), ..ServerAnswer::default() });
    }
    let subject = subject.ok_or(Errno::EBADF)?;
    let inode = identity(subject.as_raw_fd()).ok_or(Errno::EBADF)?;
    let socket = table::of_file(inode).ok_or(Errno::EBADF)?;
    let CapiSocket::Here(local) = &*socket else { return Err(Errno::EBADF) };
    acting(inode, subject.as_raw_fd(), || act_on(&socket, local, op, request))
}

fn act_on(
    socket: &Arc<CapiSocket>,
    local: &LocalBinding,
    op: Op,
    request: &ShareFrame<'_>,
) -> nix::Result<ServerAnswer> {
    let inner = &local.inner;
    let name = request.name.unwrap_or_default();
    let nothing = |()| ServerAnswer::default();
    match op {
        Op::Socket => Err(Errno::EINVAL),
        Op::Know => Ok(ServerAnswer::number(inner.is_datagram())),
        Op::Bind => inner.bind(name).map(nothing),
        Op::Listen => inner.listen(request.int(0)).map(nothing),
        Op::Accept => {
            let (accepted, from) = inner.accept()?;
            let flags = SockFlag::from_bits_truncate(request.int(0)) | SockFlag::SOCK_CLOEXEC;
            let user = LocalBinding::open(local.home.clone(), accepted, flags)?.0;
            Ok(ServerAnswer {
                name: Some(encode_address(from)),
                descriptor: Some(user),
                ..ServerAnswer::default()
            })
        }
        Op::Connect => {
            let descriptor = local.renew(socket, SockFlag::from_bits_truncate(request.int(0)))?;
            let error = inner.connect(name).map_or_else(|error| error as u32, |()| 0);
            Ok(ServerAnswer { error, descriptor, ..ServerAnswer::default() })
        }
        Op::Shutdown => inner.shutdown(request.int(0)).map(nothing),
        Op::Local => {
            Ok(ServerAnswer { name: Some(encode_address(inner.local())), ..ServerAnswer::default() })
        }
        Op::Peer => Ok(ServerAnswer { name: Some(encode_address(inner.peer()?)), ..ServerAnswer::default() }),
        Op::Available => inner.available().map(|n| ServerAnswer::number(small(n))),
        Op::Unacknowledged => {
            let (all, unsent) = inner.unacknowledged()?;
            Ok(ServerAnswer { numbers: [small(all), small(unsent), 0, 0], ..ServerAnswer::default() })
        }
        Op::AtMark => Ok(ServerAnswer::number(inner.is_at_mark())),
        Op::Receive => {
            let mut data = vec![0; usize::try_from(request.int(0)).unwrap_or(0).min(MAX_DATA)];
            let got = inner.receive(&mut [IoSliceMut::new(&mut data)], request.int(1))?;
            data.truncate(got.copied);
            Ok(ServerAnswer {
                error: 0,
                numbers: [small(got.len), got.flags.into(), small(inner.low_water()), 0],
                name: got.from.map(encode_address),
                control: AncillaryMessage::write_all(&got.control, MAX_CONTROL).0,
                data,
                descriptor: None,
            })
        }
        Op::Send => {
            let control = AncillaryMessage::read_all(request.control)?;
            let message = SendTo { to: request.name, control, flags: request.int(0) };
            let sent = inner.send(&[IoSlice::new(request.data)], &message)?;
            Ok(ServerAnswer::number(small(sent)))
        }
        Op::SetOption => {
            let value = (request.numbers[2] != 0).then_some(request.data);
            inner.set_option(request.int(0), request.int(1), value).map(nothing)
        }
        Op::Option => {
            let mut data = inner.option(request.int(0), request.int(1), request.int(2))?;
            data.truncate(MAX_VALUE);
            Ok(ServerAnswer { data, ..ServerAnswer::default() })
        }
        Op::TakeError => Ok(ServerAnswer::number(inner.take_error())),
        Op::State => {
            let ended = inner.readiness().read_ended || inner.is_over();
            let bits = i64::from(inner.is_connecting()) | i64::from(ended) << 1;
            let numbers = [
                bits,
                millis(inner.receive_timeout()),
                millis(inner.send_timeout()),
                small(inner.low_water()),
            ];
            Ok(ServerAnswer { numbers, ..ServerAnswer::default() })
        }
        Op::ReportOpen => Ok(ServerAnswer::number(inner.report_open())),
        Op::ForgetFailed => {
            inner.forget_failed();
            Ok(ServerAnswer::default())
        }
    }
}
