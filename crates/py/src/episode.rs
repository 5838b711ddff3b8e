//! A run that stops at steps of virtual time, for code that decides about one flow between them.

use crate::arguments::PyScenario;
use crate::failed;
use crate::stepped::{SharedSteps, StepCounts};
use crate::window::PyWindow;
use anyhow::{Context, Result, anyhow};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_tcp::config::ExternalControl;
use farpace_units::{Instant, Packets, Rate, Span};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Shortest step.
const MIN_STEP: Span = Span::from_micros(1);
/// Longest step.
const MAX_STEP: Span = Span::from_secs(3600);

/// How long a step takes.
#[derive(Clone, Copy, Debug)]
enum StepLength {
    /// A smoothed round trip as it is when the step begins, and at least that of the empty path.
    RoundTrip,
    Fixed(Span),
    /// Until the flow has begun, and two and a half round trips of the empty path more: the handshake, and
    /// the first ACKs.
    First,
}

/// What came of a step, as `farpace.gym.Step` says it.
#[derive(Clone, Debug, IntoPyObject)]
pub struct StepNumbers {
    now_s: f64,
    step_s: f64,
    done: bool,
    out_of_time: bool,
    established: bool,
    cwnd_segments: u32,
    pacing_rate_bit_s: Option<f64>,
    in_flight_segments: u32,
    mss_bytes: u32,
    acked_segments: u64,
    delivered_segments: u64,
    lost_segments: u64,
    marked_segments: u64,
    timeouts: u64,
    rtt_s: Option<f64>,
    rtt_min_s: Option<f64>,
    rtt_max_s: Option<f64>,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    throughput_bit_s: f64,
    delivery_rate_bit_s: Option<f64>,
    loss_fraction: f64,
    base_rtt_s: f64,
    bottleneck_rate_bit_s: Option<f64>,
}

/// A run in the thread that steps it: its parts cannot change threads.
struct SteppedRun {
    run: Run,
    flow: usize,
    shared: SharedSteps,
    now: Instant,
    begins: Instant,
    base_rtt: Span,
    bottleneck: Option<Rate>,
}

impl SteppedRun {
    fn new(scenario: &Scenario, flow: usize, shared: SharedSteps) -> Result<Self> {
        let spec = scenario.flows.get(flow).context("the flow does not exist")?;
        Ok(SteppedRun {
            flow,
            shared,
            now: Instant::ZERO,
            begins: Instant::ZERO + spec.start,
            base_rtt: scenario.base_rtt(spec).max(MIN_STEP),
            bottleneck: scenario.bottleneck(spec).map(|narrowest| narrowest.goodput),
            run: Run::new(scenario, Inputs::default())?,
        })
    }

    fn step(&mut self, length: StepLength) -> Result<StepNumbers> {
        let begin = self.now;
        self.shared.lock().counts = StepCounts::default();
        let to = match length {
            StepLength::First => self.begins + Span::from_nanos(self.base_rtt.as_nanos() / 2 * 5),
            StepLength::Fixed(span) => begin + span,
            StepLength::RoundTrip => begin + self.shared.lock().connection.srtt.max(self.base_rtt),
        };
        let end = Instant::ZERO + self.run.scenario().duration;
        let to = to.min(end);
        while !self.run.is_done(self.flow) && self.now < to {
            if self.run.bin_end() <= to {
                self.now = self.run.advance(None)?.now;
            } else {
                self.run.advance_within_bin(to)?;
                self.now = to;
            }
        }
        Ok(self.report(begin))
    }

    fn report(&self, begin: Instant) -> StepNumbers {
        let state = self.shared.lock();
        let (counts, connection) = (&state.counts, &state.connection);
        let step_s = self.now.since(begin).as_secs_f64();
        let rate = |rate: Rate| rate.bits_per_sec() as f64;
        let bits = counts.delivered as f64 * f64::from(connection.mss) * 8.0;
        let ended = counts.lost + counts.delivered;
        StepNumbers {
            now_s: self.now.as_secs_f64(),
            step_s,
            done: self.run.is_done(self.flow),
            out_of_time: self.now >= Instant::ZERO + self.run.scenario().duration,
            established: connection.established,
            cwnd_segments: connection.cwnd.get(),
            pacing_rate_bit_s: state.wanted.as_ref().and_then(PyWindow::pacing).map(rate),
            in_flight_segments: connection.in_flight.get(),
            mss_bytes: connection.mss,
            acked_segments: counts.acked,
            delivered_segments: counts.delivered,
            lost_segments: counts.lost,
            marked_segments: counts.marked,
            timeouts: counts.timeouts,
            rtt_s: (counts.rtts > 0).then(|| counts.rtt_sum.as_nanos() as f64 / f64::from(counts.rtts) / 1e9),
            rtt_min_s: counts.rtt_min.map(Span::as_secs_f64),
            rtt_max_s: counts.rtt_max.map(Span::as_secs_f64),
            srtt_s: (!connection.srtt.is_zero()).then(|| connection.srtt.as_secs_f64()),
            min_rtt_s: connection.min_rtt.map(Span::as_secs_f64),
            throughput_bit_s: if step_s > 0.0 { bits / step_s } else { 0.0 },
            delivery_rate_bit_s: connection.delivery_rate.map(rate),
            loss_fraction: if ended > 0 { counts.lost as f64 / ended as f64 } else { 0.0 },
            base_rtt_s: self.base_rtt.as_secs_f64(),
            bottleneck_rate_bit_s: self.bottleneck.map(rate),
        }
    }
}

