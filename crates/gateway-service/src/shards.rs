//! The threads of a gateway. Each has a gateway of its own with a queue of each device; they share the
//! connections ([`SharedFlows`]). The first runs in the thread of the service.

#![allow(clippy::disallowed_methods, reason = "whether threads live is a question of real time")]

use super::capture::{CaptureFeed, GatewayCapture};
use super::records::ConnectionRecord;
use super::route_cache::RouteCache;
use super::shared_ledger::SharedLedger;
use anyhow::{Context, Result, anyhow, bail};
use farpace_gateway::{ComparisonResult, FlowView, Gateway, GatewayConfig, GatewayTotals, SharedFlows};
use farpace_live::{Device, DeviceCounters, Driver, Handle, Wait, sharpen_timers};
use farpace_path::world::{ElementId, World};
use farpace_path::{BoundaryPort, Cx, Port};
use farpace_units::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads of a gateway at most.
pub const MAX_THREADS: usize = 64;
/// A thread does a round at least this often, ...
const ROUND: Span = Span::from_millis(200);
/// ... and hangs if it has done none for this time.
const HANG: Duration = Duration::from_millis(300);
/// Rounds of the loop after nothing comes any more.
const LAST_ROUNDS: u32 = 8;
/// Names of the boundary ports, and the sides behind them.
const SIDES: [(&str, Port); 2] = [("lan", Gateway::LAN), ("wan", Gateway::WAN)];

/// The gateway of one thread.
pub struct GatewayShard {
    pub driver: Driver,
    pub gateway: ElementId,
    shard: SharedFlows,
    is_over: bool,
}

/// What is seen of a shard from outside.
pub struct ShardView {
    pub totals: GatewayTotals,
    pub devices: Vec<DeviceCounters>,
    pub flows: Vec<FlowView>,
}

/// What a shard is made with.
pub struct ShardParts {
    /// Its place among those that share connections.
    pub flows: SharedFlows,
    /// Its queue of each device.
    pub devices: Vec<Box<dyn Device>>,
    /// Its part of the ledger.
    pub ledger: SharedLedger,
}

impl GatewayShard {
    /// A gateway on one queue of each device. `more` puts what is behind the sides without a device into the
    /// world.
    pub fn new<T>(
        config: GatewayConfig,
        parts: ShardParts,
        more: impl FnOnce(&mut World, ElementId) -> Result<T>,
    ) -> Result<(Self, T)> {
        let ShardParts { flows: shard, devices, ledger } = parts;
        let mut world = World::new(0);
        let names: Vec<_> = devices.iter().map(|device| device.info().name.clone()).collect();
        let mut gateway = Gateway::in_shard(config, shard.clone());
        gateway.set_routes(Box::new(RouteCache::open(&names).context("cannot ask for routes")?));
        gateway.set_ledger(Box::new(ledger));
        let gateway = world.add("gateway", Box::new(gateway))?;
        let mut ports = Vec::new();
        for (name, port) in SIDES.into_iter().take(devices.len()) {
            let boundary = world.add(name, Box::new(BoundaryPort::default()))?;
            world.connect((gateway, port), (boundary, Port(0)))?;
            ports.push(boundary);
        }
        let made = more(&mut world, gateway)?;
        let mut driver = Driver::new(world, Wait::Sleep)?;
        for (port, device) in ports.into_iter().zip(devices) {
            driver.attach(port, device);
        }
        driver.wake_each(ROUND);
        let handle = driver.handle();
        // A job wakes the driver, which does nothing else with it.
        shard.wake_by(move || {
            let _ = handle.run(Box::new(|_, _| {}));
        });
        sharpen_timers();
        Ok((GatewayShard { driver, gateway, shard, is_over: false }, made))
    }

    /// What other threads have handed over, and a round of the driver.
    pub fn round(&mut self) -> Result<()> {
        for (port, packet) in self.shard.handed_over() {
            self.on_gateway(|gateway, cx| gateway.take_over(port, packet, cx));
        }
        self.driver.run_round()?;
        Ok(())
    }

