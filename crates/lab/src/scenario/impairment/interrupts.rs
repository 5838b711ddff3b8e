//! `interrupts`: how the NIC at the far end hands frames to its host.

use super::super::check::{Checker, MAX_HOST_TIME};
use super::super::document::{DocumentStep, below};
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, InterruptsConfig, InterruptsDirection};
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "Receive interrupts of the NIC at the end of this direction.",
    element: "interrupts",
};

/// Receive interrupts at the far end of a direction: frames wait in the NIC until it interrupts its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptsSpec {
    /// From the first frame that waits to the interrupt.
    #[serde(default)]
    pub delay: Span,
    /// An interrupt comes earlier if so many frames wait; omitted: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub frames: Option<u32>,
    /// From an interrupt until the host takes the frames: random, up to this.
    #[serde(default)]
    pub jitter: Span,
    /// Segments of a connection that the host takes together and that follow each other are one packet for
    /// it, which it acknowledges as one arrival (GRO).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gro: bool,
}

impl Impairment for InterruptsSpec {
    fn is_active(&self) -> bool {
        true
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        let InterruptsSpec { delay, frames, jitter, gro: _ } = *self;
        for (key, time) in [("delay", delay), ("jitter", jitter)] {
            if time > MAX_HOST_TIME {
                checker
                    .value(below(at, &[key]), format!("no interrupt takes {time}"))
                    .hint(format!("it must be at most {MAX_HOST_TIME}"));
            }
        }
        if frames == Some(0) {
            checker
                .value(below(at, &["frames"]), "an interrupt is for at least one frame")
                .hint("leave `frames` out, and only time counts");
        }
    }
    fn explain(&self, direction: &ResolvedDirection<'_>) -> ImpairmentText {
        let InterruptsSpec { delay, frames, jitter, gro } = self;
        let or = frames.map_or(String::new(), |n| format!(" or when {n} frames wait"));
        let late = if jitter.is_zero() { String::new() } else { format!(", and up to {jitter} later") };
        let joined = if *gro { "; the host takes segments that follow each other as one" } else { "" };
        ImpairmentText::Sentence(format!(
            "At {} the NIC interrupts {delay} after the first frame that waits{or}{late}{joined}.",
            direction.to
        ))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        let InterruptsSpec { delay, frames, jitter, gro } = *self;
        let config = InterruptsConfig { delay, frames: frames.unwrap_or(0), jitter, gro };
        Ok(in_direction(InterruptsDirection::new(config), direction))
    }
    fn min_delay(&self) -> Span {
        if self.frames == Some(1) { Span::ZERO } else { self.delay }
    }
}
