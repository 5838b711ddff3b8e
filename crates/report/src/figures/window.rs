//! Congestion window, slow-start threshold, timeouts and states over a whole run (Fig. 4 of the paper on
//! communication stops).

use super::{draw_states, state_keys};
use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, Panel, PanelSpec, Size};
use crate::paths::StepLine;
use crate::scale::Scale;
use crate::svg::{Colour, Px};
use crate::{Reduced, WindowHistory};
use farpace_units::Instant;

/// The window of a run in packets, on a logarithmic axis, which shows both thousands of packets and the drop
/// to one.
pub fn window(title: &str, history: &WindowHistory) -> Drawing {
    Drawing::of(|size| draw(size, title, history))
}

fn draw(size: Size, title: &str, history: &WindowHistory) -> String {
    let peaks = [history.cwnd(), history.ssthresh()].into_iter().filter_map(|s| s.range().map(|r| r.1));
    let top = peaks.fold(10.0, f64::max) * 1.3;
    let mut legend = vec![
        (LegendEntry::Line(Colour::Blue, ""), "congestion window (cwnd)".to_owned()),
        (LegendEntry::Line(Colour::Green, "4 3"), "slow-start threshold (ssthresh)".to_owned()),
    ];
    let count = history.timeout_count();
    let plural = if count == 1 { "" } else { "s" };
    if count > 0 {
        legend.push((
            LegendEntry::Mark(Colour::Vermillion),
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
            y: Some(Scale::log(0.8, top)),
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
    chart.line(&ssthresh, Colour::Green, 1.3, "4 3");
    let cwnd = steps(&panel, history.cwnd(), history.end());
    chart.line(&cwnd, Colour::Blue, 1.3, "");
    let mut ticks = String::new();
    for at in history.timeouts() {
        // Triangles at the upper edge.
        let x = panel.px(at.as_secs_f64());
        ticks.push_str(&format!("M{} {}l4 8l4 -8Z", Px(x - 4.0), Px(panel.top - 4.0)));
    }
    chart.area(&ticks, Colour::Vermillion, 1.0);
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
