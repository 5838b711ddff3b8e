//! Programs that take their time: they are woken when a portion is due.

use super::stages::FlowStage;
use super::{Run, RunError};
use crate::exchanges::after_on_grid;
use crate::programs::{ReceivingProgram, SendingProgram};
use farpace_host::Host;
use farpace_units::Instant;

impl Run {
    /// Runs the world, and wakes programs that take their time when they are due.
    pub(super) fn run_until(&mut self, until: Instant) -> Result<(), RunError> {
        // With thousands of flows even looking for such programs takes time.
        while self.portions || self.exchanges {
            let due = self.active.iter().filter_map(|flow| self.wake_at(*flow)).min();
            // What arrives until then may set a time of its own.
            let grid = self.exchanges.then(|| after_on_grid(self.world.now()));
            let Some(due) = due.into_iter().chain(grid).min().filter(|due| *due <= until) else { break };
            self.world.run_until(due, &mut self.observer)?;
            self.note_accepted();
            for flow in self.active.iter().copied().collect::<Vec<_>>() {
                if self.wake_at(flow).is_some_and(|at| at <= due) {
                    self.wake(flow, due)?;
                }
            }
        }
        self.world.run_until(until, &mut self.observer)?;
        Ok(())
    }

    /// When a program of a flow that takes its time is due.
    fn wake_at(&self, index: usize) -> Option<Instant> {
        let (spec, flow) = (self.scenario.flows.get(index)?, self.flows.get(index)?.run()?);
        let host = |id| self.world.element::<Host>(id);
        let exchanges = !spec.exchanges.is_empty();
        let sends = || host(flow.from)?.application::<SendingProgram>(flow.sender)?.wake_at();
        let receives = || host(flow.to)?.application::<ReceivingProgram>(flow.receiver?)?.wake_at();
        let sender = if exchanges || spec.writes.is_some() { sends() } else { None };
        let receiver = if exchanges || spec.reads.is_some() { receives() } else { None };
        sender.into_iter().chain(receiver).min()
    }

    fn wake(&mut self, index: usize, now: Instant) -> Result<(), RunError> {
        let Some(flow) = self.flows.get(index).and_then(FlowStage::run) else { return Ok(()) };
        let (from, to, sender, receiver) = (flow.from, flow.to, flow.sender, flow.receiver);
        self.world.call::<Host, _>(from, &mut self.observer, |host, cx| {
            host.with_application(sender, cx, |program: &mut SendingProgram, connection| {
                program.wake(now);
                program.write(connection);
            });
        })?;
        self.world.call::<Host, _>(to, &mut self.observer, |host, cx| {
            if let Some(id) = receiver {
                host.with_application(id, cx, |program: &mut ReceivingProgram, connection| {
                    program.wake(now);
                    program.read(now, connection);
                    program.answer(connection);
                });
            }
        })?;
        Ok(())
    }
}
