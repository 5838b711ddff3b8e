//! The figures of a report.

use super::ExaminedCapture;
use super::words;
use farpace_link::proof::{FlowProof, PRECISE_FRAMES, ProofTimeline};
use farpace_report::{Bar, Figure, Level, TimeLine, histogram, lines};
use farpace_units::Rate;

/// Flows in one figure.
pub const MAX_TOGETHER: usize = 7;

/// The queues of the largest flows together; none if fewer than two have one.
pub fn together(examined: &ExaminedCapture, file: &str) -> Option<Figure> {
    let drawn: Vec<(String, &FlowProof, &ProofTimeline)> = examined
        .flows
        .iter()
        .filter_map(|flow| Some((words::flow(examined, flow), flow, flow.queue_over_time.as_ref()?)))
        .take(MAX_TOGETHER)
        .collect();
    if drawn.len() < 2 {
        return None;
    }
    let series: Vec<TimeLine<'_>> = drawn
        .iter()
        .map(|(name, flow, timeline)| TimeLine { label: name, points: frames(examined, flow, timeline) })
        .collect();
    let caption = "What each flow would have waiting before a line of its rate, the most of each moment. \
                   Precise pacing stays at or below the dashed line.";
    let title = format!("Queues of the {} largest flows", series.len());
    Some(lines(&title, "queue (full frames)", &series, Some(&precise())).figure(file, caption))
}

/// The figures of one flow: queue, rate, intervals.
pub fn of_flow(examined: &ExaminedCapture, flow: &FlowProof, prefix: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let (Some(timeline), Some(peak)) = (&flow.queue_over_time, flow.peak()) {
        let against = words::rate(peak.rate);
        let series = [TimeLine { label: "queue", points: frames(examined, flow, timeline) }];
        let caption = format!(
            "Q: what would wait before a line of {against}, the most in each {} of time; the packet that has \
             just come counts whole. Even packets never exceed one frame, precise pacing never two. The most \
             is {} full frames of {} at {:.6} s, packet {}.",
            words::time(timeline.width()),
            farpace_report::number(flow.peak_frames().unwrap_or(0.0)),
            words::bytes(flow.full_frame.get()),
            examined.seconds(peak.time),
            peak.number,
        );
        let title = format!("Queue before a line of {against}");
        let drawing = lines(&title, "queue (full frames)", &series, Some(&precise()));
        figures.push(drawing.figure(&format!("{prefix}-queue.svg"), &caption));
    }
    if let Some(timeline) = &flow.bytes_over_time {
        let rate =
            |bytes: &u64| Rate::of(farpace_units::ByteCount::new(*bytes), timeline.width()).as_mbit_f64();
        let series = [TimeLine { label: "rate", points: points(examined, timeline, rate) }];
        let mean = flow.mean.map(Rate::as_mbit_f64).unwrap_or(0.0);
        let level = Level { label: "mean rate", value: mean };
        let caption = format!(
            "Layer 2 with check sequences, in bins of {}. Steps of one packet are the grain of the figure: \
             {} Mbit/s.",
            words::time(timeline.width()),
            farpace_report::number(rate(&flow.full_frame.get()))
        );
        let drawing = lines("Rate over time", "rate (Mbit/s)", &series, Some(&level));
        figures.push(drawing.figure(&format!("{prefix}-rate.svg"), &caption));
    }
    let micros = |span: farpace_units::Span| span.as_nanos() as f64 / 1e3;
    let bars: Vec<Bar> = flow
        .intervals
        .bins()
        .map(|(from, to, count)| Bar { from: micros(from), to: micros(to), count })
        .collect();
    if !bars.is_empty() {
        let even = flow.mean.map(|mean| micros(mean.time_for(flow.full_frame)));
        let mark = even.map(|value| Level { label: "a full frame at the mean rate", value });
        let caption = "Times from the start of a frame to the start of the next. Both axes are logarithmic: \
                       a bar of height 1 is a single frame. Paced traffic has one bar, or few beside each \
                       other; bursts stand at the left and their pauses at the right.";
        let drawing = histogram("Times from frame to frame", "time (us)", "how often", &bars, mark.as_ref());
        figures.push(drawing.figure(&format!("{prefix}-intervals.svg"), caption));
    }
    figures
}

fn precise() -> Level<'static> {
    Level { label: "2 full frames: precise up to here", value: PRECISE_FRAMES as f64 }
}

fn frames(examined: &ExaminedCapture, flow: &FlowProof, timeline: &ProofTimeline) -> Vec<(f64, f64)> {
    points(examined, timeline, |bytes| *bytes as f64 / flow.full_frame.get().max(1) as f64)
}

/// The bins as points, the last value held to the end of its bin.
fn points(
    examined: &ExaminedCapture,
    timeline: &ProofTimeline,
    value: impl Fn(&u64) -> f64,
) -> Vec<(f64, f64)> {
    let start = examined.seconds(timeline.start());
    let width = timeline.width().as_secs_f64();
    let mut points: Vec<(f64, f64)> =
        timeline.bins().iter().enumerate().map(|(i, bin)| (start + i as f64 * width, value(bin))).collect();
    if let Some((time, last)) = points.last().copied() {
        points.push((time + width, last));
    }
    points
}
