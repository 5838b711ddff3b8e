//! Periods of time: when links are down, and when hosts stand still.

use super::check::Checker;
use super::document::DocumentStep;
use farpace_path::{PeriodError, Periods};
use farpace_units::{Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A period of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeriodSpec {
    /// When it begins.
    pub at: Span,
    /// How long it lasts.
    pub lasts: Span,
}

/// As elements are made from them.
///
/// # Errors
/// Periods that are empty, overlap, or are out of order.
pub(crate) fn periods(of: &[PeriodSpec]) -> Result<Periods, PeriodError> {
    let range = |period: &PeriodSpec| {
        let begin = Instant::ZERO + period.at;
        begin..begin + period.lasts
    };
    Periods::new(of.iter().map(range).collect())
}

/// The rules of a list of periods, each of them `a_period` in words, as in "an outage". `plural` are several.
pub(super) fn check(
    of: &[PeriodSpec],
    at: &[DocumentStep],
    [a_period, plural]: [&str; 2],
    checker: &mut Checker<'_>,
) {
    if checker.is_too_long(at, of.len(), plural) {
        return;
    }
    let duration = checker.scenario().duration;
    let this = a_period.split_once(' ').map_or(a_period, |(_, word)| word);
    let mut end = Span::ZERO;
    for (n, period) in of.iter().enumerate() {
        let path = [at, &[n.into()]].concat();
        let below = |key: &str| [&path[..], &[key.into()]].concat();
        if period.lasts.is_zero() {
            checker.value(below("lasts"), format!("{a_period} that lasts 0 s is none"));
        }
        if period.at >= duration {
            checker.value(below("at"), format!("the run ends at {duration}, before this {this} begins"));
        }
        if n > 0 && period.at < end {
            let text = format!("this {this} begins at {}, before the last one ends at {end}", period.at);
            checker.value(path, text).hint(format!("write {plural} in order of time, without overlap"));
        }
        end = period.at + period.lasts;
    }
}
