//! What is bad about a path: how far a control is from the best of others, or from what it should be.

use super::scenario::PathSenders;
use super::space::{DIMENSIONS, Gene, PathPoint, SearchSpace};
use crate::bulk::{self, BulkRun, FlowReading};
use crate::contender::congestion_name;
use crate::experiment::{MeasureError, StopRequest};
use crate::statistics::jain;
use farpace_lab::scenario::Scenario;
use farpace_tcp::config::Congestion;
use farpace_units::{ByteCount, Instant, Rate, Span};
use serde::{Deserialize, Serialize};

/// Where delay counts, others count that carry this part of the goodput of the control in question.
const CARRIES: f64 = 0.9;

/// What a search looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// Little payload, alone, compared with the best of the others.
    Goodput,
    /// Long queues, alone: compared with the shortest of the others that carry about as much, and with a
    /// quarter of the round trip.
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

    /// Dimensions of which a path needs one; none: any path will do.
    pub(super) const fn needs(self) -> &'static [Gene] {
        match self {
            Objective::Goodput | Objective::Delay => &[],
            Objective::Fairness | Objective::Starvation => &[Gene::Neighbour],
            Objective::Recovery => &[Gene::RateStep, Gene::DelayStep, Gene::Outage],
        }
    }

    /// False for a path on which there is nothing to measure.
    pub(super) fn takes(self, point: &PathPoint) -> bool {
        self.needs().is_empty() || self.needs().iter().any(|gene| point.get(*gene).is_some())
    }

    /// The part of `space` in which there is something to measure.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn part_of(self, space: &SearchSpace) -> Result<SearchSpace, MeasureError> {
        let part = self.within(space.clone());
        if self.needs().is_empty() || self.needs().iter().any(|gene| part.has(*gene)) {
            return Ok(part);
        }
        let keys: Vec<String> = self
            .needs()
            .iter()
            .filter_map(|gene| DIMENSIONS.get(*gene as usize))
            .map(|d| match Objective::within(self, SearchSpace::default()).words_of(d.gene) {
                words if words.is_empty() => format!("`{}`", d.key),
                words => format!("`{}` (one of {})", d.key, words.join(", ")),
            })
            .collect();
        Err(MeasureError::Invalid(format!(
            "the space: no path of it fits the objective {}, which needs {}",
            self.name(),
            keys.join(" or ")
        )))
    }

    /// Those of `against` that it compares with.
    pub(super) fn compared(self, against: &[Congestion]) -> &[Congestion] {
        match self {
            Objective::Starvation => against.get(..1).unwrap_or(against),
            _ => against,
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
    seed: u64,
    stop: &StopRequest<'_>,
) -> Result<(PathNumbers, BulkRun), MeasureError> {
    let scenario = Scenario { seed, ..point.scenario(senders, once)? };
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

/// How far `name` is from the best of `against` on a path, with one seed. None: the path does not fit the
/// objective.
///
/// # Errors
/// See [`MeasureError`].
pub(super) fn score(
    point: &PathPoint,
    objective: Objective,
    name: Congestion,
    against: &[Congestion],
    seed: u64,
    stop: &StopRequest<'_>,
) -> Result<Option<PathScore>, MeasureError> {
    if !objective.takes(point) {
        return Ok(None);
    }
    let once = objective.changes_once();
    let of = |first: Congestion| {
        run(point, PathSenders { first, itself: first }, once, seed, stop).map(|(numbers, _)| numbers)
    };
    let own = of(name)?;
    let others = objective.compared(against).iter().map(|c| of(*c)).collect::<Result<Vec<_>, _>>()?;
    Ok(best(objective, &own, others).map(|other| PathScore {
        gap: gap(objective, point, &own, &other),
        own,
        other,
    }))
}

/// True if `numbers` are those of a control that uses the path about as much as `own`: a queue that nobody
/// fills is no merit.
fn carries(numbers: &PathNumbers, own: &PathNumbers) -> bool {
    numbers.goodput_mbit_s >= CARRIES * own.goodput_mbit_s
}

/// The best of the others. Where delay counts and none of them carries enough: the one that carries most.
fn best(objective: Objective, own: &PathNumbers, others: Vec<PathNumbers>) -> Option<PathNumbers> {
    let value = |numbers: &PathNumbers| match objective {
        Objective::Delay if carries(numbers, own) => (1.0, -numbers.delay_mean_ms),
        Objective::Delay => (0.0, numbers.goodput_mbit_s),
        _ => (0.0, merit(objective, numbers)),
    };
    let by = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
    others.into_iter().max_by(|a, b| by(value(a), value(b)))
}

/// More is better.
fn merit(objective: Objective, numbers: &PathNumbers) -> f64 {
    match objective {
        Objective::Goodput => numbers.goodput_mbit_s,
        Objective::Delay => -numbers.delay_mean_ms,
        Objective::Fairness => jain(&numbers.late_mbit_s),
        Objective::Starvation => 0.0,
        Objective::Recovery => numbers.after_mbit_s,
    }
}

/// The mean time in queues that is no defect, in ms: a quarter of the round trip, or what the other one needs
/// that carries about as much; ten packets and a millisecond more are no queue.
pub(super) fn allowed_delay(point: &PathPoint, own: &PathNumbers, other: &PathNumbers) -> f64 {
    let quarter = point.of(Gene::Rtt) / 4.0;
    let needed = if carries(other, own) { other.delay_mean_ms.min(quarter) } else { quarter };
    needed + 10.0 * 12.3 / point.of(Gene::Rate) + 1.0
}

fn gap(objective: Objective, point: &PathPoint, own: &PathNumbers, other: &PathNumbers) -> f64 {
    let missing = |own: f64, other: f64| if other > 0.0 { (1.0 - own / other).max(-1.0) } else { 0.0 };
    match objective {
        Objective::Goodput => missing(own.goodput_mbit_s, other.goodput_mbit_s),
        Objective::Recovery => missing(own.after_mbit_s, other.after_mbit_s),
        Objective::Fairness => 2.0 * (jain(&other.late_mbit_s) - jain(&own.late_mbit_s)),
        Objective::Delay => {
            missing(allowed_delay(point, own, other), own.delay_mean_ms.max(f64::MIN_POSITIVE))
        }
        Objective::Starvation => {
            let flow = |numbers: &PathNumbers, n: usize| numbers.late_mbit_s.get(n).copied().unwrap_or(0.0);
            missing(flow(own, 0), flow(other, 0)).max(missing(flow(own, 1), flow(other, 1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(control: &str, goodput: f64, delay: f64) -> PathNumbers {
        PathNumbers {
            control: control.into(),
            goodput_mbit_s: goodput,
            late_mbit_s: vec![goodput],
            after_mbit_s: goodput,
            delay_mean_ms: delay,
            delay_95_ms: delay,
            delay_99_ms: delay,
            retransmitted_percent: 0.0,
            timeouts: 0,
        }
    }

    /// Breaks: a control that leaves the path idle is the measure of delay, or the words name another
    /// measure than the gap has.
    #[test]
    fn delay_is_compared_at_about_equal_goodput() {
        let point = PathPoint::default().with(Gene::Rate, 50.0).with(Gene::Rtt, 100.0);
        let own = numbers("bbr3", 45.0, 40.0);
        let others = [numbers("idle", 1.5, 0.1), numbers("cubic", 44.0, 20.0), numbers("reno", 47.0, 12.0)];
        let chosen = best(Objective::Delay, &own, others.to_vec()).unwrap();
        assert_eq!(chosen.control, "reno");
        let allowed = 12.0 + 2.46 + 1.0;
        assert!((allowed_delay(&point, &own, &chosen) - allowed).abs() < 1e-9);
        assert!((gap(Objective::Delay, &point, &own, &chosen) - (1.0 - allowed / 40.0)).abs() < 1e-9);
        let slow = best(Objective::Delay, &own, vec![others[0].clone(), numbers("slow", 9.0, 30.0)]).unwrap();
        assert_eq!(slow.control, "slow");
        let allowed = 25.0 + 2.46 + 1.0;
        assert!((allowed_delay(&point, &own, &slow) - allowed).abs() < 1e-9, "a quarter of the round trip");
        assert_eq!(best(Objective::Goodput, &own, others.to_vec()).unwrap().control, "reno");
    }

    /// Breaks: a space without a path for the objective is searched, or the error names no dimension.
    #[test]
    fn a_space_without_a_fitting_path_is_refused() {
        let of = |objective: Objective, text: &str| objective.part_of(&SearchSpace::parse(text).unwrap());
        let none = "rate_step = false\ndelay_step_of_rtt = false\noutage_ms = false\n";
        for (objective, text, part) in [
            (Objective::Starvation, "neighbour = []", "`neighbour` (one of cubic, reno, bbr3, vegas)"),
            (Objective::Starvation, "neighbour = [\"itself\"]", "objective starvation"),
            (Objective::Fairness, "neighbour = [\"cubic\"]", "`neighbour` (one of itself)"),
            (Objective::Recovery, none, "`rate_step` or `delay_step_of_rtt` or `outage_ms`"),
        ] {
            let error = of(objective, text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(of(Objective::Goodput, none).is_ok());
        assert!(of(Objective::Recovery, "rate_step = false").is_ok());
    }
}
