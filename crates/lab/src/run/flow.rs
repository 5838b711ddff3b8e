//! The flows of a run: their connections, samples and outcomes.

use super::{Run, RunError};
use crate::awaited::{AwaitedAt, AwaitedFlow};
use crate::outcome::FlowOutcome;
use crate::payload::{Payload, Verifier};
use crate::programs::{ReceivingProgram, SendingProgram};
use crate::queueing::PathQueues;
use crate::scenario::FlowSpec;
use crate::silence::SilenceMeter;
use farpace_events::Cause;
use farpace_host::{Application, ConnectionId, Host, ListenSettings};
use farpace_path::world::ElementId;
use farpace_tcp::config::{Config, Settings};
use farpace_tcp::{Connection, ConnectionInspection, ConnectionState};
use farpace_units::{ByteCount, Instant};
use std::collections::btree_map::Entry;

/// Places between the patterns of two flows: a prime.
const PLACES: u64 = 104_729;

/// The connection of a port that listens.
fn receiving(host: &Host, port: u16) -> Option<ConnectionId> {
    host.connections().find(|(_, c)| c.ports().local == port).map(|(id, _)| id)
}

/// A sample of a flow at the end of a bin.
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
    pub retransmitted: u64,
    /// All that the sending program has written is acknowledged: there is nothing to send.
    pub idle: bool,
}

/// A flow of a run.
pub(super) struct FlowRun {
    pub(super) name: String,
    pub(super) from: ElementId,
    pub(super) to: ElementId,
    pub(super) port: u16,
    pub(super) start: Instant,
    pub(super) size: ByteCount,
    pub(super) sender: ConnectionId,
    pub(super) receiver: Option<ConnectionId>,
    pub(super) queues: PathQueues,
    pub(super) silence: SilenceMeter,
    pub(super) arrived: u64,
    pub(super) delivered: ByteCount,
    /// The sender has heard of the receiver: from then on the flow can be silent, and before it connects.
    pub(super) started: bool,
    pub(super) done: bool,
    /// It is part of a workload.
    pub(super) is_drawn: bool,
}

/// The configuration of one end of a flow.
pub(super) fn config(flow: &FlowSpec, settings: &Settings) -> Result<Config, RunError> {
    let named = |error| RunError::Settings { flow: flow.name.clone(), error };
    let mut config = settings.resolve().map_err(named)?;
    config.external = config.external.map(|control| control.for_flow(&flow.name));
    Ok(config)
}

impl Run {
    /// Opens the connection of a flow when its time comes.
    pub(super) fn open_flow(&mut self, index: usize) -> Result<FlowRun, RunError> {
        let (seed, inputs) = (self.seed, &self.inputs);
        let flow = &self.scenario.flows[index];
        let problem = |problem: String| RunError::Flow { flow: flow.name.clone(), problem };
        let (sender_config, receiver_config) = (config(flow, &flow.sender)?, config(flow, &flow.receiver)?);
        let host = |name: &str| self.parts.host(name).ok_or_else(|| problem(format!("no host `{name}`")));
        let (from, to) = (host(&flow.from)?, host(&flow.to)?);
        let first = index == 0;
        let payload = match &inputs.payload {
            Some(file) if first => file.clone(),
            // The flows of a workload share one pattern, each from another place on.
            _ if flow.class.is_some() => {
                let shared = || Payload::pattern(seed, ByteCount::MAX);
                let pattern = self.shared_pattern.get_or_insert_with(shared);
                pattern.shifted(index as u64 * PLACES, flow.size)
            }
            _ => Payload::pattern(seed.wrapping_add(index as u64), flow.size),
        };
        let mut verifier = Verifier::new(payload.clone());
        if let Some(path) = inputs.received.as_deref().filter(|_| first) {
            verifier.write_to(path)?;
        }
        let (port, start) = (self.scenario.port(index), Instant::ZERO + flow.start);
        let address = self.world.element::<Host>(to).map(Host::address);
        let address = address.ok_or_else(|| problem("the receiver is not a host".into()))?;
        let size = payload.len();
        let from_port = self.scenario.source_port(index);
        let log_as = inputs.records.then_some(index as u32);
        let rtt = self.scenario.base_rtt(flow);
        let full = self.scenario.packets_in(self.bin, flow);
        let queues = PathQueues::of(&self.world, &self.scenario, &self.parts, flow);
        let (name, reads, is_drawn) = (flow.name.clone(), flow.reads, flow.class.is_some());
        let exchanges = flow.exchanges.clone();
        let awaited = AwaitedFlow { flow: index, verifier, reads, exchanges };
        self.awaited.expect(self.awaited_at(index, (to, port)), awaited);
        let problem = |problem: String| RunError::Flow { flow: name.clone(), problem };
        match self.listening.entry((to, port)) {
            Entry::Occupied(mut there) => *there.get_mut() += 1,
            Entry::Vacant(free) => {
                let host = self.world.element_mut::<Host>(to);
                let host = host.ok_or_else(|| problem("the receiver is not a host".into()))?;
                let awaited = self.awaited.clone();
                let program =
                    move || -> Box<dyn Application> { Box::new(ReceivingProgram::new(awaited.clone(), to)) };
                let listening = host.listen(port, ListenSettings::new(receiver_config), program);
                listening.map_err(|error| problem(error.to_string()))?;
                free.insert(1);
            }
        }
        let opener = self.world.element_mut::<Host>(from);
        let sender = opener
            .ok_or_else(|| RunError::Flow { flow: name.clone(), problem: "the sender is not a host".into() })?
            .connect_from(
                from_port,
                start,
                address,
                port,
                sender_config,
                log_as,
                Box::new(SendingProgram::new(payload, flow.writes, &flow.exchanges)),
            )
            .map_err(|e| RunError::Flow { flow: name.clone(), problem: e.to_string() })?;
        Ok(FlowRun {
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
            started: false,
            done: false,
            is_drawn,
        })
    }

