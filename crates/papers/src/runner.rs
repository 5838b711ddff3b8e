//! Makes the runs of an experiment: in parallel, with progress, and without repeating what an interrupted run
//! has finished.

use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::kept::{Kept, KeptRuns};
use crate::paper::{self, Paper};
use crate::report::ExperimentReport;
use rayon::prelude::*;
use std::path::PathBuf;

/// Hears how far an experiment is.
pub trait ProgressSink: Sync {
    /// The runs begin: so many in all, of which so many are finished already.
    fn begin(&self, total: usize, finished: usize);
    /// A run with this name begins.
    fn started(&self, run: &str);
    /// A run is finished.
    fn finished(&self);
    /// No more runs are made.
    fn end(&self);
}

/// A run and what it gave.
type RunAndMeasurement<E> = (CaseRun<<E as Experiment>::Case>, <E as Experiment>::Measurement);

/// Makes the runs of experiments.
pub struct Runner<'a> {
    /// Runs at a time; none: one per processor.
    pub threads: Option<u16>,
    /// Says when to stop.
    pub stop: &'a StopRequest<'a>,
    /// Hears how far it is.
    pub progress: &'a dyn ProgressSink,
    /// The file for finished measurements, until [`forget`](Runner::forget); none: they are not kept.
    pub kept: Option<PathBuf>,
    /// Names the program. Measurements of another program are not used.
    pub program: String,
}

