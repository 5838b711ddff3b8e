//! The figures: functions from data to a [`Drawing`](crate::Drawing).

mod bandwidth;
mod cloud;
mod comparison;
mod curves;
mod drops;
mod heat_map;
mod histogram;
mod lines;
mod scatter;
mod time_sequence;
mod variables;
mod window;

pub use bandwidth::{BandwidthSeries, RateLimit, bandwidth};
pub use cloud::{Cloud, clouds};
pub use comparison::{ComparedEstimate, ComparisonRow, Sides, comparison, comparison_of};
pub use curves::{Curve, MAX_CURVES, curves};
pub use drops::{DropSeries, drops};
pub use heat_map::{HeatRow, MAX_FIELDS, heat_map};
pub use histogram::{Bar, histogram};
pub use lines::{Level, LinePanel, StyledLine, TimeLine, line_panels, lines};
pub use scatter::{Dot, scatter};
pub use time_sequence::{
    RecordedDrops, SequenceDrops, SequencePiece, TimeSequence, sequence, time_sequence,
    time_sequence_with_drops,
};
pub use variables::variables;
pub use window::window;

use crate::chart::{Chart, LegendEntry, Panel};
use crate::palette::Thing;
use crate::scale::Scale;
use crate::svg::{Colour, Px};
use crate::{BinInterval, EventKind, ExploreEvent, ExploreSeries, StateBand};
use farpace_events::{Cause, Record, RecoveryState};

/// Colour and opacity of a state in the background.
fn state_colour(state: RecoveryState) -> Option<(Colour, f64)> {
    match state {
        RecoveryState::Recovery => Some((Thing::Recovery.colour(), 0.28)),
        RecoveryState::Loss => Some((Thing::Loss.colour(), 0.38)),
        RecoveryState::Open | RecoveryState::Disorder | RecoveryState::Cwr => None,
    }
}

/// Legend entries of the states in `bands`.
fn state_keys(bands: &[StateBand]) -> Vec<(LegendEntry, String)> {
    let shown = |s: &RecoveryState| bands.iter().any(|b| b.state == *s);
    let states = [RecoveryState::Recovery, RecoveryState::Loss].into_iter().filter(shown);
    states
        .filter_map(|s| {
            state_colour(s).map(|(c, o)| (LegendEntry::Area(c, o), format!("{} state", capital(s.name()))))
        })
        .collect()
}

/// The states in `bands`, to explore.
fn explore_states(bands: &[StateBand]) -> Vec<ExploreSeries> {
    let states = [(RecoveryState::Recovery, Thing::Recovery), (RecoveryState::Loss, Thing::Loss)];
    let of = |(state, thing): (RecoveryState, Thing)| {
        let within = bands.iter().filter(move |b| b.state == state);
        let intervals = within.map(|b| (b.interval.start.as_secs_f64(), b.interval.end.as_secs_f64()));
        ExploreSeries::shades(&format!("{} state", capital(state.name())), thing.style(), intervals)
    };
    states.into_iter().map(of).collect()
}

/// Timeouts as events.
fn timeout_events(timeouts: impl Iterator<Item = f64>) -> impl Iterator<Item = ExploreEvent> {
    timeouts.map(|at| ExploreEvent::new(EventKind::Timeout, at, at, "a retransmission timeout"))
}

/// Timeouts as marks across a panel with these ends.
fn explore_timeouts(timeouts: &[f64], (low, high): (f64, f64)) -> ExploreSeries {
    ExploreSeries::marks(
        "retransmission timeout",
        Thing::Timeout.style(),
        timeouts.iter().map(|at| (*at, low, high)),
    )
}

/// Draws states in the background: one area per state, at least half a pixel wide, so that thousands of short
/// recoveries yield a short path. Bands must be in order.
fn draw_states(chart: &mut Chart, panel: &Panel, bands: &[StateBand]) {
    for state in [RecoveryState::Recovery, RecoveryState::Loss] {
        let Some((colour, opacity)) = state_colour(state) else { continue };
        let mut path = String::new();
        let mut drawn_to = f64::NEG_INFINITY;
        for band in bands.iter().filter(|b| b.state == state) {
            let from = panel.px(band.interval.start.as_secs_f64()).max(drawn_to);
            let to = panel.px(band.interval.end.as_secs_f64()).max(from + 0.5).min(panel.right());
            if to - drawn_to < 0.5 {
                continue;
            }
            let (top, bottom) = (Px(panel.top), Px(panel.bottom()));
            path.push_str(&format!("M{} {top}V{bottom}H{}V{top}Z", Px(from), Px(to)));
            drawn_to = to;
        }
        chart.area(&path, colour, opacity);
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The time axis of `interval`, in seconds.
fn time_axis(interval: Option<BinInterval>) -> Scale {
    interval.map_or(Scale::linear(0.0, 1.0), |i| Scale::linear(i.start.as_secs_f64(), i.end.as_secs_f64()))
}

/// The interval from the first row to the last.
fn covered(records: &[Record]) -> Option<BinInterval> {
    let start = records.iter().map(|r| r.time).min()?;
    let end = records.iter().map(|r| r.time).max()?;
    Some(BinInterval::new(start, end))
}

/// When the retransmission timer fired in `interval`, in seconds.
fn timeouts_within(records: &[Record], interval: Option<BinInterval>) -> Vec<f64> {
    let within = |r: &&Record| interval.is_some_and(|i| i.start <= r.time && r.time <= i.end);
    let fired = records.iter().filter(|r| r.cause == Some(Cause::TimerRto)).filter(within);
    fired.map(|r| r.time.as_secs_f64()).collect()
}

/// Draws a dashed vertical line in each panel for each of `timeouts`, at most one per pixel.
fn timeout_lines(chart: &mut Chart, timeouts: &[f64]) {
    let mut path = String::new();
    for panel in &chart.panels {
        let mut last = f64::NEG_INFINITY;
        for x in timeouts.iter().map(|t| panel.px(*t).round()) {
            if x > last {
                path.push_str(&format!("M{} {}V{}", Px(x), Px(panel.top), Px(panel.bottom())));
                last = x;
            }
        }
    }
    chart.line(&path, Thing::Timeout.colour(), 1.8, Thing::Timeout.dash());
}

/// The legend entry for [`timeout_lines`], if there are any.
fn timeout_key(timeouts: &[f64]) -> Option<(LegendEntry, String)> {
    let line = LegendEntry::Line(Thing::Timeout.colour(), Thing::Timeout.dash());
    let key = (line, "retransmission timeout".to_owned());
    (!timeouts.is_empty()).then_some(key)
}
