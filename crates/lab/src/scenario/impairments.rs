//! Troubles of a direction with parameters of their own: loss in bursts, clocks that jump.

use farpace_path as path;
use farpace_units::{Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Loss in bursts (Gilbert-Elliott): the line is good or bad, and may turn with each packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstLossSpec {
    /// Probability that a good line turns bad: bursts begin every 1/`begin` packets.
    #[schemars(range(min = 0, max = 1))]
    pub begin: f64,
    /// Probability that a bad line turns good: bursts are 1/`end` packets long in the mean.
    #[schemars(range(min = 0, max = 1))]
    pub end: f64,
    /// Probability that a packet is lost while the line is good; 0 if omitted.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub good: f64,
    /// Probability that a packet is lost while the line is bad; 1 if omitted.
    #[serde(default = "certain")]
    #[schemars(range(min = 0, max = 1))]
    pub bad: f64,
}

fn certain() -> f64 {
    1.0
}

impl BurstLossSpec {
    /// As an element is made from it.
    pub const fn config(&self) -> path::BurstLossConfig {
        let BurstLossSpec { begin, end, good, bad } = *self;
        path::BurstLossConfig { begin, end, good, bad }
    }
    /// The loss in the long run, 0 to 1.
    pub fn mean(&self) -> f64 {
        let turns = self.begin + self.end;
        if turns > 0.0 { (self.end * self.good + self.begin * self.bad) / turns } else { self.good }
    }
}

/// A jump of the timestamp clocks of whatever sends into a direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockJumpSpec {
    /// When.
    pub at: Span,
    /// By how many ticks of the TCP timestamp clock; below 0: backward.
    pub ticks: i32,
}

impl ClockJumpSpec {
    /// As an element is made from it.
    pub fn jump(&self) -> path::Jump {
        path::Jump { at: Instant::ZERO + self.at, ticks: self.ticks.cast_unsigned() }
    }
}
