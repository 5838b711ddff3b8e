//! Congestion window, slow-start threshold, timeouts and states over a whole run (Fig. 4 of the paper on
//! communication stops).

use super::{draw_states, explore_states, explore_timeouts, state_keys, timeout_events};
use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, Panel, PanelSpec, Size};
use crate::palette::Thing;
use crate::paths::StepLine;
use crate::scale::Scale;
use crate::svg::Px;
use crate::{Exploration, ExplorePanel, ExploreSeries, Reduced, WindowHistory};
use farpace_units::Instant;

/// The window of a run in packets, on a logarithmic axis, which shows both thousands of packets and the drop
/// to one.
pub fn window(title: &str, history: &WindowHistory) -> Drawing {
    Drawing::of(|size| draw(size, title, history)).explored(explore(title, history))
}

/// The largest value of the vertical axis.
fn top(history: &WindowHistory) -> f64 {
    let peaks = [history.cwnd(), history.ssthresh()].into_iter().filter_map(|s| s.range().map(|r| r.1));
    peaks.fold(10.0, f64::max) * 1.3
}

fn explore(title: &str, history: &WindowHistory) -> Exploration {
    let end = history.end();
    let steps = |name, thing: Thing, series: &Reduced| {
        ExploreSeries::steps(name, thing.style(), series.steps(end)).held_until(end.as_secs_f64())
    };
    let timeouts: Vec<f64> = history.timeouts().iter().map(|t| t.as_secs_f64()).collect();
    let range = (0.8, top(history));
    let mut series = explore_states(history.bands());
    series.push(explore_timeouts(&timeouts, range));
    series.push(steps("slow-start threshold (ssthresh)", Thing::Ssthresh, history.ssthresh()));
    series.push(steps("congestion window (cwnd)", Thing::Cwnd, history.cwnd()));
    let mut exploration = Exploration::over_time(title, 0.0, end.as_secs_f64());
    exploration.events = timeout_events(timeouts.iter().copied()).collect();
    exploration.panels.push(ExplorePanel {
        heading: String::new(),
        y_label: "packets, logarithmic".to_owned(),
        y: range,
        log: true,
        fit: false,
        series,
    });
    exploration
}

fn draw(size: Size, title: &str, history: &WindowHistory) -> String {
    let mut legend = vec![
        (LegendEntry::Line(Thing::Cwnd.colour(), ""), "congestion window (cwnd)".to_owned()),
        (
            LegendEntry::Line(Thing::Ssthresh.colour(), Thing::Ssthresh.dash()),
            "slow-start threshold (ssthresh)".to_owned(),
        ),
    ];
    let count = history.timeout_count();
    let plural = if count == 1 { "" } else { "s" };
    if count > 0 {
        legend.push((
            LegendEntry::Mark(Thing::TimeoutMark.colour()),
            format!("retransmission timeout ({count} time{plural})"),
        ));
    }
    legend.extend(state_keys(history.bands()));
    let x = Scale::linear(0.0, history.end().as_secs_f64());
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend,
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: "packets, logarithmic".to_owned(),
            height: size.pick(240.0, 230.0),
            y: Some(Scale::log(0.8, top(history))),
        }],
        x_label: "time since start (s)",
        x,
        left: 48.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if history.cwnd().is_empty() {
        chart.nothing("no data");
        return chart.finish();
    }
    draw_states(&mut chart, &panel, history.bands());
    let ssthresh = steps(&panel, history.ssthresh(), history.end());
    chart.line(&ssthresh, Thing::Ssthresh.colour(), 1.3, Thing::Ssthresh.dash());
    let cwnd = steps(&panel, history.cwnd(), history.end());
    chart.line(&cwnd, Thing::Cwnd.colour(), 1.3, "");
    let mut ticks = String::new();
    for at in history.timeouts() {
        // Triangles at the upper edge.
        let x = panel.px(at.as_secs_f64());
        ticks.push_str(&format!("M{} {}l4 8l4 -8Z", Px(x - 4.0), Px(panel.top - 4.0)));
    }
    chart.area(&ticks, Thing::TimeoutMark.colour(), 1.0);
    chart.finish()
}

/// The series as a step line. The minimum and maximum of a bucket are drawn at its beginning.
fn steps(panel: &Panel, series: &Reduced, end: Instant) -> String {
    let mut line = StepLine::new();
    for (start, b) in series.iter() {
        let (from, to) = (start.as_secs_f64(), (start + series.width()).min(end).as_secs_f64());
        for (t, value) in [(from, b.first), (from, b.min), (from, b.max), (to, b.last)] {
            line.point(panel.px(t), panel.py(value));
        }
    }
    line.finish(panel.px(end.as_secs_f64()))
}