    /// Connections of all threads.
    pub fn connections(&self) -> usize {
        self.shard.connections()
    }

    /// Works on the gateway now.
    pub fn on_gateway(&mut self, act: impl FnOnce(&mut Gateway, &mut Cx<'_>)) {
        // The element is there as long as the world.
        let _ = self.driver.call(self.gateway, act);
    }

    /// Takes another configuration, for new connections.
    pub fn reconfigure(&mut self, config: GatewayConfig) {
        if let Some(gateway) = self.driver.world_mut().element_mut::<Gateway>(self.gateway) {
            gateway.reconfigure(config);
        }
    }

    /// Captures from now on.
    ///
    /// # Errors
    /// The gateway is not connected.
    pub fn start_capture(&mut self, feed: CaptureFeed) -> Result<()> {
        GatewayCapture::begin(feed, &mut self.driver, self.gateway)
    }

    /// Captures no more.
    pub fn end_capture(&mut self) {
        self.driver.remove_observer();
    }

    /// What the comparison has found since the last call.
    pub fn take_results(&mut self) -> Vec<ComparisonResult> {
        let now = self.driver.now();
        let gateway = self.driver.world_mut().element_mut::<Gateway>(self.gateway);
        gateway.map(|gateway| gateway.take_results(now)).unwrap_or_default()
    }

    /// The connections that have ended since the last call, and how many more had no room.
    pub fn take_ended(&mut self) -> (Vec<Arc<ConnectionRecord>>, u64) {
        let epoch = self.driver.epoch();
        let gateway = self.driver.world_mut().element_mut::<Gateway>(self.gateway);
        let (ended, lost) = gateway.map(Gateway::take_ended).unwrap_or_default();
        (ended.into_iter().map(|flow| Arc::new(ConnectionRecord::ended(epoch, flow))).collect(), lost)
    }

    /// What it does, with so many of the busiest connections at most.
    pub fn view(&self, rows: usize) -> ShardView {
        let gateway = self.driver.world().element::<Gateway>(self.gateway);
        let now = self.driver.now();
        ShardView {
            totals: gateway.map(Gateway::totals).unwrap_or_default(),
            devices: self.driver.stats().devices,
            flows: gateway.map(|gateway| gateway.busiest(now, rows)).unwrap_or_default(),
        }
    }

    /// What still waits in the devices goes out.
    pub fn send_the_rest(&mut self) {
        // A job keeps the loop from sleeping.
        let handle = self.driver.handle();
        for _ in 0..LAST_ROUNDS {
            if handle.run(Box::new(|_, _| {})).is_err() || self.driver.run_round().is_err() {
                break;
            }
        }
    }
}

impl ShardView {
    /// Of two threads; of their connections so many at most.
    pub fn with(mut self, other: ShardView, rows: usize) -> ShardView {
        self.totals = self.totals.with(other.totals);
        for (own, theirs) in self.devices.iter_mut().zip(other.devices) {
            *own = *own + theirs;
        }
        self.flows.extend(other.flows);
        FlowView::keep_busiest(&mut self.flows, rows);
        self
    }
}

type ShardJob = Box<dyn FnOnce(&mut GatewayShard) + Send>;

/// A thread with a gateway.
struct Worker {
    handle: Handle,
    work: Sender<ShardJob>,
    thread: JoinHandle<Result<()>>,
    /// Milliseconds from `began` to its last round.
    last_round: Arc<AtomicU64>,
    began: Instant,
}

/// The threads besides that of the service.
pub struct Workers(Vec<Worker>);

impl Workers {
    /// Starts a thread for each of the shards, with its queues of the devices.
    ///
    /// # Errors
    /// The system has no more threads or descriptors.
    pub fn start(config: &GatewayConfig, shards: Vec<ShardParts>, first: &Handle) -> Result<Self> {
        let mut workers = Workers(Vec::new());
        for (n, parts) in (2..).zip(shards) {
            workers.0.push(Worker::start(n, config.clone(), parts, first.clone())?);
        }
        Ok(workers)
    }

