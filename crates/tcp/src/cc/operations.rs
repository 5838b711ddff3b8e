//! Laws that hold for every congestion control, whatever happens to a connection and in whatever order.

use super::{AckSample, CongestionControl, CongestionEvent, Cut, SentSample, make};
use crate::config::{Abc, Congestion, Profile, Settings};
use crate::segments::{Segments, Tags};
use crate::window::Window;
use farpace_events::RecoveryState;
use farpace_units::{Instant, Packets, Rate, Seq, Span};
use proptest::prelude::*;

/// No more than this is kept outstanding, so that huge windows cost nothing.
const MAX: usize = 200;
const MSS: u32 = 1448;

#[derive(Clone, Debug)]
enum Operation {
    /// So many segments arrive, acknowledged in order; or this many are said to, though they never were sent.
    Ack {
        segments: u32,
        limited: bool,
    },
    Stretch {
        segments: u32,
    },
    /// A SACK for one segment in the middle.
    Sack {
        at: usize,
    },
    /// So many segments at the head are lost, and fast recovery begins.
    Loss {
        segments: usize,
    },
    Recovered,
    Ecn,
    Timeout,
    Undo,
    /// Everything arrives, and nothing is sent for this long.
    Idle(Span),
    /// The application has nothing to send.
    AppLimited,
    Rtt(Span),
    /// Nothing happens for this long.
    Jump(Span),
    /// Somebody else sets the window.
    SetWindow(u32),
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        Just(Span::ZERO),
        Just(Span::from_nanos(1)),
        (1u64..500).prop_map(Span::from_millis),
        Just(Span::from_secs(600)),
        Just(Span::from_secs(100_000_000)),
    ]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![1u32..20, Just(1_000), Just(u32::MAX - 1), Just(u32::MAX)]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (1u32..40, any::<bool>()).prop_map(|(segments, limited)| Operation::Ack { segments, limited }),
        1 => count().prop_map(|segments| Operation::Stretch { segments }),
        2 => (1usize..50).prop_map(|at| Operation::Sack { at }),
        2 => (1usize..10).prop_map(|segments| Operation::Loss { segments }),
        2 => Just(Operation::Recovered),
        1 => Just(Operation::Ecn),
        1 => Just(Operation::Timeout),
        2 => Just(Operation::Undo),
        1 => span().prop_map(Operation::Idle),
        1 => Just(Operation::AppLimited),
        1 => span().prop_map(Operation::Rtt),
        1 => span().prop_map(Operation::Jump),
        1 => count().prop_map(Operation::SetWindow),
    ]
}

/// A connection reduced to what congestion control sees of it.
struct Model {
    cc: Box<dyn CongestionControl>,
    /// It cuts to a part of FlightSize, not of the window.
    by_flight: bool,
    window: Window,
    clamp: u32,
    segments: Segments,
    now: Instant,
    rtt: Span,
    next: Seq,
    state: RecoveryState,
    /// The threshold after a loss is a measured bandwidth.
    measured: bool,
    /// Window and threshold before the last cut.
    before: Option<(Packets, Packets)>,
}

impl Model {
    fn new(profile: Profile, congestion: Congestion, cwnd: u32, clamp: u32, paced: bool) -> Self {
        let modern = matches!(profile.config().recovery, crate::config::Recovery::Modern(_));
        let settings = Settings {
            profile: Some(profile),
            congestion: Some(congestion),
            hystart: (modern && congestion.slow_starts()).then_some(paced),
            pacing: (modern && paced).then_some(true),
            ..Settings::default()
        };
        let cc = make(&settings.resolve().unwrap(), 3);
        let mut segments = Segments::default();
        segments.measure_rates();
        let window = Window::new(Packets::new(cwnd), None, Packets::new(clamp), Abc::Off, MSS);
        Model {
            measured: congestion.has_abe(),
            by_flight: modern && congestion.slow_starts(),
            cc,
            window,
            clamp: clamp.max(1),
            segments,
            now: Instant::from_nanos(1),
            rtt: Span::from_millis(50),
            next: Seq::new(u32::MAX - 5000),
            state: RecoveryState::Open,
            before: None,
        }
    }

    fn loss_based(&self) -> bool {
        !self.cc.owns_window()
    }

    fn recovering(&self) -> bool {
        matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
    }

    /// Sends what the window allows.
    fn send(&mut self) {
        while self.segments.in_flight() < self.window.cwnd() && self.segments.len() < MAX {
            if let Some(index) = self.segments.first_waiting() {
                self.segments.mark_retransmitted(index, self.now, self.next);
            } else {
                if self.segments.is_empty() {
                    self.cc.on_event(self.now, &mut self.window, CongestionEvent::Restart(self.rtt));
                }
                self.segments.push(self.next, MSS, self.now);
                self.next += MSS;
            }
            let in_flight = self.segments.in_flight();
            let sample = SentSample { now: self.now, in_flight, retransmission: false, srtt: self.rtt };
            self.cc.on_sent(&mut self.window, &sample);
        }
    }

