//! Stacks with their descriptors: a stack in a thread, or a host that the program drives.

use crate::ffi::watch_forks;
use crate::share::server::ShareServer;
use crate::table;
use farpace_live::socket::{SocketOptions, Stack};
use farpace_units::{Instant, Span};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Maximum number of closed descriptors per call.
const BATCH: usize = 64;
/// Instead of an inode number: the rendezvous socket of other processes, and a channel of one of them.
const RENDEZVOUS: u64 = u64::MAX;
const CHANNEL: u64 = 1 << 62;

/// Replaces poll(2): the descriptor and the events to wait for; a result other than 0 ends the wait.
pub type WaitFor = Box<dyn Fn(RawFd, i16) -> i32 + Send + Sync>;
/// The current time of a host that the program drives.
pub type Now = Box<dyn Fn() -> Instant + Send + Sync>;

/// Detects that programs have closed their descriptors.
pub struct Links(Epoll);

impl Links {
    /// Watches for the end of `fd`'s peer, for the socket with the inode number `inode`.
    pub fn notice(&self, fd: &OwnedFd, inode: u64) -> nix::Result<()> {
        self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLET, inode))
    }
}

/// A stack with the state of its descriptors.
pub struct Home {
    /// The stack.
    pub stack: Stack,
    /// How the program waits, if it drives the host.
    pub wait: Mutex<Option<Arc<WaitFor>>>,
    /// Default options of its sockets.
    pub options: SocketOptions,
    /// The configuration text of the stack.
    words: String,
    /// For other processes.
    server: OnceLock<ShareServer>,
    /// Descriptors of the stack itself.
    private: Vec<RawFd>,
    /// None: time passes by itself.
    driven: Option<Now>,
    /// Watches its descriptors.
    pub links: Arc<Links>,
    /// Signals the end of current waits; it is replaced for later ones.
    bell: Mutex<Arc<EventFd>>,
}

fn bell() -> nix::Result<EventFd> {
    EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
}

/// The time of this machine, from any origin.
pub fn clock() -> Instant {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    let time = time.map_or(Duration::ZERO, Duration::from);
    Instant::ZERO + Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Home {
    /// A home for a stack. A driven stack reaps when its driver calls [`reap`](Home::reap), others in a
    /// thread.
    pub fn new(
        stack: Stack,
        driven: Option<Now>,
        options: SocketOptions,
        words: &str,
        private: Vec<RawFd>,
    ) -> nix::Result<Arc<Self>> {
        let links = Arc::new(Links(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?));
        let bell = Mutex::new(Arc::new(bell()?));
        let (wait, words, server) = (Mutex::default(), words.to_owned(), OnceLock::new());
        let home = Arc::new(Home { stack, wait, options, words, server, private, driven, links, bell });
        let weak = Arc::downgrade(&home);
        home.stack.on_interrupt(move || {
            if let Some(home) = weak.upgrade() {
                home.ring();
            }
        });
        if !home.is_driven() {
            let weak = Arc::downgrade(&home);
            // Once a second it checks whether the stack is still in use.
            let reaper = std::thread::Builder::new().name("farpace-reaper".to_owned());
            let begun = reaper.spawn(move || {
                while let Some(home) = weak.upgrade() {
                    home.reap(1000);
                }
            });
            begun.map_err(|_| nix::errno::Errno::EAGAIN)?;
            watch_forks();
        }
        Ok(home)
    }
    /// True if the program drives it, so that waiting in poll(2) would not end.
    pub fn is_driven(&self) -> bool {
        self.driven.is_some()
    }
    /// The current time, from any origin: of the host if the program drives it, otherwise of this machine.
    pub fn now(&self) -> Instant {
        self.driven.as_ref().map_or_else(clock, |now| now())
    }
    /// A descriptor to watch while waiting: readable means that the wait is to end.
    pub fn bell(&self) -> Arc<EventFd> {
        self.bell.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn ring(&self) {
        // Without a descriptor for a new one the old one stays: then this interruption is lost, which
        // programs must tolerate anyway.
        if let Ok(fresh) = bell() {
            let old = std::mem::replace(
                &mut *self.bell.lock().unwrap_or_else(PoisonError::into_inner),
                Arc::new(fresh),
            );
            let _ = old.write(1);
        }
    }
    /// Releases sockets that the program has closed with close(2).
    pub fn reap(self: &Arc<Self>, milliseconds: u16) {
        let mut events = [EpollEvent::empty(); BATCH];
        let n = self.links.0.wait(&mut events, EpollTimeout::from(milliseconds)).unwrap_or(0);
        for event in events.iter().take(n) {
            match (event.data(), self.server.get()) {
                (RENDEZVOUS, Some(server)) => {
                    server.admit(|channel| {
                        let name = CHANNEL | channel.as_raw_fd() as u64;
                        self.links.0.add(channel, EpollEvent::new(EpollFlags::EPOLLIN, name))
                    });
                }
                (name, Some(server)) if name & CHANNEL != 0 => {
                    server.serve(self, (name & !CHANNEL) as RawFd);
                }
                (inode, _) => table::check_closed(inode),
            }
        }
    }
    /// Allows other processes to use and create sockets.
    pub fn share(&self) -> nix::Result<&ShareServer> {
        if let Some(server) = self.server.get() {
            return Ok(server);
        }
        let server = ShareServer::open(&self.words)?;
        self.links.0.add(server.rendezvous(), EpollEvent::new(EpollFlags::EPOLLIN, RENDEZVOUS))?;
        table::share_all();
        Ok(self.server.get_or_init(|| server))
    }
    /// True if another process uses the stack, after this one has closed all its sockets.
    pub fn is_used(self: &Arc<Self>) -> bool {
        let Some(server) = self.server.get() else { return false };
        // A thread that waits in a socket keeps it open, so another process must exist too.
        (server.channels() > 0 || table::sockets_of(self) > 0) && !server.is_left()
    }
    /// Descriptors that a child of fork(2) must not keep.
    pub fn private(&self) -> Vec<RawFd> {
        let mut all = self.private.clone();
        all.push(self.links.0.0.as_raw_fd());
        all.extend(self.server.get().map(ShareServer::descriptors).unwrap_or_default());
        all
    }
    /// How the program waits, if it drives the host.
    pub fn waiter(&self) -> Option<Arc<WaitFor>> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