    /// Has each thread do some work, and waits for all answers.
    ///
    /// # Errors
    /// A thread has ended.
    pub fn each<R: Send + 'static>(
        &self,
        work: impl Fn(&mut GatewayShard) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>> {
        let answers: Vec<_> = self.0.iter().map(|worker| worker.ask(work.clone())).collect();
        let gone = || anyhow!("a thread of the gateway has ended");
        answers
            .into_iter()
            .map(|answer| answer.and_then(|answer| answer.recv().ok()).ok_or_else(gone))
            .collect()
    }

    /// No thread hangs.
    pub fn live(&self) -> bool {
        self.0.iter().all(Worker::lives)
    }

    /// # Errors
    /// A thread has ended, and why.
    pub fn check(&mut self) -> Result<()> {
        let Some(at) = self.0.iter().position(|worker| worker.thread.is_finished()) else { return Ok(()) };
        self.0.swap_remove(at).join()?;
        bail!("a thread of the gateway has ended");
    }

    /// Ends all threads.
    ///
    /// # Errors
    /// A thread has failed.
    pub fn end(self) -> Result<()> {
        let over = |shard: &mut GatewayShard| {
            shard.end_capture();
            shard.send_the_rest();
            shard.is_over = true;
        };
        // Those that have ended before say why when they are joined.
        self.0.iter().for_each(|worker| drop(worker.ask(over)));
        self.0.into_iter().try_for_each(Worker::join)
    }
}

impl Worker {
    fn start(number: usize, config: GatewayConfig, parts: ShardParts, first: Handle) -> Result<Self> {
        let (work, works) = channel();
        let (sender, ready) = channel();
        let (began, last_round) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let kept = last_round.clone();
        // The world is made in the thread: it cannot move between threads.
        let run = move || {
            let _wake = WakeAtEnd(first);
            let (mut shard, ()) = GatewayShard::new(config, parts, |_, _| Ok(()))?;
            let _ = sender.send(shard.driver.handle());
            while !shard.is_over {
                shard.round()?;
                kept.store(milliseconds(began.elapsed()), Ordering::Relaxed);
                works.try_iter().for_each(|work: ShardJob| work(&mut shard));
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name(format!("gateway-{number}"));
        let thread = thread.spawn(run).context("cannot start a thread")?;
        match ready.recv() {
            Ok(handle) => Ok(Worker { handle, work, thread, last_round, began }),
            Err(_) => {
                joined(thread)?;
                bail!("a thread of the gateway has ended")
            }
        }
    }

    /// Where the answer comes; none if the thread has ended.
    fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut GatewayShard) -> R + Send + 'static,
    ) -> Option<Receiver<R>> {
        let (sender, answer) = channel();
        let work = move |shard: &mut GatewayShard| drop(sender.send(work(shard)));
        self.work.send(Box::new(work)).ok()?;
        self.handle.run(Box::new(|_, _| {})).ok()?;
        Some(answer)
    }

    fn lives(&self) -> bool {
        let now = milliseconds(self.began.elapsed());
        now.saturating_sub(self.last_round.load(Ordering::Relaxed)) < milliseconds(HANG)
    }

