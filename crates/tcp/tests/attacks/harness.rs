//! A connection under attack: what the attacker can say, what it costs in memory, and what in time.

use bytes::Bytes;
use farpace_tcp::config::{Config, Profile, Recovery, Settings};
use farpace_tcp::{Connection, ConnectionState, OutgoingSegment, Ports, Segment, Transmit};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::tcp::{SackBlock, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes on the heap now, of the whole process.
pub fn heap() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.bytes_allocated - stats.bytes_deallocated) as u64
}

/// One attack at a time, or they would see each other's memory.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wall time, for ratios within one run alone.
#[expect(clippy::disallowed_methods, reason = "only ratios are looked at")]
pub fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// Profiles that are meant for the Internet of today; the others are history, with its linear walks.
pub fn today() -> impl Iterator<Item = Profile> {
    Profile::ALL
        .into_iter()
        .filter(|p| !matches!(p.config().recovery, Recovery::Linux26(_)) && *p != Profile::Net2)
}

/// The attacker's first sequence number, and the victim's.
pub const IRS: Seq = Seq::new(0x7fff_ff00);
pub const ISS: Seq = Seq::new(0xffff_ff00);
/// The peer's timestamp clock.
pub const CLOCK: u32 = 0xffff_fff0;

pub fn settings(profile: Profile) -> Settings {
    // All that a test writes is there to be attacked at once.
    let send_buffer = Some(ByteCount::new(16_000_000));
    Settings { profile: Some(profile), send_buffer, ..Settings::default() }
}

pub fn config(settings: &Settings) -> Config {
    settings.resolve().expect("settings")
}

/// What the peer offers in its SYN-ACK.
pub fn offer(mss: u16) -> TcpOptions {
    TcpOptions {
        mss: Some(mss),
        window_scale: Some(14),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: CLOCK, echo: 0 }),
        ..TcpOptions::default()
    }
}

/// The victim.
pub struct Victim {
    pub c: Connection,
    pub now: Instant,
    pub una: Seq,
    pub nxt: Seq,
    /// What it acknowledged last.
    pub acked: Seq,
    /// Segments it has sent so far.
    pub sent: u64,
    timestamps: bool,
    /// What the peer last heard of its clock.
    heard: u32,
    pub clock: u32,
}

impl Victim {
    /// An active open to a peer that offers `options`, complete.
    pub fn connected(config: &Config, options: TcpOptions) -> Victim {
        Self::connected_after(Span::ZERO, config, options)
    }

    /// The same to a peer that is so far away.
    pub fn connected_after(rtt: Span, config: &Config, options: TcpOptions) -> Victim {
        let now = Instant::ZERO + Span::from_secs(10);
        let timestamps = config.timestamps && options.timestamps.is_some();
        let c = Connection::connect(now, config, Ports { local: 1, remote: 2 }, ISS);
        let mut v =
            Victim { c, now, una: ISS, nxt: ISS, acked: IRS, sent: 0, timestamps, heard: 0, clock: CLOCK };
        v.drain();
        v.now += rtt;
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        let header =
            TcpHeader { seq: IRS, ack: v.nxt, flags, window: 65_535, options, ..TcpHeader::default() };
        v.give(Segment { header, ..Segment::default() });
        v.una = v.nxt;
        assert_eq!(v.c.state(), ConnectionState::Established);
        // The window of a SYN is not scaled; this one is.
        let update = v.ack(v.una, 65_535);
        v.give(update);
        v
    }

    /// A segment from the peer: acknowledges `ack`, with the present timestamps.
    pub fn segment(&self, flags: TcpFlags, seq: Seq, ack: Seq, window: u16) -> Segment {
        let timestamps = self.timestamps.then_some(Timestamps { value: self.clock, echo: self.heard });
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let header = TcpHeader { seq, ack, flags, window, options, ..TcpHeader::default() };
        Segment { header, ..Segment::default() }
    }