    fn tell_losses(&mut self) {
        let Model { cc, window, segments, .. } = self;
        segments.take_losses(|lost| cc.on_lost(self.now, window, &lost));
    }

    fn ack(&mut self, acked: Packets, limited: bool) {
        self.tell_losses();
        let Model { cc, window, segments, .. } = self;
        let ack = AckSample {
            snd_una: segments.row(0).map_or(self.next, |r| r.seq),
            snd_nxt: self.next,
            in_flight: segments.in_flight(),
            rtt: Some(self.rtt),
            min_rtt: Some(self.rtt),
            srtt: self.rtt,
            cwnd_limited: limited,
            state: self.state,
            rate: segments.take_rate_sample(self.now, None),
            in_flight_before: if limited { Packets::MAX } else { Packets::ZERO },
            ..AckSample::of(self.now, acked)
        };
        cc.on_acked(&ack);
        let cwnd = window.cwnd();
        if self.state != RecoveryState::Recovery || cc.owns_window() {
            cc.on_ack(window, &ack);
        }
        if self.loss_based() && !limited {
            // A measured window may fall with what is measured.
            let kept = self.window.cwnd() == cwnd || (self.measured && self.window.cwnd() < cwnd);
            assert!(kept, "no growth where the window is not used");
        }
    }

    fn arrive(&mut self, n: u32, limited: bool) {
        self.send();
        self.now += self.rtt;
        let mut acked = 0;
        while acked < n
            && let Some(end) = self.segments.row(0).map(|r| r.end())
        {
            acked += self.segments.acknowledge(end).packets.get();
        }
        self.ack(Packets::new(acked), limited);
    }

