//! `reorder`: some packets are delayed, so that later ones overtake them.

use super::super::check::Checker;
use super::super::document::{DocumentStep, below};
use super::super::number::percent;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, ReorderDirection};
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "Some packets are delayed, so that later ones overtake them.",
    element: "reorder",
};

/// Reordering: some packets are delayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// Probability that a packet is delayed.
    #[schemars(range(min = 0, max = 1))]
    pub chance: f64,
    /// By how much.
    pub extra: Span,
}

impl Impairment for ReorderSpec {
    fn is_active(&self) -> bool {
        true
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        let ReorderSpec { chance, extra } = *self;
        checker.probability(below(at, &["chance"]), chance);
        if extra.is_zero() {
            checker.value(below(at, &["extra"]), "without an extra delay no packet is overtaken");
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        ImpairmentText::Clause(format!("{} of packets delayed by {}", percent(self.chance), self.extra))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(ReorderDirection::new(self.chance, self.extra), direction))
    }
}
