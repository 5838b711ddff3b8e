//! Laws that hold for every profile on every network: two connections over links that lose, duplicate,
//! reorder and delay, and one connection under arbitrary segments.

#![allow(clippy::panic, reason = "this is how a law fails")]

mod common;

use bytes::Bytes;
use common::{drain, expire, for_seeds};
use farpace_events::Cause;
use farpace_tcp::config::{
    AckControlMode, Config, Congestion, DelayedAck, EcnMode, MtuProbing, Pacing, Profile, RequestRule, Rto,
    Settings,
};
use farpace_tcp::{
    CloseReason, Connection, ConnectionEvent, ConnectionState, Ecn, OutgoingSegment, Ports, Segment,
};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Seq, Span};
use farpace_wire::tcp::{MAX_TCP_LEN, SackBlock, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

const PORTS: [Ports; 2] = [Ports { local: 1000, remote: 2000 }, Ports { local: 2000, remote: 1000 }];

fn pick<T: Copy>(rng: &mut RandomStream, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// Any configuration that a scenario can ask for.
fn any_config(rng: &mut RandomStream) -> Config {
    let mss = pick(rng, &[88, 536, 1000, 1460, 8960]);
    let segment = u64::from(mss);
    let fixed = rng.chance(0.6);
    let receive =
        ByteCount::new(pick(rng, &[segment, 2 * segment + 1, 10_000, 65_535, 70_001, 4_000_000, 1 << 30]));
    let send = ByteCount::new(pick(rng, &[1, 100, 5_000, 100_000, 16_000_000]));
    let settings = Settings {
        profile: Some(pick(rng, &Profile::ALL)),
        congestion: Some(pick(rng, &Congestion::ALL)),
        rto: Some(pick(rng, &[Rto::Rfc6298, Rto::Linux26, Rto::Net2, Rto::Cdl])),
        delayed_ack: Some(pick(rng, &DelayedAck::ALL)),
        clock: pick(rng, &[None, None, Some(1), Some(10_000), Some(500_000)]).map(Span::from_micros),
        mss: Some(mss),
        sack: Some(rng.chance(0.7)),
        timestamps: Some(rng.chance(0.7)),
        window_scale: Some(rng.chance(0.7)),
        receive_buffer: fixed.then_some(receive),
        receive_buffer_max: (!fixed).then_some(receive),
        send_buffer: fixed.then_some(send),
        send_buffer_max: (!fixed).then_some(send),
        initial_window: pick(rng, &[None, Some(1), Some(10), Some(1000)]).map(Packets::new),
        initial_ssthresh: pick(rng, &[None, Some(2), Some(100)]).map(Packets::new),
        cwnd_clamp: pick(rng, &[None, None, Some(1), Some(7)]).map(Packets::new),
        nagle: Some(rng.chance(0.8)),
        ecn: Some(pick(rng, &[EcnMode::Off, EcnMode::On, EcnMode::Accurate, EcnMode::Dctcp])),
        mtu_probing: Some(pick(rng, &[MtuProbing::Off, MtuProbing::BlackHole, MtuProbing::Always])),
        ack_control: Some(pick(rng, &AckControlMode::ALL)),
        ..Settings::default()
    };
    let asks = settings.ack_control != Some(AckControlMode::Off);
    let settings = Settings {
        ack_requests: asks.then(|| RequestRule::ALL.into_iter().filter(|_| rng.chance(0.25)).collect()),
        ack_request_every: (asks && rng.chance(0.2)).then(|| Packets::new(pick(rng, &[1, 2, 3, 10]))),
        ..settings
    };
    let mut config = settings.resolve().unwrap_or_else(|_| Settings::default().resolve().expect("defaults"));
    config.time_wait = Span::from_secs(60);
    config.hystart = rng.chance(0.5);
    config.pacing = pick(rng, &[Pacing::Off, Pacing::Off, Pacing::Fixed, Pacing::Growth]);
    config.fast_start = config.pacing == Pacing::Growth && rng.chance(0.5);
    config
}

/// Byte `at` of the stream that side `side` sends.
fn pattern(side: usize, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9).rotate_right(11) as u8) ^ (side as u8 * 0x55)
}

