//! A study whose runs are made elsewhere: the queue of the process that has the folder, and the workers.
//!
//! What goes between them is JSON in bytes: an order, planned runs, and records.

use crate::arguments::PyScenario;
use crate::failed;
use crate::study::{SweepOptions, interruptible};
use anyhow::{Context, anyhow};
use farpace_cluster::{WorkerLimits, make_runs};
use farpace_study::{PlannedRun, QueueOptions, RunOrder, RunRecord, StudyQueue};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What Python sees as `bytes`.
type Bytes = Cow<'static, [u8]>;

/// The runs of a study that its folder does not have yet.
#[pyclass(frozen, name = "StudyQueue")]
pub struct PyStudyQueue {
    queue: Mutex<Option<StudyQueue>>,
    folder: PathBuf,
}

impl PyStudyQueue {
    fn guard(&self) -> MutexGuard<'_, Option<StudyQueue>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut StudyQueue) -> anyhow::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| match self.guard().as_mut() {
            Some(queue) => work(queue).map_err(failed),
            None => Err(PyRuntimeError::new_err("the queue of the study is closed")),
        })
    }
}

#[pymethods]
impl PyStudyQueue {
    /// Opens the folder of a study, and locks it.
    #[new]
    fn new(py: Python<'_>, source: PyScenario, options: SweepOptions) -> PyResult<Self> {
        let (shard, folder) = options.place()?;
        let (retry, restart) = (options.retry, options.restart);
        let queue = py.detach(|| -> anyhow::Result<StudyQueue> {
            let plan = options.plan(source, Vec::new())?;
            let version = farpace::sweep::version();
            let queued = QueueOptions { shard, retry, restart, version: &version };
            Ok(StudyQueue::open(&plan, &folder, queued)?)
        });
        Ok(PyStudyQueue { queue: Mutex::new(Some(queue.map_err(failed)?)), folder })
    }

    /// The folder.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Runs that are not there yet, at most.
    #[getter]
    fn left(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |queue| Ok(queue.total() - queue.finished()))
    }

    /// What workers need.
    #[getter]
    fn order(&self, py: Python<'_>) -> PyResult<Bytes> {
        self.with(py, |queue| Ok(Cow::Owned(serde_json::to_vec(&queue.order())?)))
    }

    /// True if take() has runs now.
    fn has_ready(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |queue| Ok(queue.has_ready()))
    }

    /// The next runs, at most so many; None if there are none now.
    fn take(&self, py: Python<'_>, most: usize) -> PyResult<Option<Bytes>> {
        self.with(py, |queue| {
            let runs = queue.take(most);
            Ok(if runs.is_empty() { None } else { Some(Cow::Owned(serde_json::to_vec(&runs)?)) })
        })
    }

    /// Keeps what came of runs.
    fn add(&self, py: Python<'_>, records: &[u8]) -> PyResult<()> {
        self.with(py, |queue| {
            let records: Vec<RunRecord> = serde_json::from_slice(records).context("a record is damaged")?;
            for record in records {
                queue.add(record)?;
            }
            Ok(())
        })
    }

    /// Writes the data set, and leaves the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| match self.guard().take() {
            Some(queue) => queue.commit().map(|_| ()).map_err(|error| failed(anyhow!(error))),
            None => Ok(()),
        })
    }
}

/// Makes planned runs, at least one, and no more after `batch_s`. Returns records of those that were made,
/// and the other runs if there are any.
#[pyfunction]
pub fn make_planned(
    py: Python<'_>,
    order: &[u8],
    runs: &[u8],
    run_s: f64,
    batch_s: f64,
) -> PyResult<(Bytes, Option<Bytes>)> {
    let limit = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let limits = WorkerLimits { run: limit(run_s), batch: limit(batch_s) };
    let made = interruptible(py, |stop| -> anyhow::Result<_> {
        let order: RunOrder = serde_json::from_slice(order).context("the order is damaged")?;
        let runs: Vec<PlannedRun> = serde_json::from_slice(runs).context("a planned run is damaged")?;
        let records = make_runs(&order, &runs, &farpace::sweep::version(), limits, stop)?;
        let rest = runs.get(records.len()..).filter(|rest| !rest.is_empty());
        let rest = rest.map(serde_json::to_vec).transpose()?.map(Cow::Owned);
        Ok((Cow::Owned(serde_json::to_vec(&records)?), rest))
    })?;
    made.map_err(failed)
}

/// Version and commit of farpace.
#[pyfunction]
pub fn build() -> String {
    farpace::sweep::version()
}
