//! A search over what a paper leaves open: the same measurement at many points.
//!
//! Start reading at [`Runner::try_points`]. A point gives values to keys that the paper leaves open. Each has
//! the paper's rows and claims, and [`TradeOffs`] says what they imply together: how far each printed number
//! can be reached, which claims exclude each other, and what each key changes. Nothing is tuned: part of the
//! printed numbers chooses points, the others judge them.

mod page;
mod reach;
mod tradeoffs;

pub use page::SearchedPaper;
pub use reach::{ClaimReach, NumberReach};
pub use tradeoffs::{ExcludedClaims, FitCheck, KeyEffect, PointScore, TradeOffs};

use crate::assumptions::PointSetting;
use crate::experiment::{CaseRun, MeasureError, Measured};
use crate::info::PaperInfo;
use crate::kept::{Kept, KeptRuns};
use crate::paper::{self, Paper};
use crate::plausible::{PlausibleKey, key_name};
use crate::runner::Runner;
use crate::world::CHOICE;
use farpace_report::Reproduction;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A key that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedKey {
    /// The part of a run that has it, as in [`PlausibleKey`].
    pub part: String,
    /// The key within the part.
    pub key: String,
    /// The values that points have, as `farpace sweep --vary` takes them.
    pub range: String,
    /// Why they are plausible; none: the user has given them.
    pub reason: Option<&'static str>,
}

impl SearchedKey {
    /// Its name: part and key, or the path of the scenario.
    pub fn name(&self) -> String {
        key_name(&self.part, &self.key)
    }
}

impl From<&PlausibleKey> for SearchedKey {
    fn from(key: &PlausibleKey) -> Self {
        SearchedKey {
            part: key.part.to_owned(),
            key: key.key.to_owned(),
            range: key.range.to_owned(),
            reason: Some(key.reason),
        }
    }
}

/// The value of a key at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyValue {
    /// As scenarios write it.
    pub text: String,
    /// In base units, if it is a number.
    pub level: Option<f64>,
}

/// A point and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedPoint {
    /// A value for each key.
    pub values: Vec<KeyValue>,
    /// Rows and claims, or why a run has no result.
    pub outcome: Result<Reproduction, String>,
}

/// The runs without a point: literally, or in a world.
pub struct ReferenceRuns<P: Paper> {
    /// Rows and claims.
    pub reproduction: Reproduction,
    measured: Vec<(CaseRun<P::Case>, P::Measurement)>,
}

/// A point in work.
struct PointInWork<P: Paper> {
    paper: P,
    /// Runs that are to be made, in order.
    plan: Vec<CaseRun<P::Case>>,
    progress: Mutex<PointProgress<P>>,
}

struct PointProgress<P: Paper> {
    measured: Vec<(CaseRun<P::Case>, P::Measurement)>,
    /// By the place of the run in the plan.
    failed: BTreeMap<usize, String>,
    left: usize,
    outcome: Option<Result<Reproduction, String>>,
}

/// Which run is next.
struct NextRun {
    point: usize,
    run: usize,
    /// No point is begun any more.
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runner<'_> {
    /// Makes the runs of a paper without a point.
    ///
    /// # Errors
    /// As [`run`](Runner::run).
    pub fn reference<P: Paper>(&self, paper: &P) -> Result<ReferenceRuns<P>, MeasureError> {
        let measured = self.measure_all(paper, Runner::plan(paper)?)?;
        let reproduction = stable::<P>(paper::reproduction(&Measured::new(paper, measured.iter().cloned())));
        Ok(ReferenceRuns { reproduction, measured })
    }

    /// Finds out whether the runs of a point can be made.
    ///
    /// # Errors
    /// Values that the paper does not take.
    pub fn check_point<P: Paper>(
        paper: &P,
        keys: &[SearchedKey],
        values: &[KeyValue],
    ) -> Result<(), MeasureError> {
        Runner::plan(&at_point(paper, keys, values)?).map(drop)
    }

