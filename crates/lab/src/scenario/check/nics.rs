//! Rules of hosts with several NICs, and of processors.

use super::super::document::DocumentStep;
use super::super::spec::Direction;
use super::super::topology::Hop;
use super::{Checker, MAX_HOST_TIME, steps};
use farpace_link::multi_nic::{MAX_NICS, MultiNicConfig};
use std::collections::{BTreeMap, BTreeSet};

impl Checker<'_> {
    /// The rules of a host without regard to its links.
    pub(super) fn host_models(&mut self) {
        let s = self.s;
        for (name, host) in &s.hosts {
            if let Some(config) = &host.multi_nic {
                self.multi_nic(name, config);
            }
            let Some(p) = &host.processor else { continue };
            let at = |key: &str| steps!["hosts", name.as_str(), "processor", key];
            let times = [
                ("send", Some(p.send)),
                ("receive", Some(p.receive)),
                ("receive_ack", p.receive_ack),
                ("per_byte", Some(p.per_byte)),
            ];
            for (key, time) in times {
                if let Some(time) = time.filter(|time| *time > MAX_HOST_TIME) {
                    self.value(at(key), format!("no frame takes a processor {time}"))
                        .hint(format!("it must be at most {MAX_HOST_TIME}"));
                }
            }
            self.queue(at("queue"), p.queue);
        }
    }

    fn multi_nic(&mut self, host: &str, config: &MultiNicConfig) {
        let nics = self.s.nics(host).len();
        let at = |keys: &[&str]| {
            let keys = keys.iter().map(|key| DocumentStep::from(*key));
            steps!["hosts", host, "multi_nic"].into_iter().chain(keys).collect::<Vec<_>>()
        };
        if let Some(ratio) = &config.ratio {
            let shares = ratio.weights().len();
            if shares != nics {
                self.value(at(&["ratio"]), format!("{shares} shares for {nics} NICs"))
                    .hint(format!("write a share for each link of `{host}`, in the order of links"));
            }
        }
        self.queue(at(&["queue"]), config.queue.unwrap_or_default());
        let times = [("hold", config.hold), ("probe_interval", config.probe_interval)];
        for (key, time) in times {
            if time.is_zero() || time > MAX_HOST_TIME {
                self.value(at(&[key]), format!("{time} is not possible"))
                    .hint(format!("it must be more than 0 s and at most {MAX_HOST_TIME}"));
            }
        }
        if config.hops == 0 {
            self.value(at(&["hops"]), "there is at least one link between two hosts");
        }
        if let Some(resequence) = config.resequence {
            if let Some(time) = resequence.time.filter(|time| time.is_zero() || *time > MAX_HOST_TIME) {
                self.value(at(&["resequence", "time"]), format!("{time} is not possible"))
                    .hint(format!("it must be more than 0 s and at most {MAX_HOST_TIME}"));
            }
            if resequence.bytes.is_zero() {
                self.value(at(&["resequence", "bytes"]), "a buffer of 0 B puts nothing in order")
                    .hint("leave `resequence` out");
            }
        }
    }

    /// The NICs of hosts with several: their links, and the other nodes on them.
    pub(super) fn nics(&mut self) {
        let s = self.s;
        let ethernets = s.ethernets();
        let of = |nic: &Hop| ethernets.get(nic.link).copied();
        let all: BTreeMap<&str, Vec<Hop>> =
            s.hosts.keys().map(|host| (host.as_str(), s.nics(host))).collect();
        for (name, _) in s.hosts.iter().filter(|(_, host)| host.multi_nic.is_some()) {
            let Some(nics) = all.get(name.as_str()) else { continue };
            let Some(first) = nics.first() else { continue };
            if let Some(nic) = nics.get(MAX_NICS) {
                let text = format!("`{name}` has {} links; a host has at most {MAX_NICS} NICs", nics.len());
                self.value(end(nic), text);
                return;
            }
            for nic in nics.iter().filter(|nic| s.nic_rate(**nic).is_none()) {
                let link = &s.links[nic.link].name;
                self.value(
                    steps!["links", nic.link, "rate"],
                    format!("link `{link}` has no rate, and `{name}` has a NIC on it"),
                )
                .hint("a host with several NICs needs the rate of each: give the link a `rate`");
            }
            let mine: BTreeSet<usize> = nics.iter().filter_map(of).collect();
            let near = (0..s.links.len()).filter(|link| mine.contains(&ethernets[*link]));
            for link in near {
                for (at, node) in s.links[link].between.iter().enumerate() {
                    let place = steps!["links", link, "between", at];
                    if s.routers.contains_key(node) {
                        self.value(
                            place,
                            format!(
                                "router `{node}` is on the same Ethernet as `{name}`, which has several NICs"
                            ),
                        )
                        .hint("hosts with several NICs talk only to hosts on their own links and switches");
                        return;
                    }
                    let their_first = all.get(node.as_str()).and_then(|nics| nics.first());
                    if let Some(other) = their_first.filter(|other| of(other) != of(first)) {
                        let (a, b) = (&s.links[first.link].name, &s.links[other.link].name);
                        self.value(
                            place,
                            format!(
                                "`{node}` shares a link or a switch with `{name}`, but not with its first NIC"
                            ),
                        )
                        .hint(format!(
                            "hosts resolve each other's addresses by their first links, here {b} and {a}: \
                             change the order of [[links]], or let the two meet in one switch"
                        ));
                        return;
                    }
                }
            }
        }
    }
}

/// The end of a link at which a NIC is.
fn end(nic: &Hop) -> Vec<DocumentStep> {
    steps!["links", nic.link, "between", usize::from(nic.direction == Direction::Backward)]
}
