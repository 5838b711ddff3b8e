//! Variables of the sender after each ACK (Fig. 6 of the paper on communication stops, its "epool" dump).

use super::{
    covered, draw_states, explore_states, explore_timeouts, state_keys, time_axis, timeout_events,
    timeout_key, timeout_lines, timeouts_within,
};
use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, Panel, PanelSpec, Size};
use crate::palette::Thing;
use crate::paths::StepLine;
use crate::scale::Scale;
use crate::{BinInterval, Exploration, ExplorePanel, ExploreSeries, StateBand};
use farpace_events::{Record, RecordDirection};
use farpace_units::{ByteCount, Packets, Seq};

/// A variable: its name, style, and value after a row.
struct Variable {
    name: &'static str,
    thing: Thing,
    of: fn(&Record) -> Packets,
}

/// Upper panel: packet counters. Sequence numbers relative to the first row are added.
const COUNTERS: [Variable; 4] = [
    Variable { name: "fackets_out", thing: Thing::Facked, of: |r| r.fackets_out },
    Variable { name: "sacked_out", thing: Thing::Sacked, of: |r| r.sacked_out },
    Variable { name: "lost_out", thing: Thing::Lost, of: |r| r.lost_out },
    Variable { name: "retrans_out", thing: Thing::Retransmitted, of: |r| r.retrans_out },
];
/// Lower panel: the window.
const WINDOW: [Variable; 2] = [
    Variable { name: "cwnd", thing: Thing::Cwnd, of: |r| r.cwnd },
    Variable { name: "in_flight", thing: Thing::InFlight, of: |r| r.in_flight },
];

/// The variables of the connection after each ACK processed in `interval` (or in all of `records`), in
/// segments. `ack` (SND.UNA) and `snd_nxt` are relative to the first ACK, in units of `mss`, as in the paper.
/// The window has a separate panel with a logarithmic axis, where 0 and 1 are distinguishable.
pub fn variables(title: &str, records: &[Record], mss: ByteCount, interval: Option<BinInterval>) -> Drawing {
    let interval = interval.or_else(|| covered(records));
    let shown = |r: &&Record| {
        r.direction != RecordDirection::Sent && interval.is_some_and(|i| i.start <= r.time && r.time <= i.end)
    };
    let rows: Vec<&Record> = records.iter().filter(shown).collect();
    let timeouts = timeouts_within(records, interval);
    Drawing::of(|size| draw(size, title, &rows, &timeouts, mss, interval))
        .explored(explore(title, &rows, &timeouts, mss, interval))
}

/// Distances from the first row, in segments.
fn relative(rows: &[&Record], mss: ByteCount) -> impl Fn(Seq) -> f64 {
    let (start, mss) = (rows.first().map(|r| r.snd_una), mss.get().max(1) as f64);
    move |seq| start.map_or(0.0, |s| f64::from(seq.distance(s)) / mss)
}

/// The largest of these variables, at least 1.
fn peak(rows: &[&Record], variables: &[Variable]) -> f64 {
    rows.iter().flat_map(|r| variables.iter().map(|v| f64::from((v.of)(r).get()))).fold(1.0, f64::max)
}

fn explore(
    title: &str,
    rows: &[&Record],
    timeouts: &[f64],
    mss: ByteCount,
    interval: Option<BinInterval>,
) -> Exploration {
    let since = relative(rows, mss);
    let bands = states(rows);
    let (from, to) = interval.map_or((0.0, 1.0), |i| (i.start.as_secs_f64(), i.end.as_secs_f64()));
    let steps = |name: &str, thing: Thing, value: &dyn Fn(&Record) -> f64| {
        let points = rows.iter().map(|r| (r.time.as_secs_f64(), value(r)));
        ExploreSeries::steps(name, thing.style(), points).held_until(to)
    };
    let all = |variables: &[Variable]| -> Vec<ExploreSeries> {
        variables.iter().map(|v| steps(v.name, v.thing, &|r| f64::from((v.of)(r).get()))).collect()
    };
    let top = rows.iter().map(|r| since(r.snd_nxt)).fold(peak(rows, &COUNTERS), f64::max);
    let below = |range: (f64, f64)| {
        let mut series = explore_states(&bands);
        series.push(explore_timeouts(timeouts, range));
        series
    };
    let ranges = [(0.0, top * 1.04), (0.5, peak(rows, &WINDOW).max(10.0) * 1.3)];
    let mut counters = below(ranges[0]);
    counters.push(steps("snd_nxt", Thing::SndNxt, &|r| since(r.snd_nxt)));
    counters.push(steps("ack", Thing::Ack, &|r| since(r.snd_una)));
    counters.extend(all(&COUNTERS));
    let mut window = below(ranges[1]);
    window.extend(all(&WINDOW));
    let mut exploration = Exploration::over_time(title, from, to);
    exploration.events = timeout_events(timeouts.iter().copied()).collect();
    exploration.panels = vec![
        ExplorePanel {
            heading: "Packet counters of the sender".to_owned(),
            y_label: "segments; ack and snd_nxt relative to the first ACK".to_owned(),
            y: ranges[0],
            log: false,
            fit: true,
            series: counters,
        },
        ExplorePanel {
            heading: "Congestion window".to_owned(),
            y_label: "segments, logarithmic; 0 is at the bottom".to_owned(),
            y: ranges[1],
            log: true,
            fit: false,
            series: window,
        },
    ];
    exploration
}