    /// Makes the runs of a paper at each of `points`, in order. A point begins as long as `enough` says no;
    /// one that has begun is finished. If the stop was asked for, points in work are left out; so the result
    /// may be shorter than `points`. What does not depend on assumptions is taken from `reference`. Finished
    /// points are kept.
    ///
    /// A run that does not give what it is made for fails its point, not the search.
    ///
    /// # Errors
    /// Values that the paper does not take, or a file that cannot be written.
    pub fn try_points<P: Paper>(
        &self,
        paper: &P,
        reference: &ReferenceRuns<P>,
        keys: &[SearchedKey],
        points: &[Vec<KeyValue>],
        enough: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<TriedPoint>, MeasureError> {
        let inputs = format!("{} search {}", self.program, paper.inputs());
        let (kept, known) = match &self.kept {
            Some(path) => Kept::open(path, &inputs),
            None => (Kept::default(), KeptRuns::default()),
        };
        let mut work = Vec::new();
        let (mut total, mut finished) = (0, 0);
        for values in points {
            let (point, all, outcome) = prepared(paper, reference, keys, values, &known)?;
            total += all;
            finished += if outcome.is_some() { all } else { 0 };
            lock(&point.progress).outcome = outcome;
            work.push(point);
        }
        self.progress.begin(total, finished);
        let next = Mutex::new(NextRun { point: 0, run: 0, closed: false });
        let failed = Mutex::new(None);
        let take = || -> Option<(usize, usize)> {
            let mut next = lock(&next);
            loop {
                let point = work.get(next.point)?;
                let is_known = next.run == 0 && lock(&point.progress).outcome.is_some();
                if is_known || next.run >= point.plan.len() {
                    (next.point, next.run) = (next.point + 1, 0);
                    continue;
                }
                next.closed |= next.run == 0 && enough();
                if next.closed || (self.stop)() {
                    return None;
                }
                next.run += 1;
                return Some((next.point, next.run - 1));
            }
        };
        let worker = || {
            while let Some((number, run)) = take() {
                let done = work.get(number).map(|point| self.one_run(point, run));
                let values = points.get(number);
                if let (Some(Ok(Some(outcome))), Some(values)) = (done, values) {
                    let run = CaseRun { case: identity(keys, values), number: 0 };
                    if let Err(error) = kept.add(&run, &outcome) {
                        lock(&failed).get_or_insert(error);
                        lock(&next).closed = true;
                    }
                }
            }
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.map_or(0, usize::from)).build();
        let pool = pool.map_err(|error| MeasureError::Invalid(format!("no threads: {error}")))?;
        pool.broadcast(|_| worker());
        self.progress.end();
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let outcomes = work.into_iter().map(|point| lock(&point.progress).outcome.take());
        // What is behind a point that was not finished was not finished for the same reason.
        let tried = points.iter().zip(outcomes).filter_map(|(values, outcome)| {
            outcome.map(|outcome| TriedPoint { values: values.clone(), outcome })
        });
        Ok(tried.collect())
    }

    /// Makes a run of a point; if it was the last one, gives the outcome of the point.
    fn one_run<P: Paper>(
        &self,
        point: &PointInWork<P>,
        number: usize,
    ) -> Result<Option<Result<Reproduction, String>>, MeasureError> {
        let Some(run) = point.plan.get(number) else { return Ok(None) };
        let name = format!("{}, {} {}", run.case, P::NUMBER, run.number);
        self.progress.started(&name);
        let measured = point.paper.check(&run.case).and_then(|()| point.paper.measure(run, self.stop));
        self.progress.finished();
        let mut progress = lock(&point.progress);
        match measured {
            Ok(measurement) => progress.measured.push((run.clone(), measurement)),
            Err(MeasureError::Interrupted) => return Err(MeasureError::Interrupted),
            Err(error) => {
                progress.failed.insert(number, format!("{name}: {error}"));
            }
        }
        progress.left -= 1;
        if progress.left > 0 {
            return Ok(None);
        }
        let all = std::mem::take(&mut progress.measured);
        let outcome = match progress.failed.first_key_value() {
            Some((_, reason)) => Err(reason.clone()),
            None => Ok(stable::<P>(paper::reproduction(&Measured::new(&point.paper, all)))),
        };
        progress.outcome = Some(outcome.clone());
        Ok(Some(outcome))
    }
}

type PreparedPoint<P> = (PointInWork<P>, usize, Option<Result<Reproduction, String>>);

/// A point, how many runs it needs, and its outcome if it is known.
fn prepared<P: Paper>(
    paper: &P,
    reference: &ReferenceRuns<P>,
    keys: &[SearchedKey],
    values: &[KeyValue],
    known: &KeptRuns,
) -> Result<PreparedPoint<P>, MeasureError> {
    let paper = at_point(paper, keys, values)?;
    let is_same = |run: &CaseRun<P::Case>| {
        let same = |(of, _): &&(CaseRun<P::Case>, P::Measurement)| of == run;
        if P::depends_on_world(&run.case) { None } else { reference.measured.iter().find(same).cloned() }
    };
    let (mut measured, mut plan) = (Vec::new(), Vec::new());
    for run in paper.plan() {
        match is_same(&run) {
            Some(same) => measured.push(same),
            None => plan.push(run),
        }
    }
    let mut outcome = known.get(&CaseRun { case: identity(keys, values), number: 0 });
    let left = plan.len();
    if left == 0 && outcome.is_none() {
        let all = std::mem::take(&mut measured);
        outcome = Some(Ok(stable::<P>(paper::reproduction(&Measured::new(&paper, all)))));
    }
    let progress = Mutex::new(PointProgress { measured, failed: BTreeMap::new(), left, outcome: None });
    Ok((PointInWork { paper, plan, progress }, left, outcome))
}

/// What identifies a point.
fn identity(keys: &[SearchedKey], values: &[KeyValue]) -> String {
    let pairs = keys.iter().zip(values).map(|(key, value)| format!("{}={}", key.name(), value.text));
    pairs.collect::<Vec<_>>().join(" ")
}

/// The paper at a point, without what no claim and no printed number needs.
fn at_point<P: Paper>(paper: &P, keys: &[SearchedKey], values: &[KeyValue]) -> Result<P, MeasureError> {
    let setting = |(key, value): (&SearchedKey, &KeyValue)| PointSetting {
        part: key.part.clone(),
        key: key.key.clone(),
        value: value.text.clone(),
    };
    let point: Vec<PointSetting> = keys.iter().zip(values).map(setting).collect();
    paper.assuming(paper.assumed().at(&point), true)
}

/// With ids that do not contain the value of a choice, so that those of all points are the same: `window` for
/// `window-1554`. If several rows or claims have an id then, the last one stays.
fn stable<P: Paper>(mut of: Reproduction) -> Reproduction {
    for row in &mut of.rows {
        row.id = stable_id(P::ABOUT, &row.id);
    }
    for claim in &mut of.claims {
        claim.id = stable_id(P::ABOUT, &claim.id);
    }
    let rows = std::mem::take(&mut of.rows);
    of.rows = last_of_each(rows, |row| &row.id);
    let claims = std::mem::take(&mut of.claims);
    of.claims = last_of_each(claims, |claim| &claim.id);
    of
}

/// An id without the values of the paper's choices.
pub(crate) fn stable_id(about: &PaperInfo, id: &str) -> String {
    let choices = about.plausible.iter().filter(|key| key.part == CHOICE).map(|key| key.key);
    let part = |part: &str| {
        let is_value_of = |key: &&str| {
            let value = part.strip_prefix(*key).and_then(|rest| rest.strip_prefix('-'));
            value.is_some_and(|value| !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()))
        };
        choices.clone().find(is_value_of).unwrap_or(part).to_owned()
    };
    id.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn last_of_each<T>(all: Vec<T>, id: impl Fn(&T) -> &String) -> Vec<T> {
    let last: BTreeMap<String, usize> =
        all.iter().enumerate().map(|(n, item)| (id(item).clone(), n)).collect();
    all.into_iter()
        .enumerate()
        .filter(|(n, item)| last.get(id(item)) == Some(n))
        .map(|(_, item)| item)
        .collect()
}
