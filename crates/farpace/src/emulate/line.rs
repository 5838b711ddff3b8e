//! The flags of a single line, as a scenario of two hosts.

use anyhow::{Context, Result, anyhow, bail};
use farpace_emulate::words::{self, QueueOption};
use farpace_lab::scenario::{
    BitErrorsSpec, CorruptSpec, Direction, DirectionSpec, DuplicateSpec, FlowSpec, HostSpec, JitterSpec,
    LinkSpec, LossSpec, OutagesSpec, PeriodSpec, PolicerSpec, QueueLimit, ReorderSpec, Scenario, Trace,
};
use farpace_units::{ByteCount, Packets, Rate, Span};
use std::collections::BTreeMap;

/// A line with properties.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "The line")]
pub struct LinkOptions {
    /// Rate, like 500mbit [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = words::rate)]
    rate: Option<Rate>,
    /// Delay, one way
    #[arg(long, value_name = "TIME", value_parser = words::span)]
    delay: Option<Span>,
    /// Additional random delay up to this; the order is kept
    #[arg(long, value_name = "TIME", value_parser = words::span)]
    jitter: Option<Span>,
    /// Queue limit: 100p, 64kB, or 50ms of the rate [default: 1000p]
    #[arg(long, value_name = "LIMIT", value_parser = words::queue)]
    queue: Option<QueueOption>,
    /// Share of packets lost
    #[arg(long, value_name = "SHARE", value_parser = words::share)]
    loss: Option<f64>,
    /// Bit error rate, like 1e-7
    #[arg(long, value_name = "SHARE", value_parser = words::share)]
    ber: Option<f64>,
    /// Share of packets that arrive twice
    #[arg(long, value_name = "SHARE", value_parser = words::share)]
    duplicate: Option<f64>,
    /// Share of packets in which a bit is flipped
    #[arg(long, value_name = "SHARE", value_parser = words::share)]
    corrupt: Option<f64>,
    /// Share of packets that are delayed by --reorder-by
    #[arg(long, value_name = "SHARE", value_parser = words::share)]
    reorder: Option<f64>,
    /// For how long
    #[arg(long, value_name = "TIME", value_parser = words::span, default_value = "5ms")]
    reorder_by: Span,
    /// Drops what exceeds this rate, without a queue (a token bucket)
    #[arg(long, value_name = "RATE", value_parser = words::rate)]
    police: Option<Rate>,
    /// Depth of the token bucket [default: 50 ms of the policed rate]
    #[arg(long, value_name = "SIZE", requires = "police")]
    police_burst: Option<ByteCount>,
    /// The link is down from one time to another, like 10s-12s; may be repeated
    #[arg(long, value_name = "FROM-TO", value_parser = outage)]
    outage: Vec<PeriodSpec>,
    /// Additional bytes that a frame takes on the link [default: 24 B, Ethernet's]
    #[arg(long, value_name = "SIZE")]
    overhead: Option<ByteCount>,
    /// Rate from B to A
    #[arg(long, value_name = "RATE", value_parser = words::rate)]
    rate_back: Option<Rate>,
    /// Delay from B to A
    #[arg(long, value_name = "TIME", value_parser = words::span)]
    delay_back: Option<Span>,
    /// Random delay from B to A
    #[arg(long, value_name = "TIME", value_parser = words::span)]
    jitter_back: Option<Span>,
    /// Queue limit from B to A
    #[arg(long, value_name = "LIMIT", value_parser = words::queue)]
    queue_back: Option<QueueOption>,
    /// Share of packets lost from B to A
    #[arg(long, value_name = "SHARE", value_parser = words::share)]
    loss_back: Option<f64>,
    /// Bit error rate from B to A
    #[arg(long, value_name = "SHARE", value_parser = words::share)]
    ber_back: Option<f64>,
}

/// The flags that a scenario stands in place of.
pub const FLAGS: [&str; 20] = [
    "rate",
    "delay",
    "jitter",
    "queue",
    "loss",
    "ber",
    "duplicate",
    "corrupt",
    "reorder",
    "police",
    "police_burst",
    "outage",
    "overhead",
    "rate_back",
    "delay_back",
    "jitter_back",
    "queue_back",
    "loss_back",
    "ber_back",
    "reorder_by",
];

fn outage(text: &str) -> Result<PeriodSpec, String> {
    let wrong = || format!("`{text}` is not an outage: expected FROM-TO, like 10s-12s");
    let (from, to) = text.split_once('-').ok_or_else(wrong)?;
    let (at, end) = (words::span(from)?, words::span(to)?);
    if end <= at {
        return Err(wrong());
    }
    Ok(PeriodSpec { at, lasts: end - at })
}

