//! What all runs gave, and numbers over several.

use super::case::{Case, Measured};
use super::plan::{Plan, at_90};
use std::collections::BTreeMap;

/// All runs.
pub struct Results {
    /// Which were made.
    pub plan: Plan,
    cases: BTreeMap<Case, Measured>,
}

impl Results {
    /// `measured` in the order of the plan's cases.
    pub fn new(plan: Plan, measured: Vec<Measured>) -> Results {
        let cases = plan.cases.iter().cloned().zip(measured).collect();
        Results { plan, cases }
    }
    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.cases.len()
    }
    /// A run; none if it was not made.
    pub fn case(&self, case: &Case) -> Option<&Measured> {
        self.cases.get(case)
    }
    /// A number of a run; NaN if it was not made.
    pub fn of(&self, case: &Case, of: impl Fn(&Measured) -> f64) -> f64 {
        self.case(case).map_or(f64::NAN, of)
    }
    /// Goodput of all flows of a run, Mbit/s; NaN if it was not made.
    pub fn goodput(&self, case: &Case) -> f64 {
        self.of(case, Measured::total)
    }
    /// The skip number with the best goodput, with it.
    pub fn best(&self, of: impl Fn(u16) -> Case) -> (u16, f64) {
        let all = self.plan.skips.iter().map(|skip| (*skip, self.goodput(&of(*skip))));
        all.fold((0, f64::MIN), |best, one| if one.1 > best.1 { one } else { best })
    }
    /// How many times as fast the best skip number at 90/10 is as none.
    pub fn gain(&self) -> f64 {
        self.best(at_90).1 / self.goodput(&at_90(0))
    }
}
