//! Makes the runs of a study that its folder does not have yet.

use crate::error::StudyError;
use crate::folder::StudyFolder;
use crate::plan::{MAX_RUNS, StudyPlan, point_key, run_key};
use crate::record::{Measurement, RunRecord, RunStatus};
use crate::simulate::{RunVerdict, Simulate, record};
use crate::statistics::goodput;
use farpace_papers::statistics::Summary;
use rayon::prelude::*;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// Fewest seeds of a point before early stopping: an interval of two runs says nothing.
pub const MIN_SEEDS: u64 = 3;
/// Points whose runs are planned together.
const CHUNK: u64 = 16 * 1024;

/// Hears how far a study is, and says when it is to end.
pub trait StudySink: Sync {
    /// The runs begin: at most so many in all, of which so many are there already.
    fn begin(&self, total: u64, finished: u64);
    /// A run is finished.
    fn finished(&self, record: &RunRecord);
    /// So many runs will not be made, because their point is exact enough.
    fn spared(&self, runs: u64);
    /// A run begins. The answer says, when asked, whether it goes on.
    fn clock(&self) -> Box<dyn Fn() -> RunVerdict + '_>;
}

/// One part of several of a study, for clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no shard: write 3/16, from 1/16 to 16/16");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Shard {
            number: number.trim().parse().map_err(|_| wrong())?,
            of: of.trim().parse().map_err(|_| wrong())?,
        };
        if shard.number == 0 || shard.number > shard.of { Err(wrong()) } else { Ok(shard) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// True if the run or point with this key is in the shard.
    fn has(self, key: &str) -> bool {
        let bits = key.get(..15).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
        bits % u64::from(self.of) == u64::from(self.number - 1)
    }
}

/// How to make the runs.
pub struct RunOptions<'a> {
    /// Runs at a time; none: one per processor.
    pub threads: Option<usize>,
    /// Only these runs; none: all.
    pub shard: Option<Shard>,
    /// Runs that crashed, failed or were overdue are made again.
    pub retry: bool,
    /// Makes one run.
    pub simulate: Simulate<'a>,
    /// Version and commit of farpace. Runs of another one are not used.
    pub version: &'a str,
}

/// How a study has come out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StudyEnd {
    /// Runs made now.
    pub made: u64,
    /// Runs that were there already.
    pub reused: u64,
    /// Runs not made because their point was exact enough.
    pub spared: u64,
    /// The sink ended it before all runs were made.
    pub interrupted: bool,
}

/// One point and the key of its content; the error is why it cannot be run.
struct KeyedPoint {
    values: Vec<String>,
    key: String,
    refused: Option<String>,
}

/// Makes one run of the first point with the first seed, for an estimate of time. It is not kept.
///
/// # Errors
/// Values that are impossible.
pub fn probe(
    plan: &StudyPlan,
    simulate: Simulate<'_>,
    sink: &dyn StudySink,
) -> Result<Option<RunStatus>, StudyError> {
    let scenario = plan.scenario(&plan.grid().point(0)).map_err(StudyError::Scenario)?;
    let clock = sink.clock();
    Ok(record(simulate, &scenario, ("", plan.spec.first_seed), &*clock).map(|record| record.status))
}

/// Opens the folder of a plan, makes the runs that are missing there, and writes the data set. Whatever
/// happens, runs that are finished are kept.
///
/// # Errors
/// Too many runs, a folder that does not fit, or files that cannot be written.
pub fn run(
    plan: &StudyPlan,
    folder: &Path,
    restart: bool,
    options: &RunOptions<'_>,
    sink: &dyn StudySink,
) -> Result<StudyEnd, StudyError> {
    if plan.runs() > MAX_RUNS {
        return Err(StudyError::Invalid(format!("{} runs; the limit is {MAX_RUNS}", plan.runs())));
    }
    let shard = options.shard.map(|shard| shard.to_string());
    let folder = StudyFolder::open(folder, plan, options.version, shard, restart)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.unwrap_or(0)).build();
    let pool = pool.map_err(|error| StudyError::Invalid(format!("no threads: {error}")))?;
    let work = StudyWork {
        plan,
        options,
        sink,
        folder: Mutex::new(folder),
        failed: Mutex::new(None),
        end: Mutex::new(StudyEnd::default()),
    };
    pool.install(|| work.all());
    let failed = work.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let folder = work.folder.into_inner().unwrap_or_else(PoisonError::into_inner);
    let committed = folder.commit();
    if let Some(error) = failed {
        return Err(error);
    }
    committed?;
    Ok(work.end.into_inner().unwrap_or_else(PoisonError::into_inner))
}

struct StudyWork<'a> {
    plan: &'a StudyPlan,
    options: &'a RunOptions<'a>,
    sink: &'a dyn StudySink,
    folder: Mutex<StudyFolder>,
    /// The first file that could not be written.
    failed: Mutex<Option<StudyError>>,
    end: Mutex<StudyEnd>,
}

