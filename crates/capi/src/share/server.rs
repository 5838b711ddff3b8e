//! The owner's side: the rendezvous socket, and the channels by which requests of other processes come.

use super::frame::{MAX_FRAME, Op, ShareFrame};
use crate::ffi::{aside, guarded, has_hung_up, owned};
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The rendezvous socket has a number from here on in all processes, above those of programs.
pub const MIN_RENDEZVOUS_FD: RawFd = 900;
/// Prefix of the name of the rendezvous socket, by which programs that inherit it recognise it. A hash of the
/// stack's configuration follows.
pub const RENDEZVOUS_PREFIX: &[u8] = b"farpace-stack-";
/// Maximum number of processes with a channel.
const MAX_CHANNELS: usize = 4096;
/// Maximum number of descriptors per request; all but the first are closed.
const MAX_RIGHTS: usize = 4;

/// Other processes may have descriptors of sockets of this one.
static SHARED: AtomicBool = AtomicBool::new(false);

/// From now on a socket may exist after this process has closed it.
pub fn note_shared() {
    SHARED.store(true, Ordering::Release);
}
/// See [`note_shared`].
pub fn is_shared() -> bool {
    SHARED.load(Ordering::Acquire)
}

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

    /// Answers one request of a channel, with what `answer` says to it. The descriptor is that of the socket
    /// which the request is about.
    pub fn serve(
        &self,
        channel: RawFd,
        answer: impl FnOnce(Op, &ShareFrame<'_>, Option<&OwnedFd>) -> nix::Result<ServerAnswer>,
    ) {
        let mut channels = locked(&self.channels);
        let Some(end) = channels.get(&channel) else { return };
        let mut buffer = locked(&self.buffer);
        let (len, rights) = take(end, &mut buffer);
        let Some(len) = len else { return };
        let request = buffer.get(..len).and_then(ShareFrame::read);
        let done = request.and_then(|request| {
            let op = Op::of(request.word)?;
            let subject = rights.first();
            let answer = guarded(|| answer(op, &request, subject)).unwrap_or(Err(Errno::EIO));
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
pub struct ServerAnswer {
    /// The error number; 0: none.
    pub error: u32,
    /// Results, by operation.
    pub numbers: [i64; 4],
    /// An address.
    pub name: Option<Vec<u8>>,
    /// Ancillary data.
    pub control: Vec<u8>,
    /// Data.
    pub data: Vec<u8>,
    /// A descriptor of a new socket.
    pub descriptor: Option<OwnedFd>,
}

impl ServerAnswer {
    /// An answer that is one number.
    pub fn number(number: impl Into<i64>) -> Self {
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
