//! Connections that carry more than half of the space of sequence numbers between two losses.

use crate::script::segment;
use bytes::Bytes;
use farpace_tcp::config::{Profile, Settings};
use farpace_tcp::{Connection, OutgoingSegment, Ports, Transmit};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::tcp::SackBlock;

/// Segments in a window.
const WINDOW: u64 = 16;

struct LongLived {
    /// Payload of a segment, in bytes.
    mss: u64,
    connection: Connection,
    now: Instant,
    /// All that is acknowledged, not modulo 2^32.
    una: u64,
    sack: bool,
    out: Vec<OutgoingSegment>,
}

impl LongLived {
    fn open(profile: Profile, sack: bool) -> Self {
        // Net/2 has no window scaling; large segments make the test short.
        let mss = if profile == Profile::Net2 { 3_750 } else { 60_000 };
        let settings = Settings {
            profile: Some(profile),
            mss: Some(mss as u16),
            timestamps: Some(false),
            send_buffer: Some(ByteCount::new(2 * WINDOW * mss)),
            ..Settings::default()
        };
        let config = settings.resolve().expect("settings that agree");
        let now = Instant::ZERO;
        let connection = Connection::connect(now, &config, Ports { local: 1, remote: 2 }, Seq::new(0));
        let mut long = Self { mss, connection, now, una: 1, sack, out: Vec::new() };
        long.send();
        long.now += Span::from_millis(10);
        let permitted = if sack { "sackok" } else { "" };
        let mut answer = segment(&format!("S. 0 win 60000 mss {mss} ws 4 {permitted}"));
        answer.header.ack = Seq::new(1);
        long.connection.on_segment(long.now, answer);
        long
    }

    fn send(&mut self) {
        self.out.clear();
        if self.connection.deadline().is_some_and(|(at, _)| at <= self.now) {
            self.connection.on_deadline(self.now);
        }
        while let Transmit::Sent(_) = self.connection.poll_transmit(self.now, &mut self.out, 64) {}
        while self.connection.poll_event().is_some() {}
    }

    fn acknowledge(&mut self, sacked: Option<(u64, u64)>) {
        let mut ack = segment(". 1 win 60000");
        ack.header.ack = Seq::new(self.una as u32);
        if let Some((start, end)) = sacked {
            let (start, end) = (Seq::new(start as u32), Seq::new(end as u32));
            ack.header.options.sack.push(SackBlock { start, end });
        }
        self.connection.on_segment(self.now, ack);
    }

    /// The number behind all that was sent.
    fn end(&self) -> u64 {
        let counters = self.connection.counters();
        1 + counters.bytes_sent.get() - counters.bytes_sent_again.get()
    }

    /// Sends `bytes`, all acknowledged.
    fn carry(&mut self, bytes: u64) {
        let until = self.una + bytes;
        let chunk = Bytes::from(vec![7; (WINDOW * self.mss) as usize]);
        let mut idle = 0;
        loop {
            if self.una < until {
                self.connection.write(&mut chunk.clone());
            }
            self.send();
            let end = self.end();
            idle = if end == self.una { idle + 1 } else { 0 };
            assert!(idle < 10_000, "it sends no more");
            self.una = end;
            self.now += Span::from_millis(1);
            self.acknowledge(None);
            let memory = self.connection.memory();
            if self.una >= until && memory.rows == 0 && memory.send_bytes.is_zero() {
                return;
            }
        }
    }

    /// Sends ten segments, or what the congestion window has room for: the first number, and how many.
    fn send_some(&mut self) -> (Seq, u64) {
        let n = u64::from(self.connection.inspect().cwnd.get()).min(10);
        assert!(n >= 4, "a window of {n}: {:?}", self.connection.inspect());
        self.connection.write(&mut Bytes::from(vec![7; (n * self.mss) as usize]));
        let mut first = None;
        for _ in 0..1_000 {
            self.send();
            first = first.or(self.out.first().map(|o| o.segment.header.seq));
            if self.end() == self.una + n * self.mss {
                break;
            }
            self.now += Span::from_millis(1); // it is paced
        }
        assert_eq!(self.end(), self.una + n * self.mss, "{n} segments fit");
        (first.expect("a segment"), n)
    }

