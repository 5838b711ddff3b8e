//! One transfer through the policer, and numbers over the transfers of a case.

use super::StopsPaper;
use super::cases::{KernelVariant, PolicedCase};
use crate::experiment::{MeasureError, Measured, StopRequest};
use crate::observe::{PaperObserver, observe};
use crate::statistics::Summary;
use farpace_events::{Cause, RecoveryState};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Payload, Run, RunProgress};
use farpace_report::{BinInterval, BinnedSeries};
use farpace_units::{ByteCount, Instant, Packets, Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The rate of the policer.
pub const POLICED: Rate = Rate::from_mbit(500);
/// A transfer crawls below this part of the policed rate: 8 packets per round trip. In the first stop of the
/// paper the window was 8 packets (its §3.4).
const CRAWL: u64 = 50;
/// A shorter silence is no stop.
pub const SECOND: Span = Span::from_secs(1);
/// At a window of this or less the transfer stands still: at most two packets per round trip.
const SMALL: Packets = Packets::new(2);
/// States as the paper writes them.
const STATES: [(RecoveryState, &str); 5] = [
    (RecoveryState::Open, "Open"),
    (RecoveryState::Disorder, "Disorder"),
    (RecoveryState::Cwr, "CWR"),
    (RecoveryState::Recovery, "Recovery"),
    (RecoveryState::Loss, "Loss"),
];

/// The longest stretch in which at most one packet arrived per round trip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongestSilence {
    /// Nanoseconds.
    pub ns: u64,
    /// The place in [`STATES`] of the state in which the sender spent most of it.
    state: usize,
}

impl LongestSilence {
    pub fn span(&self) -> Span {
        Span::from_nanos(self.ns)
    }
    pub fn state(&self) -> RecoveryState {
        STATES.get(self.state).map_or(RecoveryState::Open, |state| state.0)
    }
    pub fn state_name(&self) -> &'static str {
        STATES.get(self.state).map_or("", |state| state.1)
    }
}

/// What came of one transfer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicedTransfer {
    /// From connecting to the last byte, in ns.
    pub elapsed_ns: u64,
    /// Payload per time, in Mbit/s.
    pub goodput: f64,
    /// Goodput over the policed rate, in percent.
    pub efficiency: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Segments sent, for each of [`Cause::ALL`].
    pub sent: Vec<u64>,
    pub longest: Option<LongestSilence>,
    /// All silences together, in seconds.
    pub silent: f64,
    /// How long the window was two packets or less, in seconds.
    pub small_window: f64,
    /// Width of a bin of `arrived`, in ns.
    bin_ns: u64,
    /// Bytes that arrived at the receiver in each bin.
    arrived: Vec<u64>,
}

impl PolicedTransfer {
    pub fn elapsed(&self) -> Span {
        Span::from_nanos(self.elapsed_ns)
    }
    /// Segments sent for `cause`.
    pub fn sent(&self, cause: Cause) -> u64 {
        Cause::ALL.iter().zip(&self.sent).find(|(c, _)| **c == cause).map_or(0, |(_, n)| *n)
    }
    /// Retransmissions by cause.
    pub fn retransmitted(&self) -> impl Iterator<Item = (&Cause, &u64)> {
        Cause::ALL.iter().zip(&self.sent).filter(|(cause, _)| cause.is_retransmission())
    }
    /// What arrived at the receiver.
    pub fn bandwidth(&self) -> BinnedSeries {
        let bytes = self.arrived.iter().map(|bytes| ByteCount::new(*bytes)).collect();
        BinnedSeries::new(Span::from_nanos(self.bin_ns), bytes)
    }
    /// When the transfer crawled or stood still for a second or more.
    pub fn crawls(&self) -> Vec<BinInterval> {
        let bandwidth = self.bandwidth();
        let limit = POLICED.bytes_in(bandwidth.bin()).get() / CRAWL;
        bandwidth.silences(ByteCount::new(limit), SECOND)
    }
}

/// State and window of the sender, bin by bin.
struct SenderStates {
    bin: Span,
    states: Vec<RecoveryState>,
    small_window: Span,
}

impl PaperObserver for SenderStates {
    fn bin(&mut self, run: &mut Run, progress: RunProgress) {
        if progress.finished {
            return;
        }
        let sample = run.samples().first();
        self.states.push(sample.map_or(RecoveryState::Open, |s| s.sender.recovery));
        if sample.is_some_and(|s| s.sender.cwnd <= SMALL) {
            self.small_window += self.bin;
        }
    }
}