fn draw(
    size: Size,
    title: &str,
    rows: &[&Record],
    timeouts: &[f64],
    mss: ByteCount,
    interval: Option<BinInterval>,
) -> String {
    let since = relative(rows, mss);
    let bands = states(rows);
    let mut legend = vec![
        (LegendEntry::Line(Thing::SndNxt.colour(), Thing::SndNxt.dash()), "snd_nxt".to_owned()),
        (LegendEntry::Line(Thing::Ack.colour(), ""), "ack".to_owned()),
    ];
    legend.extend(
        COUNTERS
            .iter()
            .chain(&WINDOW)
            .map(|v| (LegendEntry::Line(v.thing.colour(), v.thing.dash()), v.name.to_owned())),
    );
    legend.extend(state_keys(&bands));
    legend.extend(timeout_key(timeouts));
    let top = rows.iter().map(|r| since(r.snd_nxt)).fold(peak(rows, &COUNTERS), f64::max);
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend,
        panels: vec![
            PanelSpec {
                heading: "Packet counters of the sender".to_owned(),
                y_label: "segments; ack and snd_nxt relative to the left edge".to_owned(),
                height: size.pick(240.0, 240.0),
                y: Some(Scale::linear(0.0, top * 1.04)),
            },
            PanelSpec {
                heading: "Congestion window".to_owned(),
                y_label: "segments, logarithmic; 0 is at the bottom".to_owned(),
                height: size.pick(140.0, 140.0),
                y: Some(Scale::log(0.5, peak(rows, &WINDOW).max(10.0) * 1.3)),
            },
        ],
        x_label: "time since start (s)",
        x: time_axis(interval),
        left: 52.0,
        right: 20.0,
    });
    let (Some(counters), Some(window)) = (chart.panels.first().copied(), chart.panels.get(1).copied()) else {
        return chart.finish();
    };
    if rows.is_empty() {
        chart.nothing("no data");
        return chart.finish();
    }
    for panel in [counters, window] {
        draw_states(&mut chart, &panel, &bands);
    }
    let mut line = |panel: &Panel, thing: Thing, value: &dyn Fn(&Record) -> f64| {
        let mut steps = StepLine::new();
        for r in rows {
            steps.point(panel.px(r.time.as_secs_f64()), panel.py(value(r)));
        }
        let path = steps.finish(panel.right());
        chart.line(&path, thing.colour(), 1.4, thing.dash());
    };
    line(&counters, Thing::SndNxt, &|r| since(r.snd_nxt));
    line(&counters, Thing::Ack, &|r| since(r.snd_una));
    for (panel, variables) in [(counters, &COUNTERS[..]), (window, &WINDOW[..])] {
        for v in variables {
            line(&panel, v.thing, &|r| f64::from((v.of)(r).get()));
        }
    }
    timeout_lines(&mut chart, timeouts);
    chart.finish()
}

/// Consecutive rows in the same state.
fn states(rows: &[&Record]) -> Vec<StateBand> {
    let mut bands: Vec<StateBand> = Vec::new();
    for row in rows {
        if let Some(last) = bands.last_mut() {
            last.interval.end = row.time;
            if last.state == row.state {
                continue;
            }
        }
        bands.push(StateBand { interval: BinInterval::new(row.time, row.time), state: row.state });
    }
    bands
}
