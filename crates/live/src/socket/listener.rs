//! Listeners: connections that wait to be accepted.

use super::bound::BoundSocket;
use super::bridge::Bridge;
use super::engine::{Engine, ask, ended};
use super::pipe::Pipe;
use super::registry::{Interrupt, Registry};
use super::shared::{IoDirection, Readiness, ReadinessWatch, Ready, SharedState, deadline};
use super::stream::Stream;
use farpace_host::{Application, BindId, ListenError, ListenSettings};
use farpace_tcp::config::Config;
use farpace_units::Rate;
use nix::errno::Errno;
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Accepts connections to one port of a stack. Dropping it closes the port; connections that nobody has accepted are reset.
pub struct LiveListener {
    queue: Arc<AcceptQueue>,
    bound: Arc<BoundSocket>,
    linger: Option<Duration>,
    nonblocking: AtomicBool,
    timeout: Mutex<Option<Duration>>,
}

/// How the connections of a listener are, and how many there may be.
#[derive(Clone)]
pub struct Listening {
    /// TCP.
    pub config: Config,
    /// Payload leaves at this rate at most.
    pub rate_cap: Option<Rate>,
    /// SYNs beyond the half-open connections are answered with cookies.
    pub cookies: bool,
    /// Connections that wait to be accepted at most.
    pub backlog: usize,
    /// What each of them is given ([`Stream::extra`]).
    pub extra: Option<Arc<dyn Any + Send + Sync>>,
}

/// What a listener and the station share.
pub(super) struct AcceptQueue {
    pub shared: SharedState<PendingConnections>,
    engine: Arc<dyn Engine>,
    registry: Arc<Registry>,
    place: u64,
    id: BindId,
    how: Mutex<Listening>,
}

#[derive(Default)]
pub(super) struct PendingConnections {
    open: VecDeque<Arc<Pipe>>,
    closed: bool,
    /// Reset because too many waited.
    refused: u64,
    arrivals: u64,
    accepted: u64,
}

impl Ready for PendingConnections {
    fn readiness(&self) -> Readiness {
        let readable = self.closed || !self.open.is_empty();
        let (arrivals, reads) = (self.arrivals, self.accepted);
        Readiness { readable, over: self.closed, arrivals, reads, ..Readiness::default() }
    }
}

impl Interrupt for AcceptQueue {
    fn interrupt(&self) {
        self.shared.interrupt();
    }
    fn backlog(&self) -> Option<(BindId, usize, usize)> {
        Some((self.id, self.shared.with(|waiting| waiting.open.len()), self.how().backlog))
    }
}

impl Drop for AcceptQueue {
    fn drop(&mut self) {
        self.registry.leave(self.place);
    }
}

impl AcceptQueue {
    fn how(&self) -> MutexGuard<'_, Listening> {
        self.how.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A connection is open. False: too many wait, or nobody listens any more.
    fn offer(&self, pipe: Arc<Pipe>) -> bool {
        let most = self.how().backlog;
        self.shared.with(|waiting| {
            let room = !waiting.closed && waiting.open.len() < most;
            if room {
                waiting.open.push_back(pipe);
                waiting.arrivals += 1;
            } else {
                waiting.refused += 1;
            }
            room
        })
    }
}

/// Goes with the factory of the host's listener: tells whoever waits that the host is gone.
struct ListenerGuard(Arc<AcceptQueue>);

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.shared.with(|waiting| waiting.closed = true);
    }
}

impl LiveListener {
    pub(super) fn open(
        engine: &Arc<dyn Engine>,
        registry: &Arc<Registry>,
        bound: Arc<BoundSocket>,
        how: Listening,
        linger: Option<Duration>,
    ) -> io::Result<Self> {
        let place = registry.reserve();
        let settings = ListenSettings { cookies: how.cookies, ..ListenSettings::new(how.config.clone()) };
        let queue = Arc::new(AcceptQueue {
            shared: SharedState::new(PendingConnections::default()),
            engine: engine.clone(),
            registry: registry.clone(),
            place,
            id: bound.id(),
            how: Mutex::new(how),
        });
        let weak: Weak<dyn Interrupt> = Arc::<AcceptQueue>::downgrade(&queue);
        registry.enter(place, weak);
        let (door, id) = (ListenerGuard(queue.clone()), bound.id());
        let opened = ask(&**engine, move |host, _| {
            let factory = move || -> Box<dyn Application> {
                let queue = door.0.clone();
                let how = queue.how().clone();
                let (engine, registry) = (queue.engine.clone(), queue.registry.clone());
                let pipe = Pipe::with_extra(engine, registry, &how.config, how.extra);
                pipe.cap_rate(how.rate_cap);
                Box::new(Bridge::announced(pipe, move |pipe| queue.offer(pipe)))
            };
            host.listen_on(id, settings, factory)
        })?;
        opened.map_err(|_: ListenError| Errno::EADDRINUSE)?;
        Ok(LiveListener {
            queue,
            bound,
            linger,
            nonblocking: AtomicBool::new(false),
            timeout: Mutex::default(),
        })
    }

