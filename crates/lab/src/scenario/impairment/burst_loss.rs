//! `burst_loss`: loss in bursts, after the model of Gilbert and Elliott.

use super::super::check::Checker;
use super::super::document::{DocumentStep, below};
use super::super::number::percent;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{BurstLossConfig, BurstLossDirection, Element};
use farpace_units::ByteCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo =
    ImpairmentInfo { description: "Loss in bursts (Gilbert-Elliott).", element: "burst-loss" };

/// Loss in bursts (Gilbert-Elliott): the link is in a good or in a bad state, and may change it with each
/// packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstLossSpec {
    /// Probability that the good state becomes bad: bursts begin every 1/`begin` packets.
    #[schemars(range(min = 0, max = 1))]
    pub begin: f64,
    /// Probability that the bad state becomes good: the mean length of a burst is 1/`end` packets.
    #[schemars(range(min = 0, max = 1))]
    pub end: f64,
    /// Probability that a packet is lost in the good state; 0 if omitted.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub good: f64,
    /// Probability that a packet is lost in the bad state; 1 if omitted.
    #[serde(default = "certain")]
    #[schemars(range(min = 0, max = 1))]
    pub bad: f64,
}

fn certain() -> f64 {
    1.0
}

impl BurstLossSpec {
    /// The loss in the long run, 0 to 1.
    pub fn mean(&self) -> f64 {
        let changes = self.begin + self.end;
        if changes > 0.0 { (self.end * self.good + self.begin * self.bad) / changes } else { self.good }
    }
}

impl Impairment for BurstLossSpec {
    fn is_active(&self) -> bool {
        true
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        let BurstLossSpec { begin, end, good, bad } = *self;
        for (key, p) in [("begin", begin), ("end", end), ("good", good), ("bad", bad)] {
            checker.probability(below(at, &[key]), p);
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        ImpairmentText::Clause(format!(
            "{} of packets lost in bursts with a mean length of {:.1}",
            percent(self.mean()),
            1.0 / self.end.max(f64::MIN_POSITIVE)
        ))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        let BurstLossSpec { begin, end, good, bad } = *self;
        let config = BurstLossConfig { begin, end, good, bad };
        Ok(in_direction(BurstLossDirection::new(config), direction))
    }
    fn loss_probability(&self, _: ByteCount) -> f64 {
        self.mean()
    }
}