struct Side {
    connection: Connection,
    config: Config,
    total: u64,
    written: u64,
    received: u64,
    next_read: Instant,
    read_every: Span,
    readable: bool,
    /// Right edge of the window as this side has heard it, and the shift that the peer scales with.
    edge: Option<Seq>,
    shift: u8,
    closed: Option<CloseReason>,
}

/// Two connections and the network between them.
struct Net {
    rng: RandomStream,
    now: Instant,
    sides: [Side; 2],
    flying: BTreeMap<(Instant, u64), (usize, Segment)>,
    count: u64,
    /// From here on nothing is lost or duplicated.
    heals_at: Instant,
    loss: f64,
    duplication: f64,
    delay: Span,
    jitter: Span,
    /// Payloads beyond this vanish, always and without a word.
    largest: usize,
    /// ECN-capable segments that are marked.
    marks: f64,
    budget: usize,
    digest: u64,
}

impl Net {
    fn new(seed: u64) -> Self {
        let mut rng = RandomStream::new(seed, "setup");
        let configs = [any_config(&mut rng), any_config(&mut rng)];
        let iss = Seq::new(rng.next_u64() as u32);
        let side = |i: usize, rng: &mut RandomStream, connection: Connection| {
            // A send buffer of one byte means a round trip for every byte.
            let most = 300_000.min(configs[i].send_buffer.max.get().saturating_mul(100));
            // One small segment per round trip in the worst case.
            let most = most
                .min(configs[1 - i].receive_buffer.max.get().saturating_mul(150))
                .min(u64::from(configs[1 - i].mss) * 150);
            Side {
                connection,
                config: configs[i].clone(),
                total: if rng.chance(0.1) { 0 } else { rng.below(most) },
                written: 0,
                received: 0,
                next_read: Instant::ZERO,
                read_every: Span::from_micros(if rng.chance(0.5) { 0 } else { rng.below(300_000) }),
                readable: false,
                edge: None,
                shift: 0,
                closed: None,
            }
        };
        let now = Instant::from_nanos(rng.below(1 << 40));
        let a = Connection::connect(now, &configs[0], PORTS[0], iss);
        // Replaced when the SYN arrives; until then it is a connection that never speaks.
        let b = Connection::connect(now, &configs[1], PORTS[1], Seq::new(0));
        let sides = [side(0, &mut rng, a), side(1, &mut rng, b)];
        let loss = pick(&mut rng, &[0.0, 0.01, 0.05, 0.3]);
        Net {
            now,
            sides,
            flying: BTreeMap::new(),
            count: 0,
            heals_at: now + Span::from_secs(20),
            loss,
            duplication: pick(&mut rng, &[0.0, 0.02, 0.2]),
            delay: Span::from_micros(100 + rng.below(100_000)),
            // Only where both ends look for it; without that nothing would ever arrive.
            largest: if configs.iter().all(|c| c.mtu_probing != MtuProbing::Off) && rng.chance(0.4) {
                pick(&mut rng, &[256, 600, 1_200, 1_400])
            } else {
                usize::MAX
            },
            marks: pick(&mut rng, &[0.0, 0.0, 0.05, 1.0]),
            jitter: pick(&mut rng, &[Span::ZERO, Span::from_micros(50), Span::from_millis(30)]),
            budget: 1 + rng.below(20) as usize,
            digest: 0xcbf2_9ce4_8422_2325,
            rng,
        }
    }

