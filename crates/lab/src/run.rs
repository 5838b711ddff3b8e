//! One run of a scenario: bin by bin, with samples, records and an outcome.

use crate::datagrams::{ConstantRate, Counter};
use crate::hosts::HostKind;
use crate::network::{self, NetworkError};
use crate::nics;
use crate::outcome::{DatagramOutcome, DropCount, FlowOutcome, RunOutcome};
use crate::pacing_nics;
use crate::parts::Parts;
use crate::payload::{Payload, Verifier, VerifyError};
use crate::programs::{ReceivingProgram, SendingProgram};
use crate::queueing::PathQueues;
use crate::scenario::{DatagramFlow, Scenario};
use crate::silence::SilenceMeter;
use crate::watch::{CaptureOpenError, Watch};
use farpace_events::{Cause, RecordSink};
use farpace_host::ip::udp::UdpId;
use farpace_host::{ConnectionId, Host, ListenSettings};
use farpace_link::multi_nic::MultiNic;
use farpace_path::Meter;
use farpace_path::world::{ElementId, World, WorldError};
use farpace_tcp::config::SettingsError;
use farpace_tcp::{Connection, ConnectionInspection};
use farpace_units::{ByteCount, Instant, Span};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Records are fetched at this interval, however wide the bins are, to limit the memory that they take.
const RECORDS_WAIT: Span = Span::from_millis(10);

/// Why a run cannot begin, or had to end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Something in the network broke its contract: a defect of farpace.
    #[error("the lab has stopped: {0}; this is a defect of farpace, not of the scenario")]
    World(#[from] WorldError),
    /// Settings that contradict each other.
    #[error("flow `{flow}`: {error}")]
    Settings {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: SettingsError,
    },
    /// A host that does not exist, or a port that is in use.
    #[error("flow `{flow}`: {problem}")]
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong.
        problem: String,
    },
    /// The received bytes cannot be written.
    #[error(transparent)]
    Received(#[from] VerifyError),
    /// A capture cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureOpenError),
}

/// The inputs of a run besides its scenario.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Sent by the first flow; none: a pattern of the flow's size.
    pub payload: Option<Payload>,
    /// Where the first flow's received bytes go.
    pub received: Option<PathBuf>,
    /// Replaces the scenario's seed.
    pub seed: Option<u64>,
    /// Record every sender (connection number: index of the flow).
    pub records: bool,
}

/// One reading of a flow at the end of a bin.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// Index of the flow.
    pub flow: usize,
    /// End of the bin.
    pub time: Instant,
    /// The sending connection.
    pub sender: ConnectionInspection,
    /// Payload that reached the receiving program in this bin.
    pub delivered: ByteCount,
    /// Segments that reached the receiving host in this bin.
    pub arrived: u64,
    /// Segments that the sender has retransmitted so far.
    pub sent_again: u64,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Virtual time.
    pub now: Instant,
    /// Payload delivered, all flows together.
    pub delivered: ByteCount,
    /// Payload to be delivered, all flows together.
    pub total: ByteCount,
    /// All flows are done, or time is up.
    pub finished: bool,
}

struct FlowRun {
    name: String,
    from: ElementId,
    to: ElementId,
    port: u16,
    start: Instant,
    size: ByteCount,
    sender: ConnectionId,
    receiver: Option<ConnectionId>,
    queues: PathQueues,
    silence: SilenceMeter,
    arrived: u64,
    delivered: ByteCount,
    done: bool,
}

struct DatagramRun {
    from: ElementId,
    source: UdpId,
    to: ElementId,
    counter: UdpId,
}

/// A run of a scenario.
///
/// Call [`advance`](Run::advance) until it returns `finished`, or stop earlier; then call
/// [`finish`](Run::finish).
pub struct Run {
    world: World,
    watch: Watch,
    flows: Vec<FlowRun>,
    datagrams: Vec<DatagramRun>,
    parts: Parts,
    scenario: Scenario,
    bin: Span,
    now: Instant,
    samples: Vec<FlowSample>,
    records: bool,
}

