//! Congestion controls written in Python: a bridge from the engine's contract to methods of an object.

use crate::window::PyWindow;
use farpace_events::RecoveryState;
use farpace_tcp::Window;
use farpace_tcp::cc::{AckSample, CongestionControl, CongestionEvent, Cut};
use farpace_tcp::config::{ExternalControl, ExternalOpening};
use farpace_units::{Instant, Packets, Rate, Span};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The methods that a control may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlMethod {
    Start,
    Ack,
    Congestion,
    Timeout,
    Recovered,
    Undo,
    Idle,
}

impl ControlMethod {
    const ALL: [Self; 7] =
        [Self::Start, Self::Ack, Self::Congestion, Self::Timeout, Self::Recovered, Self::Undo, Self::Idle];

    const fn name(self) -> &'static str {
        match self {
            Self::Start => "on_start",
            Self::Ack => "on_ack",
            Self::Congestion => "on_congestion",
            Self::Timeout => "on_timeout",
            Self::Recovered => "on_recovered",
            Self::Undo => "on_undo",
            Self::Idle => "on_idle",
        }
    }
}

/// The first error that code in Python raised during a run.
#[derive(Clone, Default)]
pub struct ControlFailure(Arc<ControlFailureState>);

#[derive(Default)]
struct ControlFailureState {
    is_set: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl ControlFailure {
    /// There is one.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Takes it out.
    pub fn take(&self) -> Option<PyErr> {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: PyErr) {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.0.is_set.store(true, Ordering::Relaxed);
    }
}

/// The controls of a run by name, from what Python gives: a class, or a function that makes an object.
pub fn external(
    py: Python<'_>,
    controls: &[(String, Py<PyAny>)],
    failure: &ControlFailure,
) -> PyResult<Vec<ExternalControl>> {
    let one = |(name, make): &(String, Py<PyAny>)| {
        if !make.bind(py).is_callable() {
            return Err(PyTypeError::new_err(format!(
                "controls[{name:?}] is no class: give the class, or a function without arguments that \
                 returns a control; it is called for each connection"
            )));
        }
        let (make, failure, title) = (make.clone_ref(py), failure.clone(), name.clone());
        Ok(ExternalControl::new(name, move |opening| {
            Box::new(PyControl::new(&make, &title, opening, failure.clone()))
        }))
    };
    controls.iter().map(one).collect()
}

/// What an ACK brought.
#[pyclass(frozen, name = "AckSample")]
pub struct PyAckSample {
    ack: AckSample,
    round_count: u64,
    round_start: bool,
}

/// None for a time that is not known.
fn known(span: Span) -> Option<f64> {
    (!span.is_zero()).then(|| span.as_secs_f64())
}

#[pymethods]
impl PyAckSample {
    /// Virtual time at which the ACK arrived.
    #[getter]
    fn now_s(&self) -> f64 {
        self.ack.now.as_secs_f64()
    }

    /// The same in nanoseconds, exactly.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.ack.now.as_nanos()
    }

    /// Segments newly acknowledged cumulatively, without those that had been SACKed.
    #[getter]
    fn acked_segments(&self) -> u32 {
        self.ack.acked.get()
    }

    /// Segments newly known to have arrived: acknowledged or SACKed.
    #[getter]
    fn delivered_segments(&self) -> u32 {
        self.ack.delivered.get()
    }

    /// Segments that this ACK shows to be lost.
    #[getter]
    fn lost_segments(&self) -> u32 {
        self.ack.lost.get()
    }

    /// Of the delivered segments, those that it says were marked (ECN).
    #[getter]
    fn marked_segments(&self) -> u32 {
        self.ack.marked.get()
    }

    /// Segments in flight after this ACK.
    #[getter]
    fn in_flight_segments(&self) -> u32 {
        self.ack.in_flight.get()
    }

    /// Segments in flight before it.
    #[getter]
    fn in_flight_before_segments(&self) -> u32 {
        self.ack.in_flight_before.get()
    }

