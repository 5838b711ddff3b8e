//! `loss`: random loss.

use super::super::check::Checker;
use super::super::document::DocumentStep;
use super::super::number::percent;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, LossDirection};
use farpace_units::ByteCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo =
    ImpairmentInfo { description: "Probability that a packet is lost.", element: "loss" };

/// Probability that a packet is lost, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct LossSpec(#[schemars(range(min = 0, max = 1))] pub f64);

impl Impairment for LossSpec {
    fn is_active(&self) -> bool {
        self.0 > 0.0
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        checker.probability(at.to_vec(), self.0);
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        ImpairmentText::Clause(format!("{} of packets lost", percent(self.0)))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(LossDirection::new(self.0), direction))
    }
    fn loss_probability(&self, _: ByteCount) -> f64 {
        self.0
    }
}
