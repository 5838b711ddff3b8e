//! The rows that the programs write (`bpf/maps.h`), as values.

use crate::KernelControl;
use farpace_events::{Record, RecordDirection, RecoveryState};
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use farpace_wire::tcp::SackBlocks;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Reads the fields of a C structure in their order. What is missing reads as zero: the length is checked
/// once.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Of a structure of so many bytes; none if there are fewer.
    pub fn of(bytes: &'a [u8], size: usize) -> Option<Self> {
        (bytes.len() >= size).then_some(Fields(bytes))
    }
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, tail) = self.0.split_first_chunk::<N>().unwrap_or((&[0; N], &[]));
        self.0 = tail;
        *head
    }
    fn u8(&mut self) -> u8 {
        u8::from_ne_bytes(self.take())
    }
    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }
    pub fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }
    pub fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

/// The two ends of a connection, and the network namespace that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Addresses {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Number of the network namespace, as `lsns` shows it.
    pub namespace: u32,
}

const INET6: u16 = 10;

impl Addresses {
    fn parse(fields: &mut Fields<'_>) -> Self {
        let (local, remote): ([u8; 16], [u8; 16]) = (fields.take(), fields.take());
        let (local_port, remote_port, family) = (fields.u16(), fields.u16(), fields.u16());
        let _ = fields.u16();
        let namespace = fields.u32();
        let _ = fields.u32();
        let address = |bytes: [u8; 16]| {
            if family == INET6 {
                // An IPv4 connection of an IPv6 socket is an IPv4 connection.
                return IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical();
            }
            let [a, b, c, d, ..] = bytes;
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        };
        Addresses {
            local: SocketAddr::new(address(local), local_port),
            remote: SocketAddr::new(address(remote), remote_port),
            namespace,
        }
    }
}

/// What control farpace is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The ACKs of the first flight are timed.
    Train,
    /// Longer trains at half of the rate that was found.
    Trains,
    /// The window grows to the rate that was found.
    Ramp,
    /// The window doubles each round trip.
    Double,
    /// It follows the queue.
    Steady,
}

impl Phase {
    fn of(number: u8) -> Self {
        match number {
            0 => Phase::Train,
            1 => Phase::Trains,
            2 => Phase::Ramp,
            3 => Phase::Double,
            _ => Phase::Steady,
        }
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Train => "train",
            Phase::Trains => "trains",
            Phase::Ramp => "ramp",
            Phase::Double => "double",
            Phase::Steady => "steady",
        }
    }
}

fn state_of(number: u8) -> RecoveryState {
    match number {
        0 => RecoveryState::Open,
        1 => RecoveryState::Disorder,
        2 => RecoveryState::Cwr,
        3 => RecoveryState::Recovery,
        _ => RecoveryState::Loss,
    }
}

/// A pacing rate; none: unlimited.
fn pacing(bytes: u64) -> Option<Rate> {
    (bytes < u64::from(u32::MAX) * 1_000).then(|| Rate::from_bytes_per_sec_f64(bytes as f64))
}

/// A connection under a control of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelConnection {
    /// Its number since the programs were loaded.
    pub id: u64,
    /// Who talks to whom.
    pub addresses: Addresses,
    /// Under which control.
    pub control: KernelControl,
    /// What control farpace is doing.
    pub phase: Option<Phase>,
    /// Congestion state.
    pub state: RecoveryState,
    /// State of TCP, in the kernel's numbers (1: established).
    pub tcp_state: u8,
    /// Congestion window.
    pub cwnd: Packets,
    /// Slow-start threshold.
    pub ssthresh: Packets,
    /// Segments in flight.
    pub in_flight: Packets,
    /// Bytes of a full segment.
    pub mss: u32,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// The least of the last minutes, by the kernel.
    pub min_rtt: Span,
    /// The round trip of the empty path, by the control.
    pub base_rtt: Span,
    /// Rate at which segments leave; none: unlimited.
    pub pacing: Option<Rate>,
    /// The bandwidth that the control has measured.
    pub bandwidth: Rate,
    /// Bytes acknowledged.
    pub acked: ByteCount,
    /// Segments delivered.
    pub delivered: u64,
    /// Segments with data sent.
    pub data_segments: u32,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Segments found lost.
    pub lost: u32,
}