    /// Round trip of the newest segment that arrived, if it was sent only once.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.ack.rtt.map(Span::as_secs_f64)
    }

    /// Least round trip of the last minutes, rtt_s included.
    #[getter]
    fn min_rtt_s(&self) -> Option<f64> {
        self.ack.min_rtt.into_iter().chain(self.ack.rtt).min().map(Span::as_secs_f64)
    }

    /// Smoothed round trip (RFC 6298).
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        known(self.ack.srtt)
    }

    /// Payload of a full segment.
    #[getter]
    fn mss_bytes(&self) -> u32 {
        self.ack.mss
    }

    /// Largest window that the peer has had.
    #[getter]
    fn max_window_bytes(&self) -> u32 {
        self.ack.max_window
    }

    /// The congestion window held data back during the round trip that this ACK ends.
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.ack.cwnd_limited
    }

    /// The ACK echoes a congestion mark.
    #[getter]
    fn ece(&self) -> bool {
        self.ack.ece
    }

    /// Congestion state after this ACK: open, disorder, cwr, recovery or loss.
    #[getter]
    fn state(&self) -> &'static str {
        match self.ack.state {
            RecoveryState::Open => "open",
            RecoveryState::Disorder => "disorder",
            RecoveryState::Cwr => "cwr",
            RecoveryState::Recovery => "recovery",
            RecoveryState::Loss => "loss",
        }
    }

    /// Rate at which the path delivered payload during the last round trip, if it could be measured.
    #[getter]
    fn delivery_rate_bit_s(&self) -> Option<f64> {
        self.ack.rate?.rate.map(|rate| rate.bits_per_sec() as f64)
    }

    /// The program held data back, so that the path may be faster than delivery_rate_bit_s.
    #[getter]
    fn app_limited(&self) -> bool {
        self.ack.rate.is_some_and(|rate| rate.app_limited)
    }

    /// Segments delivered over the whole connection.
    #[getter]
    fn total_delivered_segments(&self) -> u64 {
        self.ack.rate.map_or(0, |rate| rate.total_delivered)
    }

    /// Round trips so far, counted by segments.
    #[getter]
    fn round_count(&self) -> u64 {
        self.round_count
    }

    /// This ACK begins a round trip.
    #[getter]
    fn round_start(&self) -> bool {
        self.round_start
    }

    fn __repr__(&self) -> String {
        format!(
            "<farpace.AckSample now_s={} acked_segments={} lost_segments={} in_flight_segments={}>",
            self.now_s(),
            self.ack.acked.get(),
            self.ack.lost.get(),
            self.ack.in_flight.get()
        )
    }
}

/// Something that a control is told besides ACKs.
#[pyclass(frozen, name = "CongestionEvent")]
pub struct PyCongestionEvent {
    now: Instant,
    kind: &'static str,
    flow: String,
    seed: u32,
    flight: Option<Packets>,
    time: Option<Span>,
}

#[pymethods]
impl PyCongestionEvent {
    /// Virtual time.
    #[getter]
    fn now_s(&self) -> f64 {
        self.now.as_secs_f64()
    }

    /// start, loss, ecn, timeout, recovered, undo or idle.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// Name of the flow.
    #[getter]
    fn flow(&self) -> &str {
        &self.flow
    }

    /// A number that tells connections apart, for what a control does at random. It follows from the
    /// scenario's seed.
    #[getter]
    fn seed(&self) -> u32 {
        self.seed
    }

    /// loss, ecn and timeout: segments sent and not acknowledged when it began.
    #[getter]
    fn flight_segments(&self) -> Option<u32> {
        self.flight.map(Packets::get)
    }

    /// start: round trip of the handshake, if it could be measured.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.time.filter(|_| self.kind == "start").and_then(known)
    }

    /// idle: for how long nothing was sent.
    #[getter]
    fn idle_s(&self) -> Option<f64> {
        self.time.filter(|_| self.kind == "idle").map(Span::as_secs_f64)
    }

    fn __repr__(&self) -> String {
        format!("<farpace.CongestionEvent {} now_s={} flow={:?}>", self.kind, self.now_s(), self.flow)
    }
}

/// What is called of a control.
struct ControlCallbacks {
    methods: [Option<Py<PyAny>>; ControlMethod::ALL.len()],
    window: Py<PyWindow>,
}

impl ControlCallbacks {
    fn new(make: &Py<PyAny>, name: &str) -> PyResult<Self> {
        Python::attach(|py| {
            let object = make.bind(py).call0()?;
            let mut methods = [const { None }; ControlMethod::ALL.len()];
            for method in ControlMethod::ALL {
                methods[method as usize] = object.getattr_opt(method.name())?.map(Bound::unbind);
            }
            if methods[ControlMethod::Ack as usize].is_none() {
                let class = object.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "the control `{name}` (a `{class}`) has no method on_ack(self, window, ack)"
                )));
            }
            Ok(ControlCallbacks { methods, window: Py::new(py, PyWindow::closed())? })
        })
    }

    fn method(&self, method: ControlMethod) -> Option<&Py<PyAny>> {
        self.methods[method as usize].as_ref()
    }
}

