//! Stacks with their descriptors: a stack in a thread, or a host that the program drives.

use crate::links::Links;
use crate::share::server::{ShareServer, note_shared};
use farpace_live::socket::{SocketOptions, Stack};
use farpace_units::{Instant, Span};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Replaces poll(2): the descriptor and the events to wait for; a result other than 0 ends the wait.
pub type WaitFor = Box<dyn Fn(RawFd, i16) -> i32 + Send + Sync>;
/// The current time of a host that the program drives.
pub type Now = Box<dyn Fn() -> Instant + Send + Sync>;

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
    /// A home for a stack. `driven`: the time, if the program drives the host.
    pub fn new(
        stack: Stack,
        driven: Option<Now>,
        options: SocketOptions,
        words: &str,
        private: Vec<RawFd>,
    ) -> nix::Result<Arc<Self>> {
        let links = Arc::new(Links::new()?);
        let bell = Mutex::new(Arc::new(bell()?));
        let (wait, words, server) = (Mutex::default(), words.to_owned(), OnceLock::new());
        let home = Arc::new(Home { stack, wait, options, words, server, private, driven, links, bell });
        let weak = Arc::downgrade(&home);
        home.stack.on_interrupt(move || {
            if let Some(home) = weak.upgrade() {
                home.ring();
            }
        });
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
    /// Allows other processes to use and create sockets.
    pub fn share(&self) -> nix::Result<&ShareServer> {
        if let Some(server) = self.server.get() {
            return Ok(server);
        }
        let server = ShareServer::open(&self.words)?;
        self.links.notice_rendezvous(server.rendezvous())?;
        note_shared();
        Ok(self.server.get_or_init(|| server))
    }
    /// What other processes use, if they may.
    pub fn server(&self) -> Option<&ShareServer> {
        self.server.get()
    }
    /// Descriptors that a child of fork(2) must not keep.
    pub fn private(&self) -> Vec<RawFd> {
        let mut all = self.private.clone();
        all.push(self.links.descriptor());
        all.extend(self.server.get().map(ShareServer::descriptors).unwrap_or_default());
        all
    }
    /// How the program waits, if it drives the host.
    pub fn waiter(&self) -> Option<Arc<WaitFor>> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
