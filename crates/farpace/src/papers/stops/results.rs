//! What all runs gave, by group, and numbers over groups.

use super::measure::{Measurement, Stop};
use super::plan::{Burst, Key, MAIN_WINDOW, Plan, Variant};
use farpace_report::BinInterval;
use farpace_units::{ByteCount, Rate, Span};
use std::collections::BTreeMap;

/// All runs.
pub struct Results {
    /// Windows of Table 2.
    pub windows: Vec<u32>,
    /// Bytes that each run sent.
    pub size: ByteCount,
    groups: BTreeMap<Key, Group>,
}

/// Runs that differ in the phase alone.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// By phase.
    pub runs: BTreeMap<u32, Measurement>,
}

/// Mean, extremes and deviation of a number over the runs of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: f64,
    /// Smallest.
    pub min: f64,
    /// Standard deviation of the sample (n - 1); zero for one run.
    pub sd: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Spread {
            mean,
            max: values.iter().copied().fold(f64::MIN, f64::max),
            min: values.iter().copied().fold(f64::MAX, f64::min),
            sd: (squares / (n - 1.0).max(1.0)).sqrt(),
        }
    }
}

impl Group {
    fn spread(&self, of: impl Fn(&Measurement) -> f64) -> Spread {
        Spread::of(&self.runs.values().map(of).collect::<Vec<f64>>())
    }
    /// Completion time in seconds.
    pub fn time(&self) -> Spread {
        self.spread(|m| m.elapsed.as_secs_f64())
    }
    /// Mbit/s.
    pub fn goodput(&self) -> Spread {
        self.spread(|m| m.goodput.as_mbit_f64())
    }
    /// Percent of the policed rate.
    pub fn efficiency(&self) -> Spread {
        self.spread(|m| m.efficiency)
    }
    /// Timeouts per run.
    pub fn timeouts(&self) -> Spread {
        self.spread(|m| m.timeouts as f64)
    }
    /// Seconds with a window of two packets or less.
    pub fn small_window(&self) -> Spread {
        self.spread(|m| m.small_window.as_secs_f64())
    }
    /// Seconds of silence per run.
    pub fn silent(&self) -> Spread {
        self.spread(|m| m.silent.as_secs_f64())
    }
    /// The longest stretch of at least a second with less than [`CRAWL`] of the policed rate, in seconds.
    pub fn crawl(&self) -> Option<f64> {
        let spans = self.runs.values().flat_map(crawls).map(|i| i.span());
        spans.max().map(Span::as_secs_f64)
    }
    /// The longest silence of all runs.
    pub fn longest(&self) -> Option<Stop> {
        self.runs.values().filter_map(|m| m.longest).max_by_key(|s| s.span)
    }
    /// Runs with a silence of at least `span`.
    pub fn stopped(&self, span: Span) -> usize {
        self.runs.values().filter(|m| m.longest.is_some_and(|s| s.span >= span)).count()
    }
    /// Runs that crawled for a second or more.
    pub fn crawled(&self) -> usize {
        self.runs.values().filter(|m| !crawls(m).is_empty()).count()
    }
    /// The runs with the phases that `other` has, too.
    pub fn matching(&self, other: &Group) -> Group {
        let runs = self.runs.iter().filter(|(phase, _)| other.runs.contains_key(phase));
        Group { runs: runs.map(|(phase, m)| (*phase, m.clone())).collect() }
    }
    /// The phase of the run whose time is the median (the lower one of two).
    pub fn typical(&self) -> Option<u32> {
        let mut order: Vec<(Span, u32)> = self.runs.iter().map(|(phase, m)| (m.elapsed, *phase)).collect();
        order.sort();
        order.get(order.len().saturating_sub(1) / 2).map(|(_, phase)| *phase)
    }
    /// The slowest run.
    pub fn slowest(&self) -> Option<&Measurement> {
        self.runs.values().max_by_key(|m| m.elapsed)
    }
}

/// Below this part of the policed rate a transfer crawls: 8 packets per round trip. In the paper's first stop the
/// window was 8 packets (its §3.4).
pub const CRAWL: u64 = 50;
/// Shorter than this is no stop.
pub const SECOND: Span = Span::from_secs(1);
/// The policer.
pub const POLICED: Rate = Rate::from_mbit(500);

/// When a transfer crawled or stood still, for a second or more.
pub fn crawls(m: &Measurement) -> Vec<BinInterval> {
    let limit = POLICED.bytes_in(m.bandwidth.bin()).get() / CRAWL;
    m.bandwidth.silences(ByteCount::new(limit), SECOND)
}

impl Results {
    /// `measured` in the order of the plan's jobs; `size` bytes each.
    pub fn new(plan: &Plan, measured: Vec<Measurement>, size: ByteCount) -> Results {
        let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
        for (job, measurement) in plan.jobs().into_iter().zip(measured) {
            groups.entry(job.key).or_default().runs.insert(job.phase, measurement);
        }
        Results { windows: plan.windows.clone(), size, groups }
    }
    /// A group; empty if the plan had none.
    pub fn group(&self, key: Key) -> Group {
        self.groups.get(&key).cloned().unwrap_or_default()
    }
    /// A group behind the deep bucket.
    pub fn deep(&self, variant: Variant, window: u32) -> Group {
        self.group(Key::deep(variant, window))
    }
    /// A group of the figures' window.
    pub fn main(&self, variant: Variant) -> Group {
        self.deep(variant, MAIN_WINDOW)
    }
    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = (&Key, &Group)> {
        self.groups.iter()
    }
    /// Variants that ran behind the deep bucket with `window`.
    pub fn variants(&self, window: u32) -> Vec<Variant> {
        let here = |key: &&Key| key.burst == Burst::Deep && key.window == window;
        self.groups.keys().filter(here).map(|key| key.variant).collect()
    }
    /// The time in which the policer lets a run's packets pass if nothing is ever idle: packets of 1500 bytes carry
    /// 1448 of payload, and a full bucket of 16 MB comes on top.
    pub fn least_seconds(&self) -> f64 {
        let packets = self.size.get() as f64 * 1500.0 / 1448.0;
        (packets - 16e6).max(1500.0) * 8.0 / POLICED.bits_per_sec() as f64
    }
    /// How many transfers there were.
    pub fn transfers(&self) -> usize {
        self.groups.values().map(|g| g.runs.len()).sum()
    }
}
