//! Makes the runs of a study that its folder does not have yet, on the threads of this process.

use crate::error::StudyError;
use crate::plan::StudyPlan;
use crate::queue::{PlannedRun, QueueOptions, StudyEnd, StudyQueue, made};
use crate::record::{RunRecord, RunStatus};
use crate::shard::Shard;
use crate::simulate::{RunVerdict, Simulate, record};
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.unwrap_or(0)).build();
    let pool = pool.map_err(|error| StudyError::Invalid(format!("no threads: {error}")))?;
    let RunOptions { shard, retry, version, .. } = *options;
    let queued = QueueOptions { shard, retry, restart, version };
    let queue = pool.install(|| StudyQueue::open(plan, folder, queued))?;
    sink.begin(queue.total(), queue.finished());
    let work = LocalRuns {
        plan,
        options,
        sink,
        queue: Mutex::new(queue),
        failed: Mutex::new(None),
        interrupted: AtomicBool::new(false),
    };
    pool.install(|| work.all());
    let failed = work.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let queue = work.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    let committed = queue.commit();
    if let Some(error) = failed {
        return Err(error);
    }
    Ok(StudyEnd { interrupted: work.interrupted.into_inner(), ..committed? })
}

/// The runs of a study on the threads of this process.
struct LocalRuns<'a> {
    plan: &'a StudyPlan,
    options: &'a RunOptions<'a>,
    sink: &'a dyn StudySink,
    queue: Mutex<StudyQueue>,
    /// The first file that could not be written.
    failed: Mutex<Option<StudyError>>,
    /// The sink ended it.
    interrupted: AtomicBool,
}

impl LocalRuns<'_> {
    fn queue(&self) -> std::sync::MutexGuard<'_, StudyQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
            || self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn all(&self) {
        while !self.stopped() {
            let (runs, spared) = {
                let mut queue = self.queue();
                let before = queue.end().spared;
                (queue.take(usize::MAX), queue.end().spared - before)
            };
            if spared > 0 {
                self.sink.spared(spared);
            }
            if runs.is_empty() {
                return;
            }
            runs.into_par_iter().with_max_len(1).for_each(|run| self.one(&run));
        }
    }

    fn one(&self, run: &PlannedRun) {
        if self.stopped() {
            return;
        }
        let clock = self.sink.clock();
        if clock() == RunVerdict::Stop {
            return self.interrupted.store(true, Ordering::Relaxed);
        }
        let scenario = self.plan.scenario(&run.values);
        let Some(record) = made(run, scenario.as_ref(), self.options.simulate, &*clock) else {
            return self.interrupted.store(true, Ordering::Relaxed);
        };
        self.sink.finished(&record);
        if let Err(error) = self.queue().add(record) {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}
