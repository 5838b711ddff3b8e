//! `clock_jumps`: jumps of the TCP timestamp clocks of the senders.

use super::super::check::Checker;
use super::super::document::DocumentStep;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText};
use farpace_path::{ClockJump, Element, Jump};
use farpace_units::{Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "Jumps of the TCP timestamp clocks of all hosts that send in this direction. The timestamps \
                  that come back to them are corrected.",
    element: "clock",
};

/// The jumps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ClockJumpsSpec(pub Vec<ClockJumpSpec>);

/// A jump of the timestamp clocks of all hosts that send in a direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockJumpSpec {
    /// When.
    pub at: Span,
    /// By how many ticks of the TCP timestamp clock; below 0: backward.
    pub ticks: i32,
}

impl Impairment for ClockJumpsSpec {
    fn is_active(&self) -> bool {
        !self.0.is_empty()
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        if checker.is_too_long(at, self.0.len(), "clock jumps") {
            return;
        }
        for (n, jump) in self.0.iter().enumerate() {
            if jump.ticks == 0 {
                let path = [at, &[n.into(), "ticks".into()]].concat();
                checker.value(path, "a jump by 0 ticks is none");
            }
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        ImpairmentText::Clause(format!("{} jumps of the sender's timestamp clock", self.0.len()))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        let jump = |ClockJumpSpec { at, ticks }: &ClockJumpSpec| Jump {
            at: Instant::ZERO + *at,
            ticks: ticks.cast_unsigned(),
        };
        let jumps = self.0.iter().map(jump).collect();
        Ok(Box::new(match direction {
            Direction::Forward => ClockJump::of_port_0(jumps),
            Direction::Backward => ClockJump::of_port_1(jumps),
        }))
    }
}
