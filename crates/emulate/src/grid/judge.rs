//! What is run next, and what the runs of a point say.

use super::point::GridPoint;
use super::record::GridRun;
use crate::compare::Backend;
use farpace_papers::statistics::Summary;
use farpace_units::Span;
use std::ops::RangeInclusive;

/// A run counts only if its latest packet was late by no more than this share of the time that the queue
/// lasts. Packets that a stall of the machine gathers meet the queue at once; in a queue that is often more
/// than half full, a longer stall drops what the network would not have dropped.
pub const MAX_LATE_SHARE: f64 = 0.5;
/// After so many late runs and none in time, a machine is taken to be too busy for a point.
const MAX_LATE_FIRST: usize = 3;
/// Runs of a way at a point at most.
const MAX_RUNS: usize = 1_000;
/// After so many failures a way is given up at a point.
const MAX_FAILURES: usize = 2;

/// When the runs of a point are enough.
#[derive(Clone, Debug, PartialEq)]
pub struct GridRules {
    /// Runs in time: at least, and at most.
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
    /// Too few runs were in time: nothing is said of the TCPs.
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
    /// Its mean goodput over the mean of the lab with the same seeds, of the runs in time.
    pub ratio: Summary,
    /// Runs that were late, and do not count.
    pub late: usize,
    /// Runs without a result.
    pub failures: usize,
    /// What they say.
    pub verdict: GridVerdict,
    /// No more runs are made.
    pub over: bool,
}

/// Whether a run was made by a machine that was too busy for a queue that lasts so long, or whose interfaces
/// refused packets.
pub fn is_late(run: &GridRun, queue_lasts: Span) -> bool {
    let most_us = queue_lasts.as_nanos() as f64 / 1e3 * MAX_LATE_SHARE;
    run.lost_by_devices > 0 || run.latest_us > most_us
}

