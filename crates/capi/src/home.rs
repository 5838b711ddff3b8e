//! Whose sockets they are: a stack in a thread, or a host that the program drives.

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

/// Descriptors whose end is noticed at a time.
const BATCH: usize = 64;
/// In the place of a file's number: the door of other processes, and a channel of one of them.
const DOOR: u64 = u64::MAX;
const CHANNEL: u64 = 1 << 62;

/// Waits in place of poll(2): the descriptor and what to wait for; anything else than 0 means: no longer.
pub type WaitFor = Box<dyn Fn(RawFd, i16) -> i32 + Send + Sync>;
/// The present of a host that the program drives.
pub type Now = Box<dyn Fn() -> Instant + Send + Sync>;

/// What tells that programs have closed their descriptors.
pub struct Links(Epoll);

impl Links {
    /// Notice when the other end of `fd` is closed: that of the socket with the file `inode`.
    pub fn notice(&self, fd: &OwnedFd, inode: u64) -> nix::Result<()> {
        self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLET, inode))
    }
}

/// A stack and what its descriptors need.
pub struct Home {
    /// The stack.
    pub stack: Stack,
    /// How the program waits, where it drives the host.
    pub wait: Mutex<Option<Arc<WaitFor>>>,
    /// Options of its sockets, unless they choose others.
    pub options: SocketOptions,
    /// The words that made it.
    words: String,
    /// For other processes.
    server: OnceLock<ShareServer>,
    /// Descriptors that it has of the system.
    private: Vec<RawFd>,
    /// None: time passes by itself.
    driven: Option<Now>,
    /// What its descriptors are noticed by.
    pub links: Arc<Links>,
    /// Rings once, when those who wait now are to wait no longer; another is there for those who wait later.
    bell: Mutex<Arc<EventFd>>,
}

fn bell() -> nix::Result<EventFd> {
    EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
}

/// The present of this machine, from any origin.
pub fn clock() -> Instant {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    let time = time.map_or(Duration::ZERO, Duration::from);
    Instant::ZERO + Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Home {
    /// For a stack. One that is driven reaps when its driver calls [`reap`](Home::reap), any other in a thread.
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
            // Once a second it looks whether the stack is still wanted.
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
    /// The program drives it, so waiting in poll(2) would be for ever.
    pub fn is_driven(&self) -> bool {
        self.driven.is_some()
    }
    /// The present, from any origin: of the host if the program drives it, else of this machine.
    pub fn now(&self) -> Instant {
        self.driven.as_ref().map_or_else(clock, |now| now())
    }
    /// What to watch while one waits: readable means that one waits no longer.
    pub fn bell(&self) -> Arc<EventFd> {
        self.bell.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn ring(&self) {
        // Without descriptors for another one it stays as it is: an interruption is lost, which a program must bear anyway.
        if let Ok(fresh) = bell() {
            let old = std::mem::replace(
                &mut *self.bell.lock().unwrap_or_else(PoisonError::into_inner),
                Arc::new(fresh),
            );
            let _ = old.write(1);
        }
    }
    /// Lets go of sockets that the program has closed with close(2).
    pub fn reap(self: &Arc<Self>, milliseconds: u16) {
        let mut events = [EpollEvent::empty(); BATCH];
        let n = self.links.0.wait(&mut events, EpollTimeout::from(milliseconds)).unwrap_or(0);
        for event in events.iter().take(n) {
            match (event.data(), self.server.get()) {
                (DOOR, Some(server)) => {
                    server.admit(|channel| {
                        let name = CHANNEL | channel.as_raw_fd() as u64;
                        self.links.0.add(channel, EpollEvent::new(EpollFlags::EPOLLIN, name))
                    });
                }
                (name, Some(server)) if name & CHANNEL != 0 => {
                    server.serve(self, (name & !CHANNEL) as RawFd);
                }
                (inode, _) => table::look_at(inode),
            }
        }
    }
    /// From now on other processes may use its sockets, and make some.
    pub fn share(&self) -> nix::Result<&ShareServer> {
        if let Some(server) = self.server.get() {
            return Ok(server);
        }
        let server = ShareServer::open(&self.words)?;
        self.links.0.add(server.door(), EpollEvent::new(EpollFlags::EPOLLIN, DOOR))?;
        table::share_all();
        Ok(self.server.get_or_init(|| server))
    }
    /// True if another process uses it, when this one has closed all its sockets.
    pub fn is_used(self: &Arc<Self>) -> bool {
        let Some(server) = self.server.get() else { return false };
        // A thread that waits in a socket keeps that from being closed, so there must be a process as well.
        (server.channels() > 0 || table::sockets_of(self) > 0) && !server.is_left()
    }
    /// What a child of fork(2) must not keep of the descriptors.
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
