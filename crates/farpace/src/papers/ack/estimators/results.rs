//! Estimates against the truth, run by run.

use super::plan::{Cell, Traffic};
use super::truth::{Truth, WARM, error};
use crate::interrupt;
use crate::statistics::percentile;
use anyhow::{Result, bail};
use farpace_events::{Record, RecordDirection, RecordSink};
use farpace_lab::{Inputs, Run, VerifyError};
use farpace_tcp::rto::Rfc6298;
use farpace_units::{ByteCount, Instant, Span};
use serde::Serialize;
use std::collections::BTreeMap;

/// How far an estimator was from the truth, over all ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// The mean of the errors without their sign.
    pub mean: f64,
    /// What 95 % of them do not exceed.
    pub most: f64,
    /// The mean with the sign: above zero, the estimator thinks too much.
    pub bias: f64,
}

impl Errors {
    fn of(errors: &[f64]) -> Option<Errors> {
        let n = errors.len() as f64;
        let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        let most = percentile(&mut sizes, 95.0)?;
        Some(Errors { mean: sizes.iter().sum::<f64>() / n, most, bias: errors.iter().sum::<f64>() / n })
    }
}

/// What one run gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Smoothed round trip against what the same filter makes of the true ones, ms.
    pub srtt: Option<Errors>,
    /// Retransmission timeout against what RFC 6298 makes of the true round trips, ms.
    pub rto: Option<Errors>,
    /// Bandwidth against what the line carries, percent.
    pub bandwidth: Option<Errors>,
    /// BBR's round trip of the empty path against the true one, ms.
    pub min_rtt: Option<Errors>,
    /// Payload over time, all connections, Mbit/s.
    pub goodput: f64,
    /// Segments that came back for each that went out.
    pub acks: f64,
    /// Retransmission timeouts: as nothing is lost, all are mistakes.
    pub timeouts: u64,
    /// Segments that asked, and confirmations that came.
    pub asked: (u64, u64),
}

#[derive(Default)]
struct Kept(Vec<Record>);

impl RecordSink for Kept {
    fn record(&mut self, record: &Record) {
        self.0.push(record.clone());
    }
}

/// The floor of the timeout, as the scenario has it.
const FLOOR: Span = Span::from_millis(5);
/// G, as farpace takes it without a setting.
const GRANULARITY: Span = Span::from_millis(1);
/// From here on BBR's estimate of the empty path counts: the short segments of the handshake are out of its filter of 10 s.
const SETTLED: Instant = Instant::from_nanos(11_000_000_000);

/// The errors of one run while it goes on.
struct Comparison {
    truth: Truth,
    payload: f64,
    /// What the standard estimator makes of the true round trips, by connection.
    ideal: BTreeMap<u32, Rfc6298>,
    lasts: bool,
    srtt: Vec<f64>,
    rto: Vec<f64>,
    bandwidth: Vec<f64>,
}

impl Comparison {
    fn new(cell: &Cell) -> Self {
        Comparison {
            truth: Truth::new(cell.line.path()),
            payload: cell.line.payload(),
            ideal: BTreeMap::new(),
            lasts: cell.traffic != Traffic::Requests,
            srtt: Vec::new(),
            rto: Vec::new(),
            bandwidth: Vec::new(),
        }
    }

    fn on_record(&mut self, r: &Record) {
        let truths = self.truth.on_record(r);
        if r.direction != RecordDirection::Received || truths.is_empty() {
            return;
        }
        let ideal = self.ideal.entry(r.connection).or_insert_with(|| Rfc6298::new(FLOOR, GRANULARITY));
        truths.into_iter().for_each(|rtt| ideal.sample(rtt));
        if self.lasts && r.time < WARM {
            return;
        }
        self.srtt.push(error(r.srtt, ideal.srtt()));
        self.rto.push(error(r.rto, ideal.rto()));
        if r.bandwidth.bits_per_sec() > 0 {
            self.bandwidth.push((r.bandwidth.as_mbit_f64() / self.payload - 1.0) * 100.0);
        }
    }
}

