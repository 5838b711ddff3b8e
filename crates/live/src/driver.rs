//! The event loop: a thread that runs a world in real time on its devices.

use crate::clock::Clock;
use crate::device::{Device, DeviceCounters};
use crate::lateness::Lateness;
use crate::stall_log::StallLog;
use farpace_host::Host;
use farpace_path::world::{ElementId, End, Observer, World, WorldError};
use farpace_path::{BoundaryPort, Cx, Element, Port};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;
use thiserror::Error;

/// Packets read from a device before the replies are sent: many enough to share wake-ups, few enough for
/// short delays.
const BURST: usize = 32;
/// Maximum sleep, unless [`Driver::wake_each`] says less. After it the loop checks everything, even without
/// an event.
const LONGEST_SLEEP: Span = Span::from_millis(500);
/// Beyond its sleep, a round takes at most this long. A longer time means that the process was suspended.
const PAUSE: Span = Span::from_secs(1);
/// A host whose timers are late by at least this first gets what has arrived. Wake-ups are late by less, and
/// then timers run at their exact times.
const LATE_TIMERS: Span = Span::from_millis(10);
/// Bursts that a device delivers at most before late timers run.
const MAX_LATE_BURSTS: usize = 256;
/// Maximum number of packets that wait for a device. Further packets are dropped.
pub const DEVICE_QUEUE: usize = 16_384;

/// What a driver does when no work is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wait {
    /// Sleeps until an event or a deadline.
    #[default]
    Sleep,
    /// Sleeps until this long before a deadline, and then spins. Precise, at the cost of part of a core.
    SpinBefore(Span),
    /// Spins. Lowest latency, at the cost of a core.
    Spin,
}

/// The error that ended a driver.
#[derive(Debug, Error)]
pub enum DriverError {
    /// A device has failed permanently.
    #[error("device `{device}`: {error}")]
    Device {
        /// Name of the device.
        device: String,
        /// Error of the system.
        error: io::Error,
    },
    /// An element of the world violated its contract.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The system refuses the wait.
    #[error("cannot wait for devices: {0}")]
    Wait(#[source] io::Error),
}

/// Counters of a driver.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Rounds of the loop.
    pub rounds: u64,
    /// Rounds that began with a sleep.
    pub sleeps: u64,
    /// Packets dropped because the queue of a device was full.
    pub queue_full: u64,
    /// Longest time for which the process was suspended. Zero if it never was.
    pub longest_pause: Span,
    /// Number of stalls after which the clock was set back: see [`Driver::spread_stalls`].
    pub stalls: u64,
    /// Total time by which the clock was set back.
    pub stalled: Span,
    /// The part of `stalled` that has been made up for since.
    pub made_up: Span,
    /// Counters of the devices, in the order in which they were attached.
    pub devices: Vec<DeviceCounters>,
}

/// Work on a host, done between two packets.
pub type HostJob = Box<dyn FnOnce(&mut Host, &mut Cx<'_>) + Send>;

/// Access of other threads to the host of a driver.
#[derive(Clone)]
pub struct Handle(Arc<DriverState>);

struct DriverState {
    jobs: Mutex<Vec<HostJob>>,
    bell: EventFd,
    /// The driver sleeps, or is about to.
    sleeping: AtomicBool,
    stop: AtomicBool,
    /// The driver accepts no more jobs.
    ended: AtomicBool,
}

/// The driver has ended, and the job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the driver has ended")]
pub struct Ended;

impl Handle {
    /// Queues `job` for the driver's thread. Jobs are done in order.
    ///
    /// # Errors
    /// The driver has ended.
    pub fn run(&self, job: HostJob) -> Result<(), Ended> {
        {
            let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            // Checked under the lock: the driver sets it before it empties the list for the last time.
            if self.0.ended.load(Ordering::Acquire) {
                return Err(Ended);
            }
            jobs.push(job);
        }
        self.wake();
        Ok(())
    }
    /// Ends the driver soon, without closing connections; see [`Host::shutdown`] for the alternative.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.wake();
    }
    /// True if the driver has ended.
    pub fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }
    fn wake(&self) {
        if self.0.sleeping.swap(false, Ordering::SeqCst) {
            // It fails only if the counter is full. Then the driver is awake already.
            let _ = self.0.bell.write(1);
        }
    }
}