    /// Connections that begin from now on are as `how` says.
    pub fn retune(&self, how: Listening) {
        let (id, config) = (self.bound.id(), how.config.clone());
        *self.queue.how() = how;
        // An engine that has ended has no connections.
        let _ = self.queue.engine.run(Box::new(move |host, _| {
            host.set_listener_config(id, config);
        }));
    }
    /// How its connections are.
    pub fn how(&self) -> Listening {
        self.queue.how().clone()
    }
    /// Connections that wait to be accepted now.
    pub fn waiting(&self) -> usize {
        self.queue.shared.with(|waiting| waiting.open.len())
    }

    /// The next connection, and who it is from.
    ///
    /// # Errors
    /// `WouldBlock`: there is none and the listener is non-blocking, or its timeout is over. Network down: the stack has
    /// ended. [`Interrupted`](super::Interrupted).
    pub fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let until = deadline(*self.timeout.lock().unwrap_or_else(PoisonError::into_inner));
        loop {
            if let Some(accepted) = self.try_accept()? {
                return Ok(accepted);
            }
            if self.nonblocking.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.queue.shared.wait(IoDirection::In, until)?;
        }
    }

    pub(super) fn try_accept(&self) -> io::Result<Option<(Stream, SocketAddr)>> {
        loop {
            let pipe = self.queue.shared.with(|waiting| match waiting.open.pop_front() {
                None if waiting.closed => Err(ended()),
                next => {
                    waiting.accepted += 1;
                    Ok(next)
                }
            })?;
            let Some(pipe) = pipe else { return Ok(None) };
            let stream = Stream::new(pipe, self.linger);
            if let Ok(remote) = stream.peer_addr() {
                return Ok(Some((stream, remote)));
            }
        }
    }

    /// Connections as they come, for ever.
    pub fn incoming(&self) -> IncomingConnections<'_> {
        IncomingConnections(self)
    }
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.at()
    }
    /// `accept` fails with `WouldBlock` where it would wait.
    ///
    /// # Errors
    /// None; the standard library's may fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }
    /// `accept` fails with `WouldBlock` when it has waited so long.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }
    /// Everybody who waits in it now gets [`Interrupted`](super::Interrupted).
    pub fn interrupt(&self) {
        self.queue.shared.interrupt();
    }
    /// Connections that were reset because too many waited.
    pub fn refused(&self) -> u64 {
        self.queue.shared.with(|waiting| waiting.refused)
    }
    /// What it lets its program do without waiting.
    pub fn readiness(&self) -> Readiness {
        self.queue.shared.readiness()
    }
    /// From now on `watch` is told of its readiness.
    pub fn watch(&self, watch: Box<dyn ReadinessWatch>) {
        self.queue.shared.watch(watch);
    }
    /// From now on nobody is told.
    pub fn unwatch(&self) {
        self.queue.shared.unwatch();
    }
    #[cfg(feature = "tokio")]
    pub(super) fn shared(&self) -> &SharedState<PendingConnections> {
        &self.queue.shared
    }
}

impl Drop for LiveListener {
    fn drop(&mut self) {
        let id = self.bound.id();
        // An engine that has ended has closed it.
        let _ = self.queue.engine.run(Box::new(move |host, _| {
            host.stop_listening_on(id);
        }));
        let left = self.queue.shared.with(|waiting| {
            waiting.closed = true;
            std::mem::take(&mut waiting.open)
        });
        left.iter().for_each(|pipe| pipe.leave(super::duplex::Farewell::Abort));
    }
}

/// The connections of a [`LiveListener`] as they come.
pub struct IncomingConnections<'a>(&'a LiveListener);

impl Iterator for IncomingConnections<'_> {
    type Item = io::Result<Stream>;
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}
