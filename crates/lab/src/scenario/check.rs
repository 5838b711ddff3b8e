//! The rules a scenario has to keep beyond its form: names that exist, values that are possible, a network
//! without loops in which every flow has a path.

use super::document::{DocumentNode, DocumentStep};
use super::error::ScenarioFault;
use super::hint::{list, nearest};
use super::impairments::BurstLossSpec;
use super::spec::{DirectionSpec, FlowSpec, LinkSpec, MtuSpec, PolicerCounts, Scenario};
use super::topology::Graph;
use super::{MAX_DURATION, MAX_FLOWS, MAX_LINKS, MAX_NAME, MAX_NODES, MAX_OUTAGES, MAX_TAPS};
use farpace_tcp::config::{Settings, SettingsError};
use farpace_units::{ByteCount, Rate, Span};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most bins of one run: a bound on the memory that a small `trace.bin` takes.
pub const MAX_BINS: u64 = 10_000_000;
/// Bytes kept of each frame: enough for all headers, and the most that pcap readers accept.
const SNAPLEN: std::ops::RangeInclusive<u64> = 96..=262_144;
/// Most bytes of `overhead`.
const MAX_OVERHEAD: ByteCount = ByteCount::new(65_535);

/// A broken rule and the path of the key that breaks it.
pub(super) struct CheckFinding {
    path: Vec<DocumentStep>,
    at_key: bool,
    message: String,
    hint: Option<String>,
}

impl CheckFinding {
    fn hint(&mut self, hint: impl Into<String>) {
        self.hint = Some(hint.into());
    }
    fn hint_nearest(&mut self, word: &str, known: &[&str]) {
        self.hint = Some(match nearest(word, known) {
            Some(n) => format!("did you mean `{n}`?"),
            None => format!("there are {}", list(known)),
        });
    }
    /// The same with its place in the text.
    pub fn locate(self, root: &DocumentNode) -> ScenarioFault {
        let origin = if self.at_key { root.key_origin(&self.path) } else { root.value_origin(&self.path) };
        let fault = ScenarioFault::syntax(self.message, origin);
        match self.hint {
            Some(hint) => fault.hinted(hint),
            None => fault,
        }
    }
}

/// All broken rules that can be found independently of each other.
pub(super) fn check(scenario: &Scenario) -> Vec<CheckFinding> {
    let mut c = Checker { s: scenario, found: Vec::new() };
    c.limits();
    if !c.found.is_empty() {
        return c.found; // the rest would take time without end
    }
    c.top();
    c.names();
    for (i, link) in scenario.links.iter().enumerate() {
        c.link(i, link);
    }
    c.hosts();
    c.machines();
    c.flows();
    c.datagrams();
    let known_so_far = c.found.len();
    c.ends();
    // Routes mean something only where all names do.
    if c.found.len() == known_so_far {
        c.topology();
        c.cards();
        c.paced_paths();
    }
    c.trace();
    c.found
}

struct Checker<'a> {
    s: &'a Scenario,
    found: Vec<CheckFinding>,
}

macro_rules! path {
    ($($step:expr),* $(,)?) => { vec![$(DocumentStep::from($step)),*] };
}

mod datagrams;
mod line;
mod middlebox;
mod nics;
mod pacing;

pub(super) use line::fetch;