impl KernelConnection {
    /// Bytes of a row.
    pub const SIZE: usize = 136;

    /// A row. None: its control is not known, so that the programs are of another version.
    pub fn parse(row: &[u8; KernelConnection::SIZE]) -> Option<Self> {
        let mut f = Fields(row);
        let id = f.u64();
        let addresses = Addresses::parse(&mut f);
        let (pacing_rate, acked, bandwidth, delivered) = (f.u64(), f.u64(), f.u64(), f.u64());
        let (cwnd, ssthresh, in_flight, mss) = (f.u32(), f.u32(), f.u32(), f.u32());
        let (srtt, min_rtt, base_rtt) = (f.u32(), f.u32(), f.u32());
        let (retransmissions, lost, data_segments) = (f.u32(), f.u32(), f.u32());
        let (kind, phase, ca_state, tcp_state) = (f.u8(), f.u8(), f.u8(), f.u8());
        let us = |us: u32| Span::from_micros(u64::from(us));
        let control = KernelControl::of_kind(kind)?;
        Some(KernelConnection {
            id,
            addresses,
            control,
            phase: (control == KernelControl::Farpace).then(|| Phase::of(phase)),
            state: state_of(ca_state),
            tcp_state,
            cwnd: Packets::new(cwnd),
            ssthresh: threshold(ssthresh),
            in_flight: Packets::new(in_flight),
            mss,
            srtt: us(srtt),
            // The kernel's minimum is all ones before the first sample.
            min_rtt: if min_rtt == u32::MAX { Span::ZERO } else { us(min_rtt) },
            base_rtt: us(base_rtt),
            pacing: pacing(pacing_rate),
            bandwidth: Rate::from_bytes_per_sec_f64(bandwidth as f64),
            acked: ByteCount::new(acked),
            delivered,
            data_segments,
            retransmissions,
            lost,
        })
    }
}

/// The kernel's infinite threshold is 2^31 - 1.
fn threshold(ssthresh: u32) -> Packets {
    if ssthresh >= 0x7fff_ffff { Packets::MAX } else { Packets::new(ssthresh) }
}

/// What an ACK left of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRow {
    /// When it had been processed: nanoseconds since the machine started.
    pub time: Instant,
    /// The connection's number since the programs were loaded.
    pub id: u64,
    /// Who talks to whom.
    pub addresses: Addresses,
    /// Under which control.
    pub control: KernelControl,
    /// What control farpace is doing.
    pub phase: Option<Phase>,
    /// Rate at which segments leave; none: unlimited.
    pub pacing: Option<Rate>,
    /// The row of a trace; its connection is 0, and its retransmission timeout counts ticks of the kernel in
    /// nanoseconds.
    record: Record,
    /// The retransmission timeout in the kernel's ticks.
    rto_ticks: u32,
}

impl TraceRow {
    /// Bytes of a row.
    pub const SIZE: usize = 136;

