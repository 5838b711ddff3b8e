//! `tc qdisc`: of the device, or of a class.

use super::words::{TcError, Words};
use super::{Tc, Verb, kind as kind_of, units};
use crate::pacing::{ClassConfig, ClassRate, GapFrameKind, Gaps, PacingConfig, SchedulerKind};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Rate, Span};
use farpace_wire::ethernet::ETHERNET_LEN;

/// Default limit of a device's queue in Linux, in packets.
const QUEUE_LENGTH: u64 = 1_000;
const KINDS: [&str; 7] = ["edf", "psp", "htb", "tbf", "fq", "pfifo", "bfifo"];
/// Queueing disciplines of Linux that are not supported.
const OTHERS: [&str; 22] = [
    "cake",
    "cbq",
    "cbs",
    "choke",
    "codel",
    "drr",
    "etf",
    "ets",
    "fq_codel",
    "fq_pie",
    "hfsc",
    "hhf",
    "mq",
    "mqprio",
    "netem",
    "noqueue",
    "pfifo_fast",
    "pie",
    "prio",
    "red",
    "sfq",
    "taprio",
];

/// The parent of a `tc qdisc`.
enum QdiscParent {
    Root,
    /// The class with this index.
    Class(usize),
}

impl Tc {
    /// `tc qdisc`, after the verb.
    pub(super) fn qdisc(&mut self, verb: Verb, words: &mut Words<'_>) -> Result<(), TcError> {
        let (mut place, mut handle) = (None, None);
        let kind = loop {
            if words.peek().is_none() && verb == Verb::Delete && place.is_some() {
                break None;
            }
            let word = words.next("root or parent, and what the qdisc is, like edf")?;
            match word {
                "dev" => self.device(words)?,
                "root" => words.once(&mut place, QdiscParent::Root, "root or parent")?,
                "parent" => {
                    let class = QdiscParent::Class(self.known_class(words)?);
                    words.once(&mut place, class, "root or parent")?;
                }
                "handle" => {
                    let major = words.value("a handle, like 1:", units::handle)?;
                    words.once(&mut handle, major, "handle")?;
                }
                "ingress" | "clsact" => return Err(words.not_here("only what leaves a device is paced")),
                "estimator" | "stab" | "ingress_block" | "egress_block" => {
                    return Err(words.not_here("the options are dev, root, parent and handle"));
                }
                kind => break Some(kind),
            }
        };
        let kind = kind.map(|kind| known_kind(kind, words)).transpose()?;
        match place {
            None => Err(words.error("expected `root`, or `parent` with a class, before this word")),
            Some(QdiscParent::Class(class)) => self.leaf(verb, class, kind, words),
            Some(QdiscParent::Root) => self.root(verb, handle, kind, words),
        }
    }

    fn root(
        &mut self,
        verb: Verb,
        handle: Option<u16>,
        kind: Option<&'static str>,
        words: &mut Words<'_>,
    ) -> Result<(), TcError> {
        let Some(name) = kind.filter(|_| verb != Verb::Delete) else {
            words.end(&[])?;
            self.rooted(words)?;
            (self.config, self.major) = (None, None);
            self.index();
            return Ok(());
        };
        let mut config = match (verb, &self.config) {
            (Verb::Add, Some(now)) => {
                let now = kind_of(now.scheduler);
                return Err(words.error(format!(
                    "there is a root already, `{now}`: `replace` starts over, `change` changes its options, \
                     `delete` removes it"
                )));
            }
            (Verb::Change, None) => return Err(words.error("there is no root yet: `add` creates one")),
            (Verb::Change, Some(now)) if now.scheduler != scheduler(name) => {
                let now = kind_of(now.scheduler);
                return Err(
                    words.error(format!("the root is `{now}`: `replace` makes it `{name}`, without classes"))
                );
            }
            (Verb::Change, Some(now)) => now.clone(),
            _ => PacingConfig { scheduler: scheduler(name), ..PacingConfig::default() },
        };
        let major = handle.or(self.major.filter(|_| verb == Verb::Change)).unwrap_or(1);
        if verb == Verb::Change && self.major.is_some_and(|now| now != major) {
            return Err(words.error("the handle of a root cannot change"));
        }
        match name {
            "tbf" => token_bucket(&mut config, verb, major, words)?,
            _ => options(&mut config, name, verb, major, words)?,
        }
        (self.config, self.major) = (Some(config), Some(major));
        self.index();
        Ok(())
    }
}