    /// Where a flow to a port is waited for.
    pub(super) fn awaited_at(&self, index: usize, (host, port): (ElementId, u16)) -> AwaitedAt {
        AwaitedAt { host, port, from_port: self.scenario.source_port(index) }
    }

    /// Flows learn which connections their receivers have accepted.
    pub(super) fn note_accepted(&mut self) {
        for (flow, id) in self.awaited.accepted() {
            if let Some(flow) = self.flows.get_mut(flow).and_then(|stage| stage.run_mut()) {
                flow.receiver = Some(id);
            }
        }
    }

    /// Samples a flow at the end of a bin that began at `bin_start`.
    pub(super) fn sample(&mut self, index: usize, bin_start: Instant) {
        let Some(flow) = self.flows[index].run_mut() else { return };
        let (Some(from), Some(to)) =
            (self.world.element::<Host>(flow.from), self.world.element::<Host>(flow.to))
        else {
            return;
        };
        // Thousands of flows may wait for their time, or be done.
        if self.now < flow.start || flow.done && flow.is_drawn {
            return;
        }
        // Of few flows the connection counts from its SYN on. Among thousands it would be looked for long.
        if flow.receiver.is_none() && !flow.is_drawn {
            flow.receiver = receiving(to, flow.port);
        }
        let Some(sender) = from.connection(flow.sender) else { return };
        let sent = Cause::ALL.iter().zip(sender.counters().sent);
        let retransmitted = sent.filter(|(cause, _)| cause.is_retransmission()).map(|(_, n)| n).sum();
        let idle = sender.memory().send_bytes.is_zero();
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
            retransmitted,
            idle,
        };
        self.delivered += sample.delivered;
        (flow.arrived, flow.delivered) = (arrived, delivered);
        if !flow.done {
            flow.started |= sender.state != ConnectionState::SynSent;
            let ended = flow
                .receiver
                .and_then(|id| to.application::<ReceivingProgram>(id))
                .is_some_and(|r| r.completed.is_some() || r.ended.is_some())
                || from.application::<SendingProgram>(flow.sender).is_some_and(|s| s.ended.is_some());
            if ended {
                flow.silence.close();
                flow.done = true;
                self.open -= 1;
            } else if idle {
                flow.silence.close();
            } else if flow.started {
                let (arrived, state, srtt) = (sample.arrived, sender.recovery, sender.srtt);
                flow.silence.record(bin_start, self.now, arrived, state, srtt);
            }
        }
        self.samples.push(sample);
    }

    /// Takes the outcome of a flow.
    pub(super) fn flow_outcome(&mut self, index: usize, mut flow: FlowRun) -> FlowOutcome {
        flow.silence.close();
        let spec = &self.scenario.flows[index];
        let sender = self.world.element::<Host>(flow.from).and_then(|h| h.connection(flow.sender));
        let counters = Box::new(sender.map(|c| c.counters().clone()).unwrap_or_default());
        let transmit_queue_full = sender.map_or(0, Connection::transmit_queue_full);
        let sender_ended = self
            .world
            .element::<Host>(flow.from)
            .and_then(|h| h.application::<SendingProgram>(flow.sender))
            .and_then(|s| s.ended);
        let receiver = self.world.element::<Host>(flow.to).zip(flow.receiver);
        let receiver = receiver.and_then(|(host, id)| host.connection(id));
        let receiver = Box::new(receiver.map(|c| c.counters().clone()).unwrap_or_default());
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
        let name = self.world.name(flow.to);
        let queued = self.observer.take_waits(name, flow.port, self.scenario.source_port(index));
        let queued = queued.unwrap_or_default();
        FlowOutcome {
            name: flow.name,
            start: flow.start,
            size: flow.size,
            delivered: flow.delivered,
            completed,
            elapsed: end.since(flow.start),
            verified,
            sender_ended,
            bottleneck: self.scenario.bottleneck(spec).map(|b| b.rate),
            timeouts: counters.timeouts,
            transmit_queue_full,
            counters,
            receiver,
            queued,
            silence: flow.silence,
        }
    }
}
