//! When flows begin and end. Those of workloads take memory for their connections only while they are under
//! way: before it they are their entry in the scenario, and afterwards their outcome.

use super::flow::{FlowRun, config};
use super::{Run, RunError};
use crate::outcome::FlowOutcome;
use farpace_host::{ConnectionId, Host};
use farpace_path::world::ElementId;
use farpace_tcp::ConnectionState;
use farpace_tcp::config::Settings;
use farpace_units::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a flow is at the moment.
#[derive(Default)]
pub(super) enum FlowStage {
    /// Its time has not come.
    #[default]
    Waiting,
    /// Its connection was opened, or will be.
    UnderWay(Box<FlowRun>),
    /// It is done, and nothing is left of its connections.
    Over(Box<FlowOutcome>),
}

impl FlowStage {
    /// The flow, while it is under way.
    pub fn run(&self) -> Option<&FlowRun> {
        match self {
            FlowStage::UnderWay(flow) => Some(flow),
            FlowStage::Waiting | FlowStage::Over(_) => None,
        }
    }
    /// The same, to change it.
    pub fn run_mut(&mut self) -> Option<&mut FlowRun> {
        match self {
            FlowStage::UnderWay(flow) => Some(flow),
            FlowStage::Waiting | FlowStage::Over(_) => None,
        }
    }
    /// It has delivered everything, or its connection has ended.
    pub fn is_done(&self) -> bool {
        match self {
            FlowStage::Waiting => false,
            FlowStage::UnderWay(flow) => flow.done,
            FlowStage::Over(_) => true,
        }
    }
}

impl Run {
    /// Begins all flows but those of workloads, which begin when their time has come. What would prevent one
    /// of them from beginning is found here.
    pub(super) fn prepare_flows(&mut self) -> Result<(), RunError> {
        self.check_flows()?;
        for index in 0..self.scenario.flows.len() {
            let flow = &self.scenario.flows[index];
            if let Some(from) = self.parts.host(&flow.from).filter(|from| !self.senders.contains(from)) {
                self.senders.push(from);
            }
            // The first has the payload of the inputs.
            if index > 0 && flow.class.is_some() {
                self.waiting.push(index);
            } else {
                self.begin(index)?;
            }
        }
        self.waiting.sort_by_key(|index| std::cmp::Reverse((self.scenario.flows[*index].start, *index)));
        Ok(())
    }

    /// Flows of workloads must be able to begin: their settings agree. Flows that share a port of a receiver
    /// have its settings in common.
    fn check_flows(&self) -> Result<(), RunError> {
        let mut resolved = BTreeSet::new();
        let mut ports: BTreeMap<(ElementId, u16), &Arc<Settings>> = BTreeMap::new();
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            for settings in [&flow.sender, &flow.receiver] {
                // The flows of an entry share their settings.
                if flow.class.is_some() && resolved.insert(Arc::as_ptr(settings)) {
                    config(flow, settings)?;
                }
            }
            let Some(to) = self.parts.host(&flow.to) else { continue };
            let port = self.scenario.port(index);
            let Some(there) = ports.insert((to, port), &flow.receiver) else { continue };
            let shares = self.scenario.source_port(index).is_some();
            if !shares || *there != flow.receiver {
                let problem = if shares {
                    "so many flows share ports, and those of a port need the same settings of the receiver; \
                     use more hosts that receive, or fewer flows"
                        .to_owned()
                } else {
                    format!("port {port} is in use")
                };
                return Err(RunError::Flow { flow: flow.name.clone(), problem });
            }
        }
        Ok(())
    }

    /// Begins a flow.
    fn begin(&mut self, index: usize) -> Result<(), RunError> {
        let flow = self.open_flow(index)?;
        // A file has its own length.
        self.total = self.total - self.scenario.flows[index].size + flow.size;
        self.flows[index] = FlowStage::UnderWay(Box::new(flow));
        self.active.insert(index);
        Ok(())
    }

    /// Begins the flows of workloads that start in the bin at hand.
    pub(super) fn begin_due(&mut self) -> Result<(), RunError> {
        let end = self.bin_end();
        while let Some(index) = self.waiting.pop() {
            if Instant::ZERO + self.scenario.flows[index].start > end {
                self.waiting.push(index);
                break;
            }
            self.begin(index)?;
        }
        Ok(())
    }

    /// The flow of a workload that is done, and whose connections are closed, leaves its outcome alone.
    pub(super) fn end_flow(&mut self, index: usize) {
        let Some(flow) = self.flows[index].run().filter(|flow| flow.done && flow.is_drawn) else {
            return;
        };
        let ends = [(flow.from, Some(flow.sender)), (flow.to, flow.receiver)];
        let port = (flow.to, flow.port);
        let is_over = |(host, id): &(ElementId, Option<ConnectionId>)| {
            let connection = id.and_then(|id| self.world.element::<Host>(*host)?.connection(id));
            connection.is_none_or(|connection| connection.state() == ConnectionState::Closed)
        };
        if !ends.iter().all(is_over) {
            return;
        }
        if let FlowStage::UnderWay(flow) = std::mem::take(&mut self.flows[index]) {
            self.flows[index] = FlowStage::Over(Box::new(self.flow_outcome(index, *flow)));
        }
        self.active.remove(&index);
        self.awaited.forget(self.awaited_at(index, port));
        for (host, id) in ends {
            if let Some((host, id)) = self.world.element_mut::<Host>(host).zip(id) {
                host.forget_closed(id);
            }
        }
        let Some(flows) = self.listening.get_mut(&port) else { return };
        *flows -= 1;
        if *flows == 0 {
            self.listening.remove(&port);
            if let Some(host) = self.world.element_mut::<Host>(port.0) {
                host.stop_listening(port.1);
            }
        }
    }

    /// Takes the outcomes of all flows.
    pub(super) fn outcomes(&mut self) -> Result<Vec<FlowOutcome>, RunError> {
        let mut outcomes = Vec::with_capacity(self.flows.len());
        for index in 0..self.flows.len() {
            if matches!(self.flows[index], FlowStage::Waiting) {
                // The run ends before its time has come.
                self.begin(index)?;
            }
            match std::mem::take(&mut self.flows[index]) {
                FlowStage::UnderWay(flow) => outcomes.push(self.flow_outcome(index, *flow)),
                FlowStage::Over(outcome) => outcomes.push(*outcome),
                FlowStage::Waiting => {}
            }
        }
        Ok(outcomes)
    }
}
