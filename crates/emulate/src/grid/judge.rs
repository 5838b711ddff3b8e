//! What is run next, and what the runs of a point say.

use super::point::GridPoint;
use super::record::GridRun;
use crate::compare::Backend;
use farpace_papers::statistics::Summary;
use std::ops::RangeInclusive;

/// A comparison says nothing of the TCPs if the stalls of the machine alone take more than this share of the
/// lab's goodput.
pub const MAX_STALL_COST: f64 = 0.5;
/// After so many disturbed runs and none that counts, a machine is taken to be too busy for a point.
const MAX_DISTURBED_FIRST: usize = 3;
/// Runs of a way at a point at most.
const MAX_RUNS: usize = 1_000;
/// After so many failures a way is given up at a point.
const MAX_FAILURES: usize = 2;

/// When the runs of a point are enough.
#[derive(Clone, Debug, PartialEq)]
pub struct GridRules {
    /// Runs that count: at least, and at most.
    pub runs: RangeInclusive<usize>,
    /// Runs end when half of the 95 % confidence interval of the ratio is no more than this.
    pub half_width: f64,
}

impl GridRules {
    /// Reads a number of runs, at least and at most: `3..10`, or `5` for both.
    ///
    /// # Errors
    /// No such numbers, none at all, or more than 1,000.
    pub fn parse_runs(text: &str) -> Result<RangeInclusive<usize>, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| (1..=MAX_RUNS).contains(n));
        match (number(least), number(most)) {
            (Some(least), Some(most)) if least <= most => Ok(least..=most),
            _ => Err(format!("expected MIN..MAX from 1 to {MAX_RUNS}, as in 3..10")),
        }
    }
}

/// What the runs of a point say of one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridVerdict {
    /// The whole interval is within the point's limit.
    Agrees,
    /// The whole interval is beyond it.
    Differs,
    /// The interval has the limit inside.
    Uncertain,
    /// Too few runs count, or the stalls of the machine decide: nothing is said of the TCPs.
    MachineTooBusy,
    /// The way cannot be run.
    Failed,
    /// Runs are missing.
    Unfinished,
}

impl GridVerdict {
    /// As JSON has it.
    pub const fn key(self) -> &'static str {
        match self {
            GridVerdict::Agrees => "agrees",
            GridVerdict::Differs => "differs",
            GridVerdict::Uncertain => "uncertain",
            GridVerdict::MachineTooBusy => "machine_too_busy",
            GridVerdict::Failed => "failed",
            GridVerdict::Unfinished => "unfinished",
        }
    }
    /// As tables have it.
    pub fn text(self) -> String {
        self.key().replace('_', " ")
    }
}

/// The runs of one way at one point.
#[derive(Clone, Debug)]
pub struct GridTally {
    /// Its mean goodput over the mean of the lab with the same seeds and the same stalls.
    pub ratio: Summary,
    /// The mean goodput of the lab with the stalls of these runs, in Mbit/s; NaN without any.
    pub stalled_mbit_s: f64,
    /// Disturbed runs, which do not count.
    pub disturbed: usize,
    /// Runs without a result.
    pub failures: usize,
    /// What they say.
    pub verdict: GridVerdict,
    /// No more runs are made.
    pub over: bool,
}

/// Whether the machine did to a run what the lab cannot do to its own: interfaces refused packets, or it is
/// not known when the network stood still.
pub const fn is_disturbed(run: &GridRun) -> bool {
    run.lost_by_devices > 0 || run.stalls_us.is_none()
}

/// The run of the lab with this seed and the stalls of the run of `beside`; without stalls if that is none.
pub fn of_lab(runs: &[GridRun], beside: Option<Backend>, seed: u64) -> Option<&GridRun> {
    runs.iter().find(|run| run.way == Backend::Lab && run.beside == beside && run.seed == seed)
}