    fn transmit(&mut self, from: usize, sent: Vec<OutgoingSegment>) {
        for OutgoingSegment { segment, cause, .. } in sent {
            self.count += 1;
            self.inspect(from, &segment, cause);
            let lossy = self.now < self.heals_at;
            let copies =
                match (lossy && self.rng.chance(self.loss), lossy && self.rng.chance(self.duplication)) {
                    (true, _) => 0,
                    _ if segment.payload.len() > self.largest => 0,
                    (false, twice) => 1 + u32::from(twice),
                };
            let mut segment = segment;
            if segment.ecn == Ecn::Ect0 && self.rng.chance(self.marks) {
                segment.ecn = Ecn::Ce;
            }
            for copy in 0..copies {
                let late = Span::from_nanos(self.rng.below(self.jitter.as_nanos() + 1));
                let at = self.now + self.delay + late;
                self.flying.insert((at, self.count * 2 + u64::from(copy)), (1 - from, segment.clone()));
            }
        }
    }

    /// What every segment must fulfil, and the digest of the run.
    fn inspect(&mut self, from: usize, segment: &Segment, cause: Cause) {
        let mut bytes = [0; MAX_TCP_LEN];
        let len = segment.header.encode(&mut bytes);
        let (parsed, parsed_len) = TcpHeader::parse(&bytes[..len]).expect("our own header");
        assert_eq!((&parsed, parsed_len), (&segment.header, len), "the header survives the wire");
        let fresh = matches!(cause, Cause::NewData) && !segment.payload.is_empty();
        assert!(segment.ecn == Ecn::NotEct || fresh, "{cause:?} may be marked");
        let header = &bytes[..len];
        for byte in header.iter().chain(&segment.payload[..]).chain(&self.now.as_nanos().to_le_bytes()) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if !segment.payload.is_empty() {
            let side = &self.sides[from];
            let end = segment.header.seq + segment.payload.len() as u32;
            assert!(side.edge.is_some_and(|edge| !end.after(edge)), "{end} is beyond the peer's window");
            let i = side.connection.inspect();
            let most = if cause == Cause::MtuProbe { i.largest_mss } else { i.mss };
            assert!(
                segment.payload.len() as u32 <= most,
                "{} bytes for {cause:?}, {i:?}",
                segment.payload.len()
            );
        }
    }

    fn deliver(&mut self, to: usize, segment: Segment) {
        let h = &segment.header;
        let syn = h.flags.contains(TcpFlags::SYN);
        if syn {
            let side = &mut self.sides[to];
            side.shift = h.options.window_scale.filter(|_| side.config.window_scale).unwrap_or(0);
        }
        if to == 1 && syn && !h.flags.contains(TcpFlags::ACK) && self.sides[1].edge.is_none() {
            let iss = Seq::new(self.rng.next_u64() as u32);
            let config = self.sides[1].config.clone();
            self.sides[1].connection = Connection::accept(self.now, &config, PORTS[1], iss, &segment);
            self.sides[1].edge = Some(Seq::default());
            self.after_call(1);
            return;
        }
        if to == 1 && self.sides[1].edge.is_none() {
            return;
        }
        let side = &mut self.sides[to];
        // A CDL-only segment acknowledges without the flag.
        if h.flags.intersects(TcpFlags::ACK | TcpFlags::from_bits(0x800)) {
            let shift = if syn { 0 } else { side.shift };
            let edge = h.ack + (u32::from(h.window) << shift);
            side.edge = Some(side.edge.filter(|e| *e != Seq::default()).map_or(edge, |e| e.later(edge)));
        }
        side.connection.on_segment(self.now, segment);
        self.after_call(to);
    }

    /// The contract after every call: events, application, segments.
    fn after_call(&mut self, i: usize) {
        self.use_application(i);
        let sent = drain(&mut self.sides[i].connection, self.now, self.budget);
        self.transmit(i, sent);
    }