/// Makes one transfer.
///
/// # Errors
/// A transfer that is not complete, or see [`MeasureError`].
pub fn measure(
    scenario: &Scenario,
    payload: Option<Payload>,
    stop: &StopRequest<'_>,
) -> Result<PolicedTransfer, MeasureError> {
    let bin = scenario.trace.bin;
    let mut seen = SenderStates { bin, states: Vec::new(), small_window: Span::ZERO };
    let run = observe(scenario, Inputs { payload, ..Inputs::default() }, &mut seen, stop)?;
    let meter = run.meters().next().map(|(_, meter)| meter);
    let arrived = meter.map(|m| m.bins().iter().map(|b| b.bytes.get()).collect()).unwrap_or_default();
    let bin_ns = meter.map_or(bin, farpace_path::Meter::width).as_nanos();
    let outcome = run.finish()?;
    let incomplete = |what: String| Err(MeasureError::Incomplete(what));
    let Some(flow) = outcome.flows.first() else { return incomplete("the scenario has no flow".into()) };
    match &flow.verified {
        _ if flow.is_intact() => {}
        Err(error) => return incomplete(error.to_string()),
        Ok(_) => {
            return incomplete(format!("{} of {} arrived in {}", flow.delivered, flow.size, flow.elapsed));
        }
    }
    let longest = flow.silence.longest().map(|silence| {
        let index = |at: Instant| (at.as_nanos() / bin.as_nanos().max(1)) as usize;
        let range = index(silence.start)..index(silence.end).min(seen.states.len());
        let during = seen.states.get(range).unwrap_or_default();
        LongestSilence { ns: silence.span().as_nanos(), state: most_frequent(during) }
    });
    Ok(PolicedTransfer {
        elapsed_ns: flow.elapsed.as_nanos(),
        goodput: flow.goodput().as_mbit_f64(),
        efficiency: flow.efficiency().unwrap_or(f64::NAN) * 100.0,
        timeouts: flow.timeouts,
        sent: flow.counters.sent.to_vec(),
        longest,
        silent: flow.silence.total().as_secs_f64(),
        small_window: seen.small_window.as_secs_f64(),
        bin_ns,
        arrived,
    })
}

/// The place in [`STATES`] of the most frequent state; the latest of several.
fn most_frequent(states: &[RecoveryState]) -> usize {
    let count = |place: &usize| states.iter().filter(|s| **s == STATES[*place].0).count();
    (0..STATES.len()).filter(|place| count(place) > 0).max_by_key(|place| (count(place), *place)).unwrap_or(0)
}

/// The transfers of a case by phase.
#[derive(Clone, Default)]
pub struct PolicedGroup<'a>(pub BTreeMap<u64, &'a PolicedTransfer>);

impl PolicedGroup<'_> {
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn over(&self, of: impl FnMut(&&PolicedTransfer) -> f64) -> Summary {
        Summary::of(self.0.values().map(of))
    }
    /// Completion time in seconds.
    pub fn time(&self) -> Summary {
        self.over(|m| m.elapsed().as_secs_f64())
    }
    /// Mbit/s.
    pub fn goodput(&self) -> Summary {
        self.over(|m| m.goodput)
    }
    /// Percent of the policed rate.
    pub fn efficiency(&self) -> Summary {
        self.over(|m| m.efficiency)
    }
    /// Timeouts per run.
    pub fn timeouts(&self) -> Summary {
        self.over(|m| m.timeouts as f64)
    }
    /// The longest stretch of crawling, in seconds.
    pub fn crawl(&self) -> Option<f64> {
        self.0.values().flat_map(|m| m.crawls()).map(|i| i.span()).max().map(Span::as_secs_f64)
    }
    /// Runs that crawled for a second or more.
    pub fn crawled(&self) -> usize {
        self.0.values().filter(|m| !m.crawls().is_empty()).count()
    }
    /// The longest silence of all runs.
    pub fn longest(&self) -> Option<LongestSilence> {
        self.0.values().filter_map(|m| m.longest).max_by_key(|s| s.ns)
    }
    /// Its length in seconds; zero for none.
    pub fn longest_seconds(&self) -> f64 {
        self.longest().map_or(0.0, |s| s.span().as_secs_f64())
    }
    /// Runs with a silence of a second or more in one of `states`.
    pub fn stopped_in(&self, states: &[RecoveryState]) -> usize {
        let long = |s: LongestSilence| s.span() >= SECOND && states.contains(&s.state());
        self.0.values().filter(|m| m.longest.is_some_and(long)).count()
    }
    /// Runs with a silence of a second or more.
    pub fn stopped(&self) -> usize {
        self.stopped_in(&STATES.map(|state| state.0))
    }
    /// The runs with the phases that `other` has too.
    pub fn matching(mut self, other: &Self) -> Self {
        self.0.retain(|phase, _| other.0.contains_key(phase));
        self
    }
    /// The phase of the run with the median time (the lower one of two).
    pub fn typical(&self) -> Option<u64> {
        let mut order: Vec<(u64, u64)> = self.0.iter().map(|(phase, m)| (m.elapsed_ns, *phase)).collect();
        order.sort_unstable();
        order.get(order.len().saturating_sub(1) / 2).map(|(_, phase)| *phase)
    }
}

impl Measured<'_, StopsPaper> {
    /// The transfers of a case; none if the plan did not have it.
    pub fn group(&self, case: PolicedCase) -> PolicedGroup<'_> {
        let runs = self.cases().find(|(of, _)| **of == case).map(|(_, runs)| runs.iter());
        PolicedGroup(runs.into_iter().flatten().map(|(phase, m)| (*phase, m)).collect())
    }
    /// Those behind the deep bucket.
    pub fn deep(&self, variant: KernelVariant, window: u32) -> PolicedGroup<'_> {
        self.group(PolicedCase::deep(variant, window))
    }
    /// Those with the window of the figures.
    pub fn main(&self, variant: KernelVariant) -> PolicedGroup<'_> {
        self.deep(variant, self.of.main)
    }
}