/// Counts the runs of `way` among those of a point.
pub fn tally(rules: &GridRules, point: &GridPoint, way: Backend, runs: &[GridRun]) -> GridTally {
    let goodput = |beside, seed| {
        let found = of_lab(runs, beside, seed).filter(|run| run.error.is_none());
        found.map(|run| run.goodput_mbit_s).filter(|goodput| *goodput > 0.0)
    };
    let (mut pairs, mut undisturbed, mut disturbed, mut failures) = (Vec::new(), 0.0, 0, 0);
    for run in runs.iter().filter(|run| run.way == way) {
        match goodput(Some(way), run.seed).zip(goodput(None, run.seed)) {
            _ if run.error.is_some() => failures += 1,
            _ if is_disturbed(run) => disturbed += 1,
            None => failures += 1,
            Some((lab, ideal)) => {
                pairs.push((run.goodput_mbit_s, lab));
                undisturbed += ideal;
            }
        }
    }
    let ratio = ratio_of_means(&pairs);
    let stalled_mbit_s = pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len() as f64;
    let costly = stalled_mbit_s < (1.0 - MAX_STALL_COST) * undisturbed / pairs.len() as f64;
    let (least, most) = (*rules.runs.start(), *rules.runs.end());
    let narrow = ratio.runs >= least && ratio.ci95 <= rules.half_width;
    let too_busy =
        disturbed >= MAX_DISTURBED_FIRST && ratio.runs == 0 || disturbed >= most.max(MAX_DISTURBED_FIRST);
    let over = narrow || ratio.runs >= most || too_busy || failures >= MAX_FAILURES;
    let verdict = match () {
        () if failures >= MAX_FAILURES => GridVerdict::Failed,
        () if !over => GridVerdict::Unfinished,
        () if ratio.runs < least || costly => GridVerdict::MachineTooBusy,
        () => compare(&ratio, point.limit()),
    };
    GridTally { ratio, stalled_mbit_s, disturbed, failures, verdict, over }
}

/// The ratio of the means of what the pairs have first and second, with its interval by linearization
/// (Cochran, Sampling Techniques, chapter 6). The mean of the ratios would be too large where goodputs
/// scatter: by the square of their relative standard deviation if the two are independent.
fn ratio_of_means(pairs: &[(f64, f64)]) -> Summary {
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let ratio = sum(|pair| pair.0) / sum(|pair| pair.1);
    let mean = sum(|pair| pair.1) / pairs.len() as f64;
    // Their mean is the ratio, and they scatter as its estimate does.
    Summary::of(pairs.iter().map(|(first, second)| ratio + (first - ratio * second) / mean))
}

