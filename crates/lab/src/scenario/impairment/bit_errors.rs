//! `bit_errors`: a bit error rate.

use super::super::check::Checker;
use super::super::document::DocumentStep;
use super::super::number::percent;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{BitErrorsDirection, Element};
use farpace_units::ByteCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "Probability that a bit is wrong when it arrives: an IP packet of n bytes is lost with \
                  1 - (1 - this)^(8 n).",
    element: "bit-errors",
};

/// The IP packet whose loss is given as an example.
const EXAMPLE: ByteCount = ByteCount::new(1_500);

/// Probability that a bit is wrong when it arrives, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct BitErrorsSpec(#[schemars(range(min = 0, max = 1))] pub f64);

impl Impairment for BitErrorsSpec {
    fn is_active(&self) -> bool {
        self.0 > 0.0
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        checker.probability(at.to_vec(), self.0);
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        let lost = percent(self.loss_probability(EXAMPLE));
        ImpairmentText::Clause(format!(
            "a bit error rate of {:e} ({lost} of packets of {EXAMPLE} lost)",
            self.0
        ))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(BitErrorsDirection::new(self.0), direction))
    }
    fn loss_probability(&self, ip: ByteCount) -> f64 {
        BitErrorsDirection::new(self.0).loss_of(ip)
    }
}