impl Runner<'_> {
    /// The runs of an experiment. Each case can be run.
    ///
    /// # Errors
    /// An option that makes a case impossible.
    pub fn plan<E: Experiment>(experiment: &E) -> Result<Vec<CaseRun<E::Case>>, MeasureError> {
        let plan = experiment.plan();
        let mut checked = None;
        for run in &plan {
            if checked.replace(&run.case) != Some(&run.case) {
                experiment.check(&run.case)?;
            }
        }
        Ok(plan)
    }

    /// Makes the runs of `plan`, and the report of the experiment.
    ///
    /// # Errors
    /// The first error in the order of the plan, or [`MeasureError::Interrupted`].
    pub fn run<E: Experiment>(
        &self,
        experiment: &E,
        plan: Vec<CaseRun<E::Case>>,
        command: &str,
    ) -> Result<ExperimentReport, MeasureError> {
        let measured = self.measure(experiment, plan)?;
        experiment.follow_up(&measured, self.stop)?;
        Ok(experiment.report(&measured, command))
    }

    /// Makes the runs of a paper twice: literally, and in the world of `assumed`, which is the same paper
    /// there. Both are in the report side by side. What does not depend on the world is measured once.
    ///
    /// # Errors
    /// As [`run`](Runner::run).
    pub fn run_beside<P: Paper>(
        &self,
        paper: &P,
        assumed: &P,
        plans: [Vec<CaseRun<P::Case>>; 2],
        command: &str,
    ) -> Result<ExperimentReport, MeasureError> {
        let [plan, in_world] = plans;
        let literal = self.measure(paper, plan)?;
        paper.follow_up(&literal, self.stop)?;
        let (mut known, mut rest) = (Vec::new(), Vec::new());
        for run in in_world {
            let measured = literal.run(&run).filter(|_| !P::depends_on_world(&run.case));
            match measured {
                Some(measured) => known.push((run, measured.clone())),
                None => rest.push(run),
            }
        }
        known.extend(self.measure_all(assumed, rest)?);
        let reproduction = paper::reproduction(&Measured::new(assumed, known));
        let comparison = assumed
            .world()
            .map(|world| paper::compared(&paper::reproduction(&literal), world, &reproduction));
        Ok(paper::report(&literal, command, comparison))
    }

    /// Removes the file of finished measurements. Call it when the report has been written.
    pub fn forget(&self) {
        if let Some(path) = &self.kept {
            // There is none if no run was made.
            let _ = std::fs::remove_file(path);
        }
    }

    fn measure<'e, E: Experiment>(
        &self,
        experiment: &'e E,
        plan: Vec<CaseRun<E::Case>>,
    ) -> Result<Measured<'e, E>, MeasureError> {
        Ok(Measured::new(experiment, self.measure_all(experiment, plan)?))
    }

    pub(crate) fn measure_all<E: Experiment>(
        &self,
        experiment: &E,
        plan: Vec<CaseRun<E::Case>>,
    ) -> Result<Vec<RunAndMeasurement<E>>, MeasureError> {
        let inputs = format!("{} {}", self.program, experiment.inputs());
        let (kept, known) = match &self.kept {
            Some(path) => Kept::open(path, &inputs),
            None => (Kept::default(), KeptRuns::default()),
        };
        let of_plan = |run: &&CaseRun<E::Case>| known.has(run);
        self.progress.begin(plan.len(), plan.iter().filter(of_plan).count());
        let one = |run: CaseRun<E::Case>| {
            if let Some(measurement) = known.get(&run) {
                return Ok((run, measurement));
            }
            let name = format!("{}, {} {}", run.case, E::NUMBER, run.number);
            self.progress.started(&name);
            let measured = if (self.stop)() {
                Err(MeasureError::Interrupted)
            } else {
                experiment.measure(&run, self.stop).and_then(|m| kept.add(&run, &m).map(|()| m))
            };
            self.progress.finished();
            match measured {
                Ok(measurement) => Ok((run, measurement)),
                Err(MeasureError::Interrupted) => Err(MeasureError::Interrupted),
                Err(error) => Err(MeasureError::Run { run: name, error: Box::new(error) }),
            }
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.map_or(0, usize::from)).build();
        let pool = pool.map_err(|error| MeasureError::Invalid(format!("no threads: {error}")))?;
        let all: Vec<_> = pool.install(|| plan.into_par_iter().with_max_len(1).map(one).collect());
        self.progress.end();
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_report::Page;
    use serde_json::Value;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Silent;
    impl ProgressSink for Silent {
        fn begin(&self, _: usize, _: usize) {}
        fn started(&self, _: &str) {}
        fn finished(&self) {}
        fn end(&self) {}
    }

    /// Doubles numbers. From `fails` on each run is an error.
    struct Doubles {
        fails: u32,
        made: AtomicUsize,
    }
    impl Experiment for Doubles {
        type Case = u32;
        type Measurement = f64;
        fn plan(&self) -> Vec<CaseRun<u32>> {
            (0..50).map(|case| CaseRun { case, number: 1 }).collect()
        }
        fn measure(&self, run: &CaseRun<u32>, _: &StopRequest<'_>) -> Result<f64, MeasureError> {
            self.made.fetch_add(1, Ordering::Relaxed);
            if run.case >= self.fails {
                return Err(MeasureError::Incomplete("refused".into()));
            }
            Ok(if run.case == 0 { f64::NAN } else { f64::from(run.case) * 2.0 })
        }
        fn report(&self, measured: &Measured<'_, Self>, _: &str) -> ExperimentReport {
            let numbers: Vec<String> = measured.cases().map(|(_, runs)| format!("{:?}", runs[&1])).collect();
            ExperimentReport::new(Page::new("Doubles"), numbers.join(" "), Value::Null)
        }
    }

    fn run(threads: u16, fails: u32, stop: bool, kept: Option<&Path>) -> (usize, Result<String, String>) {
        let doubles = Doubles { fails, made: AtomicUsize::new(0) };
        let stop = move || stop;
        let (kept, program) = (kept.map(Into::into), "test".into());
        let runner = Runner { threads: Some(threads), stop: &stop, progress: &Silent, kept, program };
        let result =
            runner.run(&doubles, doubles.plan(), "").map(|report| report.headline).map_err(|e| e.to_string());
        (doubles.made.into_inner(), result)
    }

    /// Breaks: determinism: results in another order, or another error, with more threads.
    #[test]
    fn the_number_of_threads_changes_nothing() {
        let (_, once) = run(1, 50, false, None);
        assert!(once.as_ref().is_ok_and(|text| text.starts_with("NaN 2.0 4.0 ")), "{once:?}");
        for threads in [2, 7] {
            assert_eq!(run(threads, 50, false, None).1, once);
            assert_eq!(run(threads, 10, false, None).1, Err("10, seed 1: refused".into()));
            assert_eq!(run(threads, 50, true, None), (0, Err("interrupted".into())));
        }
    }

    /// Breaks: an interrupted experiment makes finished runs again, or takes those of other options; a
    /// damaged file ends it, or is believed.
    #[test]
    fn finished_measurements_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept");
        let (made, failed) = run(2, 30, false, Some(&path));
        assert!(failed.is_err() && made == 50);
        let (made, whole) = run(2, 50, false, Some(&path));
        assert_eq!((made, &whole), (20, &run(1, 50, false, None).1));
        // The last one is cut off.
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(run(2, 50, false, Some(&path)).0, 1);
        std::fs::write(&path, [0xff; 1000]).unwrap();
        assert_eq!(run(2, 50, false, Some(&path)), (50, whole));
    }
}