/// An interval of ratios held against a limit.
fn compare(ratio: &Summary, limit: f64) -> GridVerdict {
    let [low, high] = [ratio.mean - ratio.ci95 - 1.0, ratio.mean + ratio.ci95 - 1.0];
    match () {
        () if low >= -limit && high <= limit => GridVerdict::Agrees,
        () if high < -limit || low > limit => GridVerdict::Differs,
        () => GridVerdict::Uncertain,
    }
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextGridRun {
    /// How.
    pub way: Backend,
    /// With this seed.
    pub seed: u64,
    /// In the lab: with the stalls of the run of this way with the same seed.
    pub beside: Option<Backend>,
}

/// The run of a point that is to be made next; none if all ways are over. `runs` are those of the point.
pub fn next_run(
    rules: &GridRules,
    point: &GridPoint,
    ways: &[Backend],
    runs: &[GridRun],
) -> Option<NextGridRun> {
    let made = |way| runs.iter().filter(move |run| run.way == way);
    let lab = |seed, beside| NextGridRun { way: Backend::Lab, seed, beside };
    // The lab's runs come after those whose stalls they have, and the kernel's outlive those beside them.
    let comparable = ways.iter().flat_map(|way| made(*way)).filter(|run| run.error.is_none());
    for run in comparable.filter(|run| !is_disturbed(run)) {
        let missing = [None, Some(run.way)].into_iter().find(|b| of_lab(runs, *b, run.seed).is_none());
        if let Some(beside) = missing {
            return Some(lab(run.seed, beside));
        }
    }
    let open = ways.iter().filter(|way| !tally(rules, point, **way, runs).over);
    // The way with the fewest runs, so that all of them meet the same times of day.
    let way = *open.min_by_key(|way| made(**way).count())?;
    let seed = made(way).map(|run| run.seed).max().unwrap_or(0) + 1;
    let has_lab = of_lab(runs, None, seed).is_some();
    Some(if has_lab { NextGridRun { way, seed, beside: None } } else { lab(seed, None) })
}

/// Runs in real time that a point still takes: at least, and at most if none is disturbed.
pub fn left(rules: &GridRules, point: &GridPoint, ways: &[Backend], runs: &[GridRun]) -> [usize; 2] {
    let mut sum = [0, 0];
    for way in ways {
        let tally = tally(rules, point, *way, runs);
        if !tally.over {
            sum[0] += rules.runs.start().saturating_sub(tally.ratio.runs).max(1);
            sum[1] += rules.runs.end().saturating_sub(tally.ratio.runs).max(1);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::point::GridQueue;
    use super::*;
    use crate::compare::BackendRun;
    use farpace_tcp::config::Congestion;
    use farpace_units::{ByteCount, Rate, Span};

    const RULES: GridRules = GridRules { runs: 3..=5, half_width: 0.01 };

    /// A queue of 40 ms, judged by 5 %.
    fn point() -> GridPoint {
        GridPoint {
            rate: Rate::from_mbit(8),
            rtt: Span::from_millis(40),
            queue: GridQueue::Fifo(ByteCount::new(40_000)),
            loss: 0.0,
            congestion: Congestion::Cubic,
        }
    }

    fn run(way: Backend, seed: u64, mbit: f64) -> GridRun {
        let run = BackendRun { seed, goodput_mbit_s: mbit, ..BackendRun::of(way, Vec::new(), 0) };
        let stalls_us = (way != Backend::Lab).then(Vec::new);
        GridRun { stalls_us, ..GridRun::of(point().key(), &run, 0.0) }
    }

    /// Runs of the kernel with their seeds, each beside two of the lab: its goodput, that of the lab with its
    /// stalls, and whether it is disturbed. Without stalls the lab has 10 Mbit/s.
    fn runs(of_kernel: &[(f64, f64, bool)]) -> Vec<GridRun> {
        let runs = |(seed, (mbit, stalled, disturbed)): (u64, &(f64, f64, bool))| {
            let mut kernel = run(Backend::Kernel, seed, *mbit);
            kernel.stalls_us = kernel.stalls_us.filter(|_| !disturbed);
            let beside = Some(Backend::Kernel);
            [run(Backend::Lab, seed, 10.0), kernel, GridRun { beside, ..run(Backend::Lab, seed, *stalled) }]
        };
        (1..).zip(of_kernel).flat_map(runs).collect()
    }

    /// Breaks: runs go on when the interval is narrow, end before it is, or what they say is another thing
    /// than the interval and the limit do. A run is held against a lab without its stalls, or one that says
    /// nothing counts as a difference of the TCPs.
    #[test]
    fn intervals_and_stalls_decide() {
        use GridVerdict::{Agrees, Differs, MachineTooBusy, Uncertain, Unfinished};
        let disturbed = (2.0, 2.0, true);
        let of = |mbit| (mbit, 10.0, false);
        let cases = [
            ("nothing yet", vec![], Unfinished, false, 0),
            ("too few", vec![of(10.0); 2], Unfinished, false, 2),
            ("alike", vec![of(10.0), of(9.95), of(9.98)], Agrees, true, 3),
            ("narrow and far", vec![of(8.0), of(8.02), of(8.01)], Differs, true, 3),
            ("narrow, too fast", vec![of(12.0), of(12.02), of(12.01)], Differs, true, 3),
            ("wide", vec![of(10.0), of(9.0), of(9.5)], Unfinished, false, 3),
            ("wide to the end", vec![of(10.0), of(9.0), of(9.5), of(9.2), of(9.8)], Uncertain, true, 5),
            ("alike with its stalls", vec![(6.0, 6.0, false); 3], Agrees, true, 3),
            ("unlike with its stalls", vec![(10.0, 6.0, false); 3], Differs, true, 3),
            ("only stalls", vec![(4.0, 4.0, false); 3], MachineTooBusy, true, 3),
            ("one of two counts", vec![disturbed, disturbed, of(10.0)], Unfinished, false, 1),
            ("disturbed at first", vec![disturbed; 3], MachineTooBusy, true, 0),
            (
                "disturbed too often",
                vec![of(10.0), disturbed, disturbed, of(10.0), disturbed, disturbed, disturbed],
                MachineTooBusy,
                true,
                2,
            ),
            (
                "disturbed ones do not count",
                vec![disturbed, of(10.0), disturbed, of(10.0), of(10.0)],
                Agrees,
                true,
                3,
            ),
            ("by the limit", vec![of(9.5), of(9.501), of(9.499)], Uncertain, true, 3),
        ];
        for (name, of_kernel, verdict, over, counted) in cases {
            let found = tally(&RULES, &point(), Backend::Kernel, &runs(&of_kernel));
            assert_eq!((found.verdict, found.over, found.ratio.runs), (verdict, over, counted), "{name}");
        }
        let mut lost = runs(&[of(10.0); 3]);
        lost.iter_mut().for_each(|run| run.lost_by_devices = u64::from(run.way == Backend::Kernel));
        assert_eq!(tally(&RULES, &point(), Backend::Kernel, &lost).verdict, MachineTooBusy);
    }

    /// Breaks: where goodputs scatter, TCPs that are alike are told to differ; or runs whose scatter is that
    /// of the seeds have a wide interval.
    #[test]
    fn scatter_is_no_difference() {
        // All pairs of 1, 2 and 3: the mean of their ratios is 1.22.
        let each = [1.0, 2.0, 3.0];
        let pairs: Vec<(f64, f64)> = each.iter().flat_map(|a| each.map(|b| (*a, b))).collect();
        let ratio = ratio_of_means(&pairs);
        assert!((ratio.mean - 1.0).abs() < 1e-9 && ratio.ci95 > 0.3, "{ratio:?}");
        let paired = ratio_of_means(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]);
        assert!((paired.mean - 0.5).abs() < 1e-9 && paired.ci95 < 1e-9, "{paired:?}");
        assert_eq!((ratio_of_means(&[]).runs, ratio_of_means(&[(3.0, 4.0)]).mean), (0, 0.75));
    }

    /// Breaks: a wrong number of runs is taken for another one.
    #[test]
    fn numbers_of_runs_are_read() {
        for (text, runs) in [("3..10", Some(3..=10)), ("5", Some(5..=5)), (" 1 .. 1000", Some(1..=1000))] {
            assert_eq!(GridRules::parse_runs(text).ok(), runs, "{text}");
        }
        for text in ["", "0..3", "5..3", "3..", "..3", "1..1001", "3-10", "three"] {
            assert!(GridRules::parse_runs(text).unwrap_err().contains("3..10"), "{text}");
        }
    }

    /// Breaks: an interrupted grid makes a run again that is there, leaves one out, or goes on with a way
    /// that cannot be run.
    #[test]
    fn what_is_next_follows_from_what_is_there() {
        use Backend::{Farpace, Kernel, Lab};
        let ways = [Farpace, Kernel];
        let next = |runs: &[GridRun]| next_run(&RULES, &point(), &ways, runs);
        let of = |next: NextGridRun| GridRun { beside: next.beside, ..run(next.way, next.seed, 10.0) };
        let mut made: Vec<GridRun> = Vec::new();
        let mut order = Vec::new();
        while let Some(run) = next(&made) {
            order.push(run);
            made.push(of(run));
        }
        let plain = |way, seed| NextGridRun { way, seed, beside: None };
        let beside = |way, seed| NextGridRun { way: Lab, seed, beside: Some(way) };
        let round = |seed| {
            [
                plain(Lab, seed),
                plain(Farpace, seed),
                beside(Farpace, seed),
                plain(Kernel, seed),
                beside(Kernel, seed),
            ]
        };
        assert_eq!(order, [1, 2, 3].map(round).concat());
        // Each beginning goes on to the same end.
        for n in 0..made.len() {
            assert_eq!(next(&made[..n]), order.get(n).copied());
        }
        assert_eq!(left(&RULES, &point(), &ways, &[]), [6, 10]);
        assert_eq!(left(&RULES, &point(), &ways, &made[..5]), [4, 8]);
        assert_eq!(left(&RULES, &point(), &ways, &made), [0, 0]);
        // What is missing of the lab comes first.
        let mut real: Vec<GridRun> = made.iter().filter(|run| run.way != Lab).cloned().collect();
        assert_eq!(next(&real), Some(plain(Lab, 1)));
        real.push(run(Lab, 1, 10.0));
        assert_eq!(next(&real), Some(beside(Farpace, 1)));
        // What is disturbed is made again with another seed, beside a run of the lab with that seed.
        let mut disturbed = made.clone();
        disturbed[1].stalls_us = None;
        assert_eq!(next(&disturbed), Some(plain(Lab, 4)));
        disturbed.push(run(Lab, 4, 10.0));
        assert_eq!(next(&disturbed), Some(plain(Farpace, 4)));
        // What fails twice is left.
        let error = anyhow::anyhow!("no such congestion control");
        let failed = (1..=2).map(|seed| GridRun::failed(point().key(), Kernel, seed, &error));
        let with: Vec<GridRun> = made.iter().filter(|run| run.way != Kernel).cloned().chain(failed).collect();
        assert_eq!(next(&with), None);
        assert_eq!(tally(&RULES, &point(), Kernel, &with).verdict, GridVerdict::Failed);
    }
}
