//! Round trips of a transfer as they were, and as they would have been without delayed ACKs.

use farpace_events::{Cause, Record, RecordDirection, RecordSink};
use farpace_lab::scenario::{Direction, Scenario};
use farpace_units::{Instant, Rate, Seq, Span};
use std::collections::VecDeque;

/// Means and extremes over one transfer; times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Round trip of the first data segment.
    pub first: f64,
    /// What the path alone needs: mean over all segments.
    pub path: f64,
    /// SRTT less the path's round trip at that time: mean over all ACKs.
    pub bias: f64,
    /// The same without its sign.
    pub error: f64,
    /// The timeout in force: mean over all ACKs.
    pub rto: f64,
    /// The longest round trip that occurred, delayed ACKs included.
    pub longest: f64,
}

/// ACKs from the first second are left out: estimators begin somewhere.
const SETTLING: Span = Span::from_secs(1);

/// Follows every segment to its ACK. What the path alone would have taken is worked out: all its lines are first in,
/// first out, and the ACKs do not wait.
pub struct RoundTrips {
    start: Instant,
    /// Rate and time when it is free again, per line of data.
    lines: Vec<(Rate, u64, Instant)>,
    /// Propagation there, and the way of an ACK back.
    rest: Span,
    outstanding: VecDeque<(Seq, Instant, Span)>,
    first: Option<Span>,
    longest: Span,
    path: Vec<f64>,
    bias: Vec<f64>,
    rto: Vec<f64>,
}

/// Bytes of a frame beyond its payload: Ethernet, IP and TCP without options.
const HEADERS: u64 = 54;

impl RoundTrips {
    /// Of the first flow; none if there is none.
    pub fn new(scenario: &Scenario) -> Option<RoundTrips> {
        let flow = scenario.flows.first()?;
        let mut rest = Span::ZERO;
        let mut lines = Vec::new();
        for link in &scenario.links {
            let ways = [Direction::Forward, Direction::Backward].map(|way| link.direction(way));
            let frame = |payload: u64| {
                let len = payload + HEADERS;
                if link.overhead.is_zero() { len } else { len.max(60) + link.overhead.get() }
            };
            rest = ways.iter().fold(rest, |sum, d| sum + d.delay);
            let [there, back] = ways;
            rest += back.rate.map_or(Span::ZERO, |r| r.time_for(farpace_units::ByteCount::new(frame(0))));
            lines.extend(there.rate.map(|rate| (rate, link.overhead.get() + HEADERS, Instant::ZERO)));
        }
        Some(RoundTrips {
            start: Instant::ZERO + flow.start,
            lines,
            rest,
            outstanding: VecDeque::new(),
            first: None,
            longest: Span::ZERO,
            path: Vec::new(),
            bias: Vec::new(),
            rto: Vec::new(),
        })
    }

    fn sent(&mut self, record: &Record) {
        let mut at = record.time;
        for (rate, headers, free) in &mut self.lines {
            let frame = farpace_units::ByteCount::new(record.len.get() + *headers);
            at = at.max(*free) + rate.time_for(frame);
            *free = at;
        }
        if record.cause == Some(Cause::NewData) && !record.len.is_zero() {
            let path = at.since(record.time) + self.rest;
            self.outstanding.push_back((record.seq + record.len.get() as u32, record.time, path));
        }
    }

    fn acknowledged(&mut self, record: &Record) {
        let settled = record.time.since(self.start) >= SETTLING;
        while let Some((end, at, path)) = self.outstanding.pop_front() {
            if end.after(record.snd_una) {
                self.outstanding.push_front((end, at, path));
                return;
            }
            let took = record.time.since(at);
            self.first.get_or_insert(took);
            if !settled {
                continue;
            }
            self.longest = self.longest.max(took);
            self.path.push(ms(path));
            let newest = self.outstanding.front().is_none_or(|next| next.0.after(record.snd_una));
            if newest {
                self.bias.push(ms(record.srtt) - ms(path));
                self.rto.push(ms(record.rto));
            }
        }
    }

    /// What was found.
    pub fn summary(&self) -> Summary {
        let errors: Vec<f64> = self.bias.iter().map(|b| b.abs()).collect();
        Summary {
            first: self.first.map_or(f64::NAN, ms),
            path: mean(&self.path),
            bias: mean(&self.bias),
            error: mean(&errors),
            rto: mean(&self.rto),
            longest: ms(self.longest),
        }
    }
}

impl RecordSink for RoundTrips {
    fn record(&mut self, record: &Record) {
        match record.direction {
            RecordDirection::Sent => self.sent(record),
            RecordDirection::Received => self.acknowledged(record),
            RecordDirection::Internal => {}
        }
    }
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
