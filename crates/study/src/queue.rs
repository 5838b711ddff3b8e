//! The runs that a study still has to make, and where they go when they are made. Who makes them, and in
//! which order they come back, is not known here.

use crate::error::StudyError;
use crate::folder::StudyFolder;
use crate::keys::{point_key, run_key, short_digest};
use crate::plan::{MAX_RUNS, StudyPlan};
use crate::record::{Measurement, RunRecord, RunStatus};
use crate::shard::Shard;
use crate::simulate::{RunVerdict, Simulate, record};
use crate::statistics::goodput;
use crate::template::ScenarioTemplate;
use farpace_lab::scenario::Scenario;
use farpace_papers::statistics::Summary;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Fewest seeds of a point before early stopping: an interval of two runs says nothing.
pub const MIN_SEEDS: u64 = 3;
/// Points whose runs are planned together.
const CHUNK: usize = 16 * 1024;

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Identifies its content.
    pub run: String,
    /// The seed.
    pub seed: u64,
    /// The values of the varied paths.
    pub values: Vec<String>,
    /// Why it cannot be made; none: it can.
    pub refused: Option<String>,
}

/// What a process needs to make runs of a study, here or on another machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOrder {
    /// Version and commit of farpace. Rows of another one do not belong to the study.
    pub farpace: String,
    /// The scenario that points are made from.
    pub template: ScenarioTemplate,
}

impl RunOrder {
    /// Makes runs, one after the other, and returns those that were made: the first ones. Runs of one point
    /// that follow each other share its scenario. `begin` gives a clock for each run, or none if no more are
    /// to be begun.
    pub fn make<'c>(
        &self,
        runs: &[PlannedRun],
        simulate: Simulate<'_>,
        begin: &dyn Fn() -> Option<Box<dyn Fn() -> RunVerdict + 'c>>,
    ) -> Vec<RunRecord> {
        let mut records = Vec::with_capacity(runs.len());
        let mut last: Option<(&[String], Result<Scenario, String>)> = None;
        for run in runs {
            let Some(clock) = begin() else { break };
            if last.as_ref().is_none_or(|(values, _)| *values != run.values) {
                last = Some((&run.values, self.template.scenario(&run.values)));
            }
            let Some((_, scenario)) = &last else { break };
            match made(run, scenario.as_ref(), simulate, &*clock) {
                Some(record) => records.push(record),
                None => break,
            }
        }
        records
    }
}

/// What comes of a run; none if the study is to end.
pub(crate) fn made(
    run: &PlannedRun,
    scenario: Result<&Scenario, &String>,
    simulate: Simulate<'_>,
    verdict: &dyn Fn() -> RunVerdict,
) -> Option<RunRecord> {
    match (&run.refused, scenario) {
        (None, Ok(scenario)) => record(simulate, scenario, (&run.run, run.seed), verdict),
        (Some(why), _) | (None, Err(why)) => Some(RunRecord {
            run: run.run.clone(),
            seed: run.seed,
            values: Vec::new(),
            status: RunStatus::Refused,
            reason: Some(why.clone()),
            measured: Measurement::default(),
        }),
    }
}

/// Which runs of a plan a [`StudyQueue`] has.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueOptions<'a> {
    /// Only these runs; none: all.
    pub shard: Option<Shard>,
    /// Runs that crashed, failed or were overdue are made again.
    pub retry: bool,
    /// All runs that are in the folder are forgotten.
    pub restart: bool,
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

/// One point and the key of its content.
struct KeyedPoint {
    values: Vec<String>,
    key: String,
    /// Why it cannot be run.
    refused: Option<String>,
}

/// The part of a study that a queue has.
#[derive(Clone, Copy)]
struct QueueShard {
    shard: Option<Shard>,
    /// With early stopping the seeds of a point depend on each other, so a shard has all of them.
    by_point: bool,
}

impl QueueShard {
    fn has_point(self, point: &KeyedPoint) -> bool {
        self.shard.is_none_or(|shard| !self.by_point || shard.has(&point.key))
    }

