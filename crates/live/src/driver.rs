//! One thread, one world, its devices: the loop that makes virtual time real.

use crate::clock::Clock;
use crate::device::{Device, DeviceCounters};
use crate::lateness::Lateness;
use farpace_host::Host;
use farpace_path::world::{ElementId, End, Observer, World, WorldError};
use farpace_path::{BoundaryPort, Cx, Port};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use thiserror::Error;

/// Packets read from a device before what they cause is sent: large enough to share wake-ups, small enough to answer soon.
const BURST: usize = 32;
/// Longest sleep: so often the loop looks around, whatever happens.
const LONGEST_SLEEP: Span = Span::from_millis(500);
/// Between two rounds it takes at most this longer than it sleeps, unless it is not let run.
const PAUSE: Span = Span::from_secs(1);
/// Packets that wait for a device; of more, the last are dropped.
pub const DEVICE_QUEUE: usize = 16_384;

/// What a station does when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wait {
    /// It sleeps until something comes or a deadline has come.
    #[default]
    Sleep,
    /// It sleeps until so long before a deadline, and then spins: precise, for a part of a core.
    SpinBefore(Span),
    /// It never sleeps: lowest latency, for one core.
    Spin,
}

/// Why a station has ended before it was told to.
#[derive(Debug, Error)]
pub enum DriverError {
    /// A device is of no use any more.
    #[error("device `{device}`: {error}")]
    Device {
        /// Its name.
        device: String,
        /// What the system said.
        error: io::Error,
    },
    /// An element of its world broke its contract.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The system does not let it wait.
    #[error("cannot wait for devices: {0}")]
    Wait(#[source] io::Error),
}

/// What a station has done.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Rounds of the loop.
    pub turns: u64,
    /// Of them, how many slept before.
    pub sleeps: u64,
    /// Packets dropped because a device took no more.
    pub queue_full: u64,
    /// The longest time for which it did not run though it should have, if that was long: the process was suspended.
    pub longest_pause: Span,
    /// Times at which the clock was put back after a stall: see [`Driver::forget_stalls`].
    pub stalls: u64,
    /// The same, all together.
    pub stalled: Span,
    /// Per device, in the order in which they were added.
    pub devices: Vec<DeviceCounters>,
}

/// Work on a host, between two packets.
pub type HostJob = Box<dyn FnOnce(&mut Host, &mut Cx<'_>) + Send>;

/// How other threads reach the host of a station.
#[derive(Clone)]
pub struct Handle(Arc<DriverState>);

struct DriverState {
    jobs: Mutex<Vec<HostJob>>,
    bell: EventFd,
    /// The station is asleep, or about to be.
    sleeping: AtomicBool,
    stop: AtomicBool,
    /// The station takes no jobs any more.
    ended: AtomicBool,
}

/// The station is not there any more, so the job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the station has ended")]
pub struct Ended;

impl Handle {
    /// Lets `job` be done soon, in the station's thread. Jobs are done in the order in which they were given.
    ///
    /// # Errors
    /// The station has ended.
    pub fn run(&self, job: HostJob) -> Result<(), Ended> {
        {
            let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            // Under the lock: whoever ends sets it before it empties the list for the last time.
            if self.0.ended.load(Ordering::Acquire) {
                return Err(Ended);
            }
            jobs.push(job);
        }
        self.ring();
        Ok(())
    }
    /// Ends the station soon, without ceremony: see [`Host::shutdown`] for the other way.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.ring();
    }
    /// True when the station has ended.
    pub fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }
    fn ring(&self) {
        if self.0.sleeping.swap(false, Ordering::SeqCst) {
            // It can fail only when the counter is full: then it rings already.
            let _ = self.0.bell.write(1);
        }
    }
}

struct Attached {
    door: ElementId,
    device: Box<dyn Device>,
    /// What leaves by it.
    out: VecDeque<Packet>,
    /// When each of them was to leave, if the door notes it.
    dues: VecDeque<Instant>,
    blocked: bool,
    /// Super-segments that come are cut.
    cut: bool,
}

