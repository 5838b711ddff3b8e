//! Loss recovery alone, with a fixed number of segments in flight and a fixed share of them lost.

use bytes::Bytes;
use farpace_tcp::cc::{AckSample, CongestionControl, Cut};
use farpace_tcp::config::{Abc, Rto};
use farpace_tcp::receive::{ArrivedData, SackBlockList, StreamReassembly};
use farpace_tcp::recovery::{AckInput, Context, Expiry, LossRecovery, SendView, SentKind};
use farpace_tcp::rto::{MinRtt, RtoEstimator, TcpClock};
use farpace_tcp::{Segments, Window};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Seq, Span};
use farpace_wire::tcp::SackBlocks;
use std::collections::VecDeque;

/// Small, so that millions fit into the largest window that TCP has (1 GiB); nothing here depends on it
/// otherwise.
const MSS: u32 = 256;
static PAYLOAD: [u8; MSS as usize] = [0; MSS as usize];

/// Congestion control that keeps the window as it is: only recovery is measured.
struct Fixed(Packets);

impl CongestionControl for Fixed {
    fn on_ack(&mut self, window: &mut Window, _: &AckSample) {
        window.set_cwnd(self.0);
    }
    fn ssthresh(&mut self, _: Instant, _: &Window, _: Packets, _: Cut) -> Packets {
        self.0
    }
    fn min_cwnd(&self, _: &Window) -> Packets {
        self.0
    }
    fn undo_cwnd(&self, _: &Window) -> Packets {
        self.0
    }
    fn name(&self) -> &'static str {
        "fixed"
    }
}

/// A sender and a receiver with a network between that holds a fixed number of segments.
pub struct Flight {
    target: Packets,
    loss: f64,
    rng: RandomStream,
    now: Instant,
    snd_una: Seq,
    snd_nxt: Seq,
    segments: Segments,
    window: Window,
    recovery: Box<dyn LossRecovery>,
    cc: Fixed,
    rto: RtoEstimator,
    min_rtt: MinRtt,
    causes: Vec<farpace_events::Cause>,
    network: VecDeque<Seq>,
    receiver: StreamReassembly,
    sack_blocks: SackBlockList,
    timeouts: u64,
}

impl Flight {
    /// `in_flight` segments between the ends, of which the share `loss` gets lost at each crossing.
    pub fn new(recovery: Box<dyn LossRecovery>, in_flight: u32, loss: f64) -> Self {
        let target = Packets::new(in_flight);
        let mut flight = Flight {
            target,
            loss,
            rng: RandomStream::new(1, "flight"),
            now: Instant::ZERO,
            snd_una: Seq::new(0),
            snd_nxt: Seq::new(0),
            segments: Segments::default(),
            window: Window::new(target, None, Packets::MAX, Abc::Off, MSS),
            recovery,
            cc: Fixed(target),
            rto: RtoEstimator::new(Rto::Linux26, Span::from_millis(200), TcpClock::new(None)),
            min_rtt: MinRtt::default(),
            causes: Vec::new(),
            network: VecDeque::new(),
            receiver: StreamReassembly::new(ByteCount::new(1 << 30)),
            sack_blocks: SackBlockList::default(),
            timeouts: 0,
        };
        flight.send();
        for _ in 0..3 * in_flight {
            flight.step(); // until holes have spread over the whole window
        }
        flight
    }

    /// One segment crosses the network, or is lost; its ACK is processed, and what may be sent is sent.
    pub fn step(&mut self) {
        self.now += Span::from_micros(1);
        let Some(seq) = self.network.pop_front() else { return self.time_out() };
        if self.rng.chance(self.loss) {
            return self.send();
        }
        let ahead = seq.distance(self.rcv_nxt());
        let before = self.receiver.next();
        let offset = before.saturating_add_signed(i64::from(ahead));
        match self.receiver.insert(offset, Bytes::from_static(&PAYLOAD)) {
            ArrivedData::OutOfOrder => self.sack_blocks.add(seq, seq + MSS),
            ArrivedData::Duplicate => self.sack_blocks.set_duplicate(seq, seq + MSS),
            ArrivedData::InOrder | ArrivedData::Refused => {}
        }
        self.receiver.read(drop);
        let ack = self.rcv_nxt();
        self.sack_blocks.advance(ack);
        let sack = self.sack_blocks.take_blocks(3);
        self.on_ack(ack, &sack);
        self.send();
    }

    fn rcv_nxt(&self) -> Seq {
        Seq::new(self.receiver.next() as u32)
    }

    fn on_ack(&mut self, ack: Seq, sack: &SackBlocks) {
        let prior_snd_una = self.snd_una;
        self.snd_una = self.snd_una.later(ack);
        let input = AckInput {
            ack,
            new_data_waiting: true,
            max_window: 1 << 30,
            ..AckInput::of(self.now, prior_snd_una, self.snd_una, self.snd_nxt, sack)
        };
        let (recovery, mut cx) = self.parts();
        recovery.on_ack(&input, &mut cx);
        self.causes.clear();
        // The flight is to stay what it is, whatever the recovery does to its window.
        self.window.set_cwnd(self.target);
    }

    fn send(&mut self) {
        loop {
            let view = SendView { segments: &self.segments, cwnd: self.target, can_send_new: true };
            let Some(grant) = self.recovery.next_segment(&view) else { break };
            let Some(row) = self.segments.row(grant.index).copied() else { break };
            self.segments.mark_retransmitted(grant.index, self.now, self.snd_nxt);
            let sent = self.sent(grant.index, false);
            self.recovery.on_sent(&sent, &self.segments);
            self.network.push_back(row.seq);
        }
        while self.recovery.in_flight(&self.segments) < self.target {
            self.segments.push(self.snd_nxt, MSS, self.now);
            self.network.push_back(self.snd_nxt);
            self.snd_nxt += MSS;
            let sent = self.sent(self.segments.len() - 1, true);
            self.recovery.on_sent(&sent, &self.segments);
        }
    }

    fn sent(&self, index: usize, fresh: bool) -> SentKind {
        let (now, srtt, snd_nxt) = (self.now, self.rto.srtt(), self.snd_nxt);
        SentKind { now, index, fresh, timestamp: 0, snd_nxt, srtt, rto_deadline: None, rto: Span::ZERO }
    }

    fn parts(&mut self) -> (&mut dyn LossRecovery, Context<'_>) {
        let cx = Context {
            segments: &mut self.segments,
            window: &mut self.window,
            cc: &mut self.cc,
            rto: &mut self.rto,
            min_rtt: &mut self.min_rtt,
            sack: true,
            causes: &mut self.causes,
        };
        (self.recovery.as_mut(), cx)
    }

    /// Nothing is on its way any more.
    fn time_out(&mut self) {
        let (now, snd_una, snd_nxt) = (self.now, self.snd_una, self.snd_nxt);
        let expiry = Expiry {
            window_shut: false,
            now,
            snd_una,
            snd_nxt,
            new_data_waiting: true,
            unsent_in_window: false,
            tail_inside: false,
        };
        let (recovery, mut cx) = self.parts();
        recovery.on_timeout(&expiry, &mut cx);
        self.window.set_cwnd(self.target);
        self.timeouts += 1;
        self.send();
    }

    /// Timeouts so far: a figure with many of them is not about recovery.
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// Segments outstanding, to see that the flight is what it should be.
    pub fn outstanding(&self) -> Packets {
        self.segments.packets_out()
    }
}