    /// The runs of a point that are in it, with their keys.
    fn keys(
        self,
        point: &KeyedPoint,
        seeds: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = (u64, String)> {
        let is_ours = self.has_point(point);
        let runs = seeds.map(move |seed| (seed, run_key(&point.key, seed))).filter(move |_| is_ours);
        runs.filter(move |(_, key)| self.by_point || self.shard.is_none_or(|shard| shard.has(key)))
    }
}

/// The runs of a study that its folder does not have yet. It holds the folder's lock.
///
/// Take runs with [`take`](Self::take), make them anywhere, and give what came of them to
/// [`add`](Self::add), in any order. The study is over when `take` has none and nothing is
/// [`outstanding`](Self::outstanding); then, and also when it ends before, [`commit`](Self::commit) writes
/// the data set. What was added is on disk already.
pub struct StudyQueue {
    plan: StudyPlan,
    folder: StudyFolder,
    ours: QueueShard,
    points: Vec<KeyedPoint>,
    /// The chunk of points that is planned next, and with early stopping the seed of it.
    chunk: usize,
    round: usize,
    /// With early stopping: the points of the chunk that need more seeds.
    open: Vec<bool>,
    ready: VecDeque<(usize, u64)>,
    outstanding: BTreeMap<String, usize>,
    total: u64,
    finished: u64,
    end: StudyEnd,
}

impl StudyQueue {
    /// Opens the folder of a plan, and makes it if need be. Keys of points are computed on the threads of the
    /// current pool of rayon.
    ///
    /// # Errors
    /// Too many runs, or a folder that does not fit.
    pub fn open(plan: &StudyPlan, folder: &Path, options: QueueOptions<'_>) -> Result<Self, StudyError> {
        if plan.runs() > MAX_RUNS {
            return Err(StudyError::Invalid(format!("{} runs; the limit is {MAX_RUNS}", plan.runs())));
        }
        let shard = options.shard.map(|shard| shard.to_string());
        let folder = StudyFolder::open(folder, plan, options.version, shard, options.restart)?;
        let keyed = |index| keyed(plan, options.version, index);
        let points = (0..plan.grid().len()).into_par_iter().map(keyed).collect();
        let mut queue = StudyQueue {
            plan: plan.clone(),
            folder,
            ours: QueueShard { shard: options.shard, by_point: plan.spec.stop_at.is_some() },
            points,
            chunk: 0,
            round: 0,
            open: Vec::new(),
            ready: VecDeque::new(),
            outstanding: BTreeMap::new(),
            total: 0,
            finished: 0,
            end: StudyEnd::default(),
        };
        queue.count(options.retry);
        Ok(queue)
    }

    /// Counts what there is, and what is there already.
    fn count(&mut self, retry: bool) {
        for point in &self.points {
            let values = labels(&self.plan, point);
            for key in self.ours.keys(point, self.plan.seeds()).map(|(_, key)| key) {
                self.total += 1;
                match self.folder.get(&key).map(|record| record.status) {
                    Some(status) if retry && !status.is_measured() => self.folder.forget(&key),
                    Some(_) => {
                        // The plan may have got another axis since.
                        self.folder.relabel(&key, &values);
                        self.finished += 1;
                    }
                    None => {}
                }
            }
        }
        let keys = |point: &KeyedPoint| -> Vec<String> {
            self.plan.seeds().map(|seed| run_key(&point.key, seed)).collect()
        };
        let all = self.points.iter().flat_map(keys).collect();
        self.folder.forget_superseded(&self.plan, &all);
    }

    /// Runs of the study at most, those that are there included.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Runs that were there when the queue was opened.
    pub fn finished(&self) -> u64 {
        self.finished
    }

    /// Runs that were taken and have not come back.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// What has come of it so far. `interrupted` is for the caller to say.
    pub fn end(&self) -> StudyEnd {
        self.end
    }

    /// What those need who make the runs.
    pub fn order(&self) -> RunOrder {
        RunOrder { farpace: self.folder.version().to_owned(), template: self.plan.template().clone() }
    }

    /// [`take`](Self::take) has runs now.
    pub fn has_ready(&mut self) -> bool {
        while self.ready.is_empty() && self.plan_more() {}
        !self.ready.is_empty()
    }