    fn use_application(&mut self, i: usize) {
        let side = &mut self.sides[i];
        let mut events = 0;
        while let Some(event) = side.connection.poll_event() {
            events += 1;
            assert!(events <= 6, "each event stands once");
            match event {
                ConnectionEvent::Readable => side.readable = true,
                ConnectionEvent::Closed(reason) => {
                    assert_eq!(side.closed.replace(reason), None, "closed once")
                }
                _ => {}
            }
        }
        while side.written < side.total {
            let len = (1 + self.rng.below(20_000)).min(side.total - side.written);
            let mut data: Bytes = (side.written..side.written + len).map(|at| pattern(i, at)).collect();
            let took = side.connection.write(&mut data).get();
            side.written += took;
            if took == 0 {
                break;
            }
        }
        // A close in SYN-SENT would end everything at once.
        if side.written == side.total && side.connection.state() != ConnectionState::SynSent {
            side.connection.close();
        }
        if self.now >= side.next_read {
            side.next_read = self.now + side.read_every;
            side.readable = false;
            let mut at = side.received;
            let got = side.connection.read(|bytes| {
                for b in &bytes[..] {
                    assert_eq!(*b, pattern(1 - i, at), "byte {at} of the stream to side {i}");
                    at += 1;
                }
            });
            assert_eq!(got.get(), at - side.received);
            let most = side.config.receive_buffer.max.get().next_multiple_of(1 << 14);
            assert!(got.get() <= most, "{got} waited, the buffer holds {most}");
            side.received = at;
        }
    }

    /// True when both have ended in order.
    fn done(&self) -> bool {
        let ended =
            |s: &Side| matches!(s.connection.state(), ConnectionState::Closed | ConnectionState::TimeWait);
        self.sides.iter().all(ended) && self.flying.is_empty()
    }

    fn step(&mut self) {
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let deadline = |s: &Side| s.connection.deadline().map(|(at, _)| at);
        let read = |s: &Side| s.readable.then_some(s.next_read);
        let times = [
            arrival,
            deadline(&self.sides[0]),
            deadline(&self.sides[1]).filter(|_| self.sides[1].edge.is_some()),
            read(&self.sides[0]),
            read(&self.sides[1]),
        ];
        let next = times.into_iter().flatten().min();
        let Some(next) = next else { panic!("nothing will ever happen: {}", self.describe()) };
        self.now = next.max(self.now);
        if arrival == Some(next) {
            let (_, (to, segment)) = self.flying.pop_first().expect("it is there");
            self.deliver(to, segment);
            return;
        }
        for i in 0..2 {
            if times[1 + i] == Some(next) {
                let sent = expire(&mut self.sides[i].connection, self.now, self.budget);
                self.transmit(i, sent);
                self.after_call(i);
                return;
            }
        }
        for i in 0..2 {
            if self.sides[i].readable {
                self.after_call(i);
            }
        }
    }

    /// Until both are done; returns the digest.
    fn run(mut self) -> u64 {
        let start = self.now;
        self.after_call(0);
        let mut steps = 0u64;
        while !self.done() {
            self.step();
            steps += 1;
            let elapsed = self.now.since(start);
            assert!(elapsed < Span::from_secs(3000), "still not done after {elapsed}: {}", self.describe());
            // Two connections that answer each other's acknowledgments for ever would be caught here.
            assert!(
                steps < 20_000,
                "{steps} steps, {} segments in {elapsed}: {}",
                self.count,
                self.describe()
            );
        }
        for i in 0..2 {
            // What arrived before the end is read at last.
            self.sides[i].next_read = self.now;
            self.use_application(i);
            let (side, peer) = (&self.sides[i], &self.sides[1 - i]);
            assert_eq!(side.received, peer.total, "side {i} has everything: {}", self.describe());
            assert!(matches!(side.closed, None | Some(CloseReason::Finished)), "{:?}", side.closed);
        }
        self.digest
    }

    fn describe(&self) -> String {
        let show = |s: &Side| {
            let i = s.connection.inspect();
            format!(
                "{:?} wrote {}/{} got {} closed {:?} deadline {:?} {i:?}\n{:?}",
                i.state,
                s.written,
                s.total,
                s.received,
                s.closed,
                s.connection.deadline(),
                s.config
            )
        };
        format!("\n  A: {}\n  B: {}", show(&self.sides[0]), show(&self.sides[1]))
    }
}