    /// A row. None: the length or the control is not known, so that the programs are of another version.
    pub fn parse(row: &[u8]) -> Option<Self> {
        if row.len() != TraceRow::SIZE {
            return None;
        }
        let mut f = Fields(row);
        let (time, id) = (Instant::from_nanos(f.u64()), f.u64());
        let addresses = Addresses::parse(&mut f);
        let (bandwidth, pacing_rate) = (f.u64(), f.u64());
        let (ack, snd_nxt, rcv_nxt) = (f.u32(), f.u32(), f.u32());
        let (cwnd, ssthresh, packets_out, lost_out) = (f.u32(), f.u32(), f.u32(), f.u32());
        let (sacked_out, retrans_out) = (f.u32(), f.u32());
        let (srtt, rttvar, rto_ticks, snd_wnd) = (f.u32(), f.u32(), f.u32(), f.u32());
        let (kind, phase, ca_state) = (f.u8(), f.u8(), f.u8());
        let us = |us: u32| Span::from_micros(u64::from(us));
        let control = KernelControl::of_kind(kind)?;
        let in_flight =
            packets_out.saturating_add(retrans_out).saturating_sub(sacked_out.saturating_add(lost_out));
        let record = Record {
            time,
            connection: 0,
            direction: RecordDirection::Received,
            seq: Seq::new(rcv_nxt),
            len: ByteCount::new(0),
            ack: Seq::new(ack),
            sack: SackBlocks::default(),
            snd_una: Seq::new(ack),
            snd_nxt: Seq::new(snd_nxt),
            cwnd: Packets::new(cwnd),
            ssthresh: threshold(ssthresh),
            in_flight: Packets::new(in_flight),
            packets_out: Packets::new(packets_out),
            lost_out: Packets::new(lost_out),
            sacked_out: Packets::new(sacked_out),
            fackets_out: Packets::new(sacked_out.saturating_add(lost_out).min(packets_out)),
            retrans_out: Packets::new(retrans_out),
            state: state_of(ca_state),
            srtt: us(srtt),
            rttvar: us(rttvar),
            rto: Span::ZERO,
            rwnd: ByteCount::new(u64::from(snd_wnd)),
            bandwidth: Rate::from_bytes_per_sec_f64(bandwidth as f64),
            cause: None,
        };
        Some(TraceRow {
            time,
            id,
            addresses,
            control,
            phase: (control == KernelControl::Farpace).then(|| Phase::of(phase)),
            pacing: pacing(pacing_rate),
            record,
            rto_ticks,
        })
    }

    /// The row of a trace, as connection `connection`, with times counted from `start`. `tick`: a tick of the
    /// kernel's timers.
    pub fn record(&self, connection: u32, start: Instant, tick: Span) -> Record {
        let time = Instant::ZERO + self.time.since(start);
        Record { time, connection, rto: tick * u64::from(self.rto_ticks), ..self.record.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a row of the kernel is read with other fields than it was written with.
    #[test]
    fn a_row_of_a_connection() {
        let mut row = Vec::new();
        row.extend(7u64.to_ne_bytes());
        row.extend([10, 0, 0, 1].into_iter().chain([0; 12]));
        row.extend([10, 0, 0, 2].into_iter().chain([0; 12]));
        for n in [5_000u16, 443, 2, 0] {
            row.extend(n.to_ne_bytes());
        }
        for n in [4_026_531_840u32, 0] {
            row.extend(n.to_ne_bytes());
        }
        for n in [1_250_000u64, 1_000, 2_000, 3_000] {
            row.extend(n.to_ne_bytes());
        }
        for n in [10u32, 0x7fff_ffff, 4, 1448, 500_000, u32::MAX, 499_000, 2, 3, 60] {
            row.extend(n.to_ne_bytes());
        }
        row.extend([1, 4, 3, 1, 0, 0, 0, 0]);
        let row: [u8; KernelConnection::SIZE] = row.try_into().unwrap();
        let status = KernelConnection::parse(&row).unwrap();
        assert_eq!(status.addresses.local, "10.0.0.1:5000".parse().unwrap());
        assert_eq!(status.addresses.remote, "10.0.0.2:443".parse().unwrap());
        assert_eq!((status.control, status.phase), (KernelControl::Farpace, Some(Phase::Steady)));
        assert_eq!((status.cwnd.get(), status.ssthresh, status.mss), (10, Packets::MAX, 1448));
        assert_eq!((status.min_rtt, status.base_rtt), (Span::ZERO, Span::from_millis(499)));
        assert_eq!(status.pacing, Some(Rate::from_mbit(10)));
        assert_eq!(
            (status.state, status.retransmissions, status.data_segments),
            (RecoveryState::Recovery, 2, 60)
        );
        let mut other = row;
        other[KernelConnection::SIZE - 8] = 9;
        assert_eq!(KernelConnection::parse(&other), None);
    }

    /// Breaks: rows of another length are read as if they were ours.
    #[test]
    fn a_row_of_another_length() {
        assert_eq!(TraceRow::parse(&[0; TraceRow::SIZE + 8]), None);
        assert_eq!(TraceRow::parse(&[]), None);
    }
}
