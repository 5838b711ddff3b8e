//! One transfer, and what is noted of it.

use crate::interrupt;
use anyhow::{Context, Result, bail};
use farpace_events::{Cause, RecordSink, RecoveryState};
use farpace_lab::scenario::Scenario;
use farpace_lab::{FlowOutcome, Inputs, Payload, Run};
use farpace_report::BinnedSeries;
use farpace_units::{Instant, Packets, Rate, Span};

/// A window of this or less stands still: at most two packets per round trip.
const SMALL: Packets = Packets::new(2);

/// A stretch in which at most one packet arrived per round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// When it began.
    pub start: Instant,
    /// How long it lasted.
    pub span: Span,
    /// The congestion state in which the sender spent most of it.
    pub state: RecoveryState,
}

/// One transfer.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What is wrong with it, if it is not complete or not intact.
    pub broken: Option<String>,
    /// From connecting to the last byte.
    pub elapsed: Span,
    /// Payload per time.
    pub goodput: Rate,
    /// Goodput over the policed rate, in percent.
    pub efficiency: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Segments sent, by cause.
    pub sent: Vec<(Cause, u64)>,
    /// The longest silence.
    pub longest: Option<Stop>,
    /// All silences together.
    pub silent: Span,
    /// How long the window was two packets or less.
    pub small_window: Span,
    /// What came in at the receiver, per 10 ms.
    pub bandwidth: BinnedSeries,
}

impl Measurement {
    /// Segments sent for `cause`.
    pub fn sent(&self, cause: Cause) -> u64 {
        self.sent.iter().find(|(c, _)| *c == cause).map_or(0, |(_, n)| *n)
    }
}

/// Makes one transfer; none if interrupted. `name` is what messages call it.
///
/// # Errors
/// A defect of the lab. A transfer that is not intact is no error here: see [`Measurement::broken`].
pub fn run(scenario: &Scenario, payload: Option<Payload>, name: &str) -> Result<Option<Measurement>> {
    let inputs = Inputs { payload, ..Inputs::default() };
    let mut run = Run::new(scenario, inputs).with_context(|| name.to_owned())?;
    let bin = scenario.trace.bin;
    let mut states = Vec::new();
    let mut small_window = Span::ZERO;
    while !run.advance(None).with_context(|| name.to_owned())?.finished {
        if interrupt::asked() {
            return Ok(None);
        }
        let sample = run.samples().first();
        states.push(sample.map_or(RecoveryState::Open, |s| s.sender.recovery));
        if sample.is_some_and(|s| s.sender.cwnd <= SMALL) {
            small_window += bin;
        }
    }
    let bandwidth = meter(&run, bin);
    let outcome = run.finish().with_context(|| name.to_owned())?;
    let Some(flow) = outcome.flows.first() else { bail!("{name}: the scenario has no flow") };
    let longest = flow.silence.longest().map(|silence| {
        let index = |at: Instant| (at.as_nanos() / bin.as_nanos().max(1)) as usize;
        let during =
            states.get(index(silence.start)..index(silence.end).min(states.len())).unwrap_or_default();
        Stop { start: silence.start, span: silence.span(), state: mostly(during) }
    });
    Ok(Some(Measurement {
        broken: trouble(flow, name),
        elapsed: flow.elapsed,
        goodput: flow.goodput(),
        efficiency: flow.efficiency().unwrap_or(f64::NAN) * 100.0,
        timeouts: flow.timeouts,
        sent: flow.sent().collect(),
        longest,
        silent: flow.silence.total(),
        small_window,
        bandwidth,
    }))
}

/// Makes one transfer again, with a record of every segment and ACK.
///
/// # Errors
/// As [`run`].
pub fn record(scenario: &Scenario, payload: Option<Payload>, sink: &mut dyn RecordSink) -> Result<()> {
    let mut run = Run::new(scenario, Inputs { payload, records: true, ..Inputs::default() })?;
    while !run.advance(Some(sink))?.finished {}
    Ok(())
}

fn meter(run: &Run, bin: Span) -> BinnedSeries {
    let meter = run.meters().next().map(|(_, meter)| meter);
    let bytes = meter.map(|m| m.bins().iter().map(|b| b.bytes).collect()).unwrap_or_default();
    BinnedSeries::new(meter.map_or(bin, farpace_path::Meter::width), bytes)
}

fn mostly(states: &[RecoveryState]) -> RecoveryState {
    let count = |state: &RecoveryState| states.iter().filter(|s| *s == state).count();
    states.iter().copied().max_by_key(|s| (count(s), *s)).unwrap_or_default()
}

fn trouble(flow: &FlowOutcome, name: &str) -> Option<String> {
    match &flow.verified {
        _ if flow.is_intact() => None,
        Err(error) => Some(format!("{name}: {error}")),
        Ok(_) => Some(format!("{name}: {} of {} arrived in {}", flow.delivered, flow.size, flow.elapsed)),
    }
}
