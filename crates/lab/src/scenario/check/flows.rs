//! Rules of flows and of the TCP settings of their ends.

use super::super::document::DocumentStep;
use super::super::spec::FlowSpec;
use super::{Checker, steps};
use farpace_tcp::config::{Settings, SettingsError};
use farpace_units::Span;
use std::collections::BTreeMap;

impl Checker<'_> {
    /// Each flow has two ends of one address family, a port of its own, something to send and time to send
    /// it.
    pub(super) fn flows(&mut self) {
        let mut ports: BTreeMap<(&str, u16), &str> = BTreeMap::new();
        let addresses = self.s.addresses();
        for (i, flow) in self.s.flows.iter().enumerate() {
            let FlowSpec { name, from, to, port, start, writes, reads, exchanges, sender, receiver, .. } =
                flow;
            self.workload(i, flow);
            if from == to {
                self.value(steps!["flows", i, "to"], format!("flow `{name}` goes from `{to}` to itself"));
            }
            if *port == Some(0) {
                self.value(steps!["flows", i, "port"], "port 0 cannot be listened on")
                    .hint("take one from 1 to 65535, or leave it out");
            }
            let family = |host: &str| addresses.get(host).map(|address| address.is_ipv4());
            if family(from) != family(to) && family(from).is_some() && family(to).is_some() {
                self.value(
                    steps!["flows", i, "to"],
                    format!("`{from}` and `{to}` have addresses of two families"),
                )
                .hint("give both an IPv4 or both an IPv6 address");
            }
            if let Some(other) = ports.insert((to, self.s.port(i)), name) {
                let at = self.s.port(i);
                self.value(steps!["flows", i, "port"], format!("flow `{other}` has port {at} on `{to}` too"));
            }
            for (key, portions) in [("writes", writes), ("reads", reads)] {
                let Some(portions) = portions else { continue };
                if portions.size.is_zero() {
                    self.value(steps!["flows", i, key, "size"], "a portion has 1 B at least");
                }
                if portions.every < Span::from_micros(1) {
                    self.value(steps!["flows", i, key, "every"], "portions are 1 us apart at least");
                }
            }
            for (n, exchange) in exchanges.iter().enumerate() {
                for (key, size) in [("request", exchange.request), ("answer", exchange.answer)] {
                    if size.is_zero() {
                        self.value(
                            steps!["flows", i, "exchanges", n, key],
                            "an exchange has 1 B at least each way",
                        );
                    }
                }
            }
            if !exchanges.is_empty() && (writes.is_some() || reads.is_some()) {
                self.key(steps!["flows", i, "exchanges"], "programs of exchanges write and read at once")
                    .hint("leave out `writes` and `reads`, or `exchanges`");
            }
            if *start >= self.s.duration {
                let end = self.s.duration;
                self.value(
                    steps!["flows", i, "start"],
                    format!("the run ends at {end}, before this flow starts"),
                )
                .hint("start it earlier, or raise `duration`");
            }
            self.settings(i, "sender", sender);
            self.settings(i, "receiver", receiver);
        }
    }

    fn settings(&mut self, i: usize, side: &str, settings: &Settings) {
        if let Err(e) = settings.resolve() {
            let (SettingsError::Foreign { key, .. } | SettingsError::Range { key, .. }) = &e;
            let at_key = matches!(e, SettingsError::Foreign { .. });
            // The window may have been given in bytes.
            let key = if *key == "window" && settings.window.is_none() { "receive_buffer" } else { key };
            self.add(steps!["flows", i, side, key], at_key, e.to_string());
        }
        if settings.window.is_some() && settings.receive_buffer.is_some() {
            self.key(
                steps!["flows", i, side, "receive_buffer"],
                "`window` and `receive_buffer` are two ways to say the same",
            )
            .hint("leave one of them out");
        }
    }
}
