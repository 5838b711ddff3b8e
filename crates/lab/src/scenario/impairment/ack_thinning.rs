//! `ack_thinning`: of several pure ACKs only the newest goes on.

use super::super::check::Checker;
use super::super::document::{DocumentStep, below};
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{AckThinningDirection, Element};
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "At the entrance, of several pure ACKs only the newest goes on.",
    element: "ack-thinning",
};

/// Thinning of acknowledgments: of several pure ACKs of a connection only the newest goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckThinningSpec {
    /// One of so many goes on, from 2.
    #[schemars(range(min = 2))]
    pub every: u32,
    /// The longest time for which an ACK waits for others; 5 ms if omitted.
    #[serde(default = "default_hold")]
    pub hold: Span,
}

fn default_hold() -> Span {
    Span::from_millis(5)
}

impl Impairment for AckThinningSpec {
    fn is_active(&self) -> bool {
        true
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        let AckThinningSpec { every, hold } = *self;
        if every < 2 {
            checker
                .value(below(at, &["every"]), format!("one of {every} ACKs thins nothing"))
                .hint("it must be at least 2; leave `ack_thinning` out for none");
        }
        if hold.is_zero() {
            checker
                .value(below(at, &["hold"]), "an ACK that waits for 0 s never meets another")
                .hint("5 ms is the default");
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        let AckThinningSpec { every, hold } = self;
        ImpairmentText::Sentence(format!(
            "ACKs are thinned at the entrance: of {every} pure ACKs of a connection that come within \
             {hold} the newest goes on. A round trip whose ACK travels in this direction takes up to \
             {hold} longer, and windows open in larger steps."
        ))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        Ok(in_direction(AckThinningDirection::new(self.every, self.hold), direction))
    }
}