impl LinkOptions {
    /// The scenario: hosts `a` and `b`, the link `line`, and a flow, so that `farpace run` takes it, too.
    pub fn scenario(&self, set: &[(String, String)]) -> Result<Scenario> {
        let rate_back = self.rate_back.or(self.rate);
        let forward = self.direction(self.jitter, self.loss, self.ber);
        let backward = DirectionSpec {
            rate: self.rate_back,
            delay: self.delay_back,
            queue: match self.queue_back.or(self.queue.filter(|_| self.rate_back.is_some())) {
                Some(queue) => Some(limit(queue, rate_back)?),
                None => None,
            },
            ..self.direction(
                self.jitter_back.or(self.jitter),
                self.loss_back.or(self.loss),
                self.ber_back.or(self.ber),
            )
        };
        let link = LinkSpec {
            name: "line".to_owned(),
            between: ["a".to_owned(), "b".to_owned()],
            rate: self.rate,
            delay: self.delay.unwrap_or_default(),
            queue: self.queue.map_or(Ok(QueueLimit::default()), |queue| limit(queue, self.rate))?,
            aqm: None,
            schedule: None,
            overhead: self.overhead.unwrap_or(ByteCount::new(24)),
            forward,
            backward,
        };
        let flow = FlowSpec {
            name: "bulk".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            port: None,
            start: Span::ZERO,
            size: ByteCount::new(10_000_000),
            count: None,
            starts: None,
            sizes: None,
            mix: Vec::new(),
            class: None,
            writes: None,
            reads: None,
            exchanges: [].into(),
            sender: Default::default(),
            receiver: Default::default(),
        };
        let host = |name: &str| (name.to_owned(), HostSpec::default());
        // An emulator has no end of its own: an outage may come as late as the user likes.
        let last = self.outage.iter().map(|outage| outage.at + outage.lasts).max().unwrap_or_default();
        let scenario = Scenario {
            title: "A line between two interfaces".to_owned(),
            description: String::new(),
            seed: 1,
            duration: last.max(Span::from_secs(600)),
            trace: Trace::default(),
            hosts: BTreeMap::from([host("a"), host("b")]),
            routers: BTreeMap::new(),
            switches: BTreeMap::new(),
            links: vec![link],
            flows: vec![flow],
            datagrams: Vec::new(),
        };
        let text = scenario.to_toml().context("the line cannot be written as a scenario")?;
        Scenario::parse_with(&text, "the flags as a scenario", set).map_err(|error| anyhow!("{error}"))
    }

    /// What both directions have alike.
    fn direction(&self, jitter: Option<Span>, loss: Option<f64>, ber: Option<f64>) -> DirectionSpec {
        let policer = |rate: Rate| PolicerSpec {
            rate,
            burst: self
                .police_burst
                .unwrap_or_else(|| rate.bytes_in(Span::from_millis(50)).max(ByteCount::new(15_000))),
            refill: Span::ZERO,
            phase: Span::ZERO,
            counts: Default::default(),
        };
        DirectionSpec {
            policer: self.police.map(policer),
            loss: LossSpec(loss.unwrap_or(0.0)),
            bit_errors: BitErrorsSpec(ber.unwrap_or(0.0)),
            duplicate: DuplicateSpec(self.duplicate.unwrap_or(0.0)),
            corrupt: CorruptSpec(self.corrupt.unwrap_or(0.0)),
            reorder: self.reorder.map(|chance| ReorderSpec { chance, extra: self.reorder_by }),
            jitter: JitterSpec(jitter.unwrap_or_default()),
            outages: OutagesSpec(self.outage.clone()),
            ..DirectionSpec::default()
        }
    }
}

/// A queue of so much time holds what its line carries in it.
fn limit(queue: QueueOption, rate: Option<Rate>) -> Result<QueueLimit> {
    match (queue, rate) {
        (QueueOption::Limit(limit), _) => Ok(limit),
        (QueueOption::Time(time), Some(rate)) => {
            // A full frame always fits.
            Ok(QueueLimit::Bytes(rate.bytes_in(time).max(ByteCount::new(1_514))))
        }
        (QueueOption::Time(time), None) => bail!("a queue of {time} needs a --rate"),
    }
}

/// Refuses what a super-segment would be taken wrongly by.
///
/// # Errors
/// An element that counts packets or bits.
pub fn check_whole(scenario: &Scenario) -> Result<()> {
    for link in &scenario.links {
        for direction in Direction::BOTH {
            let d = link.direction(direction);
            if d.is_impaired() || d.aqm.is_some() || d.pacing.is_some() {
                bail!(
                    "--gso: link `{}` does more than a rate, a delay and a queue: what counts packets or \
                     bits would take a super-segment of 40 packets for one",
                    link.name
                );
            }
            if let QueueLimit::Packets(packets) = d.queue
                && d.rate.is_some()
                && packets > Packets::ZERO
            {
                bail!(
                    "--gso: the queue of link `{}` counts packets; give it in bytes or as a time, like \
                     --queue 1MB",
                    link.name
                );
            }
        }
    }
    Ok(())
}
