//! Two connections back to back in memory: no lab, no packets, only TCP.

use bytes::Bytes;
use farpace_tcp::config::{AckControlMode, Profile, RequestRule, Settings};
use farpace_tcp::{Connection, OutgoingSegment, Ports};
use farpace_units::{Amount, ByteCount, Instant, Packets, Seq, Span};

/// Segments taken from a connection at a time.
const BATCH: usize = 64;
/// What the application writes at a time.
const CHUNK: usize = 1 << 20;
/// The clock between two turns: about what the segments of a turn take on a line of 35 Gbit/s.
const TURN: Span = Span::from_micros(20);

/// A sender and a receiver that are connected.
pub struct Pair {
    now: Instant,
    sender: Connection,
    receiver: Connection,
    wire: Vec<OutgoingSegment>,
    answers: Vec<OutgoingSegment>,
    chunk: Bytes,
    rest: Bytes,
    /// Full-size segments delivered so far.
    pub delivered: u64,
    /// Pure acknowledgments delivered so far.
    pub acks: u64,
}

impl Pair {
    /// A connection with `profile` on both ends and a window of `window` segments, past its slow start.
    ///
    /// # Panics
    /// The settings are wrong, or nothing arrives: a figure of such a pair would be worth nothing.
    pub fn new(profile: Profile, window: u32) -> Self {
        Self::asking(profile, window, AckControlMode::Off, RequestRule::Auto)
    }

    /// The same, with a sender that asks for ACKs in this form and for these segments.
    ///
    /// # Panics
    /// As above.
    #[allow(clippy::expect_used, reason = "a benchmark without a valid run must stop")]
    pub fn asking(profile: Profile, window: u32, form: AckControlMode, when: RequestRule) -> Self {
        let settings = Settings {
            ack_control: Some(form),
            ack_requests: (form != AckControlMode::Off).then(|| vec![when]),
            profile: Some(profile),
            window: Some(Amount::Packets(Packets::new(window))),
            cwnd_clamp: Some(Packets::new(window)),
            send_buffer: Some(ByteCount::new(64 << 20)),
            ..Settings::default()
        };
        let config = settings.resolve().expect("settings");
        let now = Instant::ZERO;
        let mut wire = Vec::with_capacity(BATCH);
        let mut sender = Connection::connect(now, &config, Ports { local: 1, remote: 2 }, Seq::new(1));
        sender.poll_transmit(now, &mut wire, BATCH);
        let syn = wire.remove(0).segment;
        let receiver = Connection::accept(now, &config, Ports { local: 2, remote: 1 }, Seq::new(9), &syn);
        let chunk = Bytes::from(vec![0x5a; CHUNK]);
        let mut pair = Pair {
            now,
            sender,
            receiver,
            wire,
            answers: Vec::new(),
            rest: Bytes::new(),
            chunk,
            delivered: 0,
            acks: 0,
        };
        for _ in 0..10_000 {
            pair.turn();
        }
        assert!(pair.delivered > 100_000, "nothing arrives");
        pair
    }

    /// The sender sends what it may, the receiver reads and answers, the sender hears it.
    pub fn turn(&mut self) {
        self.now += TURN;
        let now = self.now;
        loop {
            if self.rest.is_empty() {
                self.rest = self.chunk.clone();
            }
            if self.sender.write(&mut self.rest).is_zero() || !self.rest.is_empty() {
                break;
            }
        }
        if self.sender.deadline().is_some_and(|(at, _)| at <= now) {
            self.sender.on_deadline(now);
        }
        while self.sender.poll_event().is_some() {}
        self.sender.poll_transmit(now, &mut self.wire, BATCH);
        for out in self.wire.drain(..) {
            self.delivered += u64::from(!out.segment.payload.is_empty());
            self.receiver.on_segment(now, out.segment);
            self.receiver.read(drop);
            while self.receiver.poll_event().is_some() {}
            self.receiver.poll_transmit(now, &mut self.answers, BATCH);
        }
        if self.receiver.deadline().is_some_and(|(at, _)| at <= now) {
            self.receiver.on_deadline(now);
        }
        self.receiver.poll_transmit(now, &mut self.answers, BATCH);
        for out in self.answers.drain(..) {
            self.acks += 1;
            self.sender.on_segment(now, out.segment);
        }
    }
}
