//! Workloads: many flows from one entry of a scenario, with start times and sizes that are drawn from the
//! seed.

use super::{FlowSpec, Scenario};
use farpace_tcp::config::Settings;
use farpace_units::{ByteCount, RandomStream, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Most flows of a scenario, with those that `count` makes.
pub const MAX_DRAWN_FLOWS: usize = 100_000;
/// Most points of a table of sizes, and most start times.
pub const MAX_WORKLOAD_POINTS: usize = 10_000;

/// When the flows of an entry start, from its `start` on. One of these keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartsSpec {
    /// One after the other at this distance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// A Poisson process: exponential distances with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poisson: Option<Span>,
    /// Uniform within this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// At these times; `count` may be left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Span>,
    /// Name of a file in the scenario's directory with a time in each line, in place of `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// How much the flows of an entry send, in place of `size`. One of these keys, and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SizesSpec {
    /// Exponential with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential: Option<ByteCount>,
    /// Pareto: many small ones, few large ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pareto: Option<ParetoSpec>,
    /// The logarithm is normal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_normal: Option<LogNormalSpec>,
    /// A distribution that papers use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<SizeTable>,
    /// Points of a cumulative distribution, with straight lines between.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cdf: Vec<CdfPoint>,
    /// Name of a CSV file in the scenario's directory in place of `cdf`: `size,share`, then a line for each
    /// point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A larger size counts as this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<ByteCount>,
    /// A smaller size counts as this one; omitted: 1 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<ByteCount>,
}

/// A Pareto distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParetoSpec {
    /// The mean.
    pub mean: ByteCount,
    /// The exponent of the tail, above 1; the mean is rarely reached by samples below 1.2.
    pub shape: f64,
}

/// A log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormalSpec {
    /// The mean.
    pub mean: ByteCount,
    /// Standard deviation of the natural logarithm.
    pub sigma: f64,
}

/// A point of a cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CdfPoint {
    /// The size.
    pub size: ByteCount,
    /// The share of flows that are no larger, 0 to 1. The last point has 1.
    pub share: f64,
}

/// Distributions of flow sizes in data centres, as pFabric (SIGCOMM 2013, figure 4) has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeTable {
    /// A cluster that serves web searches (DCTCP, SIGCOMM 2010): 9 kB to 29 MB, mean 1.7 MB.
    WebSearch,
    /// A cluster that mines data (VL2, SIGCOMM 2009): half of one packet, a few up to 970 MB.
    DataMining,
}

/// A part of the flows of an entry, with TCP settings of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// Name of the part; the class of its flows is the entry's name, a slash, and this.
    pub name: String,
    /// Its share of the flows. All shares together are 1.
    pub share: f64,
    /// In place of the entry's `sender`.
    #[serde(default)]
    pub sender: Arc<Settings>,
    /// In place of the entry's `receiver`; omitted: that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Arc<Settings>>,
}

/// Packets of 1460 B and the share of flows that are no larger.
const WEB_SEARCH: [(u64, f64); 12] = [
    (6, 0.0),
    (6, 0.15),
    (13, 0.2),
    (19, 0.3),
    (33, 0.4),
    (53, 0.53),
    (133, 0.6),
    (667, 0.7),
    (1_333, 0.8),
    (3_333, 0.9),
    (6_667, 0.97),
    (20_000, 1.0),
];
const DATA_MINING: [(u64, f64); 9] = [
    (1, 0.0),
    (1, 0.5),
    (2, 0.6),
    (3, 0.7),
    (7, 0.8),
    (267, 0.9),
    (2_107, 0.95),
    (66_667, 0.99),
    (666_667, 1.0),
];

impl SizeTable {
    fn points(self) -> Vec<CdfPoint> {
        let table: &[(u64, f64)] = match self {
            SizeTable::WebSearch => &WEB_SEARCH,
            SizeTable::DataMining => &DATA_MINING,
        };
        table
            .iter()
            .map(|(packets, share)| CdfPoint { size: ByteCount::new(packets * 1_460), share: *share })
            .collect()
    }
}