impl Run {
    /// Builds the network and the flows.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn new(scenario: &Scenario, inputs: Inputs) -> Result<Self, RunError> {
        let seed = inputs.seed.unwrap_or(scenario.seed);
        let (world, parts) = network::build(scenario, seed, HostKind::Stacks)?;
        let mut run = Run {
            world,
            watch: Watch::default(),
            flows: Vec::new(),
            datagrams: Vec::new(),
            parts,
            scenario: scenario.clone(),
            bin: scenario.trace.bin.max(Span::from_nanos(1)),
            now: Instant::ZERO,
            samples: Vec::new(),
            records: inputs.records,
        };
        for index in 0..scenario.flows.len() {
            run.add_flow(index, seed, &inputs)?;
        }
        for index in 0..scenario.datagrams.len() {
            run.add_datagrams(index)?;
        }
        run.meter_receivers()?;
        nics::observe(&mut run.world, &mut run.watch, &run.scenario, &run.parts)?;
        Ok(run)
    }

    fn add_flow(&mut self, index: usize, seed: u64, inputs: &Inputs) -> Result<(), RunError> {
        let flow = &self.scenario.flows[index];
        let named = |error| RunError::Settings { flow: flow.name.clone(), error };
        let problem = |problem: String| RunError::Flow { flow: flow.name.clone(), problem };
        let sender_config = flow.sender.resolve().map_err(named)?;
        let receiver_config = flow.receiver.resolve().map_err(named)?;
        let host = |name: &str| self.parts.host(name).ok_or_else(|| problem(format!("no host `{name}`")));
        let (from, to) = (host(&flow.from)?, host(&flow.to)?);
        let first = index == 0;
        let payload = match &inputs.payload {
            Some(file) if first => file.clone(),
            _ => Payload::pattern(seed.wrapping_add(index as u64), flow.size),
        };
        let mut verifier = Verifier::new(payload.clone());
        if let Some(path) = inputs.received.as_deref().filter(|_| first) {
            verifier.write_to(path)?;
        }
        let (port, start) = (self.scenario.port(index), Instant::ZERO + flow.start);
        let address = self.world.element::<Host>(to).map(Host::address);
        let address = address.ok_or_else(|| problem("the receiver is not a host".into()))?;
        let mut expected = Some(verifier);
        let size = payload.len();
        let log_as = inputs.records.then_some(index as u32);
        let rtt = self.scenario.base_rtt(flow);
        let full = self.scenario.packets_in(self.bin, flow);
        let queues = PathQueues::of(&self.world, &self.scenario, &self.parts, flow);
        let name = flow.name.clone();
        let listener = self.world.element_mut::<Host>(to);
        listener
            .ok_or_else(|| RunError::Flow {
                flow: name.clone(),
                problem: "the receiver is not a host".into(),
            })?
            .listen(port, ListenSettings::new(receiver_config), move || {
                Box::new(ReceivingProgram::new(expected.take()))
            })
            .map_err(|e| RunError::Flow { flow: name.clone(), problem: e.to_string() })?;
        let opener = self.world.element_mut::<Host>(from);
        let sender = opener
            .ok_or_else(|| RunError::Flow { flow: name.clone(), problem: "the sender is not a host".into() })?
            .connect(start, address, port, sender_config, log_as, Box::new(SendingProgram::new(payload)))
            .map_err(|e| RunError::Flow { flow: name.clone(), problem: e.to_string() })?;
        self.flows.push(FlowRun {
            name,
            from,
            to,
            port,
            start,
            size,
            sender,
            receiver: None,
            queues,
            silence: SilenceMeter::new(self.bin, rtt, full),
            arrived: 0,
            delivered: ByteCount::ZERO,
            done: false,
        });
        Ok(())
    }

    /// One meter for each receiving host: frames that arrive by its link, or by all its NICs together.
    fn meter_receivers(&mut self) -> Result<(), RunError> {
        let mut metered = Vec::new();
        for flow in &self.flows {
            if metered.contains(&flow.to) {
                continue;
            }
            metered.push(flow.to);
            if let Some(end) = self.parts.received(flow.to) {
                let wire = self.world.observe(end)?;
                self.watch.meter(wire, self.world.name(flow.to), self.bin);
            }
        }
        Ok(())
    }

    /// Virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The multi-NIC layer of each host that has one, by host.
    pub fn multi_nics(&self) -> impl Iterator<Item = (&str, &MultiNic)> {
        let layers =
            self.parts.hosts.iter().filter_map(|(host, machine)| Some((host.as_str(), machine.layer?)));
        layers.filter_map(|(host, layer)| Some((host, self.world.element::<MultiNic>(layer)?)))
    }

    /// Captures at the scenario's taps, one file for each tap, and all drops in one more, into `directory`.
    /// Returns the files.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn capture_into(&mut self, directory: &Path) -> Result<Vec<PathBuf>, RunError> {
        for tap in self.scenario.taps() {
            let Some([sent, received]) = self.parts.tapped(&tap.place, &self.world) else { continue };
            let wires = [self.world.observe(sent)?, self.world.observe(received)?];
            self.watch.capture(&wires, directory, &tap.name, &self.scenario.trace)?;
        }
        let names = self.world.ids().map(|id| self.world.name(id).to_owned()).collect();
        self.watch.capture_drops(directory, names, &self.scenario.trace)?;
        Ok(self.watch.files())
    }

    /// Runs one bin of virtual time. Records of the senders go to `records`.
    ///
    /// # Errors
    /// A defect in an element, or a capture that could not be written.
    pub fn advance(&mut self, records: Option<&mut dyn RecordSink>) -> Result<RunProgress, RunError> {
        let start = self.now;
        self.now = (start + self.bin).min(Instant::ZERO + self.scenario.duration);
        if let Some(sink) = records {
            let mut to = start;
            while to < self.now {
                to = (to + RECORDS_WAIT).min(self.now);
                self.world.run_until(to, &mut self.watch)?;
                for flow in 0..self.flows.len() {
                    let from = self.flows[flow].from;
                    // A host with several flows returns all its records at the first of them.
                    if let Some(host) = self.world.element_mut::<Host>(from) {
                        host.take_records(|r| sink.record(&r));
                    }
                }
            }
        } else {
            self.world.run_until(self.now, &mut self.watch)?;
        }
        self.samples.clear();
        for index in 0..self.flows.len() {
            self.sample(index, start);
        }
        self.watch.check()?;
        Ok(self.progress())
    }

    fn sample(&mut self, index: usize, bin_start: Instant) {
        let flow = &mut self.flows[index];
        let (Some(from), Some(to)) =
            (self.world.element::<Host>(flow.from), self.world.element::<Host>(flow.to))
        else {
            return;
        };
        if flow.receiver.is_none() {
            flow.receiver = to.connections().find(|(_, c)| c.ports().local == flow.port).map(|(id, _)| id);
        }
        let Some(sender) = from.connection(flow.sender) else { return };
        let again = Cause::ALL.iter().zip(sender.counters().sent);
        let sent_again = again.filter(|(cause, _)| cause.is_retransmission()).map(|(_, n)| n).sum();
        let (sender, counters) = (sender.inspect(), flow.receiver.and_then(|id| to.connection(id)));
        let (arrived, delivered) = counters
            .map(Connection::counters)
            .map_or((flow.arrived, flow.delivered), |c| (c.segments_received, c.bytes_received));
        let sample = FlowSample {
            flow: index,
            time: self.now,
            sender,
            delivered: delivered - flow.delivered,
            arrived: arrived - flow.arrived,
            sent_again,
        };
        (flow.arrived, flow.delivered) = (arrived, delivered);
        if !flow.done {
            let started = sample.arrived > 0 || !flow.delivered.is_zero();
            let ended = flow
                .receiver
                .and_then(|id| to.application::<ReceivingProgram>(id))
                .is_some_and(|r| r.completed.is_some() || r.ended.is_some())
                || from.application::<SendingProgram>(flow.sender).is_some_and(|s| s.ended.is_some());
            if ended {
                flow.silence.close();
                flow.done = true;
            } else if started {
                flow.silence.record(bin_start, self.now, sample.arrived, sender.recovery);
            }
        }
        self.samples.push(sample);
    }

    /// The samples of the last bin, one for each flow that has begun.
    pub fn samples(&self) -> &[FlowSample] {
        &self.samples
    }

    /// The progress so far.
    pub fn progress(&self) -> RunProgress {
        let out_of_time = self.now >= Instant::ZERO + self.scenario.duration;
        RunProgress {
            now: self.now,
            delivered: self.flows.iter().map(|f| f.delivered).sum(),
            total: self.flows.iter().map(|f| f.size).sum(),
            finished: out_of_time || self.flows.iter().all(|f| f.done),
        }
    }

    /// Stops the recording of senders.
    pub fn stop_records(&mut self) {
        if std::mem::take(&mut self.records) {
            for machine in self.parts.hosts.values() {
                if let Some(host) = self.world.element_mut::<Host>(machine.host) {
                    host.stop_log();
                }
            }
        }
    }

    /// Bandwidth at each receiving host: its name, and the bytes and packets received in each bin.
    pub fn meters(&self) -> impl Iterator<Item = (&str, &Meter)> {
        self.watch.meters()
    }

    /// How long a packet sent now would wait in queues on the path of a flow's data, if nothing else arrived:
    /// bytes queued over rate, all links together. Zero if the flow does not exist.
    pub fn queueing_delay(&mut self, flow: usize) -> Span {
        self.flows.get(flow).map_or(Span::ZERO, |f| f.queues.delay(&mut self.world, self.now))
    }

    /// The world, for inspection.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Ends the run: checks that no packet was lost without a count, closes the files, and sums up.
    ///
    /// # Errors
    /// A packet that is missing, or a file that could not be written.
    pub fn finish(mut self) -> Result<RunOutcome, RunError> {
        self.world.check()?;
        let mut flows = Vec::new();
        for index in 0..self.flows.len() {
            flows.push(self.flow_outcome(index));
        }
        let captures = self.watch.finish()?;
        let mut drops = Vec::new();
        for id in self.world.ids() {
            if let Some(ledger) = self.world.ledger(id) {
                drops.extend(ledger.drops().filter(|(_, n)| *n > 0).map(|(reason, packets)| DropCount {
                    place: self.world.name(id).to_owned(),
                    reason,
                    packets,
                }));
            }
        }
        let datagrams = self.datagram_outcomes();
        let pacing = pacing_nics::outcomes(&self.world, &self.scenario, &self.parts);
        let nics = nics::outcomes(&mut self.world, &self.watch, &self.scenario, &self.parts)?;
        let events = self.world.events_processed();
        Ok(RunOutcome { ended: self.now, flows, datagrams, pacing, nics, drops, events, captures })
    }

    fn add_datagrams(&mut self, index: usize) -> Result<(), RunError> {
        let flow = &self.scenario.datagrams[index];
        let problem = |problem: String| RunError::Flow { flow: flow.name.clone(), problem };
        let host = |name: &str| self.parts.host(name).ok_or_else(|| problem(format!("no host `{name}`")));
        let (from, to) = (host(&flow.from)?, host(&flow.to)?);
        let not_a_host = || problem(format!("`{}` or `{}` is not a host", flow.from, flow.to));
        let (start, port) = (Instant::ZERO + flow.start, self.scenario.datagram_port(index));
        let end = flow.lasts.map_or(Instant::FAR_FUTURE, |lasts| start + lasts);
        let receiver = self.world.element_mut::<Host>(to).ok_or_else(not_a_host)?;
        let address = receiver.address();
        let counter = receiver
            .open_udp(address, port, Box::new(Counter::default()))
            .map_err(|e| problem(e.to_string()))?;
        let program = ConstantRate::new(SocketAddr::new(address, port), flow.payload, flow.rate, start, end);
        let sender = self.world.element_mut::<Host>(from).ok_or_else(not_a_host)?;
        let source = sender.open_udp(address, 0, Box::new(program)).map_err(|e| problem(e.to_string()))?;
        self.datagrams.push(DatagramRun { from, source, to, counter });
        Ok(())
    }

    fn datagram_outcomes(&self) -> Vec<DatagramOutcome> {
        let outcome = |(spec, run): (&DatagramFlow, &DatagramRun)| {
            let sender =
                self.world.element::<Host>(run.from)?.datagram_program::<ConstantRate>(run.source)?;
            let counter = self.world.element::<Host>(run.to)?.datagram_program::<Counter>(run.counter)?;
            let Counter { received, bytes, late, .. } = *counter;
            Some(DatagramOutcome { name: spec.name.clone(), sent: sender.sent, received, bytes, late })
        };
        self.scenario.datagrams.iter().zip(&self.datagrams).filter_map(outcome).collect()
    }

    fn flow_outcome(&mut self, index: usize) -> FlowOutcome {
        let flow = &mut self.flows[index];
        flow.silence.close();
        let spec = &self.scenario.flows[index];
        let sender = self.world.element::<Host>(flow.from).and_then(|h| h.connection(flow.sender));
        let counters = sender.map(|c| c.counters().clone()).unwrap_or_default();
        let sender_ended = self
            .world
            .element::<Host>(flow.from)
            .and_then(|h| h.application::<SendingProgram>(flow.sender))
            .and_then(|s| s.ended);
        let receiver = self.world.element::<Host>(flow.to).zip(flow.receiver);
        let receiver = receiver.and_then(|(host, id)| host.connection(id));
        let receiver = receiver.map(|c| c.counters().clone()).unwrap_or_default();
        let (mut completed, mut verified) = (None, Ok(ByteCount::ZERO));
        if let Some(id) = flow.receiver
            && let Some(host) = self.world.element_mut::<Host>(flow.to)
            && let Some(receiver) = host.application_mut::<ReceivingProgram>(id)
        {
            completed = receiver.completed;
            if let Some(verifier) = receiver.verifier.take() {
                verified = verifier.finish();
            }
        }
        let end = completed.unwrap_or(self.now);
        FlowOutcome {
            name: flow.name.clone(),
            start: flow.start,
            size: flow.size,
            delivered: flow.delivered,
            completed,
            elapsed: end.since(flow.start),
            verified,
            sender_ended,
            bottleneck: self.scenario.bottleneck(spec).map(|b| b.rate),
            timeouts: counters.timeouts,
            counters,
            receiver,
            silence: flow.silence.clone(),
        }
    }
}