impl Checker<'_> {
    /// A value is wrong.
    fn value(&mut self, path: Vec<DocumentStep>, message: impl Into<String>) -> &mut CheckFinding {
        self.add(path, false, message.into())
    }
    /// A key is wrong.
    fn key(&mut self, path: Vec<DocumentStep>, message: impl Into<String>) -> &mut CheckFinding {
        self.add(path, true, message.into())
    }
    fn add(&mut self, path: Vec<DocumentStep>, at_key: bool, message: String) -> &mut CheckFinding {
        let index = self.found.len();
        self.found.push(CheckFinding { path, at_key, message, hint: None });
        &mut self.found[index]
    }

    fn limits(&mut self) {
        let s = self.s;
        let nodes = s.hosts.len() + s.between().count();
        let counts = [
            ("hosts", "hosts, routers and switches", nodes, MAX_NODES),
            ("links", "links", s.links.len(), MAX_LINKS),
            ("flows", "flows", s.flows.len(), MAX_FLOWS),
        ];
        for (key, what, count, limit) in counts {
            if count > limit {
                self.key(path![key], format!("{count} {what}; the limit is {limit}"));
            }
        }
        if s.trace.taps.len() > MAX_TAPS {
            let n = s.trace.taps.len();
            self.key(path!["trace", "taps"], format!("{n} taps; the limit is {MAX_TAPS}"));
        }
        for (i, link) in s.links.iter().enumerate() {
            for (key, d) in [("forward", &link.forward), ("backward", &link.backward)] {
                for (list, n) in [("outages", d.outages.len()), ("clock_jumps", d.clock_jumps.len())] {
                    if n > MAX_OUTAGES {
                        let what = list.replace('_', " ");
                        self.key(
                            path!["links", i, key, list],
                            format!("{n} {what}; the limit is {MAX_OUTAGES}"),
                        );
                    }
                }
            }
        }
    }

    fn top(&mut self) {
        let s = self.s;
        if s.title.trim().is_empty() {
            self.value(path!["title"], "the title is empty").hint("say in one line what this scenario is");
        }
        if s.duration.is_zero() || s.duration > MAX_DURATION {
            self.value(path!["duration"], format!("a duration of {} is not possible", s.duration))
                .hint("it must be more than 0 s and at most 720 h");
        }
        if s.hosts.is_empty() {
            self.value(path!["hosts"], "there are no hosts").hint("name them: [hosts.a] and [hosts.b]");
        }
        if s.flows.is_empty() {
            self.value(path!["flows"], "there are no flows")
                .hint("add a transfer: [[flows]] with name, from, to and size");
        }
    }

    fn names(&mut self) {
        let s = self.s;
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (table, kind, name) in s.hosts.keys().map(|n| ("hosts", "host", n)).chain(s.between()) {
            if let Some(why) = bad_name(name) {
                self.key(path![table, name.as_str()], why).hint(NAME_RULE);
            }
            if let Some(other) = taken.insert(name, kind) {
                self.key(path![table, name.as_str()], format!("`{name}` is the name of a {other} too"));
            }
        }
        let mut flows: BTreeMap<&str, &str> = BTreeMap::new();
        let links = s.links.iter().enumerate().map(|(i, l)| ("links", i, &l.name));
        let named = links.chain(s.flows.iter().enumerate().map(|(i, f)| ("flows", i, &f.name)));
        for (table, i, name) in named {
            if let Some(why) = bad_name(name) {
                self.value(path![table, i, "name"], why).hint(NAME_RULE);
            }
            let (taken, kind) = if table == "links" { (&mut taken, "link") } else { (&mut flows, "flow") };
            if let Some(other) = taken.insert(name, kind) {
                self.value(path![table, i, "name"], format!("`{name}` is the name of another {other}"))
                    .hint("every name must be unique");
            }
        }
    }

    fn link(&mut self, i: usize, link: &LinkSpec) {
        // Every field is named, so that a new one cannot be forgotten.
        let LinkSpec {
            name: _,
            between: _,
            rate,
            delay: _,
            queue,
            aqm,
            schedule,
            overhead,
            forward,
            backward,
        } = link;
        self.rate(path!["links", i, "rate"], *rate);
        if queue.is_zero() {
            self.value(path!["links", i, "queue"], "a queue that holds nothing drops every packet");
        } else {
            self.queue(path!["links", i, "queue"], *queue);
        }
        if *overhead > MAX_OVERHEAD {
            self.value(path!["links", i, "overhead"], format!("an overhead of {overhead} is not possible"))
                .hint("it is the part of a frame that is not in the packet: 24 B for Ethernet");
        }
        self.line(&[DocumentStep::from("links"), DocumentStep::from(i)], aqm.as_ref(), schedule.as_ref());
        self.managed_queues(i, link);
        self.pacing(i, link);
        for (key, d) in [("forward", forward), ("backward", backward)] {
            self.direction(&[DocumentStep::from("links"), DocumentStep::from(i), DocumentStep::from(key)], d);
        }
    }

    fn direction(&mut self, at: &[DocumentStep], d: &DirectionSpec) {
        let below = |keys: &[&str]| {
            let mut path = at.to_vec();
            path.extend(keys.iter().map(|k| DocumentStep::from(*k)));
            path
        };
        let DirectionSpec {
            rate,
            delay: _,
            queue,
            aqm,
            schedule,
            pacing: _,
            middlebox,
            ack_thinning,
            policer,
            mtu,
            loss,
            burst_loss,
            bit_errors,
            duplicate,
            corrupt,
            reorder,
            jitter: _,
            outages,
            clock_jumps,
            interrupts,
        } = d;
        if let Some(interrupts) = interrupts {
            self.interrupts(&below(&["interrupts"]), interrupts);
        }
        if let Some(middlebox) = middlebox {
            self.middlebox(&below(&["middlebox"]), middlebox);
        }
        if let Some(thinning) = ack_thinning {
            self.ack_thinning(&below(&["ack_thinning"]), thinning);
        }
        self.line(at, aqm.as_ref(), schedule.as_ref());
        self.rate(below(&["rate"]), *rate);
        if let Some(queue) = queue {
            if queue.is_zero() {
                self.value(below(&["queue"]), "a queue that holds nothing drops every packet");
            } else {
                self.queue(below(&["queue"]), *queue);
            }
        }
        let chances =
            [("loss", *loss), ("bit_errors", *bit_errors), ("duplicate", *duplicate), ("corrupt", *corrupt)];
        for (key, p) in chances {
            self.probability(below(&[key]), p);
        }
        if let Some(BurstLossSpec { begin, end, good, bad }) = burst_loss {
            for (key, p) in [("begin", *begin), ("end", *end), ("good", *good), ("bad", *bad)] {
                self.probability(below(&["burst_loss", key]), p);
            }
        }
        for (n, jump) in clock_jumps.iter().enumerate() {
            if jump.ticks == 0 {
                let path = [below(&["clock_jumps"]), path![n, "ticks"]].concat();
                self.value(path, "a jump by 0 ticks is none");
            }
        }
        if let Some(r) = reorder {
            self.probability(below(&["reorder", "chance"]), r.chance);
            if r.extra.is_zero() {
                self.value(below(&["reorder", "extra"]), "held back for no time, no packet is overtaken");
            }
        }
        if let Some(p) = policer {
            self.rate(below(&["policer", "rate"]), Some(p.rate));
            let largest = self.largest_frame();
            let packet = match p.counts {
                PolicerCounts::Ip => largest - ByteCount::new(14),
                PolicerCounts::Frame => largest,
            };
            if p.burst < packet {
                self.value(
                    below(&["policer", "burst"]),
                    format!("a bucket of {} never lets a full-size packet of {packet} pass", p.burst),
                );
            } else if !p.rate.bytes_in(p.refill).is_zero() && p.rate.bytes_in(p.refill) > p.burst {
                let quantum = p.rate.bytes_in(p.refill);
                self.value(
                    below(&["policer", "refill"]),
                    format!("each refill brings {quantum}, more than the bucket of {} holds", p.burst),
                )
                .hint(format!(
                    "at {}, refill more often than every {}",
                    p.rate,
                    p.rate.time_for(p.burst)
                ));
            }
            if p.phase >= p.refill && !p.phase.is_zero() {
                self.value(
                    below(&["policer", "phase"]),
                    format!("a phase of {} is not less than the refill time of {}", p.phase, p.refill),
                )
                .hint("the phase is the time of the first refill: less than `refill`");
            }
        }
        if let Some(mtu) = mtu {
            self.mtu(&below(&["mtu"]), mtu);
        }
        let mut end = Span::ZERO;
        for (n, outage) in outages.iter().enumerate() {
            let mut path = below(&["outages"]);
            path.push(DocumentStep::Index(n));
            if outage.lasts.is_zero() {
                let lasts = [path.clone(), path!["lasts"]].concat();
                self.value(lasts, "an outage that lasts 0 s is none");
            }
            if outage.at >= self.s.duration {
                let at = [path.clone(), path!["at"]].concat();
                self.value(at, format!("the run ends at {}, before this outage begins", self.s.duration));
            }
            if n > 0 && outage.at < end {
                self.value(
                    path,
                    format!("this outage begins at {}, before the last one ends at {end}", outage.at),
                )
                .hint("write outages in order of time, without overlap");
            }
            end = outage.at + outage.lasts;
        }
    }

    fn mtu(&mut self, at: &[DocumentStep], mtu: &MtuSpec) {
        let least = farpace_path::MtuDirection::MIN;
        let below = |steps: &[DocumentStep]| [at, steps].concat();
        let too_small = format!("below the {least} that every IPv4 hop must carry");
        if mtu.limit < least {
            self.value(
                below(&[DocumentStep::from("limit")]),
                format!("an MTU of {} is {too_small}", mtu.limit),
            );
        }
        let n = mtu.changes.len();
        if n > MAX_OUTAGES {
            let text = format!("{n} changes; the limit is {MAX_OUTAGES}");
            self.value(below(&[DocumentStep::from("changes")]), text);
        }
        for (n, change) in mtu.changes.iter().enumerate() {
            let below = |key: &str| {
                below(&[DocumentStep::from("changes"), DocumentStep::from(n), DocumentStep::from(key)])
            };
            if change.limit < least {
                self.value(below("limit"), format!("an MTU of {} is {too_small}", change.limit));
            }
            if n > 0 && mtu.changes[n - 1].at >= change.at {
                self.value(below("at"), "this change is not later than the one before it")
                    .hint("write changes in order of time");
            }
        }
    }

    fn rate(&mut self, path: Vec<DocumentStep>, rate: Option<Rate>) {
        if rate.is_some_and(|r| r.bits_per_sec() == 0) {
            let policer = path.iter().any(|s| *s == DocumentStep::from("policer"));
            self.value(path, "a rate of 0 lets nothing pass").hint(if policer {
                "leave `policer` out for none"
            } else {
                "leave `rate` out for an infinitely fast link; use `outages` for a broken one"
            });
        }
    }

    fn queue(&mut self, path: Vec<DocumentStep>, queue: super::QueueLimit) {
        let frame = self.largest_frame();
        if queue.in_bytes(frame) < frame {
            self.value(path, format!("a queue of {queue} never holds a full-size frame of {frame}"));
        }
    }

    fn probability(&mut self, path: Vec<DocumentStep>, p: f64) {
        if !(0.0..=1.0).contains(&p) {
            self.value(path, format!("{p} is not a probability")).hint("it must be from 0 to 1: 1 % is 0.01");
        }
    }

    /// The largest frame that any flow sends, from its MSS.
    fn largest_frame(&self) -> ByteCount {
        let frames = self.s.flows.iter().map(|f| self.s.segment(f).frame);
        frames.max().unwrap_or(ByteCount::new(1_514))
    }

    fn hosts(&mut self) {
        let mut taken: BTreeMap<IpAddr, &str> = BTreeMap::new();
        for (name, host) in &self.s.hosts {
            if let Some(memory) = host.memory.filter(|memory| *memory < farpace_host::MIN_MEMORY) {
                self.value(path!["hosts", name.as_str(), "memory"], format!("{memory} holds no connections"))
                    .hint(format!("at least {}", farpace_host::MIN_MEMORY));
            }
            let Some(address) = host.address else { continue };
            let path = path!["hosts", name.as_str(), "address"];
            if !farpace_host::is_host_address(address) {
                self.value(path, format!("{address} cannot be the address of a host"))
                    .hint("take a private one, like 10.0.0.1, or leave it out");
            } else if let Some(other) = taken.insert(address, name) {
                self.value(path, format!("host `{other}` has the address {address} too"));
            }
        }
    }

    fn flows(&mut self) {
        let mut ports: BTreeMap<(&str, u16), &str> = BTreeMap::new();
        let addresses = self.s.addresses();
        for (i, flow) in self.s.flows.iter().enumerate() {
            let FlowSpec { name, from, to, port, start, size, sender, receiver } = flow;
            if from == to {
                self.value(path!["flows", i, "to"], format!("flow `{name}` goes from `{to}` to itself"));
            }
            if *port == Some(0) {
                self.value(path!["flows", i, "port"], "port 0 cannot be listened on")
                    .hint("take one from 1 to 65535, or leave it out");
            }
            let family = |host: &str| addresses.get(host).map(|address| address.is_ipv4());
            if family(from) != family(to) && family(from).is_some() && family(to).is_some() {
                self.value(
                    path!["flows", i, "to"],
                    format!("`{from}` and `{to}` have addresses of two families"),
                )
                .hint("give both an IPv4 or both an IPv6 address");
            }
            if let Some(other) = ports.insert((to, self.s.port(i)), name) {
                let at = self.s.port(i);
                self.value(path!["flows", i, "port"], format!("flow `{other}` has port {at} on `{to}` too"));
            }
            if size.is_zero() {
                self.value(path!["flows", i, "size"], "a flow of 0 B sends nothing");
            }
            if *start >= self.s.duration {
                let end = self.s.duration;
                self.value(
                    path!["flows", i, "start"],
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
            self.add(path!["flows", i, side, key], at_key, e.to_string());
        }
        if settings.window.is_some() && settings.receive_buffer.is_some() {
            self.key(
                path!["flows", i, side, "receive_buffer"],
                "`window` and `receive_buffer` are two ways to say the same",
            )
            .hint("leave one of them out");
        }
    }

    /// The names that links and flows refer to.
    fn ends(&mut self) {
        let s = self.s;
        let hosts: Vec<&str> = s.hosts.keys().map(String::as_str).collect();
        let between = s.between().map(|(.., name)| name.as_str());
        let nodes: Vec<&str> = hosts.iter().copied().chain(between).collect();
        for (i, link) in s.links.iter().enumerate() {
            for (end, name) in link.between.iter().enumerate() {
                if !nodes.contains(&name.as_str()) {
                    self.value(
                        path!["links", i, "between", end],
                        format!("no host, router or switch is called `{name}`"),
                    )
                    .hint_nearest(name, &nodes);
                }
            }
            if link.between[0] == link.between[1] {
                let (link, node) = (&link.name, &link.between[0]);
                self.value(
                    path!["links", i, "between"],
                    format!("link `{link}` goes from `{node}` to itself"),
                );
            }
        }
        for (i, flow) in s.flows.iter().enumerate() {
            for (key, name) in [("from", &flow.from), ("to", &flow.to)] {
                if let Some(kind) = s.kind_between(name) {
                    self.value(
                        path!["flows", i, key],
                        format!("`{name}` is a {kind}; flows are between hosts"),
                    )
                    .hint(format!("hosts: {}", list(&hosts)));
                } else if !hosts.contains(&name.as_str()) {
                    self.value(path!["flows", i, key], format!("no host is called `{name}`"))
                        .hint_nearest(name, &hosts);
                }
            }
        }
    }

    /// No loops, one link per host unless it has several cards, a path for every flow.
    fn topology(&mut self) {
        let s = self.s;
        let mut graph = Graph::new(s);
        for (i, link) in s.links.iter().enumerate() {
            let [first, second] = &link.between;
            if let Some(way) = graph.path(graph.place(first, i), graph.place(second, i)) {
                let nodes: Vec<&str> = way.iter().map(|(_, node)| *node).collect();
                let links: Vec<&str> =
                    way.iter().filter_map(|(h, _)| Some(s.links.get(h.link)?.name.as_str())).collect();
                let hosts =
                    nodes.iter().copied().chain([first.as_str()]).filter(|n| s.hosts.contains_key(*n));
                let cards = hosts.min().map_or(String::new(), |host| {
                    format!("; or give `{host}` several network cards: [hosts.{host}.multi_nic]")
                });
                self.value(
                    path!["links", i, "between"],
                    format!("link `{}` closes a loop: {first} - {} - {first}", link.name, nodes.join(" - ")),
                )
                .hint(format!(
                    "there must be one way only between two nodes: remove one of the links {}, {}{cards}",
                    list(&links),
                    link.name
                ));
                return; // whatever else is found would be a consequence
            }
            graph.add(i, link);
        }
        for (i, link) in s.links.iter().enumerate() {
            for (end, name) in link.between.iter().enumerate() {
                let first = s.links.iter().position(|l| l.between.contains(name));
                let one_card = s.hosts.contains_key(name) && s.multi_nic(name).is_none();
                if one_card && first != Some(i) {
                    self.value(
                        path!["links", i, "between", end],
                        format!("host `{name}` has more than one link"),
                    )
                    .hint(format!(
                        "a host has one NIC: put a router between, make it a router, or give it several NICs: \
                         [hosts.{name}.multi_nic]"
                    ));
                }
            }
        }
        let is_linked = |name: &str| s.links.iter().any(|link| link.between.iter().any(|node| node == name));
        for (table, _, name) in s.hosts.keys().map(|n| ("hosts", "host", n)).chain(s.between()) {
            if !is_linked(name) {
                self.key(path![table, name.as_str()], format!("`{name}` has no link"))
                    .hint("connect it with [[links]], or remove it");
            }
        }
        for (i, flow) in s.flows.iter().enumerate() {
            let linked = is_linked(&flow.from) && is_linked(&flow.to);
            if linked && graph.path_between(&flow.from, &flow.to).is_none() {
                self.value(
                    path!["flows", i, "to"],
                    format!("there is no path from `{}` to `{}`", flow.from, flow.to),
                )
                .hint("the network is in pieces: a link is missing");
            }
        }
    }

    fn trace(&mut self) {
        let s = self.s;
        if s.trace.bin.is_zero() {
            self.value(path!["trace", "bin"], "a bin of 0 s holds nothing").hint("the paper uses \"10 ms\"");
        } else if s.duration.as_nanos() / s.trace.bin.as_nanos() > MAX_BINS {
            self.value(
                path!["trace", "bin"],
                format!("{} in bins of {} are too many", s.duration, s.trace.bin),
            )
            .hint(format!("at most {MAX_BINS} bins: widen them, or shorten `duration`"));
        }
        if !SNAPLEN.contains(&s.trace.snaplen.get()) {
            self.value(
                path!["trace", "snaplen"],
                format!("a snaplen of {} is not possible", s.trace.snaplen),
            )
            .hint("it must be from 96 B, which hold all headers, to 262144 B");
        }
        let places: Vec<&str> =
            s.hosts.keys().chain(s.links.iter().map(|l| &l.name)).map(String::as_str).collect();
        for (i, tap) in s.trace.taps.iter().enumerate() {
            let path = path!["trace", "taps", i];
            if let Some(kind) = s.kind_between(tap) {
                let links: Vec<&str> =
                    s.links.iter().filter(|l| l.between.contains(tap)).map(|l| l.name.as_str()).collect();
                self.value(path, format!("`{tap}` is a {kind}; captures are made at hosts and on links"))
                    .hint(format!("its links are {}", list(&links)));
            } else if !places.contains(&tap.as_str()) {
                self.value(path, format!("no host or link is called `{tap}`")).hint_nearest(tap, &places);
            }
        }
    }
}

const NAME_RULE: &str = "a name begins with a letter and has letters, digits, `-` and `_`, 32 at most";

fn bad_name(name: &str) -> Option<String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() {
        return Some("the name is empty".to_string());
    }
    if name.chars().count() > MAX_NAME
        || !name.chars().all(legal)
        || !name.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Some(format!("`{}` cannot be a name", shown.escape_debug()));
    }
    None
}