    /// The first of some segments is lost: true if the others' ACKs have it sent again.
    fn repairs_a_loss(&mut self) -> bool {
        let (first, n) = self.send_some();
        self.now += Span::from_millis(10);
        let mut repaired = false;
        for arrived in 2..=n {
            let block = (self.una + self.mss, self.una + self.mss * arrived);
            self.acknowledge(self.sack.then_some(block));
            for _ in 0..20 {
                self.send();
                repaired |= self.out.iter().any(|o| o.segment.header.seq == first);
                self.now += Span::from_millis(1);
            }
        }
        repaired
    }

    /// The last two of some segments are lost. How long it takes until the first of them is sent again.
    fn repairs_its_tail(&mut self) -> Span {
        let (_, n) = self.send_some();
        self.una += (n - 2) * self.mss;
        self.now += Span::from_millis(10);
        self.acknowledge(None);
        let (begun, lost) = (self.now, Seq::new(self.una as u32));
        while self.now < begun + Span::from_secs(20) {
            self.send();
            if self.out.iter().any(|o| o.segment.header.seq == lost) {
                break;
            }
            if self.out.iter().any(|o| !o.segment.payload.is_empty()) && self.sack {
                // A probe has come, which was the last one.
                self.acknowledge(Some((self.una + self.mss, self.una + 2 * self.mss)));
            }
            self.now += Span::from_millis(1);
        }
        self.now.since(begun)
    }

    fn have(&mut self, before: Before) {
        match before {
            Before::Nothing => {}
            Before::Loss => assert!(self.repairs_a_loss(), "{before:?}"),
            Before::TailLoss => assert!(self.repairs_its_tail() < Span::from_secs(4), "{before:?}"),
            Before::Delay | Before::Spurious => {
                let (first, _) = self.send_some();
                for _ in 0..4_000 {
                    self.now += Span::from_millis(1);
                    self.send();
                    if self.out.iter().any(|o| o.segment.header.seq == first) {
                        break;
                    }
                }
                let (start, end) = (self.una, self.una + self.mss);
                self.una = self.end();
                self.acknowledge((self.sack && matches!(before, Before::Spurious)).then_some((start, end)));
            }
        }
    }
}

/// What happens before the connection carries much without a loss.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    Loss,
    /// The last segments: a probe or the timeout repairs them.
    TailLoss,
    /// A delay longer than the timeout.
    Delay,
    /// What was sent again had come: the peer says so.
    Spurious,
}

impl Before {
    const ALL: [Before; 5] =
        [Before::Nothing, Before::Loss, Before::TailLoss, Before::Delay, Before::Spurious];
}

/// All that the number of a byte that was noted long ago could make wrong, with a loss after so many bytes.
fn repairs_whatever_was_long_ago(distance: u64) {
    for profile in Profile::ALL {
        for sack in [false, true] {
            for before in Before::ALL {
                let mut long = LongLived::open(profile, sack);
                long.carry(200 * long.mss);
                long.have(before);
                long.carry(distance);
                let what = format!("{profile:?}, sack {sack}, {before:?}");
                assert!(long.repairs_a_loss(), "{what}: a loss {distance} bytes later");
                long.carry(200 * long.mss);
                let waited = long.repairs_its_tail();
                assert!(waited < Span::from_secs(4), "{what}: the tail waited for {waited}");
            }
        }
    }
}

/// Breaks: the number of a byte that was noted less than 2 GiB ago hides a loss.
#[test]
fn losses_are_repaired_within_2_gib() {
    repairs_whatever_was_long_ago(1_900_000_000);
}

/// Breaks: the number of a byte of 2 GiB ago looks newer than all that is sent, and hides a loss (RFC 6582
/// §3.2: `recover`; RFC 8985 §6.2: what RACK has judged).
#[test]
fn losses_are_repaired_after_2_gib() {
    repairs_whatever_was_long_ago(2_700_000_000);
}

/// Breaks: the same after almost 4 GiB, when old numbers lie just ahead.
#[test]
fn losses_are_repaired_before_the_numbers_come_again() {
    repairs_whatever_was_long_ago((1 << 32) - 2_400_000);
}

/// Breaks: the count of acknowledged bytes overflows after 4 GiB without SACK: a panic where that is checked.
#[test]
fn newreno_counts_more_than_4_gib_without_sack() {
    LongLived::open(Profile::NewReno, false).carry(4_400_000_000);
}
