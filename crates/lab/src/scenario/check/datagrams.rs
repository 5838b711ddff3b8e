//! The rules of datagram flows.

use super::super::document::DocumentStep;
use super::super::nearest::list;
use super::names::{NAME_RULE, bad_name};
use super::{Checker, steps};
use crate::scenario::{DatagramFlow, MAX_FLOWS};
use std::collections::BTreeMap;

/// Bytes of a datagram's payload: from the number that each carries to the limit of an IPv4 packet.
const PAYLOAD: std::ops::RangeInclusive<u64> = 8..=65_507;

impl Checker<'_> {
    pub(super) fn datagrams(&mut self) {
        let s = self.s;
        if s.datagrams.len() > MAX_FLOWS {
            let n = s.datagrams.len();
            self.key(steps!["datagrams"], format!("{n} flows of datagrams; the limit is {MAX_FLOWS}"));
            return;
        }
        let addresses = s.addresses();
        let hosts: Vec<&str> = s.hosts.keys().map(String::as_str).collect();
        let mut ports: BTreeMap<(&str, u16), &str> = BTreeMap::new();
        let mut names: BTreeMap<&str, ()> = s.flows.iter().map(|flow| (flow.name.as_str(), ())).collect();
        for (i, flow) in s.datagrams.iter().enumerate() {
            // Every field is named, so that a new one cannot be forgotten.
            let DatagramFlow { name, from, to, port, start, lasts, rate, payload, spacing: _ } = flow;
            if let Some(why) = bad_name(name) {
                self.value(steps!["datagrams", i, "name"], why).hint(NAME_RULE);
            }
            if names.insert(name, ()).is_some() {
                self.value(steps!["datagrams", i, "name"], format!("`{name}` is the name of another flow"))
                    .hint("every name must be unique");
            }
            for (key, end) in [("from", from), ("to", to)] {
                if !s.hosts.contains_key(end) {
                    self.value(steps!["datagrams", i, key], format!("no host is called `{end}`"))
                        .hint(format!("hosts: {}", list(&hosts)));
                }
            }
            if from == to {
                self.value(steps!["datagrams", i, "to"], format!("flow `{name}` goes from `{to}` to itself"));
            }
            if let (Some(a), Some(b)) = (addresses.get(from.as_str()), addresses.get(to.as_str()))
                && a.is_ipv4() != b.is_ipv4()
            {
                self.value(
                    steps!["datagrams", i, "to"],
                    format!("`{from}` and `{to}` have addresses of two families"),
                )
                .hint("give both an IPv4 or both an IPv6 address");
            }
            if *port == Some(0) {
                self.value(steps!["datagrams", i, "port"], "port 0 cannot be listened on")
                    .hint("take one from 1 to 65535, or leave it out");
            }
            let at = s.datagram_port(i);
            if let Some(other) = ports.insert((to, at), name) {
                self.value(
                    steps!["datagrams", i, "port"],
                    format!("flow `{other}` has port {at} on `{to}` too"),
                );
            }
            if *start >= s.duration {
                let end = s.duration;
                self.value(
                    steps!["datagrams", i, "start"],
                    format!("the run ends at {end}, before this flow starts"),
                )
                .hint("start it earlier, or raise `duration`");
            }
            if lasts.is_some_and(|lasts| lasts.is_zero()) {
                self.value(steps!["datagrams", i, "lasts"], "a flow that lasts 0 s sends nothing");
            }
            self.rate(steps!["datagrams", i, "rate"], Some(*rate));
            if !PAYLOAD.contains(&payload.get()) {
                self.value(steps!["datagrams", i, "payload"], format!("a datagram cannot carry {payload}"))
                    .hint("it must be from 8 B to 65507 B");
            }
        }
    }
}