    pub fn ack(&self, ack: Seq, window: u16) -> Segment {
        self.segment(TcpFlags::ACK, self.acked, ack, window)
    }

    pub fn ack_with(&self, ack: Seq, window: u16, blocks: &[(Seq, Seq)]) -> Segment {
        let mut segment = self.ack(ack, window);
        for &(start, end) in blocks.iter().take(3) {
            segment.header.options.sack.push(SackBlock { start, end });
        }
        segment
    }

    pub fn data(&self, seq: Seq, payload: Vec<u8>) -> Segment {
        Segment { payload: payload.into(), ..self.segment(TcpFlags::ACK, seq, self.una, 65_535) }
    }

    /// Hands a segment over and takes what comes back.
    pub fn give(&mut self, segment: Segment) -> Vec<OutgoingSegment> {
        self.c.on_segment(self.now, segment);
        self.drain()
    }

    pub fn drain(&mut self) -> Vec<OutgoingSegment> {
        let mut out = Vec::new();
        while let Transmit::Sent(n) = self.c.poll_transmit(self.now, &mut out, 64) {
            assert!(n > 0);
        }
        self.sent += out.len() as u64;
        for OutgoingSegment { segment, .. } in &out {
            let h = &segment.header;
            if !h.flags.contains(TcpFlags::RST) {
                self.nxt = self.nxt.later(h.seq + segment.sequence_length());
            }
            if h.flags.contains(TcpFlags::ACK) && !h.flags.contains(TcpFlags::RST) {
                self.acked = h.ack;
            }
            if let Some(t) = h.options.timestamps {
                self.heard = t.value;
            }
        }
        let mut events = 0;
        while let Some(event) = self.c.poll_event() {
            events += 1;
            assert!(events < 10, "{event:?}: each event stands once");
        }
        out
    }

    /// Lets time pass, with all deadlines on the way.
    pub fn wait(&mut self, span: Span) {
        let until = self.now + span;
        while let Some((at, why)) = self.c.deadline().filter(|(at, _)| *at <= until) {
            self.now = at.max(self.now);
            self.c.on_deadline(self.now);
            self.drain();
            let next = self.c.deadline();
            assert!(next.is_none_or(|(at, _)| at > self.now), "deadline law: {why:?}, then {next:?}");
        }
        self.now = until;
    }

    /// The application hands over `len` bytes.
    pub fn write(&mut self, len: u64) {
        let mut data = Bytes::from(vec![7; len as usize]);
        assert_eq!(self.c.write(&mut data), ByteCount::new(len));
        self.drain();
    }

    /// The number that it expects next, acknowledged or not.
    pub fn expected(&self) -> Seq {
        IRS + 1 + self.c.counters().bytes_received.get() as u32
    }

    pub fn is_open(&self) -> bool {
        self.c.state() == ConnectionState::Established
    }
}

/// Work is bounded: `step(n)` for the first numbers and for numbers a hundred times as far takes about the
/// same time. Chunks are timed and the best of each end counts, so that somebody else's work does not.
pub fn assert_flat(what: &str, steps: u64, mut step: impl FnMut(u64)) {
    const CHUNKS: u64 = 200;
    // Far more than noise, far less than work that grows with the number of steps would need.
    const MAX: f64 = 12.0;
    let chunk = steps / CHUNKS;
    let mut times = Vec::new();
    for n in 0..CHUNKS {
        let start = clock();
        (n * chunk..(n + 1) * chunk).for_each(&mut step);
        times.push(start.elapsed().as_secs_f64() / chunk as f64);
    }
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    // The first chunks fill caches and grow tables.
    let (early, late) = (best(&times[2..12]), best(&times[190..]));
    let ratio = late / early.max(50e-9);
    println!("{what}: {:.0} ns a step at first, {:.0} ns in the end", early * 1e9, late * 1e9);
    assert!(ratio < MAX, "{what}: a step costs {ratio:.0} times as much after {steps}");
}
