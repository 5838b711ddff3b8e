//! Rules of `pacing`: a link that can be paced, and the rules of the configuration itself.

use super::super::document::DocumentStep;
use super::super::spec::{Direction, DirectionSpec, LinkSpec};
use super::Checker;
use farpace_link::pacing::{ClassRate, FCS, PREAMBLE_AND_GAP};
use std::collections::BTreeSet;

impl Checker<'_> {
    /// The link of a paced direction, and its configuration.
    pub(super) fn pacing(&mut self, i: usize, link: &LinkSpec) {
        let directions = [
            ("forward", Direction::Forward, &link.forward),
            ("backward", Direction::Backward, &link.backward),
        ];
        for (key, direction, own) in directions {
            let d = link.direction(direction);
            let Some(config) = d.pacing else { continue };
            let at = [DocumentStep::from("links"), DocumentStep::from(i), DocumentStep::from(key)];
            let below = |key: &str| [&at[..], &[DocumentStep::from(key)]].concat();
            if let Some(key) = managed(own, link) {
                self.key(below("pacing"), format!("a link is paced or has `{key}`, not both"))
                    .hint(format!("leave `pacing` or `{key}` out; classes have limits of their own"));
            }
            if own.queue.is_some() {
                self.key(below("queue"), "a paced link has only the queues of its classes")
                    .hint("give `pacing` a `limit`, or each of its classes one");
            }
            let ethernet = FCS + PREAMBLE_AND_GAP;
            if d.overhead != ethernet {
                self.value(
                    vec![DocumentStep::from("links"), DocumentStep::from(i), DocumentStep::from("overhead")],
                    format!("pacing counts the {ethernet} that Ethernet takes around each frame"),
                )
                .hint("leave `overhead` out");
            }
            let of_connections = config.classes.iter().position(|c| c.rate == Some(ClassRate::Connection));
            if let Some(class) = of_connections.filter(|_| !self.s.hosts.contains_key(d.from)) {
                let path = [&below("pacing")[..], &["classes".into(), class.into(), "rate".into()]].concat();
                self.value(
                    path,
                    format!("only a host knows the rates of its connections, and `{}` is none", d.from),
                )
                .hint("give the class a rate, or pace where the host sends");
            }
            match d.rate {
                None => {
                    self.key(below("pacing"), "an infinitely fast link cannot be paced")
                        .hint("give the link a `rate`");
                }
                // Found already.
                Some(rate) if rate.bits_per_sec() == 0 => {}
                Some(rate) => {
                    for error in config.check(rate) {
                        let steps = error.at.iter().map(|step| match step.parse::<usize>() {
                            Ok(index) => DocumentStep::from(index),
                            Err(_) => DocumentStep::from(step.as_str()),
                        });
                        let path = below("pacing").into_iter().chain(steps).collect();
                        self.value(path, error.problem);
                    }
                }
            }
        }
    }

    /// Full packets of every flow fit the MTU of the paced NICs on its path.
    pub(super) fn paced_paths(&mut self) {
        let s = self.s;
        let mut reported = BTreeSet::new();
        for flow in &s.flows {
            for hop in s.path(flow) {
                let Some(config) = s.direction(hop).and_then(|d| d.pacing) else { continue };
                let packet = s.segment(flow).ip;
                if packet > config.mtu && reported.insert(hop) {
                    let direction = if hop.direction == Direction::Forward { "forward" } else { "backward" };
                    let path =
                        ["links".into(), hop.link.into(), direction.into(), "pacing".into(), "mtu".into()];
                    let (flow, mtu) = (&flow.name, config.mtu);
                    self.value(
                        path.to_vec(),
                        format!("flow `{flow}` sends packets of {packet}, longer than the MTU of {mtu}"),
                    )
                    .hint("raise `mtu`, or give the flow's ends a smaller `mss`");
                }
            }
        }
    }
}

/// The key that manages the queue or the link of a direction.
fn managed(own: &DirectionSpec, link: &LinkSpec) -> Option<&'static str> {
    match () {
        () if own.aqm.is_some() || link.aqm.is_some() => Some("aqm"),
        () if own.schedule.is_some() || link.schedule.is_some() => Some("schedule"),
        () => None,
    }
}