impl StudyWork<'_> {
    fn folder(&self) -> std::sync::MutexGuard<'_, StudyFolder> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn count(&self, change: impl FnOnce(&mut StudyEnd)) {
        change(&mut self.end.lock().unwrap_or_else(PoisonError::into_inner));
    }
    fn stopped(&self) -> bool {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).interrupted
            || self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn all(&self) {
        let points = self.plan.grid().len();
        let chunks: Vec<Vec<KeyedPoint>> = (0..points.div_ceil(CHUNK))
            .map(|chunk| {
                let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(points);
                range.into_par_iter().map(|index| self.point(index)).collect()
            })
            .collect();
        let (mut total, mut finished) = (0, 0);
        {
            let mut folder = self.folder();
            for point in chunks.iter().flatten() {
                let values = self.values(point);
                for seed in self.plan.seeds().filter(|seed| self.is_ours(point, *seed)) {
                    let key = run_key(&point.key, seed);
                    total += 1;
                    match folder.get(&key).map(|record| record.status) {
                        Some(status) if self.options.retry && !status.is_measured() => folder.forget(&key),
                        Some(_) => {
                            // The plan may have got another axis since.
                            folder.relabel(&key, &values);
                            finished += 1;
                        }
                        None => {}
                    }
                }
            }
        }
        self.sink.begin(total, finished);
        for points in &chunks {
            match self.plan.spec.stop_at {
                None => self.make(points, |_| self.plan.seeds().collect()),
                Some(width) => self.until(points, width),
            }
        }
    }

    fn point(&self, index: u64) -> KeyedPoint {
        let values = self.plan.grid().point(index);
        let key = self.plan.scenario(&values).and_then(|s| point_key(self.options.version, &s));
        match key {
            Ok(key) => KeyedPoint { values, key, refused: None },
            Err(why) => {
                let key = crate::plan::short_digest(format!("refused {values:?}").as_bytes());
                KeyedPoint { values, key, refused: Some(why) }
            }
        }
    }

    fn values(&self, point: &KeyedPoint) -> Vec<(String, String)> {
        self.plan.grid().paths().map(str::to_owned).zip(point.values.iter().cloned()).collect()
    }

    /// With early stopping the seeds of a point depend on each other, so a shard has all of them.
    fn is_ours(&self, point: &KeyedPoint, seed: u64) -> bool {
        let Some(shard) = self.options.shard else { return true };
        match self.plan.spec.stop_at {
            Some(_) => shard.has(&point.key),
            None => shard.has(&run_key(&point.key, seed)),
        }
    }

    /// Makes the runs of these points with these seeds, as far as they are missing.
    fn make(&self, points: &[KeyedPoint], seeds: impl Fn(usize) -> Vec<u64>) {
        let runs: Vec<(&KeyedPoint, u64)> = points
            .iter()
            .enumerate()
            .flat_map(|(n, point)| seeds(n).into_iter().map(move |seed| (point, seed)))
            .filter(|(point, seed)| self.is_ours(point, *seed))
            .collect();
        runs.into_par_iter().with_max_len(1).for_each(|(point, seed)| self.one(point, seed));
    }

    /// One more seed for each point in every round, until its interval is narrow. Which seeds a point has
    /// does not depend on the order in which runs finish.
    fn until(&self, points: &[KeyedPoint], width: f64) {
        let seeds: Vec<u64> = self.plan.seeds().collect();
        let mut open = vec![true; points.len()];
        for (round, seed) in seeds.iter().enumerate() {
            self.make(points, |n| if open[n] { vec![*seed] } else { Vec::new() });
            if self.stopped() {
                return;
            }
            let made = &seeds[..=round];
            for (n, point) in points.iter().enumerate().filter(|(_, point)| self.is_ours(point, *seed)) {
                if open[n] && made.len() as u64 >= MIN_SEEDS && self.is_exact(point, made, width) {
                    open[n] = false;
                    let left = (seeds.len() - made.len()) as u64;
                    self.count(|end| end.spared += left);
                    self.sink.spared(left);
                }
            }
        }
    }

    fn is_exact(&self, point: &KeyedPoint, seeds: &[u64], width: f64) -> bool {
        let folder = self.folder();
        let runs = seeds.iter().filter_map(|seed| folder.get(&run_key(&point.key, *seed)));
        let summary = Summary::of(runs.filter(|r| r.status.is_measured()).map(goodput));
        summary.runs as u64 >= MIN_SEEDS && summary.ci95 <= width * summary.mean.abs()
    }

    fn one(&self, point: &KeyedPoint, seed: u64) {
        if self.stopped() {
            return;
        }
        let key = run_key(&point.key, seed);
        if self.folder().get(&key).is_some() {
            return self.count(|end| end.reused += 1);
        }
        let clock = self.sink.clock();
        if clock() == RunVerdict::Stop {
            return self.count(|end| end.interrupted = true);
        }
        let made = match (&point.refused, self.plan.scenario(&point.values)) {
            (None, Ok(scenario)) => record(self.options.simulate, &scenario, (&point.key, seed), &*clock),
            (refused, scenario) => {
                let why = refused.clone().or(scenario.err()).unwrap_or_default();
                let (status, reason) = (RunStatus::Refused, Some(why));
                let measured = Measurement::default();
                Some(RunRecord { run: key, seed, values: Vec::new(), status, reason, measured })
            }
        };
        let Some(mut record) = made else { return self.count(|end| end.interrupted = true) };
        record.values = self.values(point);
        self.sink.finished(&record);
        match self.folder().add(record) {
            Ok(()) => self.count(|end| end.made += 1),
            Err(error) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    }
}