/// Breaks: TCP. Every byte arrives in order exactly once and both sides close, whatever the profiles, options
/// and buffers are and whatever the network does until it heals; and on the way the laws of deadlines,
/// windows and polling hold.
#[test]
fn every_transfer_completes() {
    for_seeds("laws", "every_transfer_completes", 600, |seed| {
        Net::new(seed).run();
    });
}

/// Breaks: determinism: the same seed gives the same segments at the same times, byte for byte.
#[test]
fn the_same_seed_gives_the_same_run() {
    for_seeds("laws", "the_same_seed_gives_the_same_run", 30, |seed| {
        assert_eq!(Net::new(seed).run(), Net::new(seed).run());
    });
}

/// A connection that is fed garbage, and what can be known of it from the segments it sends.
struct Victim {
    connection: Connection,
    rng: RandomStream,
    now: Instant,
    snd_una: Seq,
    snd_nxt: Seq,
    rcv_nxt: Seq,
    clock: u32,
}

impl Victim {
    fn new(seed: u64) -> Self {
        let mut rng = RandomStream::new(seed, "garbage");
        let config = any_config(&mut rng);
        let iss = Seq::new(rng.next_u64() as u32);
        let now = Instant::from_nanos(rng.below(1 << 40));
        let connection = if rng.chance(0.5) {
            Connection::connect(now, &config, PORTS[0], iss)
        } else {
            let seq = Seq::new(rng.next_u64() as u32);
            let header = TcpHeader {
                seq,
                flags: TcpFlags::SYN,
                options: any_options(&mut rng, seq, seq),
                ..TcpHeader::default()
            };
            Connection::accept(now, &config, PORTS[0], iss, &Segment { header, ..Segment::default() })
        };
        Victim { connection, rng, now, snd_una: iss, snd_nxt: iss + 1, rcv_nxt: Seq::default(), clock: 0 }
    }

    fn note(&mut self, sent: Vec<OutgoingSegment>) {
        for OutgoingSegment { segment, cause, .. } in sent {
            let h = &segment.header;
            if cause != Cause::Reset {
                self.snd_nxt = self.snd_nxt.later(h.seq + segment.sequence_length());
                if h.flags.contains(TcpFlags::ACK) {
                    self.rcv_nxt = h.ack;
                }
            }
            if let Some(t) = h.options.timestamps {
                self.clock = t.value;
            }
        }
    }

    fn near(&mut self, seq: Seq) -> Seq {
        match self.rng.below(8) {
            0 => Seq::new(self.rng.next_u64() as u32),
            1 => seq + self.rng.below(100_000) as u32,
            2 => seq - self.rng.below(100_000) as u32,
            3 => seq + 1,
            4 => seq - 1,
            _ => seq,
        }
    }

    fn segment(&mut self) -> Segment {
        let flags = match self.rng.below(4) {
            0 => TcpFlags::from_bits(self.rng.next_u64() as u16),
            1 => TcpFlags::SYN | TcpFlags::ACK,
            _ => TcpFlags::ACK,
        };
        // Resets that fit end the game at once; most of them are left out.
        let flags = if self.rng.chance(0.9) { flags.without(TcpFlags::RST) } else { flags };
        let span = u64::from(self.snd_nxt.bytes_since(self.snd_una)) + 1;
        let ack = self.snd_una + self.rng.below(span) as u32;
        let (seq, ack) = (self.near(self.rcv_nxt), self.near(ack));
        let len = if self.rng.chance(0.5) { 0 } else { self.rng.below(3000) as usize };
        let mut options = any_options(&mut self.rng, self.snd_una, self.snd_nxt);
        if self.rng.chance(0.6)
            && let Some(t) = &mut options.timestamps
        {
            (t.value, t.echo) = (self.clock, self.clock);
        }
        let window = pick(&mut self.rng, &[0, 1, 100, 65_535]);
        let header = TcpHeader { seq, ack, flags, window, options, ..TcpHeader::default() };
        Segment {
            header,
            payload: Bytes::from(vec![7; len]),
            ecn: Ecn::from_bits(len as u8),
            segment_size: 0,
        }
    }

