//! `duplicate`: packets that arrive twice.

use super::super::check::Checker;
use super::super::document::DocumentStep;
use super::super::number::percent;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{DuplicateDirection, Element};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo =
    ImpairmentInfo { description: "Probability that a packet arrives twice.", element: "duplicate" };

/// Probability that a packet arrives twice, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct DuplicateSpec(#[schemars(range(min = 0, max = 1))] pub f64);

impl Impairment for DuplicateSpec {
    fn is_active(&self) -> bool {
        self.0 > 0.0
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        checker.probability(at.to_vec(), self.0);
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        ImpairmentText::Clause(format!("{} of packets duplicated", percent(self.0)))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(DuplicateDirection::new(self.0), direction))
    }
}