impl SizesSpec {
    /// How many of the keys that say the distribution are there.
    pub(super) fn kinds(&self) -> usize {
        let SizesSpec { exponential, pareto, log_normal, named, cdf, file, at_most: _, at_least: _ } = self;
        [
            exponential.is_some(),
            pareto.is_some(),
            log_normal.is_some(),
            named.is_some(),
            !cdf.is_empty(),
            file.is_some(),
        ]
        .into_iter()
        .filter(|there| *there)
        .count()
    }

    fn draw(&self, random: &mut RandomStream) -> ByteCount {
        // Above zero, so that its logarithm is finite.
        let u = 1.0 - random.unit();
        let bytes = if let Some(mean) = self.exponential {
            -libm::log(u) * mean.get() as f64
        } else if let Some(ParetoSpec { mean, shape }) = self.pareto {
            let least = mean.get() as f64 * (shape - 1.0) / shape;
            least / libm::pow(u, 1.0 / shape)
        } else if let Some(LogNormalSpec { mean, sigma }) = self.log_normal {
            // Box and Muller.
            let normal = libm::sqrt(-2.0 * libm::log(u)) * libm::cos(std::f64::consts::TAU * random.unit());
            mean.get() as f64 * libm::exp(sigma * normal - sigma * sigma / 2.0)
        } else if let Some(table) = self.named {
            of_cdf(&table.points(), u)
        } else {
            of_cdf(&self.cdf, u)
        };
        let least = self.at_least.unwrap_or(ByteCount::new(1)).max(ByteCount::new(1));
        let most = self.at_most.unwrap_or(ByteCount::new(1 << 50)).max(least);
        ByteCount::new(bytes.round() as u64).clamp(least, most)
    }
}

/// The size that a share `u` of flows does not exceed.
fn of_cdf(points: &[CdfPoint], u: f64) -> f64 {
    let above = points.iter().position(|point| point.share >= u).unwrap_or(points.len().saturating_sub(1));
    let Some(upper) = points.get(above) else { return 1.0 };
    let high = upper.size.get() as f64;
    let Some(lower) = above.checked_sub(1).and_then(|n| points.get(n)) else { return high };
    let low = lower.size.get() as f64;
    low + (high - low) * ((u - lower.share) / (upper.share - lower.share)).clamp(0.0, 1.0)
}

impl StartsSpec {
    /// How many of the keys are there.
    pub(super) fn kinds(&self) -> usize {
        let StartsSpec { every, poisson, within, at, file } = self;
        let there = [every.is_some(), poisson.is_some(), within.is_some(), !at.is_empty(), file.is_some()];
        there.into_iter().filter(|there| *there).count()
    }

    fn draw(&self, count: usize, random: &mut RandomStream) -> Vec<Span> {
        let seconds =
            |span: Span, share: f64| Span::from_nanos((span.as_nanos() as f64 * share).round() as u64);
        if let Some(every) = self.every {
            return (0..count as u64).map(|n| every * n).collect();
        }
        if let Some(mean) = self.poisson {
            let mut at = Span::ZERO;
            let next = |_| {
                at += seconds(mean, -libm::log(1.0 - random.unit()));
                at
            };
            return (0..count).map(next).collect();
        }
        if let Some(within) = self.within {
            let mut all: Vec<Span> = (0..count).map(|_| seconds(within, random.unit())).collect();
            all.sort_unstable();
            return all;
        }
        self.at.iter().copied().take(count).collect()
    }
}

impl FlowSpec {
    /// How many flows the entry stands for.
    pub fn flows(&self) -> usize {
        let times = self.starts.as_ref().map(|starts| starts.at.len()).filter(|n| *n > 0);
        self.count.map(|count| count as usize).or(times).unwrap_or(1)
    }

    /// True if anything of the entry is drawn, or if it stands for several flows.
    pub fn is_workload(&self) -> bool {
        self.count.is_some() || self.starts.is_some() || self.sizes.is_some() || !self.mix.is_empty()
    }

