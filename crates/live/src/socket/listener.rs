//! Listeners and their queues of connections.

use super::bound::BoundSocket;
use super::bridge::Bridge;
use super::engine::{Engine, call_host, ended};
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

/// Accepts connections on a port of a stack. Dropping it closes the port, and resets connections that were
/// not accepted.
pub struct LiveListener {
    queue: Arc<AcceptQueue>,
    bound: Arc<BoundSocket>,
    linger: Option<Duration>,
    nonblocking: AtomicBool,
    timeout: Mutex<Option<Duration>>,
}

/// Configuration of a listener and its connections.
#[derive(Clone)]
pub struct Listening {
    /// Configuration of TCP.
    pub config: Config,
    /// Maximum rate of sent payload.
    pub rate_cap: Option<Rate>,
    /// SYNs beyond the half-open connections are answered with SYN cookies.
    pub cookies: bool,
    /// Maximum number of connections that wait to be accepted.
    pub backlog: usize,
    /// A value attached to each connection ([`Stream::extra`]).
    pub extra: Option<Arc<dyn Any + Send + Sync>>,
}

/// The state that a listener and the driver share.
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
    /// Segments dropped because the queue was full.
    overflows: u64,
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
    /// Offers an established connection. False: the listener is closed.
    fn offer(&self, pipe: Arc<Pipe>) -> bool {
        self.shared.with(|waiting| {
            if !waiting.closed {
                waiting.open.push_back(pipe);
                waiting.arrivals += 1;
            }
            !waiting.closed
        })
    }
    /// False while the queue is full: what would establish another connection is dropped.
    fn has_room(&self) -> bool {
        let max = self.how().backlog;
        self.shared.with(|waiting| {
            let room = waiting.closed || waiting.open.len() < max;
            waiting.overflows += u64::from(!room);
            room
        })
    }
}

/// Belongs to the factory of the host's listener. Dropping it notifies waiting threads that the host has
/// ended.
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
        let (guard, room, id) = (ListenerGuard(queue.clone()), queue.clone(), bound.id());
        let opened = call_host(&**engine, move |host, _| {
            let factory = move || -> Box<dyn Application> {
                let queue = guard.0.clone();
                let how = queue.how().clone();
                let (engine, registry) = (queue.engine.clone(), queue.registry.clone());
                let pipe = Pipe::with_extra(engine, registry, &how.config, how.extra);
                pipe.cap_rate(how.rate_cap);
                Box::new(Bridge::announced(pipe, move |pipe| queue.offer(pipe)))
            };
            let listens = host.listen_on(id, settings, factory);
            host.ask_for_room(id, move || room.has_room());
            listens
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

    /// Changes the configuration of future connections.
    pub fn retune(&self, how: Listening) {
        let (id, config) = (self.bound.id(), how.config.clone());
        *self.queue.how() = how;
        // An ended engine has no connections.
        let _ = self.queue.engine.run(Box::new(move |host, _| {
            host.set_listener_config(id, config);
        }));
    }
    /// The configuration.
    pub fn how(&self) -> Listening {
        self.queue.how().clone()
    }
    /// Number of connections that wait to be accepted.
    pub fn waiting(&self) -> usize {
        self.queue.shared.with(|waiting| waiting.open.len())
    }

    /// Accepts the next connection, with the address of its peer.
    ///
    /// # Errors
    /// `WouldBlock`: there is no connection, and the listener is non-blocking or its timeout has expired.
    /// Network down: the stack has ended. [`Interrupted`](super::Interrupted).
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

    /// An endless iterator over connections.
    pub fn incoming(&self) -> IncomingConnections<'_> {
        IncomingConnections(self)
    }
    /// The local address and port.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.at()
    }
    /// With true, `accept` fails with `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// None; the method of the standard library may fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }
    /// `accept` fails with `WouldBlock` after waiting for this time.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }
    /// All threads that wait in the listener get [`Interrupted`](super::Interrupted).
    pub fn interrupt(&self) {
        self.queue.shared.interrupt();
    }
    /// Number of segments that were dropped because the queue was full: SYNs, and the last segments of
    /// handshakes. Their senders try again.
    pub fn overflows(&self) -> u64 {
        self.queue.shared.with(|waiting| waiting.overflows)
    }
    /// The operations that are possible without waiting.
    pub fn readiness(&self) -> Readiness {
        self.queue.shared.readiness()
    }
    /// Sets the watch for changes of the readiness.
    pub fn watch(&self, watch: Box<dyn ReadinessWatch>) {
        self.queue.shared.watch(watch);
    }
    /// Removes the watch.
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
        // An ended engine has closed it.
        let _ = self.queue.engine.run(Box::new(move |host, _| {
            host.stop_listening_on(id);
        }));
        let left = self.queue.shared.with(|waiting| {
            waiting.closed = true;
            std::mem::take(&mut waiting.open)
        });
        left.iter().for_each(|pipe| pipe.leave(super::duplex::CloseMode::Abort));
    }
}

/// An iterator over the connections of a [`LiveListener`].
pub struct IncomingConnections<'a>(&'a LiveListener);

impl Iterator for IncomingConnections<'_> {
    type Item = io::Result<Stream>;
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}
