//! The figures of a transfer: packets, and the course in slices of a round trip.

use crate::packets::PacketCollector;
use crate::transfer::Transfer;
use farpace_explain::View;
use farpace_explain::flow::{Flow, Half, Slice, Trigger};
use farpace_explain::words::seconds;
use farpace_report::{
    EventKind, Exploration, ExploreEvent, ExplorePanel, ExploreSeries, Figure, Level, Thing, TimeLine,
    TimeSequence, lines, sequence,
};
use farpace_units::Instant;

/// Transfers of a capture with figures of their own.
pub(crate) const MAX_SHOWN: usize = 6;
/// Stalls and episodes of losses that become events, the longest and the first ones.
const MAX_NOTED: usize = 200;

/// The name of a figure's file.
pub(crate) fn name(number: usize, what: &str) -> String {
    format!("figures/{number}-{what}.svg")
}

/// All figures of a transfer. Times count from `zero`.
pub(crate) fn of(flow: &Flow, transfer: &Transfer, number: usize, zero: Instant) -> Vec<Figure> {
    let half = flow.half(transfer.diagnosis.side);
    let mut figures = Vec::new();
    if let Some(packets) = &transfer.packets {
        figures.push(packets_figure(&View::new(flow, transfer.diagnosis.side), packets, number, zero));
    }
    figures.push(rate(half, transfer, number, zero));
    figures.push(flight(half, number, zero));
    figures.extend(round_trip(half, transfer, number, zero));
    figures
}

/// A collector for the packets of a transfer.
pub(crate) fn packets(flow: &Flow, transfer: &Transfer, zero: Instant, limit: usize) -> PacketCollector {
    PacketCollector::new(flow, transfer.diagnosis.side, zero, limit)
}

/// When the timer of the sender fired, in seconds from `zero`.
pub(crate) fn timeouts(half: &Half, zero: Instant) -> Vec<f64> {
    let fired = half.losses.kept().iter().filter(|l| l.trigger == Trigger::Timeout);
    let mut times: Vec<f64> = fired.map(|l| l.resent.since(zero).as_secs_f64()).collect();
    // What a timer sends at once is one timeout.
    times.dedup_by(|later, before| *later - *before < 1e-3);
    times
}

/// What happened, in order of time.
fn events(view: &View<'_>, zero: Instant) -> Vec<ExploreEvent> {
    let half = view.half;
    let at = |time: Instant| time.since(zero).as_secs_f64();
    let round = half.base_rtt().map_or(0.0, |rtt| rtt.as_secs_f64());
    let mut stalls: Vec<_> = half.stalls.kept().iter().collect();
    stalls.sort_by_key(|s| std::cmp::Reverse(s.duration()));
    let mut events: Vec<ExploreEvent> = stalls
        .into_iter()
        .take(MAX_NOTED)
        .map(|s| {
            let text = format!(
                "nothing is sent for {}, packets {} to {}",
                seconds(s.duration()),
                s.first_frame,
                s.last_frame
            );
            ExploreEvent::new(EventKind::Stall, at(s.start), at(s.end), text)
        })
        .collect();
    for episode in view.episodes.iter().take(MAX_NOTED) {
        let kind = if episode.timeouts > 0 { EventKind::Timeout } else { EventKind::Loss };
        let what = match (episode.losses, episode.spurious) {
            (1, false) => "a segment is lost".to_owned(),
            (1, true) => "a segment is sent again needlessly".to_owned(),
            (n, false) => format!("{n} segments are lost"),
            (n, true) => format!("{n} segments are sent again needlessly"),
        };
        let (sent, again) = episode.frames;
        let timer = if episode.timeouts > 0 { " by the timer" } else { "" };
        let text = format!("{what}; the first is packet {sent}, sent again as {again}{timer}");
        let mut event = ExploreEvent::new(kind, at(episode.start), at(episode.resent), text);
        event.around = (round * 6.0).max(2.0 * (event.to - event.from));
        events.push(event);
    }
    events.sort_by(|a, b| a.from.total_cmp(&b.from).then(a.to.total_cmp(&b.to)));
    events
}

fn packets_figure(view: &View<'_>, packets: &TimeSequence, number: usize, zero: Instant) -> Figure {
    let mut drawing = sequence("Data, ACKs and the receive window", packets);
    if let Some(exploration) = drawing.explore.take() {
        let mut exploration = Exploration::clone(&exploration);
        exploration.x_label = X.to_owned();
        exploration.events = events(view, zero);
        drawing = drawing.explored(exploration);
    }
    drawing.figure(
        &name(number, "packets"),
        "Each mark is a segment of data; its height is its place in the stream. The black line \
        is what the receiver has \
         without a gap; where it is level, a segment is missing or nothing was sent.",
    )
}

/// Label of the time axes.
const X: &str = "time in the capture (s)";

