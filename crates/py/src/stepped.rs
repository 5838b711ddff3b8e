//! A congestion control that does what it was told between two steps of a run, and counts what came of it.

use crate::window::PyWindow;
use farpace_tcp::cc::{AckSample, CongestionControl, CongestionEvent, Cut};
use farpace_tcp::{LostSegment, Window};
use farpace_units::{Instant, Packets, Rate, Span};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happened to a connection since the last step.
#[derive(Clone, Debug, Default)]
pub struct StepCounts {
    pub acked: u64,
    pub delivered: u64,
    pub lost: u64,
    pub marked: u64,
    pub timeouts: u64,
    pub rtt_sum: Span,
    pub rtts: u32,
    pub rtt_min: Option<Span>,
    pub rtt_max: Option<Span>,
}

/// A connection as its last ACK has left it.
#[derive(Clone, Debug, Default)]
pub struct SteppedConnection {
    pub established: bool,
    pub cwnd: Packets,
    pub in_flight: Packets,
    pub srtt: Span,
    pub min_rtt: Option<Span>,
    pub delivery_rate: Option<Rate>,
    pub mss: u32,
}

/// What the control and who steers it share.
#[derive(Debug)]
pub struct SteppedState {
    /// The window that is wanted; none: the first one.
    pub wanted: Option<PyWindow>,
    pub counts: StepCounts,
    pub connection: SteppedConnection,
}

/// The same, for both.
#[derive(Clone, Debug)]
pub struct SharedSteps(Arc<Mutex<SteppedState>>);

impl SharedSteps {
    pub fn new() -> Self {
        let state = SteppedState {
            wanted: None,
            counts: StepCounts::default(),
            connection: SteppedConnection::default(),
        };
        SharedSteps(Arc::new(Mutex::new(state)))
    }

    pub fn lock(&self) -> MutexGuard<'_, SteppedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A control that follows it.
    pub fn control(&self) -> Box<dyn CongestionControl> {
        Box::new(SteppedControl { shared: self.clone(), pacing: None })
    }
}

struct SteppedControl {
    shared: SharedSteps,
    pacing: Option<Rate>,
}

impl SteppedControl {
    fn follow(&mut self, window: &mut Window, ack: Option<&AckSample>) {
        let mut state = self.shared.lock();
        let state = &mut *state;
        if let Some(ack) = ack {
            let counts = &mut state.counts;
            counts.acked += u64::from(ack.acked.get());
            counts.delivered += u64::from(ack.delivered.get());
            counts.marked += u64::from(ack.marked.get());
            if let Some(rtt) = ack.rtt {
                counts.rtt_sum += rtt;
                counts.rtts += 1;
                counts.rtt_min = Some(counts.rtt_min.map_or(rtt, |least| least.min(rtt)));
                counts.rtt_max = Some(counts.rtt_max.map_or(rtt, |most| most.max(rtt)));
            }
            let connection = &mut state.connection;
            (connection.in_flight, connection.srtt) = (ack.in_flight, ack.srtt);
            connection.min_rtt = ack.min_rtt.into_iter().chain(ack.rtt).min();
            connection.delivery_rate = ack.rate.and_then(|rate| rate.rate).or(connection.delivery_rate);
        }
        if let Some(wanted) = &state.wanted {
            window.set_cwnd(wanted.segments());
            self.pacing = wanted.pacing();
        }
        (state.connection.cwnd, state.connection.mss) = (window.cwnd(), window.mss());
    }
}

impl CongestionControl for SteppedControl {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.follow(window, Some(ack));
    }

    /// Nothing cuts the window but who steers it.
    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        window.ssthresh()
    }

    fn min_cwnd(&self, _: &Window) -> Packets {
        Packets::new(1)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd()
    }

    fn on_event(&mut self, _: Instant, window: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::Established(_) => self.shared.lock().connection.established = true,
            CongestionEvent::EnterLoss { .. } => self.shared.lock().counts.timeouts += 1,
            _ => {}
        }
        self.follow(window, None);
    }

    fn on_lost(&mut self, _: Instant, _: &mut Window, _: &LostSegment) {
        self.shared.lock().counts.lost += 1;
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