struct Attached {
    port: ElementId,
    device: Box<dyn Device>,
    /// Packets to send.
    out: VecDeque<Packet>,
    /// Scheduled departure of each packet, if the boundary port records it.
    dues: VecDeque<Instant>,
    blocked: bool,
    /// Received super-segments are split.
    split: bool,
}

/// A world with devices, run by one thread.
///
/// Each device has a [`BoundaryPort`] in the world. A host directly behind a boundary port answers a burst of
/// the device with a burst.
pub struct Driver {
    world: World,
    clock: Clock,
    wait: Wait,
    host: Option<ElementId>,
    devices: Vec<Attached>,
    shared: Arc<DriverState>,
    stats: Stats,
    /// When the last round began, by the machine's clock.
    round_began: Option<std::time::Instant>,
    arrivals: Vec<Packet>,
    observer: Box<dyn Observer>,
    /// An observer is set: packets pass the wires, where it sees them.
    watched: bool,
    lateness: Lateness,
    /// Stalls longer than this are made up for slowly.
    longest_lateness: Option<Span>,
    stalls: Option<StallLog>,
    longest_sleep: Span,
}

impl Driver {
    /// A driver without devices.
    ///
    /// # Errors
    /// The system has no event descriptor left.
    pub fn new(world: World, wait: Wait) -> Result<Self, DriverError> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let bell = bell.map_err(|error| DriverError::Wait(error.into()))?;
        Ok(Driver {
            world,
            clock: Clock::new(),
            wait,
            host: None,
            devices: Vec::new(),
            shared: Arc::new(DriverState {
                jobs: Mutex::default(),
                bell,
                sleeping: AtomicBool::new(false),
                stop: AtomicBool::new(false),
                ended: AtomicBool::new(false),
            }),
            stats: Stats::default(),
            round_began: None,
            arrivals: Vec::with_capacity(BURST),
            observer: Box::new(()),
            watched: false,
            lateness: Lateness::new(),
            longest_lateness: None,
            stalls: None,
            longest_sleep: LONGEST_SLEEP,
        })
    }

    /// A driver of one host on one device. The host sends super-segments if the device accepts them, and
    /// packets of at most the device's MTU.
    ///
    /// # Errors
    /// As [`new`](Driver::new).
    pub fn of_host(mut host: Host, device: Box<dyn Device>, wait: Wait) -> Result<Self, DriverError> {
        let mut world = World::new(0);
        host.set_super_segments(device.info().super_segment);
        host.set_mtu(device.info().mtu);
        let host = world.add("host", Box::new(host))?;
        let port = world.add("device", Box::new(BoundaryPort::default()))?;
        world.connect((host, Port(0)), (port, Port(0)))?;
        let mut driver = Driver::new(world, wait)?;
        driver.attach(port, device);
        driver.set_host(host);
        Ok(driver)
    }

    /// Connects a device to a boundary port, in both directions.
    pub fn attach(&mut self, port: ElementId, device: Box<dyn Device>) {
        let (out, dues) = (VecDeque::new(), VecDeque::new());
        self.devices.push(Attached { port, device, out, dues, blocked: false, split: false });
    }
    /// Like [`attach`](Driver::attach), but splits received super-segments, so that elements see the packets
    /// that a link would carry.
    pub fn attach_splitting(&mut self, port: ElementId, device: Box<dyn Device>) {
        self.attach(port, device);
        if let Some(attached) = self.devices.last_mut() {
            attached.split = true;
        }
    }
    /// Sets the observer of the observed wires of the world. With an observer, a host no longer gets bursts
    /// as a whole.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.watched = true;
        self.observer = observer;
    }
    /// Removes the observer.
    pub fn remove_observer(&mut self) {
        self.watched = false;
        self.observer = Box::new(());
    }
    /// Calls `act` on an element now, as [`World::call`]. The observer sees the packets that it sends.
    ///
    /// # Errors
    /// See [`World::call`].
    pub fn call<T: Element, R>(
        &mut self,
        id: ElementId,
        act: impl FnOnce(&mut T, &mut Cx<'_>) -> R,
    ) -> Result<R, WorldError> {
        self.world.call(id, &mut *self.observer, act)
    }
    /// Both ends of the wires between the boundary ports and the world.
    pub(crate) fn wire_ends(&self) -> Vec<End> {
        let near = self.devices.iter().map(|attached| (attached.port, Port(0)));
        near.flat_map(|end| [Some(end), self.world.peer(end)]).flatten().collect()
    }
    /// Lateness of the packets that left by [timed](BoundaryPort::timed) boundary ports.
    pub const fn lateness(&self) -> &Lateness {
        &self.lateness
    }
    /// Mutable access, for example to reset it.
    pub const fn lateness_mut(&mut self) -> &mut Lateness {
        &mut self.lateness
    }
    /// From now on the time of long stalls is made up for slowly: if the next event is late by more than
    /// `longest`, the clock is set back until it is late by `longest`, and then runs 2 % faster until it has
    /// caught up ([`MAX_STALL_DEBT`](crate::MAX_STALL_DEBT) at most). Otherwise all packets that became due
    /// during the stall would leave at once, which a pacer must not do. For worlds in which only the time
    /// between packets matters.
    pub const fn spread_stalls(&mut self, longest: Span) {
        self.longest_lateness = Some(longest);
    }
    /// From now on the times are kept in which the driver stood still for at least `min` although something
    /// was due: an event of the world, or a packet that leaves by a [timed](BoundaryPort::timed) port.
    pub fn log_stalls(&mut self, min: Span) {
        self.stalls = Some(StallLog::new(min));
    }
    /// These times, in order and without overlap. None if they were not asked for, or were too many.
    pub fn logged_stalls(&self) -> Option<&[Range<Instant>]> {
        self.stalls.as_ref()?.all()
    }
    /// A round takes place at least each `span`, and each 500 ms in any case.
    pub fn wake_each(&mut self, span: Span) {
        self.longest_sleep = span.min(LONGEST_SLEEP);
    }
    /// Sets the host that jobs are done on. Its packets that wait for a device are not retransmitted.
    pub fn set_host(&mut self, host: ElementId) {
        self.host = Some(host);
        if let Some(host) = self.world.element_mut::<Host>(host) {
            host.know_departures();
        }
    }
    /// A handle for other threads.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }
    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }
    /// Mutable access to the world.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }
    /// The current time of the elements.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
    /// The time since 1970-01-01 at which the time of the elements began.
    pub fn epoch(&self) -> Span {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let since_1970 = Span::from_nanos(u64::try_from(since_1970.as_nanos()).unwrap_or(0));
        since_1970 - self.now().since(Instant::ZERO)
    }
    /// The counters.
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats.clone();
        stats.stalled = self.clock.behind();
        stats.made_up = self.clock.made_up();
        stats.devices = self.devices.iter().map(|attached| attached.device.counters()).collect();
        stats
    }

    /// Builds and runs a driver in a thread of its own. `make` runs in that thread, because a world cannot
    /// move between threads.
    ///
    /// # Errors
    /// The error of `make`, or the thread cannot be started.
    pub fn spawn<E: Send + 'static + From<DriverError>>(
        name: &str,
        make: impl FnOnce() -> Result<Driver, E> + Send + 'static,
    ) -> Result<(Handle, JoinHandle<Result<Stats, DriverError>>), E> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || match make() {
            Ok(mut driver) => {
                let _ = sender.send(Ok(driver.handle()));
                let ended = driver.run();
                ended.map(|()| driver.stats())
            }
            Err(error) => {
                let _ = sender.send(Err(error));
                Ok(Stats::default())
            }
        });
        let thread = thread.map_err(|error| E::from(DriverError::Wait(error)))?;
        match receiver.recv() {
            Ok(Ok(handle)) => Ok((handle, thread)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(E::from(DriverError::Wait(io::Error::other("the thread has panicked")))),
        }
    }

    /// Runs until [`Handle::stop`].
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn run(&mut self) -> Result<(), DriverError> {
        let result = loop {
            match self.run_round() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.shared.ended.store(true, Ordering::Release);
        // Jobs that were queued before are not done, but must be dropped.
        drop(std::mem::take(&mut *self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner)));
        result
    }

    /// One round: received packets, due events, packets to send; then a wait if no work is left. Returns
    /// false after [`Handle::stop`].
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn run_round(&mut self) -> Result<bool, DriverError> {
        self.stats.rounds += 1;
        if self.shared.stop.load(Ordering::SeqCst) {
            return Ok(false);
        }
        self.notice_pause();
        // One reading of the clock for both: between two of them the process could be suspended.
        let now = self.clock.now();
        let now = match self.timers_are_late(now) && self.read_before_timers()? {
            true => self.world.now(),
            false => self.limit_lateness(now),
        };
        self.advance(now)?;
        let mut busy = self.do_jobs()?;
        for at in 0..self.devices.len() {
            busy |= self.receive_from(at, false)?;
        }
        // What the packets call for is due by now, and leaves in this round.
        let now = if busy { self.clock.now() } else { self.world.now() };
        let now = match self.timers_are_late(now) {
            true => self.world.now(),
            false => self.limit_lateness(now),
        };
        self.advance(now)?;
        busy |= self.transmit()?;
        if !busy {
            self.wait_for_work()?;
        }
        Ok(true)
    }

    /// Runs all events up to `now`.
    fn advance(&mut self, now: Instant) -> Result<(), WorldError> {
        if let Some(log) = &mut self.stalls
            && let Some(due) = self.world.next_event_time()
        {
            log.add(due, now);
        }
        self.world.run_until(now, &mut *self.observer)
    }

    /// Compares the beginnings of two rounds: wherever in a round the process was suspended, it is seen.
    fn notice_pause(&mut self) {
        let began = std::time::Instant::now();
        if let Some(last) = self.round_began.replace(began) {
            let gap = began.duration_since(last).as_nanos();
            let gap = Span::from_nanos(u64::try_from(gap).unwrap_or(u64::MAX));
            if gap > LONGEST_SLEEP + PAUSE {
                self.stats.longest_pause = self.stats.longest_pause.max(gap);
            }
        }
    }

    /// After a stall, the ACK that would have stopped a timer waits unread, and a timer that ran first would
    /// find losses, or a dead peer, where there are none. So what has arrived comes first, if all devices
    /// are those of a host: other elements need exact times.
    fn timers_are_late(&self, now: Instant) -> bool {
        // Most rounds follow each other closely, and need no look at all elements.
        if now.since(self.world.now()) < LATE_TIMERS {
            return false;
        }
        let due = self.world.next_event_time();
        due.is_some_and(|due| now.since(due) >= LATE_TIMERS) && self.devices_are_of_host()
    }

    /// Reads what has arrived, while the timers wait. Returns whether anything has.
    fn read_before_timers(&mut self) -> Result<bool, DriverError> {
        let mut any = false;
        for at in 0..self.devices.len() {
            for _ in 0..MAX_LATE_BURSTS {
                if !self.receive_from(at, true)? {
                    break;
                }
                any = true;
            }
        }
        Ok(any)
    }

    /// The world is a host and its devices, with nothing between.
    fn devices_are_of_host(&self) -> bool {
        self.world.ids().count() == self.devices.len() + 1
            && self.devices.iter().all(|attached| self.host_behind(attached.port).is_some())
    }

    /// The host, if it is directly behind this boundary port.
    fn host_behind(&self, port: ElementId) -> Option<ElementId> {
        let (peer, _) = self.world.peer((port, Port(0)))?;
        self.host.filter(|host| *host == peer)
    }

    /// The time that elements get as the present, when the clock says `now`.
    fn limit_lateness(&mut self, now: Instant) -> Instant {
        let (Some(longest), Some(due)) = (self.longest_lateness, self.world.next_event_time()) else {
            return now;
        };
        let excess = now.since(due) - longest;
        if excess.is_zero() {
            return now;
        }
        self.stats.stalls += 1;
        self.clock.put_back(excess);
        due + longest
    }

    fn do_jobs(&mut self) -> Result<bool, DriverError> {
        let jobs = std::mem::take(&mut *self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        let any = !jobs.is_empty();
        if let Some(host) = self.host {
            for job in jobs {
                self.world.call(host, &mut *self.observer, |host: &mut Host, cx| job(host, cx))?;
            }
        }
        Ok(any)
    }

    /// Reads a burst from a device into the world; `before_timers`: what is due waits until it is read.
    fn receive_from(&mut self, at: usize, before_timers: bool) -> Result<bool, DriverError> {
        let Attached { device, .. } = &mut self.devices[at];
        let received = device.receive(BURST, &mut self.arrivals);
        received.map_err(|error| DriverError::Device { device: device.info().name.clone(), error })?;
        let is_heard_again = device.is_heard_again();
        if self.arrivals.is_empty() {
            return if is_heard_again { self.retry_now() } else { Ok(false) };
        }
        // The packets have arrived by now, not by the beginning of the round: what elements delay from here
        // on must not leave early.
        let now = self.clock.now();
        let before_timers = before_timers || self.timers_are_late(now);
        let now = self.limit_lateness(now);
        match before_timers {
            true => self.world.oversleep(now),
            false => self.advance(now)?,
        }
        let Attached { port, split, .. } = self.devices[at];
        let host = self.host_behind(port);
        let arrivals = self.arrivals.drain(..);
        if let Some(host) = host
            && !self.watched
        {
            self.world.call(host, &mut *self.observer, |host: &mut Host, cx| host.on_burst(arrivals, cx))?;
            return if is_heard_again { self.retry_now() } else { Ok(true) };
        }
        self.world.call(port, &mut *self.observer, |port: &mut BoundaryPort, cx| {
            for packet in arrivals {
                match split && packet.segment_size().is_some() {
                    true => packet.split_segments(|part| port.enter(part, cx)),
                    false => port.enter(packet, cx),
                }
            }
        })?;
        if is_heard_again { self.retry_now() } else { Ok(true) }
    }

    /// Connections send again what waits for a timeout that an outage has made long.
    fn retry_now(&mut self) -> Result<bool, DriverError> {
        if let Some(host) = self.host {
            self.world.call(host, &mut *self.observer, |host: &mut Host, cx| {
                let (now, all) = (cx.now(), host.connections().map(|(id, _)| id).collect::<Vec<_>>());
                for id in all {
                    host.with_connection(id, cx, |connection| connection.retry_now(now));
                }
            })?;
        }
        Ok(true)
    }

    /// Sends the packets at the boundary ports. Returns true if any packet was sent.
    fn transmit(&mut self) -> Result<bool, DriverError> {
        let mut any = false;
        for Attached { port, device, out, dues, blocked, .. } in &mut self.devices {
            if let Some(port) = self.world.element_mut::<BoundaryPort>(*port) {
                out.append(port.left());
                if let Some(times) = port.dues() {
                    dues.append(times);
                }
            }
            if out.is_empty() {
                continue;
            }
            let before = out.len();
            let sent = device.send(out);
            sent.map_err(|error| DriverError::Device { device: device.info().name.clone(), error })?;
            any |= out.len() < before;
            *blocked = !out.is_empty();
            if dues.len() > out.len() {
                let now = self.clock.now();
                let first = dues.front().copied().unwrap_or(now);
                if let Some(log) = &mut self.stalls {
                    log.add(first, now);
                }
                dues.drain(..dues.len() - out.len()).for_each(|due| self.lateness.record(now.since(due)));
                if let Some(longest) = self.longest_lateness {
                    // The driver stalled while it held packets: the next ones keep their distance from these.
                    let excess = (now.since(first) - longest).min(now.since(self.world.now()));
                    self.stats.stalls += u64::from(!excess.is_zero());
                    self.clock.put_back(excess);
                }
            }
            if out.len() > DEVICE_QUEUE {
                self.stats.queue_full += (out.len() - DEVICE_QUEUE) as u64;
                out.truncate(DEVICE_QUEUE);
                dues.truncate(DEVICE_QUEUE);
            }
        }
        Ok(any)
    }

    /// Sleeps until the next event, unless it spins.
    fn wait_for_work(&mut self) -> Result<(), DriverError> {
        let due = self.world.next_event_time();
        let now = self.clock.now();
        let until_due = due.map_or(self.longest_sleep, |at| self.clock.sleep_for(at.since(now)));
        let mut left = until_due.min(self.longest_sleep);
        let devices = self.devices.iter().filter_map(|attached| attached.device.due_in());
        left = devices.fold(left, Span::min);
        match self.wait {
            Wait::Spin => left = Span::ZERO,
            Wait::SpinBefore(margin) => left -= margin,
            Wait::Sleep => {}
        }
        if left.is_zero() {
            std::hint::spin_loop();
            return Ok(());
        }
        self.shared.sleeping.store(true, Ordering::SeqCst);
        // Jobs queued before this have not woken the driver.
        let pressed = !self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
            || self.shared.stop.load(Ordering::SeqCst);
        if !pressed {
            let mut fds: Vec<_> = vec![PollFd::new(self.shared.bell.as_fd(), PollFlags::POLLIN)];
            for Attached { device, blocked, .. } in &self.devices {
                let writable = if *blocked { PollFlags::POLLOUT } else { PollFlags::empty() };
                fds.push(PollFd::new(device.fd(), PollFlags::POLLIN | writable));
            }
            self.stats.sleeps += 1;
            let nanos = left.as_nanos();
            let time = TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64);
            match ppoll(&mut fds, Some(time), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(DriverError::Wait(error.into())),
            }
        }
        self.shared.sleeping.store(false, Ordering::SeqCst);
        let _ = self.shared.bell.read();
        Ok(())
    }
}
