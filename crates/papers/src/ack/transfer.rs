//! One transfer: counters, round trips, and the repair of a lost tail.

use super::cases::{AckCase, AckRunKind};
use crate::assumptions::WorldAssumptions;
use crate::experiment::{MeasureError, StopRequest};
use crate::observe::{PaperObserver, data_segments, observe, verified};
use farpace_events::{Cause, Record, RecordDirection};
use farpace_lab::scenario::{Direction, Scenario};
use farpace_lab::{Inputs, Run, RunProgress};
use farpace_units::{ByteCount, Instant, Rate, Seq, Span};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What came of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AckRun {
    /// Payload that the receiving program got, in kB.
    pub delivered: f64,
    /// Payload sent, in kB.
    pub sent_kb: f64,
    /// Segments with data sent.
    pub sent: f64,
    /// ACKs that the sender received, without the answer to its SYN.
    pub acks: f64,
    /// Segments that asked for an ACK at once (the thesis' CDL).
    pub asked: f64,
    /// ACKs that confirmed it (CDLACK).
    pub confirmed: f64,
    /// Retransmission timeouts.
    pub timeouts: f64,
    /// Packets that found a queue full.
    pub dropped: f64,
    /// Payload delivered up to a time after connecting, in seconds and kB, if kept.
    pub curve: Vec<(f64, f64)>,
    /// If measured.
    pub round_trips: Option<RoundTripSummary>,
    /// From the time at which the lost segment would have arrived until it did, in seconds.
    pub repaired: Option<f64>,
}

/// Means and extremes over one transfer; times in ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTripSummary {
    /// Round trip of the first data segment.
    pub first: f64,
    /// SRTT less the path's round trip at that time: mean over all ACKs.
    pub bias: f64,
    /// The same without its sign.
    pub error: f64,
    /// The timeout in force: mean over all ACKs.
    pub rto: f64,
    /// The longest round trip that occurred, delayed ACKs included.
    pub longest: f64,
}

/// Makes the run of a phase.
///
/// # Errors
/// See [`MeasureError`].
pub(crate) fn measure(
    case: &AckCase,
    phase: u64,
    assumed: &WorldAssumptions,
    stop: &StopRequest<'_>,
) -> Result<AckRun, MeasureError> {
    let scenario = case.scenario(phase, assumed)?;
    match case.kind {
        AckRunKind::Transfer => run(&scenario, phase == 0, false, stop).map(|(m, _)| m),
        AckRunKind::RoundTrips => run(&scenario, false, true, stop).map(|(m, _)| m),
        AckRunKind::TailLoss => {
            // A transfer without loss says when the last segment arrives. In the second one it is lost.
            let (lossless, whole) = run(&scenario, false, false, stop)?;
            let Some(whole) = whole else { return Ok(lossless) };
            let lossy = case.clone().with("links.lan-b.forward.outages", &outage(whole));
            let (m, repaired) = run(&lossy.scenario(phase, assumed)?, false, false, stop)?;
            Ok(AckRun { repaired: repaired.map(|at| at.since(whole).as_secs_f64()), ..m })
        }
    }
}

/// An outage that loses what arrives around `at`, and nothing else: segments come 23 ms apart, and a
/// retransmission takes longer.
fn outage(at: Instant) -> String {
    const MARGIN: Span = Span::from_millis(10);
    let at = at.since(Instant::ZERO) - MARGIN;
    format!("[{{ at = \"{at}\", lasts = \"{}\" }}]", MARGIN * 2)
}

/// The numbers, and when the last byte came.
fn run(
    scenario: &Scenario,
    curve: bool,
    round_trips: bool,
    stop: &StopRequest<'_>,
) -> Result<(AckRun, Option<Instant>), MeasureError> {
    let no_flow = || MeasureError::Invalid("the scenario has no flow".into());
    let start = Instant::ZERO + scenario.flows.first().ok_or_else(no_flow)?.start;
    let trips = if round_trips { Some(RoundTrips::new(scenario, start)) } else { None };
    let mut seen = AckObserver { start, curve, points: Vec::new(), delivered: 0, trips };
    let inputs = Inputs { records: round_trips, ..Inputs::default() };
    let outcome = verified(observe(scenario, inputs, &mut seen, stop)?)?;
    let flow = outcome.flows.first().ok_or_else(no_flow)?;
    let measured = AckRun {
        delivered: flow.delivered.get() as f64 / 1e3,
        sent_kb: flow.counters.bytes_sent.get() as f64 / 1e3,
        sent: data_segments(flow) as f64,
        acks: flow.counters.segments_received.saturating_sub(1) as f64,
        asked: flow.counters.asked as f64,
        confirmed: flow.counters.confirmed as f64,
        timeouts: flow.timeouts as f64,
        dropped: outcome.drops.iter().map(|d| d.packets).sum::<u64>() as f64,
        curve: seen.points,
        round_trips: seen.trips.map(|trips| trips.summary()),
        repaired: None,
    };
    Ok((measured, flow.completed))
}