    fn act(&mut self) {
        let now = self.now;
        let c = &mut self.connection;
        match self.rng.below(40) {
            0 => c.close(),
            1 if self.rng.chance(0.1) => c.abort(),
            2..=5 => drop(c.read(drop)),
            6..=10 => {
                let mut data = Bytes::from(vec![9; self.rng.below(50_000) as usize]);
                c.write(&mut data);
            }
            11..=14 => {
                if let Some((at, _)) = c.deadline() {
                    self.now = at.max(now);
                    let sent = expire(&mut self.connection, self.now, 1);
                    self.note(sent);
                }
                return;
            }
            _ => {
                self.now += Span::from_micros(self.rng.below(20_000));
                let segment = self.segment();
                let acked = segment.header.ack;
                self.connection.on_segment(self.now, segment);
                if acked.after(self.snd_una) && !acked.after(self.snd_nxt) {
                    self.snd_una = acked;
                }
            }
        }
        let now = self.now;
        let budget = 1 + self.rng.below(5) as usize;
        let sent = drain(&mut self.connection, now, budget);
        self.note(sent);
        let mut events = 0;
        while self.connection.poll_event().is_some() {
            events += 1;
        }
        assert!(events <= 6, "each event stands once");
    }
}

fn any_options(rng: &mut RandomStream, from: Seq, to: Seq) -> TcpOptions {
    let span = u64::from(to.bytes_since(from)) + 2;
    let mut options = TcpOptions {
        mss: rng.chance(0.5).then(|| rng.next_u64() as u16),
        window_scale: rng.chance(0.5).then(|| rng.below(20) as u8),
        sack_permitted: rng.chance(0.7),
        timestamps: rng
            .chance(0.7)
            .then(|| Timestamps { value: rng.next_u64() as u32, echo: rng.next_u64() as u32 }),
        ..TcpOptions::default()
    };
    for _ in 0..rng.below(5) {
        let edge = |rng: &mut RandomStream| {
            if rng.chance(0.9) { from + rng.below(span) as u32 } else { Seq::new(rng.next_u64() as u32) }
        };
        let (a, b) = (edge(rng), edge(rng));
        let (start, end) = if rng.chance(0.9) { (a.earlier(b), a.later(b)) } else { (a, b) };
        options.sack.push(SackBlock { start, end });
    }
    options
}

/// Breaks: "a peer can never crash us": any segments in any state, in any order, with any timing.
#[test]
fn garbage_never_panics_nor_loops() {
    // What the garbage has reached: a test that only ever sees dead connections would be none.
    let seen = RefCell::new((BTreeSet::new(), BTreeSet::new(), BTreeSet::new()));
    for_seeds("laws", "garbage_never_panics_nor_loops", 1500, |seed| {
        let mut victim = Victim::new(seed);
        let sent = drain(&mut victim.connection, victim.now, 5);
        victim.note(sent);
        for _ in 0..150 {
            victim.act();
            let i = victim.connection.inspect();
            let (states, recovery, flight) = &mut *seen.borrow_mut();
            states.insert(i.state);
            recovery.insert(i.recovery);
            flight.insert(i.in_flight.get().min(20));
        }
    });
    let (states, recovery, flight) = seen.into_inner();
    if std::env::var("FARPACE_SEED").is_err() {
        assert_eq!((states.len(), recovery.len()), (10, 5), "{states:?} {recovery:?}");
        assert!(flight.len() > 10, "segments in flight: {flight:?}");
    }
}
