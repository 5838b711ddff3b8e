//! What happens at each place of a run's network, for those who ask: queues, drops, and shares of NICs.

use super::{Run, RunError};
use crate::drop_log::{DropMeter, DroppedSegment};
use crate::nics;
use crate::outcome::NicRate;
use crate::queueing::NetworkQueues;
use farpace_path::QueueReading;
use farpace_path::world::ElementId;

impl Run {
    /// From now on queues, drops and the NICs of hosts with several are read over time. The run stays the
    /// same.
    ///
    /// # Errors
    /// A defect of the network.
    pub fn watch_places(&mut self) -> Result<(), RunError> {
        self.queues = NetworkQueues::of(&self.world, &self.scenario, &self.parts);
        self.observer.log_drops(self.bin);
        nics::observe_rates(&mut self.world, &mut self.observer, &self.scenario, &self.parts, self.bin)?;
        Ok(())
    }

    /// The names of all queues: `LINK, NODE to NODE`. None before [`watch_places`](Run::watch_places).
    pub fn queue_names(&self) -> impl Iterator<Item = &str> {
        self.queues.names()
    }

    /// The most that waited in each queue since the last call, in the order of the names.
    pub fn queue_readings(&mut self) -> Vec<QueueReading> {
        self.queues.readings(&mut self.world, self.now)
    }

    /// The segments that were dropped since the last call, and the flow of each; none: of no flow's data. If
    /// more than 65,536 were dropped, the later ones are missing.
    pub fn take_dropped(&mut self) -> Vec<(Option<usize>, DroppedSegment)> {
        let dropped = self.observer.drop_log_mut().map_or_else(Vec::new, |log| log.take_segments());
        let shares_ports = self.scenario.source_port(0).is_some();
        let flow_of = |segment: &DroppedSegment| {
            (0..self.scenario.flows.len()).find(|flow| {
                self.scenario.port(*flow) == segment.ports.1
                    && (!shares_ports || self.scenario.source_port(*flow) == Some(segment.ports.0))
            })
        };
        dropped.into_iter().map(|segment| (flow_of(&segment), segment)).collect()
    }

    /// Drops over time by place and reason, in the order in which they began.
    pub fn drop_meters(&self) -> &[DropMeter] {
        self.observer.drop_log().map_or(&[], |log| log.meters())
    }

    /// The name of a place.
    pub fn place_name(&self, element: ElementId) -> &str {
        self.world.name(element)
    }

    /// What each of several NICs of a host sent over time.
    ///
    /// # Errors
    /// A defect of the network.
    pub fn nic_rates(&mut self) -> Result<Vec<NicRate>, RunError> {
        Ok(nics::rates(&mut self.world, &self.observer, &self.scenario, &self.parts)?)
    }
}