/// A world on devices, run by one thread.
///
/// In the world a [`BoundaryPort`] stands for each device. If there is a host directly behind a door, what comes in a burst by
/// it is answered as a burst.
pub struct Driver {
    world: World,
    clock: Clock,
    wait: Wait,
    host: Option<ElementId>,
    devices: Vec<Attached>,
    shared: Arc<DriverState>,
    stats: Stats,
    arrivals: Vec<Packet>,
    observer: Box<dyn Observer>,
    /// Somebody looks on: packets go by the wires, where they are seen.
    watched: bool,
    lateness: Lateness,
    /// What is late by more is not made up for.
    longest_lateness: Option<Span>,
}

impl Driver {
    /// A station without devices.
    ///
    /// # Errors
    /// The system has no event descriptors left.
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
            arrivals: Vec::with_capacity(BURST),
            observer: Box::new(()),
            watched: false,
            lateness: Lateness::new(),
            longest_lateness: None,
        })
    }

    /// A station of one host on one device. The host sends super-segments, if the device takes them, and no packets longer
    /// than the device takes.
    ///
    /// # Errors
    /// As [`new`](Driver::new).
    pub fn of_host(mut host: Host, device: Box<dyn Device>, wait: Wait) -> Result<Self, DriverError> {
        let mut world = World::new(0);
        host.set_super_segments(device.info().super_segment);
        host.set_mtu(device.info().mtu);
        let host = world.add("host", Box::new(host))?;
        let door = world.add("device", Box::new(BoundaryPort::default()))?;
        world.connect((host, Port(0)), (door, Port(0)))?;
        let mut station = Driver::new(world, wait)?;
        station.attach(door, device);
        station.set_host(host);
        Ok(station)
    }

    /// Packets that leave by `door` are sent by `device`, and the other way round.
    pub fn attach(&mut self, door: ElementId, device: Box<dyn Device>) {
        let (out, dues) = (VecDeque::new(), VecDeque::new());
        self.devices.push(Attached { door, device, out, dues, blocked: false, cut: false });
    }
    /// The same; super-segments that come in are cut, so that elements see the packets that a line would carry.
    pub fn attach_cutting(&mut self, door: ElementId, device: Box<dyn Device>) {
        self.attach(door, device);
        if let Some(attached) = self.devices.last_mut() {
            attached.cut = true;
        }
    }
    /// From now on `observer` sees what happens on the wires of the world that are observed. A host is then no longer given
    /// bursts as one.
    pub fn show_to(&mut self, observer: Box<dyn Observer>) {
        self.watched = true;
        self.observer = observer;
    }
    /// Both ends of the wires between its doors and the world.
    pub(crate) fn ends(&self) -> Vec<End> {
        let near = self.devices.iter().map(|attached| (attached.door, Port(0)));
        near.flat_map(|end| [Some(end), self.world.peer(end)]).flatten().collect()
    }
    /// How late packets have left by [timed](BoundaryPort::timed) doors.
    pub const fn lateness(&self) -> &Lateness {
        &self.lateness
    }
    /// The same, to begin anew.
    pub const fn lateness_mut(&mut self) -> &mut Lateness {
        &mut self.lateness
    }
    /// From now on the time of a stall is not made up for: when what is due is late by more than `longest`, the clock is put
    /// back until it is so late. Otherwise all that has become due meanwhile leaves at once, which a pacer must never do.
    /// For worlds to which no time but that between packets matters.
    pub const fn forget_stalls(&mut self, longest: Span) {
        self.longest_lateness = Some(longest);
    }
    /// The host that jobs are for. Packets of it that wait for a device are not sent again.
    pub fn set_host(&mut self, host: ElementId) {
        self.host = Some(host);
        if let Some(host) = self.world.element_mut::<Host>(host) {
            host.know_departures();
        }
    }
    /// How other threads reach it.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }
    /// Its world.
    pub fn world(&self) -> &World {
        &self.world
    }
    /// The same, to look at and to change.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }
    /// The present, as its elements see it.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats.clone();
        stats.stalled = self.clock.behind();
        stats.devices = self.devices.iter().map(|attached| attached.device.counters()).collect();
        stats
    }

    /// Makes and runs a station in a thread of its own. `make` runs there, because a world does not move between threads.
    ///
    /// # Errors
    /// What `make` returns, or that there is no thread to be had.
    pub fn spawn<E: Send + 'static + From<DriverError>>(
        name: &str,
        make: impl FnOnce() -> Result<Driver, E> + Send + 'static,
    ) -> Result<(Handle, JoinHandle<Result<Stats, DriverError>>), E> {
        let (tell, hear) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || match make() {
            Ok(mut station) => {
                let _ = tell.send(Ok(station.handle()));
                let ended = station.run();
                ended.map(|()| station.stats())
            }
            Err(error) => {
                let _ = tell.send(Err(error));
                Ok(Stats::default())
            }
        });
        let thread = thread.map_err(|error| E::from(DriverError::Wait(error)))?;
        match hear.recv() {
            Ok(Ok(handle)) => Ok((handle, thread)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(E::from(DriverError::Wait(io::Error::other("the thread has panicked")))),
        }
    }

    /// Runs until it is told to stop.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn run(&mut self) -> Result<(), DriverError> {
        let result = loop {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.shared.ended.store(true, Ordering::Release);
        // What was given before that is not done, but must not be kept.
        drop(std::mem::take(&mut *self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner)));
        result
    }

    /// One round: what has come in, what is due, what goes out; then a wait, if there is nothing to do. False: it was told
    /// to stop.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn turn(&mut self) -> Result<bool, DriverError> {
        self.stats.turns += 1;
        if self.shared.stop.load(Ordering::SeqCst) {
            return Ok(false);
        }
        let gap = self.clock.now().since(self.world.now());
        if gap > LONGEST_SLEEP + PAUSE {
            self.stats.longest_pause = self.stats.longest_pause.max(gap);
        }
        let now = self.present();
        self.world.run_until(now, &mut *self.observer)?;
        let mut busy = self.do_jobs()?;
        for at in 0..self.devices.len() {
            busy |= self.take_in(at)?;
        }
        self.world.run_until(self.world.now(), &mut *self.observer)?;
        busy |= self.send_out()?;
        if !busy {
            self.rest()?;
        }
        Ok(true)
    }

    /// What its elements are to take for the present.
    fn present(&mut self) -> Instant {
        let now = self.clock.now();
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

    /// Reads a burst from a device into the world.
    fn take_in(&mut self, at: usize) -> Result<bool, DriverError> {
        let Attached { device, .. } = &mut self.devices[at];
        let received = device.receive(BURST, &mut self.arrivals);
        received.map_err(|error| DriverError::Device { device: device.info().name.clone(), error })?;
        if self.arrivals.is_empty() {
            return Ok(false);
        }
        // They have come until now, not until the round began: what is delayed from here on must not leave early.
        let now = self.present();
        self.world.run_until(now, &mut *self.observer)?;
        let Attached { door, cut, .. } = &self.devices[at];
        let (arrivals, cut) = (self.arrivals.drain(..), *cut);
        if let (Some(host), Some((peer, _))) = (self.host, self.world.peer((*door, Port(0))))
            && host == peer
            && !self.watched
        {
            self.world.call(host, &mut *self.observer, |host: &mut Host, cx| host.on_burst(arrivals, cx))?;
            return Ok(true);
        }
        self.world.call(*door, &mut *self.observer, |door: &mut BoundaryPort, cx| {
            for packet in arrivals {
                match cut && packet.segment_size().is_some() {
                    true => packet.split_segments(|part| door.enter(part, cx)),
                    false => door.enter(packet, cx),
                }
            }
        })?;
        Ok(true)
    }

    /// Sends what has come to the doors. True: something went.
    fn send_out(&mut self) -> Result<bool, DriverError> {
        let mut any = false;
        for Attached { door, device, out, dues, blocked, .. } in &mut self.devices {
            if let Some(door) = self.world.element_mut::<BoundaryPort>(*door) {
                out.append(door.left());
                if let Some(times) = door.dues() {
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
                dues.drain(..dues.len() - out.len()).for_each(|due| self.lateness.record(now.since(due)));
                if let Some(longest) = self.longest_lateness {
                    // It stood still with packets in its hands: the next ones keep their distance from these.
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

    /// Sleeps until something is to be done, if it is not to spin.
    fn rest(&mut self) -> Result<(), DriverError> {
        let due = self.world.next_event_time();
        let now = self.clock.now();
        let mut left = due.map_or(LONGEST_SLEEP, |at| at.since(now)).min(LONGEST_SLEEP);
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
        // Whoever came before that has not rung.
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
