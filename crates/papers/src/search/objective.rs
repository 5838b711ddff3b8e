//! What is bad about a path: how far a control is from the best of others, or from what it should be.

use super::scenario::PathSenders;
use super::space::{Gene, PathPoint, SearchSpace};
use crate::bulk::{self, BulkRun, FlowReading};
use crate::contender::congestion_name;
use crate::experiment::{MeasureError, StopRequest};
use crate::statistics::jain;
use farpace_tcp::config::Congestion;
use farpace_units::{ByteCount, Instant, Rate, Span};
use serde::{Deserialize, Serialize};

/// What a search looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// Little payload, alone, compared with the best of the others.
    Goodput,
    /// Long queues, alone: compared with the shortest of the others and with a quarter of the round trip.
    Delay,
    /// Two flows of its kind with unequal shares, compared with the best of the others.
    Fairness,
    /// Beside another control, one of the two gets less than it would with the first of the others in its
    /// place.
    Starvation,
    /// Little payload after the rate, the delay or an outage has changed the path, compared with the best of
    /// the others.
    Recovery,
}

impl Objective {
    /// All of them.
    pub const ALL: [Objective; 5] = [
        Objective::Goodput,
        Objective::Delay,
        Objective::Fairness,
        Objective::Starvation,
        Objective::Recovery,
    ];

    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Objective::Goodput => "goodput",
            Objective::Delay => "delay",
            Objective::Fairness => "fairness",
            Objective::Starvation => "starvation",
            Objective::Recovery => "recovery",
        }
    }

    /// The part of a space in which the question makes sense.
    pub(super) fn within(self, space: SearchSpace) -> SearchSpace {
        match self {
            Objective::Goodput | Objective::Delay | Objective::Recovery => space.only(Gene::Neighbour, &[]),
            Objective::Fairness => space.only(Gene::Neighbour, &["itself"]),
            Objective::Starvation => space.only(Gene::Neighbour, &["cubic", "reno", "bbr3", "vegas"]),
        }
    }

    /// False for a path on which there is nothing to measure.
    pub(super) fn takes(self, point: &PathPoint) -> bool {
        let any = |genes: &[Gene]| genes.iter().any(|gene| point.get(*gene).is_some());
        match self {
            Objective::Goodput | Objective::Delay => true,
            Objective::Fairness | Objective::Starvation => any(&[Gene::Neighbour]),
            Objective::Recovery => any(&[Gene::RateStep, Gene::DelayStep, Gene::Outage]),
        }
    }

    /// Rate, delay and outages change once.
    pub(super) fn changes_once(self) -> bool {
        self == Objective::Recovery
    }
}

/// What one run gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathNumbers {
    /// Congestion control of the first flow.
    pub control: String,
    /// Its goodput in Mbit/s, from connecting to the end.
    pub goodput_mbit_s: f64,
    /// Goodput of each flow in Mbit/s in the second half of the run.
    pub late_mbit_s: Vec<f64>,
    /// Goodput in Mbit/s after the change in the middle of the run: for ten round trips, 2 s at least.
    pub after_mbit_s: f64,
    /// Time of its data in queues, in ms: mean.
    pub delay_mean_ms: f64,
    /// What 95 % do not exceed.
    pub delay_95_ms: f64,
    /// What 99 % do not exceed.
    pub delay_99_ms: f64,
    /// Retransmissions, in percent of all segments.
    pub retransmitted_percent: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// What a path gave: the control in question, and who is best there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathScore {
    /// 0: as good as the others; 1: nothing of it. Below 0 it is better.
    pub gap: f64,
    /// The control in question.
    pub own: PathNumbers,
    /// The one that it is compared with.
    pub other: PathNumbers,
}