struct AckObserver {
    start: Instant,
    curve: bool,
    points: Vec<(f64, f64)>,
    delivered: u64,
    trips: Option<RoundTrips>,
}

impl PaperObserver for AckObserver {
    fn record(&mut self, record: &Record) {
        if let Some(trips) = &mut self.trips {
            trips.on_record(record);
        }
    }
    fn bin(&mut self, run: &mut Run, _: RunProgress) {
        for sample in run.samples().iter().filter(|s| self.curve && s.flow == 0 && s.time >= self.start) {
            self.delivered += sample.delivered.get();
            self.points.push((sample.time.since(self.start).as_secs_f64(), self.delivered as f64 / 1e3));
        }
    }
}

/// Follows every segment to its ACK, and computes what the path alone would have taken: all its lines are
/// first in, first out, and ACKs do not wait.
struct RoundTrips {
    start: Instant,
    /// Rate, header bytes, and time when it is free again, per line of data.
    lines: Vec<(Rate, u64, Instant)>,
    /// Propagation of data, and the whole path of an ACK.
    rest: Span,
    outstanding: VecDeque<(Seq, Instant, Span)>,
    first: Option<Span>,
    longest: Span,
    bias: Vec<f64>,
    rto: Vec<f64>,
}

/// Bytes of a frame beyond its payload: Ethernet, IP and TCP without options.
const HEADERS: u64 = 54;
/// ACKs from the first second are left out: estimators begin somewhere.
const SETTLING: Span = Span::from_secs(1);

impl RoundTrips {
    fn new(scenario: &Scenario, start: Instant) -> RoundTrips {
        let mut rest = Span::ZERO;
        let mut lines = Vec::new();
        for link in &scenario.links {
            let [there, back] = [Direction::Forward, Direction::Backward].map(|d| link.direction(d));
            let overhead = link.overhead.get();
            let ack = if overhead == 0 { HEADERS } else { HEADERS.max(60) + overhead };
            rest = rest + there.delay + back.delay;
            rest += back.rate.map_or(Span::ZERO, |r| r.time_for(ByteCount::new(ack)));
            lines.extend(there.rate.map(|rate| (rate, overhead + HEADERS, Instant::ZERO)));
        }
        let (bias, rto) = (Vec::new(), Vec::new());
        let outstanding = VecDeque::new();
        RoundTrips { start, lines, rest, outstanding, first: None, longest: Span::ZERO, bias, rto }
    }

    fn on_record(&mut self, record: &Record) {
        match record.direction {
            RecordDirection::Sent => self.sent(record),
            RecordDirection::Received => self.acknowledged(record),
            RecordDirection::Internal => {}
        }
    }

    fn sent(&mut self, record: &Record) {
        let mut at = record.time;
        for (rate, headers, free) in &mut self.lines {
            at = at.max(*free) + rate.time_for(ByteCount::new(record.len.get() + *headers));
            *free = at;
        }
        if record.cause == Some(Cause::NewData) && !record.len.is_zero() {
            let path = at.since(record.time) + self.rest;
            self.outstanding.push_back((record.seq + record.len.get() as u32, record.time, path));
        }
    }

    fn acknowledged(&mut self, record: &Record) {
        let settled = record.time.since(self.start) >= SETTLING;
        while self.outstanding.front().is_some_and(|s| !s.0.after(record.snd_una))
            && let Some((_, at, path)) = self.outstanding.pop_front()
        {
            let took = record.time.since(at);
            self.first.get_or_insert(took);
            if !settled {
                continue;
            }
            self.longest = self.longest.max(took);
            if self.outstanding.front().is_none_or(|next| next.0.after(record.snd_una)) {
                self.bias.push(ms(record.srtt) - ms(path));
                self.rto.push(ms(record.rto));
            }
        }
    }

    fn summary(&self) -> RoundTripSummary {
        let errors: Vec<f64> = self.bias.iter().map(|b| b.abs()).collect();
        RoundTripSummary {
            first: self.first.map_or(f64::NAN, ms),
            bias: mean(&self.bias),
            error: mean(&errors),
            rto: mean(&self.rto),
            longest: ms(self.longest),
        }
    }
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
