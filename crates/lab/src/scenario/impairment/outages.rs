//! `outages`: times when a direction drops everything.

use super::super::check::Checker;
use super::super::document::DocumentStep;
use super::super::number::time;
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, OutageDirection};
use farpace_units::{Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo = ImpairmentInfo {
    description: "Times when the link is down and drops everything, in order.",
    element: "outage",
};

/// The outages, in order of time and without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct OutagesSpec(pub Vec<OutageSpec>);

/// A time when a link is down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// When it begins.
    pub at: Span,
    /// How long it lasts.
    pub lasts: Span,
}

impl Impairment for OutagesSpec {
    fn is_active(&self) -> bool {
        !self.0.is_empty()
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        if checker.is_too_long(at, self.0.len(), "outages") {
            return;
        }
        let duration = checker.scenario().duration;
        let mut end = Span::ZERO;
        for (n, outage) in self.0.iter().enumerate() {
            let path = [at, &[n.into()]].concat();
            let below = |key: &str| [&path[..], &[key.into()]].concat();
            if outage.lasts.is_zero() {
                checker.value(below("lasts"), "an outage that lasts 0 s is none");
            }
            if outage.at >= duration {
                checker.value(below("at"), format!("the run ends at {duration}, before this outage begins"));
            }
            if n > 0 && outage.at < end {
                checker
                    .value(
                        path,
                        format!("this outage begins at {}, before the last one ends at {end}", outage.at),
                    )
                    .hint("write outages in order of time, without overlap");
            }
            end = outage.at + outage.lasts;
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        let down: Span = self.0.iter().fold(Span::ZERO, |t, outage| t + outage.lasts);
        ImpairmentText::Clause(match self.0.len() {
            1 => format!("1 outage of {}", time(down)),
            n => format!("{n} outages with a total of {}", time(down)),
        })
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        let down = self.0.iter().map(|outage| {
            let begin = Instant::ZERO + outage.at;
            begin..begin + outage.lasts
        });
        Ok(in_direction(OutageDirection::new(down.collect())?, direction))
    }
}