/// Counts the runs of `way` among those of a point.
pub fn tally(rules: &GridRules, point: &GridPoint, way: Backend, runs: &[GridRun]) -> GridTally {
    let of_lab = |seed| {
        let found = runs.iter().find(|run| run.way == Backend::Lab && run.seed == seed);
        found.filter(|run| run.error.is_none() && run.goodput_mbit_s > 0.0)
    };
    let (mut pairs, mut late, mut failures) = (Vec::new(), 0, 0);
    for run in runs.iter().filter(|run| run.way == way) {
        match of_lab(run.seed) {
            _ if run.error.is_some() => failures += 1,
            None => failures += 1,
            Some(_) if is_late(run, point.queue_lasts()) => late += 1,
            Some(lab) => pairs.push((run.goodput_mbit_s, lab.goodput_mbit_s)),
        }
    }
    let ratio = ratio_of_means(&pairs);
    let (least, most) = (*rules.runs.start(), *rules.runs.end());
    let narrow = ratio.runs >= least && ratio.ci95 <= rules.half_width;
    let too_busy = late >= MAX_LATE_FIRST && ratio.runs == 0 || late >= most.max(MAX_LATE_FIRST);
    let over = narrow || ratio.runs >= most || too_busy || failures >= MAX_FAILURES;
    let verdict = match () {
        () if failures >= MAX_FAILURES => GridVerdict::Failed,
        () if !over => GridVerdict::Unfinished,
        () if ratio.runs < least => GridVerdict::MachineTooBusy,
        () => compare(&ratio, point.limit()),
    };
    GridTally { ratio, late, failures, verdict, over }
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

/// The run of a point that is to be made next: a way and a seed; none if all ways are over. `runs` are those
/// of the point.
pub fn next_run(
    rules: &GridRules,
    point: &GridPoint,
    ways: &[Backend],
    runs: &[GridRun],
) -> Option<(Backend, u64)> {
    let made = |way| runs.iter().filter(move |run| run.way == way);
    let of_lab = |seed| made(Backend::Lab).any(|run| run.seed == seed);
    // The kernel's runs outlive those of the lab beside them.
    if let Some(run) = ways.iter().flat_map(|way| made(*way)).find(|run| !of_lab(run.seed)) {
        return Some((Backend::Lab, run.seed));
    }
    let open = ways.iter().filter(|way| !tally(rules, point, **way, runs).over);
    // The way with the fewest runs, so that all of them meet the same times of day.
    let way = *open.min_by_key(|way| made(**way).count())?;
    let seed = made(way).map(|run| run.seed).max().unwrap_or(0) + 1;
    Some((if of_lab(seed) { way } else { Backend::Lab }, seed))
}

/// Runs in real time that a point still takes: at least, and at most if none is late.
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
    use farpace_units::{ByteCount, Rate};

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

    fn run(way: Backend, seed: u64, mbit: f64, latest_ms: f64) -> GridRun {
        let run = BackendRun { seed, goodput_mbit_s: mbit, ..BackendRun::of(way, Vec::new(), 0) };
        GridRun { latest_us: latest_ms * 1e3, ..GridRun::of(point().key(), &run, 0.0) }
    }

    /// Runs of the kernel with their seeds, each beside one of the lab at 10 Mbit/s: a goodput and the
    /// lateness of the latest packet in milliseconds.
    fn runs(of_kernel: &[(f64, f64)]) -> Vec<GridRun> {
        let pair = |(seed, (mbit, late)): (u64, &(f64, f64))| {
            [run(Backend::Lab, seed, 10.0, 0.0), run(Backend::Kernel, seed, *mbit, *late)]
        };
        (1..).zip(of_kernel).flat_map(pair).collect()
    }

    /// Breaks: runs go on when the interval is narrow, end before it is, or what they say is another thing
    /// than the interval and the limit do. A late run counts as a difference of the TCPs.
    #[test]
    fn intervals_and_lateness_decide() {
        use GridVerdict::{Agrees, Differs, MachineTooBusy, Uncertain, Unfinished};
        let late = (2.0, 21.0);
        let cases = [
            ("nothing yet", vec![], Unfinished, false, 0),
            ("too few", vec![(10.0, 1.0); 2], Unfinished, false, 2),
            ("alike", vec![(10.0, 1.0), (9.95, 1.0), (9.98, 20.0)], Agrees, true, 3),
            ("narrow and far", vec![(8.0, 1.0), (8.02, 1.0), (8.01, 1.0)], Differs, true, 3),
            ("narrow, too fast", vec![(12.0, 1.0), (12.02, 1.0), (12.01, 1.0)], Differs, true, 3),
            ("wide", vec![(10.0, 1.0), (9.0, 1.0), (9.5, 1.0)], Unfinished, false, 3),
            (
                "wide to the end",
                vec![(10.0, 1.0), (9.0, 1.0), (9.5, 1.0), (9.2, 1.0), (9.8, 1.0)],
                Uncertain,
                true,
                5,
            ),
            ("late, but one in time", vec![late, late, (10.0, 1.0)], Unfinished, false, 1),
            ("late at first", vec![late; 3], MachineTooBusy, true, 0),
            (
                "late too often",
                vec![(10.0, 1.0), late, late, (10.0, 1.0), late, late, late],
                MachineTooBusy,
                true,
                2,
            ),
            (
                "late ones do not count",
                vec![late, (10.0, 1.0), late, (10.0, 1.0), (10.0, 1.0)],
                Agrees,
                true,
                3,
            ),
            ("by the limit", vec![(9.5, 1.0), (9.501, 1.0), (9.499, 1.0)], Uncertain, true, 3),
        ];
        for (name, of_kernel, verdict, over, counted) in cases {
            let found = tally(&RULES, &point(), Backend::Kernel, &runs(&of_kernel));
            assert_eq!((found.verdict, found.over, found.ratio.runs), (verdict, over, counted), "{name}");
        }
        let mut lost = runs(&[(10.0, 1.0); 3]);
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
        let mut made = Vec::new();
        let mut order = Vec::new();
        while let Some((way, seed)) = next(&made) {
            order.push((way, seed));
            made.push(run(way, seed, 10.0, 0.0));
        }
        let round = |seed| [(Lab, seed), (Farpace, seed), (Kernel, seed)];
        assert_eq!(order, [1, 2, 3].map(round).concat());
        // Each beginning goes on to the same end.
        for n in 0..made.len() {
            assert_eq!(next(&made[..n]), order.get(n).copied());
        }
        assert_eq!(left(&RULES, &point(), &ways, &[]), [6, 10]);
        assert_eq!(left(&RULES, &point(), &ways, &made[..3]), [4, 8]);
        assert_eq!(left(&RULES, &point(), &ways, &made), [0, 0]);
        // What is missing of the lab comes first.
        let real: Vec<GridRun> = made.iter().filter(|run| run.way != Lab).cloned().collect();
        assert_eq!(next(&real), Some((Lab, 1)));
        let last =
            [real, made.iter().filter(|run| run.way == Lab && run.seed < 3).cloned().collect()].concat();
        assert_eq!(next(&last), Some((Lab, 3)));
        // What is late is made again with another seed, beside a run of the lab with that seed.
        let mut late = made.clone();
        late[1].latest_us = 1e6;
        assert_eq!(next(&late), Some((Lab, 4)));
        late.push(run(Lab, 4, 10.0, 0.0));
        assert_eq!(next(&late), Some((Farpace, 4)));
        // What fails twice is left.
        let error = anyhow::anyhow!("no such congestion control");
        let failed = (1..=2).map(|seed| GridRun::failed(point().key(), Kernel, seed, &error));
        let with: Vec<GridRun> = made.iter().filter(|run| run.way != Kernel).cloned().chain(failed).collect();
        assert_eq!(next(&with), None);
        assert_eq!(tally(&RULES, &point(), Kernel, &with).verdict, GridVerdict::Failed);
    }
}
