//! The datagram flows of a run.

use super::{Run, RunError};
use crate::datagrams::{ConstantRate, Counter};
use crate::outcome::DatagramOutcome;
use crate::scenario::{DatagramFlow, DatagramSpacing};
use farpace_host::Host;
use farpace_host::ip::udp::UdpId;
use farpace_path::world::ElementId;
use farpace_units::{Instant, RandomStream};
use std::net::SocketAddr;

/// A datagram flow of a run.
pub(super) struct DatagramRun {
    from: ElementId,
    source: UdpId,
    to: ElementId,
    counter: UdpId,
}

impl Run {
    /// Opens the sockets of a datagram flow.
    pub(super) fn add_datagrams(&mut self, index: usize, seed: u64) -> Result<(), RunError> {
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
        let mut program =
            ConstantRate::new(SocketAddr::new(address, port), flow.payload, flow.rate, start, end);
        if flow.spacing == DatagramSpacing::Poisson {
            program = program.poisson(flow.rate, RandomStream::new(seed, &format!("{}.spacing", flow.name)));
        }
        let sender = self.world.element_mut::<Host>(from).ok_or_else(not_a_host)?;
        let source = sender.open_udp(address, 0, Box::new(program)).map_err(|e| problem(e.to_string()))?;
        self.datagrams.push(DatagramRun { from, source, to, counter });
        Ok(())
    }

    /// The outcomes of all datagram flows.
    pub(super) fn datagram_outcomes(&self) -> Vec<DatagramOutcome> {
        let outcome = |(spec, run): (&DatagramFlow, &DatagramRun)| {
            let sender =
                self.world.element::<Host>(run.from)?.datagram_program::<ConstantRate>(run.source)?;
            let counter = self.world.element::<Host>(run.to)?.datagram_program::<Counter>(run.counter)?;
            let Counter { received, bytes, late, .. } = *counter;
            Some(DatagramOutcome { name: spec.name.clone(), sent: sender.sent, received, bytes, late })
        };
        self.scenario.datagrams.iter().zip(&self.datagrams).filter_map(outcome).collect()
    }
}
