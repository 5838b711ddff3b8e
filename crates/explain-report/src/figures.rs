//! The figures of a transfer: packets, and the course in slices of a round trip.

use crate::packets::{PacketCollector, PathShares};
use crate::transfer::Transfer;
use farpace_explain::cause::Cause;
use farpace_explain::flow::{Flow, FlowLoss, Half, Slice, Stat, Trigger};
use farpace_explain::words::seconds;
use farpace_explain::{AttributedView, Episode, View};
use farpace_report::{
    DropSeries, EventKind, Exploration, ExploreEvent, Figure, Level, LinePanel, SequenceDrops, SequencePiece,
    StyledLine, Thing, TimeSequence, drops, line_panels, sequence, styles,
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
    let attributed = AttributedView::new(flow, transfer.diagnosis.side);
    if let Some(packets) = &transfer.packets {
        figures.push(packets_figure(&attributed, packets, number, zero));
    }
    figures.extend(losses(&attributed, number, zero));
    figures.push(rate(half, transfer, number, zero));
    figures.extend(transfer.paths.as_ref().and_then(|shares| paths(shares, number)));
    figures.push(flight(half, number, zero));
    figures.extend(round_trip(half, transfer, number, zero));
    figures.extend(queues(half, number, zero));
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

fn packets_figure(
    attributed: &AttributedView<'_>,
    packets: &TimeSequence,
    number: usize,
    zero: Instant,
) -> Figure {
    let view = &attributed.view;
    let mut packets = packets.clone();
    for (loss, cause) in lost(attributed) {
        let label = format!("lost: {}", cause.info().title);
        let from = loss.offset as f64 / 1e6;
        let piece = SequencePiece {
            time: loss.sent.since(zero).as_secs_f64(),
            from,
            to: from + f64::from(loss.len) / 1e6,
            packet: loss.frame,
        };
        match packets.drops.iter_mut().find(|d| d.label == label) {
            Some(drops) => drops.pieces.push(piece),
            None => packets.drops.push(SequenceDrops { label, thing: thing(cause), pieces: vec![piece] }),
        }
    }
    let mut drawing = sequence("Data, ACKs and the receive window", &packets);
    if let Some(exploration) = drawing.explore.take() {
        let mut exploration = Exploration::clone(&exploration);
        exploration.x_label = X.to_owned();
        exploration.events = events(view, zero);
        drawing = drawing.explored(exploration);
    }
    drawing.figure(
        &name(number, "packets"),
        "Each mark is a segment of data; its height is its place in the stream. The black line \
         is what the receiver has without a gap; where it is level, a segment is missing or nothing \
         was sent. Crosses: data that was lost, when it was sent.",
    )
}

/// Label of the time axes.
const X: &str = "time in the capture (s)";

/// A name, and seconds and values.
type TimeSteps = (&'static str, Vec<(f64, f64)>);

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

/// Lines of named things in one panel.
fn figure(
    title: &str,
    y_label: &str,
    series: Vec<(Thing, TimeSteps)>,
    level: Option<Level<'_>>,
    (file, caption): (String, &str),
) -> Figure {
    let line =
        |(thing, (label, points)): (Thing, TimeSteps)| StyledLine { label, style: thing.style(), points };
    let panel = LinePanel { heading: "", y_label, lines: series.into_iter().map(line).collect(), level };
    line_panels(title, X, &[panel]).figure(&file, caption)
}

fn rate(half: &Half, transfer: &Transfer, number: usize, zero: Instant) -> Figure {
    let per_second = |s: &Slice, bytes: u64| {
        let time = s.duration().as_secs_f64();
        (time > 0.0).then(|| bytes as f64 * 8e-6 / time)
    };
    let delivered = ("acknowledged", steps(half, zero, |s| per_second(s, s.delivered)));
    let resent = ("sent again", steps(half, zero, |s| per_second(s, s.resent)));
    let path = transfer.diagnosis.path_rate.as_mbit_f64();
    let level = (path > 0.0)
        .then_some(Level { label: "rate of the path, as far as the transfer shows it", value: path });
    figure(
        "Rate",
        "Mbit/s in slices of a round trip",
        vec![(Thing::Rate, delivered), (Thing::Retransmission, resent)],
        level,
        (
            name(number, "rate"),
            "Payload that the receiver acknowledged or SACKed, and payload that was sent again.",
        ),
    )
}

fn flight(half: &Half, number: usize, zero: Instant) -> Figure {
    let flight = ("in flight", steps(half, zero, |s| Some(s.flight as f64 / 1e3)));
    let window = |s: &Slice| (s.window < u64::MAX).then_some(s.window as f64 / 1e3);
    let window = ("receive window", steps(half, zero, window));
    figure(
        "In flight and receive window",
        "kB, the most in flight and the smallest window of each slice",
        vec![(Thing::ReceiveWindow, window), (Thing::InFlight, flight)],
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
    let largest = ("largest", steps(half, zero, |s| both(s, |stat| stat.max)));
    let least = ("least", steps(half, zero, |s| both(s, |stat| stat.min)));
    if largest.1.is_empty() {
        return None;
    }
    let base = transfer.diagnosis.base_rtt.map(|rtt| Level { label: "least of all", value: ms(rtt) });
    Some(figure(
        "Round trip",
        "ms in slices of a round trip",
        vec![(Thing::RoundTrip, largest), (Thing::LeastRoundTrip, least)],
        base,
        (
            name(number, "round-trip"),
            "What is above the least of all is time in queues, or an ACK that was delayed.",
        ),
    ))
}

/// What round trips have above the least one, on each side of the capture point.
fn queues(half: &Half, number: usize, zero: Instant) -> Option<Figure> {
    let slices = half.timeline.slices();
    let above = |of: fn(&Slice) -> &Stat| {
        let least = slices.iter().map(of).filter(|stat| stat.n > 0).map(|stat| stat.min).min()?;
        let delay = |s: &Slice| (of(s).n > 0).then(|| (of(s).max - least).as_secs_f64() * 1e3);
        let points = steps(half, zero, delay);
        // Where the capture was taken beside an end, that side has no path.
        points.iter().any(|p| p.1 >= MIN_QUEUE).then_some(points)
    };
    let receiver = above(|s| &s.far).map(|points| (Thing::Queue, (TO_RECEIVER, points)));
    let sender = above(|s| &s.near).map(|points| (Thing::SenderQueue, (TO_SENDER, points)));
    let series: Vec<_> = sender.into_iter().chain(receiver).collect();
    (!series.is_empty()).then(|| {
        figure(
            "Delay in queues, as round trips show it",
            "ms, the largest of each slice",
            series,
            None,
            (
                name(number, "queues"),
                "The largest round trip of each slice less the least of the whole transfer, from the \
                 capture point to each end and back. ACKs that a receiver delays are in it.",
            ),
        )
    })
}

const TO_RECEIVER: &str = "between the capture point and the receiver";
const TO_SENDER: &str = "between the sender and the capture point";
/// Milliseconds below which a side has no queue to show.
const MIN_QUEUE: f64 = 0.1;

/// Losses by cause over time.
fn losses(attributed: &AttributedView<'_>, number: usize, zero: Instant) -> Option<Figure> {
    let at = |time: Instant| time.since(zero).as_secs_f64();
    let view = &attributed.view;
    let mut series: Vec<DropSeries> = Vec::new();
    for (loss, cause) in lost(attributed) {
        let found = series.iter().position(|s| s.label == cause.info().title);
        let index = found.unwrap_or_else(|| {
            let label = cause.info().title.to_owned();
            series.push(DropSeries { label, thing: thing(cause), counts: Vec::new(), first: None });
            series.len() - 1
        });
        let Some(entry) = series.get_mut(index) else { continue };
        // Losses of about a pixel's width are one stem.
        let width = view.duration().as_secs_f64() / 1_000.0;
        match entry.counts.last_mut() {
            Some(last) if at(loss.sent) - last.0 <= width => last.1 += 1.0,
            _ => entry.counts.push((at(loss.sent), 1.0)),
        }
    }
    if series.is_empty() {
        return None;
    }
    let of = view.half.losses.stride();
    let label = match of {
        1 => "segments lost, logarithmic".to_owned(),
        n => format!("segments lost, one of {n} is kept, logarithmic"),
    };
    let drawing = drops("Losses by cause", (X, &label), (at(view.start), at(view.end)), &series);
    Some(drawing.figure(
        &name(number, "losses"),
        "When segments that were lost had been sent, and what the losses were taken for. The capture has \
         no drops: the cause follows from queues, lengths of bursts and times.",
    ))
}

/// Losses that are kept and were none by mistake, in order of time, with their causes.
fn lost<'a>(attributed: &'a AttributedView<'_>) -> Vec<(&'a FlowLoss, Cause)> {
    let view = &attributed.view;
    let mut episodes: Vec<(&Episode, Cause)> =
        view.episodes.iter().zip(attributed.time.classes.iter().copied()).collect();
    episodes.sort_by_key(|(e, _)| e.start);
    let cause_of = |loss: &FlowLoss| {
        let after = episodes.partition_point(|(e, _)| e.start <= loss.sent);
        let before = episodes.get(..after)?.iter().rev();
        before.take(4).find(|(e, _)| loss.sent <= e.end && !e.spurious).map(|(_, cause)| *cause)
    };
    let real = view.half.losses.kept().iter().filter(|l| !l.spurious);
    let mut found: Vec<(&FlowLoss, Cause)> = real.filter_map(|l| Some((l, cause_of(l)?))).collect();
    found.sort_by_key(|(l, _)| l.sent);
    found
}

/// What a loss of this cause is in figures, the same as the drop in those of the lab.
const fn thing(cause: Cause) -> Thing {
    match cause {
        Cause::Congestion | Cause::SmallQueue => Thing::DropQueueFull,
        Cause::Policer => Thing::DropPoliced,
        Cause::RandomLoss => Thing::DropRandom,
        Cause::BurstLoss => Thing::DropBurst,
        Cause::BitErrors => Thing::DropBitErrors,
        Cause::Outage => Thing::DropOutage,
        _ => Thing::DropOther,
    }
}

/// What each interface of the capture has of a transfer.
fn paths(shares: &PathShares, number: usize) -> Option<Figure> {
    if shares.paths.len() < 2 {
        return None;
    }
    let names: Vec<String> = shares.paths.iter().map(|p| p.name.clone()).collect();
    let styles = styles(names.iter().map(String::as_str));
    let panel = |y_label, of: &dyn Fn(u64, u64) -> Option<f64>| LinePanel {
        heading: "",
        y_label,
        lines: (shares.paths.iter().zip(&names).zip(&styles))
            .map(|((path, name), style)| StyledLine {
                label: name,
                style: *style,
                points: shares.points(path, of),
            })
            .collect(),
        level: None,
    };
    let per_second = 8e-6 / shares.bin;
    let panels = [
        panel("payload (Mbit/s)", &|bytes, _| Some(bytes as f64 * per_second)),
        // Nothing is shared while nothing is sent.
        panel("share of the payload (%)", &|bytes, all| (all > 0).then(|| bytes as f64 * 100.0 / all as f64)),
    ];
    Some(line_panels("Shares of the interfaces", X, &panels).figure(
        &name(number, "paths"),
        "Data of this transfer by the interface at which it was captured, retransmissions included.",
    ))
}
