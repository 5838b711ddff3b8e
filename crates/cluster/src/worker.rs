//! Runs of a study that a process elsewhere has planned.

use crate::error::ClusterError;
use farpace_process::stopwatch::Stopwatch;
use farpace_study::{PlannedRun, RunOrder, RunRecord, RunVerdict, simulate};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a worker may take.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// The longest time of one run on the clock.
    pub run: Duration,
    /// No run is begun after this time.
    pub batch: Duration,
}

/// Makes runs until all are made, the time of the batch is over, or `stop` is set. Returns those that were
/// made: the first ones, and at least one if it was not stopped. `own` names this build of farpace.
///
/// # Errors
/// The study was planned by another build of farpace: its rows would not belong together.
pub fn make_runs(
    order: &RunOrder,
    runs: &[PlannedRun],
    own: &str,
    limits: WorkerLimits,
    stop: &AtomicBool,
) -> Result<Vec<RunRecord>, ClusterError> {
    if order.farpace != own {
        return Err(ClusterError::OtherBuild { own: own.to_owned(), study: order.farpace.clone() });
    }
    let batch = Stopwatch::start();
    let first = AtomicBool::new(true);
    let begin = || -> Option<Box<dyn Fn() -> RunVerdict + '_>> {
        let is_first = first.swap(false, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) || (!is_first && batch.elapsed() > limits.batch) {
            return None;
        }
        let started = Stopwatch::start();
        Some(Box::new(move || match () {
            () if stop.load(Ordering::Relaxed) => RunVerdict::Stop,
            () if started.elapsed() > limits.run => RunVerdict::Overdue,
            () => RunVerdict::GoOn,
        }))
    };
    Ok(order.make(runs, &simulate, &begin))
}
