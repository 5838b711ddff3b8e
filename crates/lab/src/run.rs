//! One run of a scenario: bin by bin, with samples, records and an outcome.

mod datagrams;
mod flow;
mod places;
mod portions;
mod stages;

pub use flow::FlowSample;

use crate::awaited::AwaitedFlows;
use crate::hosts::HostKind;
use crate::network;
use crate::network_error::NetworkError;
use crate::nics;
use crate::outcome::{DropCount, RunOutcome};
use crate::pacing_nics;
use crate::parts::Parts;
use crate::payload::{Payload, VerifyError};
use crate::queueing::NetworkQueues;
use crate::run_observer::{CaptureOpenError, RunObserver};
use crate::scenario::Scenario;
use datagrams::DatagramRun;
use farpace_events::RecordSink;
use farpace_host::Host;
use farpace_link::multi_nic::MultiNic;
use farpace_path::Meter;
use farpace_path::world::{ElementId, World, WorldError};
use farpace_tcp::config::SettingsError;
use farpace_units::{ByteCount, Instant, Span};
use stages::FlowStage;
use std::collections::{BTreeMap, BTreeSet};
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
    /// All flows are of workloads that start them after the end of the run.
    #[error("no flow starts before the end of the run, at {duration}: set a longer `duration`")]
    NoFlow {
        /// When the run would end.
        duration: Span,
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

/// A run of a scenario.
///
/// Call [`advance`](Run::advance) until it returns `finished`, or stop earlier; then call
/// [`finish`](Run::finish).
pub struct Run {
    world: World,
    observer: RunObserver,
    /// By the index of the flow.
    flows: Vec<FlowStage>,
    /// Flows of workloads whose time has not come, the last first.
    waiting: Vec<usize>,
    /// Flows that are under way.
    active: BTreeSet<usize>,
    /// Flows that are not done.
    open: usize,
    /// Payload that has been delivered, and all that is to be.
    delivered: ByteCount,
    total: ByteCount,
    /// Hosts that send.
    senders: Vec<ElementId>,
    inputs: Inputs,
    seed: u64,
    datagrams: Vec<DatagramRun>,
    parts: Parts,
    scenario: Scenario,
    bin: Span,
    now: Instant,
    samples: Vec<FlowSample>,
    /// Some programs take their time.
    portions: bool,
    /// Some programs exchange requests and answers.
    exchanges: bool,
    /// What the flows of workloads send.
    shared_pattern: Option<Payload>,
    /// What the receiving hosts wait for.
    awaited: AwaitedFlows,
    /// The ports at which receiving hosts listen, and how many flows are under way to each.
    listening: BTreeMap<(ElementId, u16), usize>,
    /// The queues that are read; none: nobody asks.
    queues: NetworkQueues,
}

impl Run {
    /// Builds the network and the flows.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn new(scenario: &Scenario, inputs: Inputs) -> Result<Self, RunError> {
        let seed = inputs.seed.unwrap_or(scenario.seed);
        let scenario = scenario.drawn(seed);
        if scenario.flows.is_empty() {
            return Err(RunError::NoFlow { duration: scenario.duration });
        }
        let (world, parts) = network::build(&scenario, seed, HostKind::Stacks)?;
        let mut run = Run {
            world,
            observer: RunObserver::default(),
            flows: std::iter::repeat_with(FlowStage::default).take(scenario.flows.len()).collect(),
            waiting: Vec::new(),
            active: BTreeSet::new(),
            open: scenario.flows.len(),
            delivered: ByteCount::ZERO,
            total: scenario.flows.iter().map(|flow| flow.size).sum(),
            senders: Vec::new(),
            seed,
            datagrams: Vec::new(),
            parts,
            bin: scenario.trace.bin.max(Span::from_nanos(1)),
            now: Instant::ZERO,
            samples: Vec::new(),
            portions: scenario.flows.iter().any(|f| f.writes.is_some() || f.reads.is_some()),
            exchanges: scenario.flows.iter().any(|flow| !flow.exchanges.is_empty()),
            shared_pattern: None,
            awaited: AwaitedFlows::default(),
            listening: BTreeMap::new(),
            queues: NetworkQueues::default(),
            inputs,
            scenario,
        };
        if run.scenario.source_port(0).is_some() {
            run.observer.tell_sources();
        }
        run.prepare_flows()?;
        for index in 0..run.scenario.datagrams.len() {
            run.add_datagrams(index, seed)?;
        }
        run.meter_receivers()?;
        nics::observe(&mut run.world, &mut run.observer, &run.scenario, &run.parts)?;
        Ok(run)
    }

    /// One meter for each receiving host: frames that arrive by its link, or by all its NICs together.
    fn meter_receivers(&mut self) -> Result<(), RunError> {
        let mut metered = Vec::new();
        for flow in &self.scenario.flows {
            let Some(to) = self.parts.host(&flow.to).filter(|to| !metered.contains(to)) else { continue };
            metered.push(to);
            if let Some(end) = self.parts.received(to) {
                let wire = self.world.observe(end)?;
                self.observer.meter(wire, self.world.name(to), self.bin);
            }
        }
        Ok(())
    }

    /// Virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The scenario as it is run: each flow that a workload stands for is one of its flows.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The multi-NIC layer of each host that has one, by host.
    pub fn multi_nics(&self) -> impl Iterator<Item = (&str, &MultiNic)> {
        let layers =
            self.parts.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.multi_nic?)));
        layers.filter_map(|(host, multi_nic)| Some((host, self.world.element::<MultiNic>(multi_nic)?)))
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
            self.observer.capture(&wires, directory, &tap.name, &self.scenario.trace)?;
        }
        let names = self.world.ids().map(|id| self.world.name(id).to_owned()).collect();
        self.observer.capture_drops(directory, names, &self.scenario.trace)?;
        Ok(self.observer.files())
    }

    /// Runs one bin of virtual time. Records of the senders go to `records`.
    ///
    /// # Errors
    /// A defect in an element, or a capture that could not be written.
    pub fn advance(&mut self, records: Option<&mut dyn RecordSink>) -> Result<RunProgress, RunError> {
        let start = self.now;
        self.begin_due()?;
        self.now = self.bin_end();
        if let Some(sink) = records {
            let mut to = start;
            while to < self.now {
                to = (to + RECORDS_WAIT).min(self.now);
                self.run_until(to)?;
                for from in &self.senders {
                    if let Some(host) = self.world.element_mut::<Host>(*from) {
                        host.take_records(|r| sink.record(&r));
                    }
                }
            }
        } else {
            self.run_until(self.now)?;
        }
        self.samples.clear();
        self.note_accepted();
        for index in self.active.iter().copied().collect::<Vec<_>>() {
            self.sample(index, start);
            self.end_flow(index);
        }
        self.observer.check()?;
        Ok(self.progress())
    }

    /// Runs the world up to `to`, which is after the last bin and not after the end of the next one: what
    /// controls and programs do until then has happened, and [`advance`](Run::advance) ends the bin.
    ///
    /// # Errors
    /// A defect in an element.
    pub fn advance_within_bin(&mut self, to: Instant) -> Result<(), RunError> {
        self.begin_due()?;
        self.run_until(to.clamp(self.now, self.bin_end()))
    }

    /// At the end of the last bin a flow had delivered everything, or its connection had ended. False if the
    /// flow does not exist.
    pub fn is_done(&self, flow: usize) -> bool {
        self.flows.get(flow).is_some_and(FlowStage::is_done)
    }

    /// When the next bin ends.
    pub fn bin_end(&self) -> Instant {
        (self.now + self.bin).min(Instant::ZERO + self.scenario.duration)
    }

    /// The samples of the last bin, one for each flow that has begun. A flow of a workload has none after the
    /// bin in which it was done.
    pub fn samples(&self) -> &[FlowSample] {
        &self.samples
    }

    /// The progress so far.
    pub fn progress(&self) -> RunProgress {
        let out_of_time = self.now >= Instant::ZERO + self.scenario.duration;
        RunProgress {
            now: self.now,
            delivered: self.delivered,
            total: self.total,
            finished: out_of_time || self.open == 0,
        }
    }

    /// Stops the recording of senders.
    pub fn stop_records(&mut self) {
        if std::mem::take(&mut self.inputs.records) {
            for host in self.parts.hosts.values() {
                if let Some(host) = self.world.element_mut::<Host>(host.host) {
                    host.stop_log();
                }
            }
        }
    }

    /// Bandwidth at each receiving host: its name, and the bytes and packets received in each bin.
    pub fn meters(&self) -> impl Iterator<Item = (&str, &Meter)> {
        self.observer.meters()
    }

    /// How long a packet sent now would wait in queues on the path of a flow's data, if nothing else arrived:
    /// bytes queued over rate, all links together. Zero if the flow is not under way.
    pub fn queueing_delay(&mut self, flow: usize) -> Span {
        let flow = self.flows.get(flow).and_then(FlowStage::run);
        flow.map_or(Span::ZERO, |flow| flow.queues.delay(&mut self.world, self.now))
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
        self.note_accepted();
        let flows = self.outcomes()?;
        let captures = self.observer.finish()?;
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
        let nics = nics::outcomes(&mut self.world, &self.observer, &self.scenario, &self.parts)?;
        let events = self.world.events_processed();
        Ok(RunOutcome { ended: self.now, flows, datagrams, pacing, nics, drops, events, captures })
    }
}