/// A line over the slices of a transfer.
fn steps(half: &Half, zero: Instant, value: impl Fn(&Slice) -> Option<f64>) -> Vec<(f64, f64)> {
    let slices = half.timeline.slices();
    let points = slices.iter().filter_map(|s| Some((s.start.since(zero).as_secs_f64(), value(s)?)));
    let mut points: Vec<(f64, f64)> = points.collect();
    if let (Some(last), Some(slice)) = (points.last().copied(), slices.last()) {
        points.push((slice.end.since(zero).as_secs_f64(), last.1));
    }
    points
}

/// Lines of named things in one panel, as drawing and to explore.
fn figure(
    title: &str,
    y_label: &str,
    series: &[(Thing, TimeLine<'_>)],
    level: Option<&Level<'_>>,
    (file, caption): (String, &str),
) -> Figure {
    let plain: Vec<TimeLine<'_>> = series.iter().map(|(_, line)| line.clone()).collect();
    let drawing = lines(title, y_label, &plain, level);
    let points = || plain.iter().flat_map(|line| &line.points);
    let (from, to) = points().fold((f64::INFINITY, 0.0f64), |(from, to), p| (from.min(p.0), to.max(p.0)));
    let top = points().map(|p| p.1).chain(level.map(|l| l.value)).fold(0.0f64, f64::max) * 1.06;
    let mut exploration = Exploration::over_time(title, from.min(to), to.max(from.min(to) + 1e-6));
    exploration.x_label = X.to_owned();
    let levels = level.map(|l| ExploreSeries::level(l.label, Thing::Level.style(), l.value));
    let drawn = series
        .iter()
        .map(|(thing, l)| ExploreSeries::steps(l.label, thing.style(), l.points.iter().copied()));
    exploration.panels.push(ExplorePanel {
        heading: String::new(),
        y_label: y_label.to_owned(),
        y: (0.0, if top > 0.0 { top } else { 1.0 }),
        log: false,
        fit: false,
        series: levels.into_iter().chain(drawn).collect(),
    });
    drawing.explored(exploration).figure(&file, caption)
}

fn rate(half: &Half, transfer: &Transfer, number: usize, zero: Instant) -> Figure {
    let per_second = |s: &Slice, bytes: u64| {
        let time = s.duration().as_secs_f64();
        (time > 0.0).then(|| bytes as f64 * 8e-6 / time)
    };
    let delivered =
        TimeLine { label: "acknowledged", points: steps(half, zero, |s| per_second(s, s.delivered)) };
    let resent = TimeLine { label: "sent again", points: steps(half, zero, |s| per_second(s, s.resent)) };
    let path = transfer.diagnosis.path_rate.as_mbit_f64();
    let level = (path > 0.0)
        .then_some(Level { label: "rate of the path, as far as the transfer shows it", value: path });
    figure(
        "Rate",
        "Mbit/s in slices of a round trip",
        &[(Thing::Rate, delivered), (Thing::Retransmission, resent)],
        level.as_ref(),
        (
            name(number, "rate"),
            "Payload that the receiver acknowledged or SACKed, and payload that was sent again.",
        ),
    )
}

fn flight(half: &Half, number: usize, zero: Instant) -> Figure {
    let flight = TimeLine { label: "in flight", points: steps(half, zero, |s| Some(s.flight as f64 / 1e3)) };
    let window = |s: &Slice| (s.window < u64::MAX).then_some(s.window as f64 / 1e3);
    let window = TimeLine { label: "receive window", points: steps(half, zero, window) };
    figure(
        "In flight and receive window",
        "kB, the most in flight and the smallest window of each slice",
        &[(Thing::ReceiveWindow, window), (Thing::InFlight, flight)],
        None,
        (
            name(number, "flight"),
            "Where both meet, the receiver limits the sender. Where data in flight is far below, \
            something else does.",
        ),
    )
}

fn round_trip(half: &Half, transfer: &Transfer, number: usize, zero: Instant) -> Option<Figure> {
    let ms = |span: farpace_units::Span| span.as_secs_f64() * 1e3;
    let both = |s: &Slice, of: fn(&farpace_explain::flow::Stat) -> farpace_units::Span| {
        (s.far.n > 0).then(|| ms(of(&s.far)) + if s.near.n > 0 { ms(of(&s.near)) } else { 0.0 })
    };
    let largest = TimeLine { label: "largest", points: steps(half, zero, |s| both(s, |stat| stat.max)) };
    let least = TimeLine { label: "least", points: steps(half, zero, |s| both(s, |stat| stat.min)) };
    if largest.points.is_empty() {
        return None;
    }
    let base = transfer.diagnosis.base_rtt.map(|rtt| Level { label: "least of all", value: ms(rtt) });
    Some(figure(
        "Round trip",
        "ms in slices of a round trip",
        &[(Thing::RoundTrip, largest), (Thing::LeastRoundTrip, least)],
        base.as_ref(),
        (
            name(number, "round-trip"),
            "What is above the least of all is time in queues, or an ACK that was delayed.",
        ),
    ))
}
