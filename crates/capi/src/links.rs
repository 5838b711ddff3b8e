//! The links of a stack's sockets, watched for their end.

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Maximum number of closed descriptors per call.
const BATCH: usize = 64;
/// Instead of an inode number: the rendezvous socket of other processes, and a channel of one of them.
const RENDEZVOUS: u64 = u64::MAX;
const CHANNEL: u64 = 1 << 62;

/// Detects that programs have closed their descriptors, and that other processes request something.
pub struct Links(Epoll);

/// What has happened.
pub enum LinkEvent {
    /// Another process requests a channel.
    Rendezvous,
    /// This channel of another process has a request, or has ended.
    Channel(RawFd),
    /// Something happened at the descriptors of the socket with this inode number.
    Socket(u64),
}

impl Links {
    /// Watches nothing yet.
    pub fn new() -> nix::Result<Self> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Links)
    }
    /// Watches for the end of `fd`'s peer, for the socket with the inode number `inode`.
    pub fn notice(&self, fd: &OwnedFd, inode: u64) -> nix::Result<()> {
        self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLET, inode))
    }
    /// Watches the rendezvous socket of other processes.
    pub fn notice_rendezvous(&self, fd: &OwnedFd) -> nix::Result<()> {
        self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, RENDEZVOUS))
    }
    /// Watches a channel of another process.
    pub fn notice_channel(&self, fd: &OwnedFd) -> nix::Result<()> {
        self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, CHANNEL | fd.as_raw_fd() as u64))
    }
    /// Waits at most this time, and calls `handle` for each event; a batch at most.
    pub fn wait(&self, milliseconds: u16, mut handle: impl FnMut(LinkEvent)) {
        let mut events = [EpollEvent::empty(); BATCH];
        let n = self.0.wait(&mut events, EpollTimeout::from(milliseconds)).unwrap_or(0);
        for event in events.iter().take(n) {
            handle(match event.data() {
                RENDEZVOUS => LinkEvent::Rendezvous,
                name if name & CHANNEL != 0 => LinkEvent::Channel((name & !CHANNEL) as RawFd),
                inode => LinkEvent::Socket(inode),
            });
        }
    }
    /// Its descriptor, which a child of fork(2) must not keep.
    pub fn descriptor(&self) -> RawFd {
        self.0.0.as_raw_fd()
    }
}
