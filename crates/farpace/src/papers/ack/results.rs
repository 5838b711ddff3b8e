//! What all runs gave, by case.

use super::cases::{Case, Policy, Route};
use super::measure::Measurement;
use super::plan::Plan;
use super::sensitivity;
use farpace_report::ComparedEstimate;
use std::collections::BTreeMap;

/// Over the phases of one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Range {
    /// Of all that is finite; NaN if nothing is.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Range {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (least, most) =
            values.iter().fold((f64::NAN, f64::NAN), |(low, high), v| (v.min(low), v.max(high)));
        Range { mean, least, most }
    }

    /// `581 (579-584)`, or the mean alone if all runs agree.
    pub fn text(&self) -> String {
        match () {
            () if !self.mean.is_finite() => "–".to_owned(),
            () if self.most - self.least < 0.5 => format!("{:.0}", self.mean),
            () => format!("{:.0} ({:.0}-{:.0})", self.mean, self.least, self.most),
        }
    }

    /// For figures.
    pub fn estimate(&self) -> ComparedEstimate {
        ComparedEstimate { mean: self.mean, range: Some((self.least, self.most)) }
    }
}

/// All runs.
pub struct Results {
    /// Runs of each case.
    pub phases: u64,
    cases: BTreeMap<Case, Vec<Measurement>>,
    runs: usize,
}

impl Results {
    /// `measured` in the order of the plan's jobs.
    pub fn new(plan: &Plan, measured: Vec<Measurement>) -> Results {
        let runs = measured.len();
        let mut cases: BTreeMap<Case, Vec<Measurement>> = BTreeMap::new();
        for (job, measurement) in plan.jobs.iter().zip(measured) {
            cases.entry(job.case.clone()).or_default().push(measurement);
        }
        Results { phases: plan.phases, cases, runs }
    }
    /// The runs of a case by phase; none if the plan had none.
    pub fn case(&self, case: &Case) -> &[Measurement] {
        self.cases.get(case).map_or(&[], Vec::as_slice)
    }
    /// A number over the phases of a case.
    pub fn over(&self, case: &Case, of: impl Fn(&Measurement) -> f64) -> Range {
        Range::of(self.case(case).iter().map(of))
    }
    /// A number over the phases of a row of the thesis' tables.
    pub fn row(
        &self,
        route: Route,
        policy: Policy,
        timestamps: bool,
        of: impl Fn(&Measurement) -> f64,
    ) -> Range {
        self.over(&Case::new(route, policy, timestamps), of)
    }
    /// Payload that reached the program, without timestamps, in kB.
    pub fn delivered(&self, route: Route, policy: Policy) -> Range {
        self.row(route, policy, false, |m| m.delivered)
    }
    /// How much more than without CDL a policy delivers, in kB.
    pub fn gain(&self, route: Route, policy: Policy) -> f64 {
        self.delivered(route, policy).mean - self.delivered(route, Policy::None).mean
    }
    /// The same with four segments in flight.
    pub fn gain_of_four(&self, route: Route, policy: Policy) -> f64 {
        let mean = |policy| self.over(&sensitivity::four(route, policy, false), |m| m.delivered).mean;
        mean(policy) - mean(Policy::None)
    }
    /// How many more ACKs it takes, in percent.
    pub fn more_acks(&self, route: Route, policy: Policy) -> f64 {
        let acks = |policy| self.row(route, policy, false, |m| m.acks).mean;
        (acks(policy) / acks(Policy::None) - 1.0) * 100.0
    }
    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: means and ranges in all tables.
    #[test]
    fn ranges_are_those_of_what_was_measured() {
        let range = Range::of([3.0, f64::NAN, 1.0, 2.0]);
        assert_eq!((range.mean, range.least, range.most), (2.0, 1.0, 3.0));
        assert_eq!((range.text().as_str(), Range::of([2.0, 2.0]).text().as_str()), ("2 (1-3)", "2"));
        assert_eq!(Range::of([]).text(), "–");
    }
}