    /// Asks for a cut, and checks what it gives.
    fn cut(&mut self, cut: Cut) {
        let (flight, cwnd) = (self.segments.packets_out(), self.window.cwnd());
        self.before = Some((cwnd, self.window.ssthresh()));
        let ssthresh = self.cc.ssthresh(self.now, &self.window, flight, cut);
        self.window.set_ssthresh(ssthresh);
        if self.loss_based() {
            assert!(ssthresh.get() >= 2);
            // BBR is exempt: it takes losses into its model instead of cutting. So is who measures what to
            // cut to.
            if self.measured {
                return self.window.set_cwnd(self.window.ssthresh().min(cwnd));
            }
            // RFC 8257 §3.3: the part that was marked is that of the window.
            let of_window = !self.by_flight || (self.cc.name() == "dctcp" && cut == Cut::Ecn);
            let of = if of_window { cwnd } else { cwnd.min(flight) };
            // Westwood comes down to what the path was measured to carry. That may be the whole window, and
            // after a timeout, when the window is one segment, more than the last one.
            let measured = self.cc.name().starts_with("westwood");
            let kept = measured && (ssthresh <= cwnd || cut == Cut::Timeout);
            assert!(
                ssthresh < of || of.get() <= 4 || kept,
                "{}: a cut to {ssthresh} with {flight} of {cwnd} in flight",
                self.cc.name()
            );
            self.window.set_cwnd(self.window.ssthresh().min(cwnd));
        }
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Ack { segments, limited } => self.arrive(segments, limited),
            Operation::Stretch { segments } => {
                self.now += self.rtt;
                self.ack(Packets::new(segments), true);
            }
            Operation::Sack { at } => {
                self.send();
                if at < self.segments.len() && !self.segments.tags(at).any(Tags::SACKED) {
                    self.segments.sack(at);
                    self.ack(Packets::ZERO, true);
                }
            }
            Operation::Loss { segments } => {
                self.send();
                for i in 0..segments.min(self.segments.len()) {
                    self.segments.mark_lost(i);
                }
                if !self.recovering() {
                    self.cut(Cut::FastRetransmit);
                    self.state = RecoveryState::Recovery;
                    self.cc.on_event(self.now, &mut self.window, CongestionEvent::EnterRecovery);
                }
                self.ack(Packets::ZERO, true);
            }
            Operation::Recovered => {
                if self.recovering() {
                    self.state = RecoveryState::Open;
                    self.cc.on_event(self.now, &mut self.window, CongestionEvent::ExitRecovery);
                }
            }
            Operation::Ecn => {
                if !self.recovering() {
                    self.send();
                    self.cut(Cut::Ecn);
                    self.before = None;
                }
            }
            Operation::Timeout => {
                self.send();
                if self.state != RecoveryState::Loss {
                    self.cut(Cut::Timeout);
                }
                self.segments.lose_all(true);
                self.state = RecoveryState::Loss;
                if self.loss_based() {
                    self.window.set_cwnd(Packets::new(1));
                }
                self.cc.on_event(self.now, &mut self.window, CongestionEvent::EnterLoss { total_lost: 0 });
                self.tell_losses();
            }
            Operation::Undo => self.undo(),
            Operation::Idle(time) => {
                self.arrive(u32::MAX, false);
                self.now += time;
                let cwnd = self.window.cwnd();
                self.cc.on_event(self.now, &mut self.window, CongestionEvent::Restart(time));
                // BBR may leave ProbeRTT, and then gives the window back.
                let kept = self.window.cwnd() == cwnd || !self.loss_based();
                assert!(kept, "a pause does not change the window");
            }
            Operation::AppLimited => {
                self.segments.mark_app_limited();
                self.arrive(2, false);
            }
            Operation::Rtt(rtt) => self.rtt = rtt,
            Operation::Jump(time) => self.now += time,
            Operation::SetWindow(cwnd) => {
                if self.loss_based() {
                    self.window.set_cwnd(Packets::new(cwnd));
                }
            }
        }
        self.check();
    }

    fn undo(&mut self) {
        let Some((cwnd, ssthresh)) = self.before.take() else { return };
        // BIC comes back to its maximum, which fast convergence lowers and a timeout forgets, as in the
        // kernel.
        let forgetful = self.cc.name() == "bic";
        self.segments.clear_lost();
        self.state = RecoveryState::Open;
        if self.loss_based() {
            self.window.set_cwnd(self.cc.undo_cwnd(&self.window));
            self.window.set_ssthresh(ssthresh);
        }
        self.cc.on_event(self.now, &mut self.window, CongestionEvent::Undo);
        // Reno by ACKs keeps only the half of the window, which may have been odd.
        let least = if forgetful { Packets::new(1) } else { cwnd - Packets::new(1) };
        assert!(
            self.window.cwnd() >= least,
            "{}: an undo gives back what the cut took: {cwnd}",
            self.cc.name()
        );
    }

    fn check(&self) {
        let cwnd = self.window.cwnd().get();
        assert!(cwnd >= 1 && cwnd <= self.clamp, "a window of {cwnd}, clamp {}", self.clamp);
        assert!(self.window.ssthresh().get() >= 2);
        assert!(self.cc.pacing().is_none_or(|rate| rate > Rate::from_bits_per_sec(0)));
        assert_eq!(self.segments.check(), Ok(()));
    }

    /// Without losses, and with a window that is used, it grows in the end.
    fn grows(&mut self) {
        self.apply(&Operation::Recovered);
        self.apply(&Operation::Rtt(Span::from_millis(50)));
        if self.cc.name() == "vegas" {
            // The least round trip is forgotten: what the path was before must not look like a queue.
            self.apply(&Operation::Jump(Span::from_secs(301)));
        }
        self.arrive(u32::MAX, true);
        let before = self.window.cwnd().get();
        // Larger ones grow too, but it takes too long to watch.
        if before < MAX as u32 / 2 {
            // LEDBAT++ slows down now and then: what counts is what it reaches.
            let mut after = 0;
            for _ in 0..4_000 {
                self.arrive(2, true);
                after = after.max(self.window.cwnd().get());
            }
            self.check();
            // BBR holds what its model says; it may come down to it, but not below the least that keeps ACKs
            // coming. Who measures follows what arrives here, two segments a round trip.
            let enough = if self.loss_based() && !self.measured { after > before } else { after >= 4 };
            assert!(enough || after == self.clamp, "{}: {before} to {after}", self.cc.name());
        }
    }
}

/// Every algorithm with the modern recovery, and the forms that others have.
fn all() -> impl Iterator<Item = (Profile, Congestion)> {
    let others = [(Profile::NewReno, Congestion::Reno), (Profile::Linux2617, Congestion::Bic)];
    Congestion::ALL.into_iter().map(|c| (Profile::Modern, c)).chain(others)
}

proptest! {
    /// Breaks: the laws of congestion control: windows within their limits, cuts that cut, no growth unused,
    /// growth when used, undo, and nothing that a strange time or number could upset.
    #[test]
    fn laws(
        operations in prop::collection::vec(operation(), 1..120),
        cwnd in prop_oneof![1u32..50, count()],
        clamp in prop_oneof![Just(u32::MAX), Just(1u32), Just(2), 4u32..1000],
        paced in any::<bool>(),
    ) {
        for (profile, congestion) in all() {
            let mut model = Model::new(profile, congestion, cwnd, clamp, paced);
            operations.iter().for_each(|operation| model.apply(operation));
            model.grows();
        }
    }
}