/// A control in Python behind the engine's contract. After an error it leaves the window as it is; whoever
/// runs the network looks for the error and ends the run.
struct PyControl {
    name: String,
    flow: String,
    seed: u32,
    callbacks: Option<ControlCallbacks>,
    pacing: Option<Rate>,
    failure: ControlFailure,
    /// The last reduction that was asked for, until the control has been told.
    cut: Option<(Cut, Packets)>,
    round_count: u64,
    round_end: u64,
}

impl PyControl {
    fn new(make: &Py<PyAny>, name: &str, opening: ExternalOpening<'_>, failure: ControlFailure) -> Self {
        let callbacks = if failure.is_set() {
            None
        } else {
            ControlCallbacks::new(make, name).map_err(|error| failure.set(error)).ok()
        };
        PyControl {
            name: name.to_owned(),
            flow: opening.flow.to_owned(),
            seed: opening.seed,
            callbacks,
            pacing: None,
            failure,
            cut: None,
            round_count: 0,
            round_end: 0,
        }
    }

    /// Calls a method with the window and what it is about, and takes over what it has made of the window.
    fn call<T>(&mut self, now: Instant, window: &mut Window, method: ControlMethod, about: T)
    where
        T: for<'py> IntoPyObject<'py>,
    {
        if self.failure.is_set() {
            return;
        }
        let Some(callbacks) = &self.callbacks else { return };
        let Some(call) = callbacks.method(method) else { return };
        let made = Python::attach(|py| -> PyResult<PyWindow> {
            let shown = callbacks.window.bind(py);
            shown.try_borrow_mut()?.follow(window);
            call.call1(py, (shown, about)).inspect_err(|error| {
                let note = format!(
                    "raised in {} of the control `{}` for flow `{}` at {} of virtual time",
                    method.name(),
                    self.name,
                    self.flow,
                    now
                );
                // Python 3.10 has no notes.
                _ = error.value(py).call_method1("add_note", (note,));
            })?;
            let made = shown.try_borrow()?.clone();
            Ok(made)
        });
        match made {
            Ok(made) => {
                window.set_cwnd(made.segments());
                self.pacing = made.pacing();
            }
            Err(error) => self.failure.set(error),
        }
    }

    fn tell(&mut self, now: Instant, window: &mut Window, method: ControlMethod, time: Option<Span>) {
        if self.callbacks.as_ref().is_none_or(|callbacks| callbacks.method(method).is_none()) {
            return;
        }
        let kind = match (method, self.cut) {
            (ControlMethod::Congestion, Some((Cut::Ecn, _))) => "ecn",
            (ControlMethod::Congestion, _) => "loss",
            _ => method.name().trim_start_matches("on_"),
        };
        let flight = match method {
            ControlMethod::Congestion | ControlMethod::Timeout => self.cut.map(|(_, flight)| flight),
            _ => None,
        };
        let flow = self.flow.clone();
        let event = PyCongestionEvent { now, kind, flow, seed: self.seed, flight, time };
        self.call(now, window, method, event);
    }

    /// The same of a reduction, which has been told now.
    fn tell_cut(&mut self, now: Instant, window: &mut Window, method: ControlMethod) {
        self.tell(now, window, method, None);
        self.cut = None;
    }
}

impl CongestionControl for PyControl {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if let Some((Cut::Ecn, _)) = self.cut {
            self.tell_cut(ack.now, window, ControlMethod::Congestion);
        }
        let mut round_start = false;
        if let Some(rate) = ack.rate
            && rate.prior_delivered >= self.round_end
        {
            self.round_end = rate.total_delivered;
            self.round_count += 1;
            round_start = true;
        }
        let sample = PyAckSample { ack: *ack, round_count: self.round_count, round_start };
        self.call(ack.now, window, ControlMethod::Ack, sample);
    }

    /// Nothing cuts the window but the control: the threshold stays.
    fn ssthresh(&mut self, _: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets {
        self.cut = Some((cut, flight));
        window.ssthresh()
    }

    fn min_cwnd(&self, _: &Window) -> Packets {
        Packets::new(1)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd()
    }

    fn on_event(&mut self, now: Instant, window: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::Established(rtt) => self.tell(now, window, ControlMethod::Start, Some(rtt)),
            CongestionEvent::EnterRecovery => self.tell_cut(now, window, ControlMethod::Congestion),
            CongestionEvent::EnterLoss { .. } => self.tell_cut(now, window, ControlMethod::Timeout),
            CongestionEvent::ExitRecovery => self.tell(now, window, ControlMethod::Recovered, None),
            CongestionEvent::Undo => self.tell(now, window, ControlMethod::Undo, None),
            CongestionEvent::Restart(idle) => self.tell(now, window, ControlMethod::Idle, Some(idle)),
        }
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn wants_rates(&self) -> bool {
        true
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn name(&self) -> &'static str {
        "external"
    }
}
