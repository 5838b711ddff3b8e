//! The rules that a scenario has to keep beyond its form: names that exist, values that are possible, a
//! network without loops in which every flow has a path.
//!
//! [`check`] applies the rules in order. Each file has those of one table; the rules of an impairment are in
//! the impairment's file.

mod datagrams;
mod files;
mod flows;
mod hosts;
mod link;
mod names;
mod nics;
mod pacing;
mod topology;
mod trace;
mod workload;

pub(super) use files::read_files;
pub(super) use hosts::MAX_HOST_TIME;
pub use trace::MAX_BINS;

use super::document::{DocumentNode, DocumentStep};
use super::fault::ScenarioFault;
use super::nearest::{list, nearest};
use super::spec::Scenario;
use super::{MAX_DURATION, MAX_FLOWS, MAX_LINKS, MAX_NODES, MAX_OUTAGES, MAX_TAPS};
use farpace_units::{ByteCount, Rate};

/// All broken rules that can be found independently of each other.
pub(super) fn check(scenario: &Scenario) -> Vec<CheckFinding> {
    let mut checker = Checker { s: scenario, found: Vec::new() };
    checker.limits();
    checker.too_many_flows();
    if !checker.found.is_empty() {
        return checker.found; // further checks could take unlimited time
    }
    checker.top();
    checker.names();
    for (i, link) in scenario.links.iter().enumerate() {
        checker.link(i, link);
    }
    checker.hosts();
    checker.host_models();
    checker.flows();
    checker.datagrams();
    let known_so_far = checker.found.len();
    checker.references();
    // Routes mean something only where all names do.
    if checker.found.len() == known_so_far {
        checker.topology();
        checker.nics();
        checker.transmit_queues();
        checker.paced_paths();
    }
    checker.trace();
    checker.found
}

/// A broken rule and the path of the key that breaks it.
pub(super) struct CheckFinding {
    path: Vec<DocumentStep>,
    at_key: bool,
    message: String,
    hint: Option<String>,
}

impl CheckFinding {
    /// Adds a hint: what would be right.
    pub fn hint(&mut self, hint: impl Into<String>) {
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
            Some(hint) => fault.with_hint(hint),
            None => fault,
        }
    }
}

/// The scenario, and what has been found in it.
pub(super) struct Checker<'a> {
    s: &'a Scenario,
    found: Vec<CheckFinding>,
}

/// A path from its steps.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { vec![$(DocumentStep::from($step)),*] };
}
use steps;

impl<'a> Checker<'a> {
    /// The scenario that is checked.
    pub fn scenario(&self) -> &'a Scenario {
        self.s
    }
    /// The value at `path` is wrong.
    pub fn value(&mut self, path: Vec<DocumentStep>, message: impl Into<String>) -> &mut CheckFinding {
        self.add(path, false, message.into())
    }
    /// The key at `path` is wrong.
    pub fn key(&mut self, path: Vec<DocumentStep>, message: impl Into<String>) -> &mut CheckFinding {
        self.add(path, true, message.into())
    }
    fn add(&mut self, path: Vec<DocumentStep>, at_key: bool, message: String) -> &mut CheckFinding {
        let index = self.found.len();
        self.found.push(CheckFinding { path, at_key, message, hint: None });
        &mut self.found[index]
    }

    /// A rate lets something pass.
    fn rate(&mut self, path: Vec<DocumentStep>, rate: Option<Rate>) {
        if rate.is_some_and(|r| r.bits_per_sec() == 0) {
            self.value(path, "a rate of 0 lets nothing pass")
                .hint("leave `rate` out for an infinitely fast link; use `outages` for a broken one");
        }
    }
    /// A queue holds a full-size frame.
    fn queue(&mut self, path: Vec<DocumentStep>, queue: super::QueueLimit) {
        let frame = self.largest_frame();
        if queue.is_zero() {
            self.value(path, "a queue that holds nothing drops every packet");
        } else if queue.in_bytes(frame) < frame {
            self.value(path, format!("a queue of {queue} never holds a full-size frame of {frame}"));
        }
    }
    /// A probability is from 0 to 1.
    pub fn probability(&mut self, path: Vec<DocumentStep>, p: f64) {
        if !(0.0..=1.0).contains(&p) {
            self.value(path, format!("{p} is not a probability")).hint("it must be from 0 to 1: 1 % is 0.01");
        }
    }
    /// True if a list of times has too many entries, which is a finding then.
    pub fn is_too_long(&mut self, at: &[DocumentStep], len: usize, what: &str) -> bool {
        if len > MAX_OUTAGES {
            self.key(at.to_vec(), format!("{len} {what}; the limit is {MAX_OUTAGES}"));
        }
        len > MAX_OUTAGES
    }
    /// The largest frame that any flow sends, from its MSS.
    pub fn largest_frame(&self) -> ByteCount {
        let frames = self.s.flows.iter().map(|f| self.s.segment(f).frame);
        frames.max().unwrap_or(ByteCount::new(1_514))
    }

    /// How many entries there are.
    fn limits(&mut self) {
        let s = self.s;
        let nodes = s.hosts.len() + s.forwarders().count();
        let counts = [
            ("hosts", "hosts, routers and switches", nodes, MAX_NODES),
            ("links", "links", s.links.len(), MAX_LINKS),
            ("flows", "flows", s.flows.len(), MAX_FLOWS),
        ];
        for (key, what, count, limit) in counts {
            if count > limit {
                self.key(steps![key], format!("{count} {what}; the limit is {limit}"));
            }
        }
        if s.trace.taps.len() > MAX_TAPS {
            let n = s.trace.taps.len();
            self.key(steps!["trace", "taps"], format!("{n} taps; the limit is {MAX_TAPS}"));
        }
    }

    /// The keys at the top of the file.
    fn top(&mut self) {
        let s = self.s;
        if s.title.trim().is_empty() {
            self.value(steps!["title"], "the title is empty").hint("say in one line what this scenario is");
        }
        if s.duration.is_zero() || s.duration > MAX_DURATION {
            self.value(steps!["duration"], format!("a duration of {} is not possible", s.duration))
                .hint("it must be more than 0 s and at most 720 h");
        }
        if s.hosts.is_empty() {
            self.value(steps!["hosts"], "there are no hosts").hint("name them: [hosts.a] and [hosts.b]");
        }
        if s.flows.is_empty() {
            self.value(steps!["flows"], "there are no flows")
                .hint("add a transfer: [[flows]] with name, from, to and size");
        }
    }
}
