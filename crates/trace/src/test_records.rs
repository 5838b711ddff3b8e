//! Records and writers for the tests of this crate.

use farpace_events::{Cause, Record, RecordDirection, RecoveryState};
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use farpace_wire::tcp::{SackBlock, SackBlocks};
use farpace_wire::{AddressPair, Below, MacAddr, Packet, TcpFlags, TcpHeader};
use proptest::prelude::*;
use std::io;

/// A record whose fields all have different numbers.
pub(crate) fn distinct() -> Record {
    let block = |start, end| SackBlock { start: Seq::new(start), end: Seq::new(end) };
    Record {
        time: Instant::from_nanos(1),
        connection: 2,
        direction: RecordDirection::Sent,
        seq: Seq::new(3),
        len: ByteCount::new(4),
        ack: Seq::new(5),
        sack: [block(6, 7), block(8, 9), block(10, 11), block(12, 13)].into(),
        snd_una: Seq::new(14),
        snd_nxt: Seq::new(15),
        cwnd: Packets::new(16),
        ssthresh: Packets::new(17),
        in_flight: Packets::new(18),
        packets_out: Packets::new(19),
        lost_out: Packets::new(20),
        sacked_out: Packets::new(21),
        fackets_out: Packets::new(22),
        retrans_out: Packets::new(23),
        state: RecoveryState::Recovery,
        srtt: Span::from_nanos(24),
        rttvar: Span::from_nanos(25),
        rto: Span::from_nanos(26),
        rwnd: ByteCount::new(27),
        bandwidth: Rate::from_bits_per_sec(28),
        cause: Some(Cause::FastRetransmit),
    }
}

/// Any record, including limits of the ranges.
pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let numbers32 =
        proptest::array::uniform16(prop_oneof![4 => any::<u32>(), 1 => Just(u32::MAX), 1 => Just(0)]);
    let numbers64 =
        proptest::array::uniform7(prop_oneof![4 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(0)]);
    let block = (any::<u32>(), any::<u32>())
        .prop_map(|(start, end)| SackBlock { start: Seq::new(start), end: Seq::new(end) });
    let words = (
        proptest::sample::select(
            &[RecordDirection::Sent, RecordDirection::Received, RecordDirection::Internal][..],
        ),
        proptest::sample::select(
            &[
                RecoveryState::Open,
                RecoveryState::Disorder,
                RecoveryState::Cwr,
                RecoveryState::Recovery,
                RecoveryState::Loss,
            ][..],
        ),
        proptest::option::of(proptest::sample::select(Cause::ALL)),
    );
    (numbers32, numbers64, proptest::collection::vec(block, 0..=4), words).prop_map(
        |(a, b, sack, (direction, state, cause))| Record {
            time: Instant::from_nanos(b[0]),
            connection: a[0],
            direction,
            seq: Seq::new(a[1]),
            len: ByteCount::new(b[1]),
            ack: Seq::new(a[2]),
            sack: sack.into_iter().collect::<SackBlocks>(),
            snd_una: Seq::new(a[3]),
            snd_nxt: Seq::new(a[4]),
            cwnd: Packets::new(a[5]),
            ssthresh: Packets::new(a[6]),
            in_flight: Packets::new(a[7]),
            packets_out: Packets::new(a[8]),
            lost_out: Packets::new(a[9]),
            sacked_out: Packets::new(a[10]),
            fackets_out: Packets::new(a[11]),
            retrans_out: Packets::new(a[12]),
            state,
            srtt: Span::from_nanos(b[2]),
            rttvar: Span::from_nanos(b[3]),
            rto: Span::from_nanos(b[4]),
            rwnd: ByteCount::new(b[5]),
            bandwidth: Rate::from_bits_per_sec(b[6]),
            cause,
        },
    )
}

/// A disk that is full after 1000 bytes.
pub(crate) fn full_disk() -> FullDisk {
    FullDisk { room: 1000 }
}

#[derive(Debug)]
pub(crate) struct FullDisk {
    room: usize,
}

impl io::Write for FullDisk {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = buf.len().min(self.room);
        self.room -= n;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A TCP segment with `len` bytes, starting at sequence number `seq`.
pub(crate) fn packet(seq: u32, len: usize) -> Packet {
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let lower = Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64);
    let header = TcpHeader {
        src_port: 40_000,
        dst_port: 80,
        seq: Seq::new(seq),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    lower.tcp(1, &header, vec![0x55; len].into())
}