/// The kind, if it is supported.
pub(super) fn known_kind(word: &str, words: &Words<'_>) -> Result<&'static str, TcError> {
    match KINDS.iter().find(|kind| **kind == word) {
        Some(kind) => Ok(kind),
        None if OTHERS.contains(&word) => Err(words.not_here(&format!("the kinds are {}", KINDS.join(", ")))),
        None => Err(words.unknown(&KINDS)),
    }
}

/// The scheduler of a kind.
fn scheduler(kind: &str) -> SchedulerKind {
    match kind {
        "psp" => SchedulerKind::Psp,
        "htb" | "tbf" => SchedulerKind::TokenBucket,
        "fq" => SchedulerKind::Fq,
        "pfifo" | "bfifo" => SchedulerKind::Fifo,
        _ => SchedulerKind::Edf,
    }
}

/// Options of a root that may have classes. Options without a counterpart in Linux have the names of
/// configuration keys.
fn options(
    config: &mut PacingConfig,
    name: &str,
    verb: Verb,
    major: u16,
    words: &mut Words<'_>,
) -> Result<(), TcError> {
    const VALID: [&str; 10] =
        ["default", "device_rate", "mtu", "gaps", "gap_frame", "jitter", "tick", "burst", "slack", "quantum"];
    let (mut has_default, mut has_limit) = (false, false);
    while words.peek().is_some() {
        match words.next("an option")? {
            "default" => {
                has_default = true;
                let minor = words.value("the minor number of a class, like 3", units::half)?;
                config.default = (minor != 0).then(|| units::name((major, minor)));
            }
            // `line` is the old name.
            "device_rate" | "line" => {
                config.device_rate = Some(words.value("a rate, like 1gbit", units::rate)?);
            }
            "mtu" => config.mtu = words.value("a size, like 1500", units::size)?,
            "gaps" => config.gaps = gaps(words)?,
            "gap_frame" => config.gap_frame = gap_frame(words)?,
            "jitter" => config.jitter = time(words)?,
            "tick" => config.tick = time(words)?,
            "burst" => config.burst = Some(words.value("a size, like 15kb", units::size)?),
            "slack" | "timer_slack" => config.slack = time(words)?,
            "quantum" => config.quantum = Some(words.value("a size, like 3028", units::size)?),
            "limit" if name == "fq" => {
                return Err(words.not_here("it limits all flows together; `flow_limit` limits each"));
            }
            "flow_limit" if name == "fq" => config.limit = words.value("packets, like 100", units::limit)?,
            "limit" => {
                has_limit = true;
                config.limit = match name {
                    "bfifo" => QueueLimit::Bytes(words.value("a size, like 64kb", units::size)?),
                    "pfifo" => words.value("packets, like 1000", units::pfifo_limit)?,
                    _ => words.value("packets, like 1000", units::limit)?,
                };
            }
            "r2q" | "direct_qlen" | "offload" if name == "htb" => {
                return Err(words.not_here("classes do not borrow from each other"));
            }
            "maxrate" | "initial_quantum" | "buckets" | "orphan_mask" | "pacing" | "nopacing"
            | "refill_delay" | "low_rate_threshold" | "ce_threshold" | "horizon" | "horizon_cap"
            | "horizon_drop" | "bands" | "priomap" | "weights"
                if name == "fq" =>
            {
                return Err(words.not_here("fq has flow_limit, quantum and timer_slack"));
            }
            _ => {
                let limit = if name == "fq" { ["flow_limit", "timer_slack"] } else { ["limit", "limit"] };
                let all: Vec<&str> =
                    VALID.iter().chain(&limit[..if name == "fq" { 2 } else { 1 }]).copied().collect();
                return Err(words.unknown(&all));
            }
        }
    }
    if name == "bfifo" && !has_limit && verb != Verb::Change {
        config.limit = default_bytes(config.mtu);
    }
    // Linux's fq has no classes: each flow has the rate of its connection.
    if name == "fq" && !has_default && verb != Verb::Change {
        the_only_class(config, major, ClassRate::Connection, None);
    }
    Ok(())
}

/// `tbf`: one bucket for all packets.
fn token_bucket(
    config: &mut PacingConfig,
    verb: Verb,
    major: u16,
    words: &mut Words<'_>,
) -> Result<(), TcError> {
    const VALID: [&str; 5] = ["rate", "burst", "limit", "latency", "tick"];
    let only = |config: &PacingConfig| config.classes.len() == 1 && config.filters.is_empty();
    if verb == Verb::Change && !only(config) {
        return Err(words.error("the root has classes: use kind `htb`"));
    }
    let (mut rate, mut limit, mut latency) = (None::<Rate>, None, None::<Span>);
    while words.peek().is_some() {
        match words.next("an option")? {
            "rate" => rate = Some(words.value("a rate, like 500mbit", units::rate)?),
            "burst" | "buffer" | "maxburst" => {
                config.burst = Some(words.value("a size, like 15kb", units::size)?);
            }
            "limit" => limit = Some(QueueLimit::Bytes(words.value("a size, like 64kb", units::size)?)),
            "latency" => latency = Some(time(words)?),
            "tick" => config.tick = time(words)?,
            "mtu" | "minburst" | "peakrate" | "mpu" | "overhead" | "linklayer" => {
                return Err(words.not_here("a bucket has rate, burst, and limit or latency"));
            }
            _ => return Err(words.unknown(&VALID)),
        }
    }
    if limit.is_some() && latency.is_some() {
        return Err(words.error("give `limit` or `latency`, not both"));
    }
    if verb != Verb::Change {
        let missing = [("rate", rate.is_none()), ("burst", config.burst.is_none())];
        if let Some((name, _)) = missing.iter().find(|(_, missing)| *missing) {
            return Err(words.error(format!("tbf needs `{name}`")));
        }
    }
    let now = config.classes.first().and_then(|class| match class.rate {
        Some(ClassRate::Fixed(rate)) => Some(rate),
        _ => None,
    });
    let Some(rate) = rate.or(now) else {
        return Err(words.error("tbf needs `rate`"));
    };
    // The limit that bounds the queueing delay.
    let bytes = |latency| QueueLimit::Bytes(rate.bytes_in(latency) + config.burst.unwrap_or_default());
    let limit = limit.or_else(|| latency.map(bytes));
    if verb == Verb::Change
        && let Some(class) = config.classes.first_mut()
    {
        class.rate = Some(ClassRate::Fixed(rate));
        class.limit = limit.or(class.limit);
        return Ok(());
    }
    if limit.is_none() {
        return Err(words.error("tbf needs `limit` or `latency`"));
    }
    the_only_class(config, major, ClassRate::Fixed(rate), limit);
    Ok(())
}

fn the_only_class(config: &mut PacingConfig, major: u16, rate: ClassRate, limit: Option<QueueLimit>) {
    let name = units::name((major, 1));
    config.default = Some(name.clone());
    config.classes = vec![ClassConfig { name, rate: Some(rate), limit }];
}

/// Default limit of `bfifo`.
pub(super) fn default_bytes(mtu: ByteCount) -> QueueLimit {
    let frame = mtu + ByteCount::of_len(ETHERNET_LEN);
    QueueLimit::Bytes(ByteCount::new(frame.get().saturating_mul(QUEUE_LENGTH)))
}

fn time(words: &mut Words<'_>) -> Result<Span, TcError> {
    words.value("a time, like 10us", units::time)
}

fn gaps(words: &mut Words<'_>) -> Result<Gaps, TcError> {
    match words.next("frames, timers or hybrid")? {
        "frames" => Ok(Gaps::Frames),
        "timers" => Ok(Gaps::Timers),
        "hybrid" => Ok(Gaps::Hybrid),
        _ => Err(words.unknown(&["frames", "timers", "hybrid"])),
    }
}

fn gap_frame(words: &mut Words<'_>) -> Result<GapFrameKind, TcError> {
    match words.next("pause, experimental or self")? {
        "pause" => Ok(GapFrameKind::Pause),
        "experimental" => Ok(GapFrameKind::Experimental),
        "self" => Ok(GapFrameKind::ToSelf),
        _ => Err(words.unknown(&["pause", "experimental", "self"])),
    }
}

/// True if `word` is a kind of class below a root of this scheduler.
pub(super) fn is_kind_of(word: &str, of: SchedulerKind) -> bool {
    word == kind_of(of) || (of == SchedulerKind::Fifo && word == "bfifo")
}
