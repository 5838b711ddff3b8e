//! What an experiment is: cases, runs of each case, and one measurement of each run.

use crate::report::ExperimentReport;
use crate::statistics::Summary;
use farpace_lab::{RunError, VerifyError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use thiserror::Error;

/// Says whether the user asked for an orderly end. A measurement asks it at least once in each bin of its
/// run.
pub type StopRequest<'a> = dyn Fn() -> bool + Sync + 'a;

/// Why an experiment has no results.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The user asked for an end.
    #[error("interrupted")]
    Interrupted,
    /// A scenario or an option that cannot be used, with the reason.
    #[error("{0}")]
    Invalid(String),
    /// The lab refuses the scenario, or has a defect.
    #[error(transparent)]
    Lab(#[from] RunError),
    /// Bytes arrived other than they were sent.
    #[error("flow `{flow}`: {error}")]
    Corrupted {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: VerifyError,
    },
    /// A run did not give what it is made for.
    #[error("{0}")]
    Incomplete(String),
    /// Finished measurements cannot be written to disk.
    #[error("cannot write `{path}`: {error}")]
    Keep {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// An error of one run.
    #[error("{run}: {error}")]
    Run {
        /// The run.
        run: String,
        /// What went wrong in it.
        error: Box<MeasureError>,
    },
}

/// One run of a case. Runs of a case differ in their number alone: a seed or a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseRun<C> {
    /// What is run.
    pub case: C,
    /// Which of its runs.
    pub number: u64,
}

/// Runs in virtual time, and what is measured in each.
///
/// The [`Runner`](crate::Runner) checks all cases of the plan, measures its runs in parallel, in any order,
/// and then asks for the report. A measurement depends on `self`, the case and the number alone.
pub trait Experiment: Sync + Sized {
    /// What is compared.
    type Case: Clone + Debug + Display + Ord + Send + Sync;
    /// What one run gives. It is written to disk, so that an interrupted experiment goes on where it ended.
    type Measurement: Serialize + DeserializeOwned + Send + Sync;
    /// What the number of a run is called.
    const NUMBER: &'static str = "seed";

    /// All runs. Long ones first, so that no processor waits for the last.
    fn plan(&self) -> Vec<CaseRun<Self::Case>>;

    /// The options that decide a measurement besides its case and number, as text that names them.
    fn inputs(&self) -> String {
        String::new()
    }

    /// Finds out whether a case can be run.
    ///
    /// # Errors
    /// An option that makes the case impossible.
    fn check(&self, _case: &Self::Case) -> Result<(), MeasureError> {
        Ok(())
    }

    /// Makes one run.
    ///
    /// # Errors
    /// See [`MeasureError`].
    fn measure(
        &self,
        run: &CaseRun<Self::Case>,
        stop: &StopRequest<'_>,
    ) -> Result<Self::Measurement, MeasureError>;

    /// Makes runs that depend on what the others gave.
    ///
    /// # Errors
    /// See [`MeasureError`].
    fn follow_up(&self, _measured: &Measured<'_, Self>, _stop: &StopRequest<'_>) -> Result<(), MeasureError> {
        Ok(())
    }

    /// Tables, figures, claims and text. `command` is the command line that repeats the experiment.
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport;
}

/// The runs of one case, by number.
pub type RunsOfCase<M> = BTreeMap<u64, M>;

/// An experiment with the measurements of its runs.
pub struct Measured<'a, E: Experiment> {
    /// The experiment.
    pub of: &'a E,
    cases: BTreeMap<E::Case, RunsOfCase<E::Measurement>>,
}

impl<'a, E: Experiment> Measured<'a, E> {
    /// Puts measurements in order.
    pub fn new(of: &'a E, all: impl IntoIterator<Item = (CaseRun<E::Case>, E::Measurement)>) -> Self {
        let mut cases: BTreeMap<E::Case, RunsOfCase<E::Measurement>> = BTreeMap::new();
        for (CaseRun { case, number }, measurement) in all {
            cases.entry(case).or_default().insert(number, measurement);
        }
        Measured { of, cases }
    }
    /// How many runs were made.
    pub fn count(&self) -> usize {
        self.cases.values().map(BTreeMap::len).sum()
    }
    /// All cases with their runs, in order.
    pub fn cases(&self) -> impl Iterator<Item = (&E::Case, &RunsOfCase<E::Measurement>)> {
        self.cases.iter()
    }
    /// True if the plan had this case.
    pub fn has(&self, case: &E::Case) -> bool {
        self.cases.contains_key(case)
    }
    /// The runs of a case; none if the plan did not have it.
    pub fn runs(&self, case: &E::Case) -> impl Iterator<Item = &E::Measurement> + Clone {
        self.cases.get(case).into_iter().flat_map(BTreeMap::values)
    }
    /// A run of the plan.
    pub fn run(&self, of: &CaseRun<E::Case>) -> Option<&E::Measurement> {
        self.cases.get(&of.case)?.get(&of.number)
    }
    /// The first run of a case.
    pub fn first(&self, case: &E::Case) -> Option<&E::Measurement> {
        self.runs(case).next()
    }
    /// A number of the first run of a case; NaN without one.
    pub fn of_first(&self, case: &E::Case, of: impl FnOnce(&E::Measurement) -> f64) -> f64 {
        self.first(case).map_or(f64::NAN, of)
    }
    /// A number over the runs of a case.
    pub fn over(&self, case: &E::Case, of: impl FnMut(&E::Measurement) -> f64) -> Summary {
        Summary::of(self.runs(case).map(of))
    }
}
