//! Connections that carry more than half of the space of sequence numbers between two losses.

use crate::script::segment;
use bytes::Bytes;
use farpace_tcp::config::{Profile, Settings};
use farpace_tcp::{Connection, OutgoingSegment, Ports, Transmit};
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::SackBlock;

struct LongLived {
    connection: Connection,
    now: Instant,
    /// All that is acknowledged, not modulo 2^32.
    una: u64,
    sack: bool,
    out: Vec<OutgoingSegment>,
}

impl LongLived {
    fn open(profile: Profile, sack: bool) -> Self {
        let settings = Settings {
            profile: Some(profile),
            mss: Some(1000),
            window_scale: Some(false),
            timestamps: Some(false),
            ..Settings::default()
        };
        let config = settings.resolve().expect("settings that agree");
        let now = Instant::ZERO;
        let connection = Connection::connect(now, &config, Ports { local: 1, remote: 2 }, Seq::new(0));
        let mut long = Self { connection, now, una: 1, sack, out: Vec::new() };
        long.send();
        long.now += Span::from_millis(10);
        let permitted = if sack { "sackok" } else { "" };
        let mut answer = segment(&format!("S. 0 win 60000 mss 1000 {permitted}"));
        answer.header.ack = Seq::new(1);
        long.connection.on_segment(long.now, answer);
        long
    }

    fn send(&mut self) {
        self.out.clear();
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

    /// Sends `bytes`, all acknowledged.
    fn carry(&mut self, bytes: u64) {
        let until = self.una + bytes;
        let chunk = Bytes::from(vec![7; 60_000]);
        loop {
            if self.una < until {
                self.connection.write(&mut chunk.clone());
            }
            self.send();
            let counters = self.connection.counters();
            self.una = 1 + counters.bytes_sent.get() - counters.bytes_sent_again.get();
            self.now += Span::from_millis(1);
            self.acknowledge(None);
            let memory = self.connection.memory();
            if self.una >= until && memory.rows == 0 && memory.send_bytes.is_zero() {
                return;
            }
        }
    }

    /// The first of ten segments is lost: true if the others' ACKs have it sent again.
    fn repairs_a_loss(&mut self) -> bool {
        self.connection.write(&mut Bytes::from(vec![7; 10_000]));
        self.send();
        let first = self.out[0].segment.header.seq;
        self.now += Span::from_millis(10);
        let mut repaired = false;
        for arrived in 2..=10 {
            let block = (self.una + 1000, self.una + 1000 * arrived);
            self.acknowledge(self.sack.then_some(block));
            self.send();
            repaired |= self.out.iter().any(|o| o.segment.header.seq == first);
        }
        repaired
    }
}

fn repairs_losses_far_apart(profile: Profile, sack: bool) {
    let mut long = LongLived::open(profile, sack);
    long.carry(100_000);
    assert!(long.repairs_a_loss(), "{profile:?}: the first loss");
    long.carry(2_700_000_000);
    assert!(long.repairs_a_loss(), "{profile:?}: the loss 2.7 GB later");
}

/// Breaks: a `judged` of 2 GiB ago looks newer than all that is sent: RACK of profile linux finds no loss.
#[test]
fn linux_rack_finds_a_loss_more_than_2_gib_after_the_last() {
    repairs_losses_far_apart(Profile::Linux, true);
}

/// Breaks: a `recover` of 2 GiB ago looks newer than SND.UNA: no fast retransmit without SACK (RFC 6582
/// §3.2).
#[test]
fn newreno_repairs_a_loss_more_than_2_gib_after_the_last() {
    repairs_losses_far_apart(Profile::NewReno, false);
}

/// Breaks: the count of acknowledged bytes overflows after 4 GiB without SACK: a panic where that is checked.
#[test]
fn newreno_counts_more_than_4_gib_without_sack() {
    LongLived::open(Profile::NewReno, false).carry(4_400_000_000);
}
