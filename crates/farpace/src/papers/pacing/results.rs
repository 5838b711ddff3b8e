//! What all runs gave.

use super::lines::{Case as Lines, Class};
use super::pace::Pace;
use super::plan::{Job, Measured, Plan};
use super::printed::Bandwidth;
use super::sets::Set;
use super::switching::Bins;
use super::transfers::{Case, Transfer};
use std::collections::BTreeMap;

/// All runs.
pub struct Results {
    /// Which were made.
    pub plan: Plan,
    /// The sets of the search.
    pub sets: Vec<Set>,
    lines: BTreeMap<Lines, Vec<Class>>,
    switching: BTreeMap<Pace, Bins>,
    transfers: BTreeMap<Case, Transfer>,
}

impl Results {
    /// `measured` in the order of the plan's jobs.
    pub fn new(plan: Plan, measured: Vec<Measured>) -> Results {
        let (mut lines, mut switching, mut transfers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut sets = Vec::new();
        for (job, measured) in plan.jobs.iter().zip(measured) {
            match (job, measured) {
                (Job::Lines(case), Measured::Lines(classes)) => drop(lines.insert(case.clone(), classes)),
                (Job::Switching(pace), Measured::Switching(bins)) => drop(switching.insert(*pace, bins)),
                (Job::Transfer(case, _), Measured::Transfer(t)) => drop(transfers.insert(case.clone(), t)),
                (_, Measured::Sets(found)) => sets = found,
                // A job gives what it is called for.
                _ => {}
            }
        }
        Results { plan, sets, lines, switching, transfers }
    }

    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.plan.jobs.len()
    }
    /// The classes of a case; none if it was not measured.
    pub fn lines(&self, case: &Lines) -> &[Class] {
        self.lines.get(case).map_or(&[], Vec::as_slice)
    }
    /// The class of a row of Table 2.
    pub fn single(&self, pace: Pace, rate: u64) -> Option<&Class> {
        self.lines(&self.plan.single(pace, rate)).first()
    }
    /// The class of a rate of Fig. 6.
    pub fn fig_6(&self, pace: Pace, rate: u64) -> Option<&Class> {
        self.lines(&self.plan.fig_6(pace, rate)).first()
    }
    /// All flows of Table 3 as one: the least, the greatest, the mean, the most bursty.
    pub fn many(&self, pace: Pace) -> Option<Class> {
        let mut all = self.lines(&self.plan.many(pace)).iter();
        let mut whole = all.next()?.clone();
        all.for_each(|class| whole.join(class));
        Some(whole)
    }
    /// The class of a row of Table 4.
    pub fn five(&self, pace: Pace, row: &Bandwidth) -> Option<&Class> {
        self.lines(&self.plan.five(pace)).iter().find(|class| class.rate == row.rate)
    }
    /// Fig. 7.
    pub fn switching(&self, pace: Pace) -> Option<&Bins> {
        self.switching.get(&pace)
    }
    /// A transfer; none if it was not made.
    pub fn transfer(&self, case: &Case) -> Option<&Transfer> {
        self.transfers.get(case)
    }
    /// Goodput of all flows of a transfer, Mbit/s; NaN if it was not made.
    pub fn goodput(&self, case: &Case) -> f64 {
        self.transfer(case).map_or(f64::NAN, |t| t.goodput.iter().sum())
    }
    /// Packets that the FIFO dropped in a transfer; NaN if it was not made.
    pub fn lost(&self, case: &Case) -> f64 {
        self.transfer(case).map_or(f64::NAN, |t| t.lost as f64)
    }
}
