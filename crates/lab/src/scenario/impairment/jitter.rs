//! `jitter`: a random delay that keeps the order.

use super::super::check::Checker;
use super::super::document::DocumentStep;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{DelayDirection, Element, Jitter};
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "Each packet is delayed by a random time up to this; the order is kept.",
    element: "jitter",
};

/// The longest random delay of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct JitterSpec(pub Span);

impl Impairment for JitterSpec {
    fn is_active(&self) -> bool {
        !self.0.is_zero()
    }
    fn check(&self, _: &[DocumentStep], _: &mut Checker<'_>) {
        // Every time is possible.
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        ImpairmentText::Clause(format!("up to {} of random delay", self.0))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        let jitter = Jitter { max: self.0, reorders: false };
        Ok(in_direction(DelayDirection::new(Span::ZERO, Some(jitter)), direction))
    }
}