    fn join(self) -> Result<()> {
        joined(self.thread)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn joined(thread: JoinHandle<Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| bail!("a thread of the gateway has panicked"))
}

/// Wakes the thread of the service when a thread ends, also in a panic.
struct WakeAtEnd(Handle);

impl Drop for WakeAtEnd {
    fn drop(&mut self) {
        let _ = self.0.run(Box::new(|_, _| {}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_gateway::{Policy, PolicyTable};
    use farpace_live::DeviceInfo;
    use farpace_tcp::config::Settings;
    use farpace_wire::Packet;
    use std::collections::VecDeque;
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixDatagram;

    /// Nothing comes from it.
    struct QuietDevice(DeviceInfo, UnixDatagram);

    impl Device for QuietDevice {
        fn info(&self) -> &DeviceInfo {
            &self.0
        }
        fn receive(&mut self, _: usize, _: &mut Vec<Packet>) -> io::Result<()> {
            Ok(())
        }
        fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
            packets.clear();
            Ok(())
        }
        fn fd(&self) -> BorrowedFd<'_> {
            self.1.as_fd()
        }
        fn counters(&self) -> DeviceCounters {
            DeviceCounters { received: 1, ..DeviceCounters::default() }
        }
    }

    fn devices() -> Vec<Box<dyn Device>> {
        let info = DeviceInfo { name: "lo".into(), mtu: 1500, mac: None, super_segment: 0 };
        let quiet = || Box::new(QuietDevice(info.clone(), UnixDatagram::unbound().unwrap()));
        vec![quiet(), quiet()]
    }

    /// A shard of a test, and the others in threads.
    fn crew(threads: usize) -> (GatewayShard, Workers) {
        let tcp = Settings::default().resolve().unwrap();
        let config = GatewayConfig::new(PolicyTable::new(vec![], Policy::new(tcp.clone(), tcp)));
        let (_, ledgers) = SharedLedger::parts(threads, 10, true).unwrap();
        let mut shards: Vec<_> = SharedFlows::all(threads)
            .into_iter()
            .zip(ledgers)
            .map(|(flows, ledger)| ShardParts { flows, devices: devices(), ledger })
            .collect();
        let (first, ()) = GatewayShard::new(config.clone(), shards.remove(0), |_, _| Ok(())).unwrap();
        let workers = Workers::start(&config, shards, &first.driver.handle()).unwrap();
        (first, workers)
    }

    fn waits_for(mut what: impl FnMut() -> bool) {
        let since = Instant::now();
        while !what() {
            assert!(since.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
    }

    /// Breaks: the watchdog hears that a gateway lives although one of its threads hangs; or it kills one
    /// whose threads only sleep.
    #[test]
    fn a_thread_that_hangs_is_noticed() {
        let (_first, workers) = crew(3);
        let (release, held) = channel::<()>();
        let held = std::sync::Mutex::new(held);
        let hang = move |_: &mut GatewayShard| held.lock().unwrap().recv().unwrap();
        let answer = workers.0[1].ask(hang).unwrap();
        waits_for(|| !workers.live());
        assert!(!workers.0[1].lives());
        release.send(()).unwrap();
        answer.recv().unwrap();
        // They sleep.
        waits_for(|| workers.live());
        let since = Instant::now();
        let live = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(5));
            workers.live()
        });
        let live = live.take_while(|_| since.elapsed() < Duration::from_secs(2));
        let (live, all) = live.fold((0, 0), |(live, all), lives| (live + u32::from(lives), all + 1));
        // A busy machine may hold a thread up for a moment.
        assert!(live * 2 > all, "{live} of {all}");
        workers.end().unwrap();
    }

    /// Breaks: a thread of the gateway ends, and the gateway goes on without the connections of that thread,
    /// or waits for it for ever.
    #[test]
    fn a_thread_that_ends_is_noticed() {
        let (first, mut workers) = crew(3);
        workers.check().unwrap();
        assert_eq!(workers.each(|shard| shard.connections()).unwrap(), [0, 0]);
        let views = workers.each(|shard| shard.view(0)).unwrap();
        let all = views.into_iter().fold(first.view(0), |sum, view| sum.with(view, 0));
        assert_eq!(all.devices.iter().map(|device| device.received).collect::<Vec<_>>(), [3, 3]);
        drop(workers.0[0].ask(|_| panic!("a test")));
        waits_for(|| workers.0[0].thread.is_finished());
        assert!(workers.each(|shard| shard.connections()).is_err());
        let error = workers.check().unwrap_err().to_string();
        assert!(error.contains("panicked"), "{error}");
        workers.end().unwrap();
    }
}