/// One run over a path.
///
/// # Errors
/// See [`MeasureError`].
pub(super) fn run(
    point: &PathPoint,
    senders: PathSenders,
    once: bool,
    stop: &StopRequest<'_>,
) -> Result<(PathNumbers, BulkRun), MeasureError> {
    let scenario = point.scenario(senders, once)?;
    let run = bulk::measure(&scenario, true, stop)?;
    let (half, end) = (point.change(), point.duration());
    let window = Span::from_micros((point.of(Gene::Rtt) * 10e3) as u64).max(Span::from_secs(2));
    let between = |flow: usize, from: Span, to: Span| {
        let readings = run.flows.get(flow).map_or(&[][..], |f| &f.readings);
        goodput(readings, from, to)
    };
    let first = run.flows.first();
    let numbers = PathNumbers {
        control: congestion_name(senders.first),
        goodput_mbit_s: run.goodput(0),
        late_mbit_s: (0..run.flows.len()).map(|flow| between(flow, half, end)).collect(),
        after_mbit_s: between(0, half, (half + window).min(end)),
        delay_mean_ms: run.delay_mean,
        delay_95_ms: run.delay_95,
        delay_99_ms: run.delay_99,
        retransmitted_percent: first.map_or(0.0, |f| f.retransmitted),
        timeouts: first.map_or(0, |f| f.timeouts),
    };
    Ok((numbers, run))
}

fn goodput(readings: &[FlowReading], from: Span, to: Span) -> f64 {
    let (start, end) = (Instant::ZERO + from, Instant::ZERO + to);
    let inside = readings.iter().filter(|r| r.at() > start && r.at() <= end);
    let bytes = inside.map(|r| r.delivered).sum();
    Rate::of(ByteCount::new(bytes), to - from).as_mbit_f64()
}

/// How far `name` is from the best of `against` on a path. None: the path does not fit the objective.
///
/// # Errors
/// See [`MeasureError`].
pub(super) fn score(
    point: &PathPoint,
    objective: Objective,
    name: Congestion,
    against: &[Congestion],
    stop: &StopRequest<'_>,
) -> Result<Option<PathScore>, MeasureError> {
    if !objective.takes(point) {
        return Ok(None);
    }
    let once = objective.changes_once();
    let of = |first: Congestion| run(point, PathSenders { first, itself: first }, once, stop).map(|(n, _)| n);
    let own = of(name)?;
    let wanted = if objective == Objective::Starvation { 1 } else { against.len() };
    let others = against.iter().take(wanted).map(|c| of(*c)).collect::<Result<Vec<_>, _>>()?;
    let value = |numbers: &PathNumbers| merit(objective, point, numbers);
    let best = others.into_iter().max_by(|a, b| value(a).total_cmp(&value(b)));
    let Some(other) = best else { return Ok(None) };
    Ok(Some(PathScore { gap: gap(objective, point, &own, &other), own, other }))
}

/// More is better.
fn merit(objective: Objective, _: &PathPoint, numbers: &PathNumbers) -> f64 {
    match objective {
        Objective::Goodput => numbers.goodput_mbit_s,
        Objective::Delay => -numbers.delay_mean_ms,
        Objective::Fairness => jain(&numbers.late_mbit_s),
        Objective::Starvation => 0.0,
        Objective::Recovery => numbers.after_mbit_s,
    }
}

fn gap(objective: Objective, point: &PathPoint, own: &PathNumbers, other: &PathNumbers) -> f64 {
    let missing = |own: f64, other: f64| if other > 0.0 { (1.0 - own / other).max(-1.0) } else { 0.0 };
    match objective {
        Objective::Goodput => missing(own.goodput_mbit_s, other.goodput_mbit_s),
        Objective::Recovery => missing(own.after_mbit_s, other.after_mbit_s),
        Objective::Fairness => 2.0 * (jain(&other.late_mbit_s) - jain(&own.late_mbit_s)),
        Objective::Delay => {
            // Ten packets and a millisecond are no queue.
            let packets = 10.0 * 12.3 / point.of(Gene::Rate);
            let allowed = other.delay_mean_ms.min(point.of(Gene::Rtt) / 4.0) + packets + 1.0;
            missing(allowed, own.delay_mean_ms.max(f64::MIN_POSITIVE))
        }
        Objective::Starvation => {
            let flow = |numbers: &PathNumbers, n: usize| numbers.late_mbit_s.get(n).copied().unwrap_or(0.0);
            missing(flow(own, 0), flow(other, 0)).max(missing(flow(own, 1), flow(other, 1)))
        }
    }
}