/// Makes one run to the end of its time; none if interrupted.
///
/// # Errors
/// A defect of the lab, or bytes that arrive other than they were sent.
pub fn measure(cell: &Cell) -> Result<Option<Measured>> {
    // Records of a long run of BBR are many, and nothing is read from them.
    let records = cell.traffic != Traffic::Open;
    let mut run = Run::new(&cell.scenario()?, Inputs { records, ..Inputs::default() })?;
    let mut comparison = Comparison::new(cell);
    let mut kept = Kept::default();
    let empty = cell.line.path().empty();
    let mut min_rtt = Vec::new();
    loop {
        let progress = run.advance(records.then_some(&mut kept as &mut dyn RecordSink))?;
        if interrupt::asked() {
            return Ok(None);
        }
        // A host hands out the records of one connection after the other.
        kept.0.sort_by_key(|r| r.time);
        kept.0.drain(..).for_each(|r| comparison.on_record(&r));
        let seen = run.samples().iter().filter(|s| s.time >= SETTLED).filter_map(|s| s.sender.min_rtt);
        min_rtt.extend(seen.map(|min| error(min, empty)));
        if progress.finished {
            break;
        }
    }
    let outcome = run.finish()?;
    let (mut delivered, mut sent, mut received) = (ByteCount::ZERO, 0, 0);
    let (mut timeouts, mut asked) = (0, (0, 0));
    for flow in &outcome.flows {
        match &flow.verified {
            Ok(_) | Err(VerifyError::Short { .. }) => {}
            Err(error) => bail!("flow `{}`: {error}", flow.name),
        }
        delivered += flow.delivered;
        sent += flow.sent().map(|(_, n)| n).sum::<u64>();
        received += flow.counters.segments_received;
        timeouts += flow.timeouts;
        asked = (asked.0 + flow.counters.asked, asked.1 + flow.counters.confirmed);
    }
    Ok(Some(Measured {
        srtt: Errors::of(&comparison.srtt),
        rto: Errors::of(&comparison.rto),
        bandwidth: Errors::of(&comparison.bandwidth),
        min_rtt: Errors::of(&min_rtt),
        goodput: delivered.get() as f64 * 8e-6 / outcome.ended.as_secs_f64(),
        acks: received as f64 / sent.max(1) as f64,
        timeouts,
        asked,
    }))
}

/// All runs.
pub struct Results(BTreeMap<Cell, Measured>);

impl Results {
    /// `measured` in the order of `cells`.
    pub fn new(cells: &[Cell], measured: Vec<Measured>) -> Results {
        Results(cells.iter().copied().zip(measured).collect())
    }
    /// All of them, in a fixed order.
    pub fn all(&self) -> impl Iterator<Item = (&Cell, &Measured)> {
        self.0.iter()
    }
    /// One of them.
    pub fn get(&self, cell: &Cell) -> Option<&Measured> {
        self.0.get(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{FRAME, LINES};
    use super::*;
    use crate::papers::ack::today::words::{OFF, OTHER_RECEIVERS, RECEIVERS};

    fn measured(receiver: usize, traffic: Traffic) -> Measured {
        let receiver = if receiver == 0 { OTHER_RECEIVERS[0] } else { RECEIVERS[3] };
        let cell =
            Cell { line: LINES[0], traffic, receiver, asked: OFF, rto: "rfc6298", congestion: "cubic" };
        measure(&cell).unwrap().unwrap()
    }

    /// Breaks: the truth of all tables. A receiver that holds nothing back agrees with it, with and without a queue.
    #[test]
    fn without_delay_there_is_no_error() {
        for traffic in [Traffic::Half, Traffic::Full] {
            let m = measured(0, traffic);
            let (srtt, rto) = (m.srtt.unwrap(), m.rto.unwrap());
            assert!(srtt.most < 1e-3 && rto.most < 1e-2, "{traffic:?}: {srtt:?} {rto:?}");
        }
        assert_eq!(FRAME.0 - FRAME.1, 66);
    }

    /// Breaks: held ACKs no longer show as errors.
    #[test]
    fn held_acks_are_errors() {
        let srtt = measured(1, Traffic::Requests).srtt.unwrap();
        assert!(srtt.mean > 0.5 && srtt.most > srtt.mean, "{srtt:?}");
    }
}
