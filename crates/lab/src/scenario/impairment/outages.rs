//! `outages`: times when a direction drops everything.

use super::super::check::Checker;
use super::super::document::DocumentStep;
use super::super::number::time;
use super::super::periods::{PeriodSpec, check, periods};
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, OutageDirection};
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "Times when the link is down and drops everything, in order.",
    element: "outage",
};

/// The outages, in order of time and without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct OutagesSpec(pub Vec<PeriodSpec>);

impl Impairment for OutagesSpec {
    fn is_active(&self) -> bool {
        !self.0.is_empty()
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        check(&self.0, at, ["an outage", "outages"], checker);
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        let down: Span = self.0.iter().fold(Span::ZERO, |t, outage| t + outage.lasts);
        ImpairmentText::Clause(match self.0.len() {
            1 => format!("1 outage of {}", time(down)),
            n => format!("{n} outages with a total of {}", time(down)),
        })
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(OutageDirection::new(periods(&self.0)?), direction))
    }
}
