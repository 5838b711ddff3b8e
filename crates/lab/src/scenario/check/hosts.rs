//! Rules of hosts: addresses, memory, stalls, transmit queues.

use super::super::document::DocumentStep;
use super::super::periods;
use super::{Checker, steps};
use farpace_units::Span;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Longest time that a host takes for one frame or one interrupt.
pub(in super::super) const MAX_HOST_TIME: Span = Span::from_secs(1);

impl Checker<'_> {
    /// A queue that is asked for room is between the host and its link, and there is one.
    pub(super) fn transmit_queues(&mut self) {
        for (name, host) in self.s.hosts.iter().filter(|(_, host)| host.transmit_queue) {
            let path = steps!["hosts", name.as_str(), "transmit_queue"];
            let direction = self.s.nics(name).first().and_then(|hop| self.s.direction(*hop));
            let problem = match direction {
                _ if host.multi_nic.is_some() => "a host with several NICs has several queues",
                _ if host.processor.is_some() => "a processor is between TCP and the queue",
                _ if !host.stalls.is_empty() => "segments that wait for the end of a stall have not asked it",
                Some(direction) if direction.is_managed() => {
                    "a managed queue, or one with a schedule, is not asked"
                }
                Some(direction) if direction.pacing.is_some_and(|pacing| pacing.classes.len() != 1) => {
                    "the pacing NIC has a queue for each class, and only one can be asked"
                }
                Some(_) => continue,
                None => "the host has no link",
            };
            self.value(path, problem.to_owned()).hint("leave it out");
        }
    }

    /// Addresses, memory and stalls.
    pub(super) fn hosts(&mut self) {
        let mut taken: BTreeMap<IpAddr, &str> = BTreeMap::new();
        for (name, host) in &self.s.hosts {
            if let Some(memory) = host.memory.filter(|memory| *memory < farpace_host::MIN_MEMORY) {
                self.value(
                    steps!["hosts", name.as_str(), "memory"],
                    format!("{memory} holds no connections"),
                )
                .hint(format!("at least {}", farpace_host::MIN_MEMORY));
            }
            let path = steps!["hosts", name.as_str(), "stalls"];
            periods::check(&host.stalls, &path, ["a stall", "stalls"], self);
            let Some(address) = host.address else { continue };
            let path = steps!["hosts", name.as_str(), "address"];
            if !farpace_host::is_host_address(address) {
                self.value(path, format!("{address} cannot be the address of a host"))
                    .hint("take a private one, like 10.0.0.1, or leave it out");
            } else if let Some(other) = taken.insert(address, name) {
                self.value(path, format!("host `{other}` has the address {address} too"));
            }
        }
    }
}