    /// The flows that the entry stands for.
    fn drawn(&self, seed: u64) -> Vec<FlowSpec> {
        if !self.is_workload() {
            return vec![self.clone()];
        }
        let count = self.flows();
        let stream = |what: &str| RandomStream::new(seed, &format!("{}.{what}", self.name));
        let starts = self.starts.as_ref().map(|starts| starts.draw(count, &mut stream("starts")));
        let mut sizes = stream("sizes");
        let parts = parts(&self.mix, count, &mut stream("mix"));
        let flow = |n: usize| {
            let mut flow =
                FlowSpec { count: None, starts: None, sizes: None, mix: Vec::new(), ..self.clone() };
            let mut class = self.class.clone().unwrap_or_else(|| self.name.clone());
            if self.count.is_some() || count > 1 {
                flow.name = format!("{}-{}", self.name, n + 1);
            }
            if let Some(start) = starts.as_ref().and_then(|starts| starts.get(n)) {
                flow.start += *start;
            }
            if let Some(spec) = &self.sizes {
                flow.size = spec.draw(&mut sizes);
            }
            if let Some(part) = parts.get(n).and_then(|part| self.mix.get(*part)) {
                flow.sender = part.sender.clone();
                flow.receiver = part.receiver.clone().unwrap_or(flow.receiver);
                class = format!("{class}/{}", part.name);
            }
            flow.class = Some(class);
            flow
        };
        (0..count).map(flow).collect()
    }
}

/// The part of each of `count` flows: as many of each as its share says, in random order.
fn parts(mix: &[MixSpec], count: usize, random: &mut RandomStream) -> Vec<usize> {
    let (mut parts, mut until) = (Vec::with_capacity(count), 0.0);
    for (part, spec) in mix.iter().enumerate() {
        until += spec.share;
        let upto = (until * count as f64).round() as usize;
        parts.resize(upto.min(count).max(parts.len()), part);
    }
    if !mix.is_empty() {
        parts.resize(count, mix.len() - 1);
    }
    for n in (1..parts.len()).rev() {
        parts.swap(n, random.below(n as u64 + 1) as usize);
    }
    parts
}

impl Scenario {
    /// The scenario with every flow by itself: what `count`, `starts`, `sizes` and `mix` stand for is drawn
    /// from `seed`. Flows that start after the end of the run are left out.
    pub fn drawn(&self, seed: u64) -> Scenario {
        let flows = self.flows.iter().flat_map(|flow| flow.drawn(seed));
        let flows = flows.filter(|flow| flow.class.is_none() || flow.start < self.duration);
        let mut drawn = Vec::with_capacity(self.flows.iter().map(FlowSpec::flows).sum());
        drawn.extend(flows);
        // Field by field: the entries, of which there may be thousands, are not cloned in vain.
        Scenario {
            title: self.title.clone(),
            description: self.description.clone(),
            seed: self.seed,
            duration: self.duration,
            trace: self.trace.clone(),
            hosts: self.hosts.clone(),
            routers: self.routers.clone(),
            switches: self.switches.clone(),
            links: self.links.clone(),
            flows: drawn,
            datagrams: self.datagrams.clone(),
        }
    }
}

/// Reads start times: one in each line. Lines that are empty or begin with `#` are skipped.
pub(super) fn starts_of(text: &str) -> Result<Vec<Span>, String> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let times = lines.map(|(n, line)| line.parse().map_err(|error| format!("line {n}: {error}")));
    let times: Vec<Span> = times.collect::<Result<_, String>>()?;
    if times.is_empty() {
        Err("there are no times in it: expected one in each line".into())
    } else {
        Ok(times)
    }
}

/// Reads a table of sizes: the line `size,share`, then values.
pub(super) fn sizes_of(text: &str) -> Result<Vec<CdfPoint>, String> {
    const HEADER: &str = "size,share";
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((_, header)) if header.split(',').map(str::trim).eq(HEADER.split(',')) => {}
        _ => return Err(format!("expected `{HEADER}` in the first line")),
    }
    let point = |(n, line): (usize, &str)| {
        let (size, share) = line.split_once(',').ok_or_else(|| format!("line {n}: expected `{HEADER}`"))?;
        let size = size.trim().parse().map_err(|error| format!("line {n}: {error}"))?;
        let share = share.trim().parse().map_err(|_| format!("line {n}: `{share}` is not a number"))?;
        Ok(CdfPoint { size, share })
    };
    lines.map(point).collect()
}