/// Steps a run until nobody wants another step.
fn step_until_dropped(
    scenario: Scenario,
    flow: usize,
    shared: SharedSteps,
    lengths: &Receiver<StepLength>,
    steps: &Sender<Result<StepNumbers>>,
) {
    let mut run = match SteppedRun::new(&scenario, flow, shared) {
        Ok(run) => run,
        Err(error) => {
            _ = steps.send(Err(error));
            return;
        }
    };
    for length in lengths {
        if steps.send(run.step(length)).is_err() {
            break;
        }
    }
}

/// The thread of a run, and the ways to it.
struct EpisodeThread {
    lengths: Option<Sender<StepLength>>,
    steps: Receiver<Result<StepNumbers>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for EpisodeThread {
    fn drop(&mut self) {
        self.lengths = None;
        if let Some(thread) = self.thread.take() {
            _ = thread.join(); // it never waits for Python
        }
    }
}

/// A run that stops at steps, of which one flow is steered. Its first step is made when it is made.
#[pyclass(frozen, name = "Episode")]
pub struct PyEpisode {
    thread: Mutex<EpisodeThread>,
    shared: SharedSteps,
    length: StepLength,
    flow: String,
}

#[pymethods]
impl PyEpisode {
    /// `flow` is a name, or none for the first; `step_s` the length of steps, or none for a round trip.
    #[new]
    fn new(
        source: PyScenario,
        set: Vec<(String, String)>,
        flow: Option<String>,
        step_s: Option<f64>,
    ) -> PyResult<Self> {
        let scenario = source.scenario(&set).map_err(failed)?;
        let mut scenario = scenario.drawn(scenario.seed);
        let found = match &flow {
            Some(name) => scenario.flows.iter().position(|flow| flow.name == *name),
            None => (!scenario.flows.is_empty()).then_some(0),
        };
        let index = found.ok_or_else(|| {
            let names: Vec<&str> = scenario.flows.iter().take(20).map(|flow| flow.name.as_str()).collect();
            let wanted = flow.unwrap_or_default();
            PyValueError::new_err(format!("there is no flow `{wanted}`: there are {}", names.join(", ")))
        })?;
        let flow = scenario.flows[index].name.clone();
        let shared = SharedSteps::new();
        let control = shared.clone();
        let settings = Arc::make_mut(&mut scenario.flows[index].sender);
        settings.external = Some(ExternalControl::new("gym", move |_| control.control()));
        settings.resolve().map_err(|error| failed(anyhow!("flow `{flow}`: {error}")))?;
        let length = match step_s {
            None => StepLength::RoundTrip,
            Some(s) if (MIN_STEP.as_secs_f64()..=MAX_STEP.as_secs_f64()).contains(&s) => {
                StepLength::Fixed(Span::from_nanos((s * 1e9).round() as u64))
            }
            Some(s) => {
                return Err(PyValueError::new_err(format!("step = {s}: a step takes 1e-6 to 3600 s")));
            }
        };
        let (lengths, asked) = channel();
        let (made, steps) = channel();
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("farpace-episode".into())
            .spawn(move || step_until_dropped(scenario, index, for_thread, &asked, &made))
            .map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
        let thread = EpisodeThread { lengths: Some(lengths), steps, thread: Some(thread) };
        Ok(PyEpisode { thread: Mutex::new(thread), shared, length, flow })
    }

    /// Name of the flow that is steered.
    #[getter]
    fn flow(&self) -> &str {
        &self.flow
    }

    /// The window in force, to be set and given back.
    #[getter]
    fn window(&self) -> PyWindow {
        let state = self.shared.lock();
        PyWindow::of(state.connection.cwnd.max(Packets::new(1)), state.connection.mss)
    }

    /// The first step: to the first ACKs.
    fn begin(&self, py: Python<'_>) -> PyResult<StepNumbers> {
        self.step(py, StepLength::First)
    }

    /// Runs one step with this window and pacing rate.
    fn advance(&self, py: Python<'_>, window: PyRef<'_, PyWindow>) -> PyResult<StepNumbers> {
        // A window of before the handshake did not know how long segments are.
        let mut window = window.clone();
        window.measure(self.shared.lock().connection.mss);
        self.shared.lock().wanted = Some(window);
        self.step(py, self.length)
    }
}

impl PyEpisode {
    fn step(&self, py: Python<'_>, length: StepLength) -> PyResult<StepNumbers> {
        let made = py.detach(|| {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            // If the thread is gone, it has said why.
            _ = thread.lengths.as_ref().map(|lengths| lengths.send(length));
            thread.steps.recv()
        });
        made.map_err(|_| failed(anyhow!("the run has ended with an error: make another episode")))?
            .map_err(failed)
    }
}