    /// The next runs, at most `max`. None: the study is over, or early stopping waits for those that are
    /// outstanding.
    pub fn take(&mut self, max: usize) -> Vec<PlannedRun> {
        if !self.has_ready() {
            return Vec::new();
        }
        let taken = self.ready.drain(..max.min(self.ready.len()));
        let runs: Vec<(usize, PlannedRun)> = taken
            .map(|(n, seed)| {
                let point = &self.points[n];
                let (values, refused) = (point.values.clone(), point.refused.clone());
                (n, PlannedRun { run: run_key(&point.key, seed), seed, values, refused })
            })
            .collect();
        self.outstanding.extend(runs.iter().map(|(n, run)| (run.run.clone(), *n)));
        runs.into_iter().map(|(_, run)| run).collect()
    }

    /// Makes more runs ready; false: there are none now.
    fn plan_more(&mut self) -> bool {
        let first = self.chunk * CHUNK;
        if first >= self.points.len() {
            return false;
        }
        let points = first..(first + CHUNK).min(self.points.len());
        let Some(width) = self.plan.spec.stop_at else {
            for n in points {
                self.plan_seeds(n, self.plan.seeds());
            }
            self.chunk += 1;
            return true;
        };
        // One more seed for each point in every round, until its interval is narrow. Which seeds a point has
        // does not depend on the order in which runs finish.
        if !self.outstanding.is_empty() {
            return false;
        }
        if self.round == 0 {
            self.open = vec![true; points.len()];
        } else {
            self.close_exact(first, width);
        }
        let Some(seed) = self.plan.seeds().nth(self.round).filter(|_| self.open.contains(&true)) else {
            (self.chunk, self.round) = (self.chunk + 1, 0);
            return true;
        };
        for n in points.filter(|n| self.open[n - first]).collect::<Vec<_>>() {
            self.plan_seeds(n, std::iter::once(seed));
        }
        self.round += 1;
        true
    }

    /// Makes runs of a point ready, as far as they are missing.
    fn plan_seeds(&mut self, n: usize, seeds: impl Iterator<Item = u64>) {
        for (seed, key) in self.ours.keys(&self.points[n], seeds) {
            match self.folder.get(&key) {
                Some(_) => self.end.reused += 1,
                None => self.ready.push_back((n, seed)),
            }
        }
    }

    /// Closes the points that need no more seeds.
    fn close_exact(&mut self, first: usize, width: f64) {
        let made: Vec<u64> = self.plan.seeds().take(self.round).collect();
        if (made.len() as u64) < MIN_SEEDS {
            return;
        }
        for n in 0..self.open.len() {
            let point = &self.points[first + n];
            if self.open[n] && self.ours.has_point(point) && self.is_exact(point, &made, width) {
                self.open[n] = false;
                self.end.spared += self.plan.spec.seeds - made.len() as u64;
            }
        }
    }

    fn is_exact(&self, point: &KeyedPoint, seeds: &[u64], width: f64) -> bool {
        let runs = seeds.iter().filter_map(|seed| self.folder.get(&run_key(&point.key, *seed)));
        let summary = Summary::of(runs.filter(|r| r.status.is_measured()).map(goodput));
        summary.runs as u64 >= MIN_SEEDS && summary.ci95 <= width * summary.mean.abs()
    }

    /// Keeps what came of a run, on disk too. False: nobody waits for it, and it is not kept.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, mut record: RunRecord) -> Result<bool, StudyError> {
        let Some(n) = self.outstanding.remove(&record.run) else { return Ok(false) };
        record.values = labels(&self.plan, &self.points[n]);
        self.folder.add(record)?;
        self.end.made += 1;
        Ok(true)
    }

    /// Writes the data set with all runs.
    ///
    /// # Errors
    /// A file cannot be written. Then the runs are still in the journal.
    pub fn commit(self) -> Result<StudyEnd, StudyError> {
        self.folder.commit()?;
        Ok(self.end)
    }
}

fn keyed(plan: &StudyPlan, version: &str, index: u64) -> KeyedPoint {
    let values = plan.grid().point(index);
    let key = plan.scenario(&values).and_then(|s| point_key(version, &s));
    match key {
        Ok(key) => KeyedPoint { values, key, refused: None },
        Err(why) => {
            let key = short_digest(format!("refused {values:?}").as_bytes());
            KeyedPoint { values, key, refused: Some(why) }
        }
    }
}

/// The varied paths with the values of a point.
fn labels(plan: &StudyPlan, point: &KeyedPoint) -> Vec<(String, String)> {
    plan.grid().paths().map(str::to_owned).zip(point.values.iter().cloned()).collect()
}
