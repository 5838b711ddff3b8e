//! TCP_INFO: a snapshot of a connection in Linux's terms.

use crate::socket::ConnectionSnapshot;
use farpace_events::RecoveryState;
use farpace_tcp::ConnectionState;
use farpace_units::{Packets, Rate, Span};
use serde::{Deserialize, Serialize};

macro_rules! tcp_info {
    ($($field:ident: $type:ty,)*) => {
        /// Linux's `struct tcp_info`: fields, order and meaning as in `linux/tcp.h` of Linux 6.18.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[allow(missing_docs, reason = "linux/tcp.h explains them")]
        pub struct TcpInfo { $(pub $field: $type),* }

        impl TcpInfo {
            /// The structure as in memory: it has no padding.
            pub fn bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity(LENGTH);
                $(bytes.extend_from_slice(&self.$field.to_ne_bytes());)*
                bytes
            }
        }
    };
}

tcp_info! {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    wscale: u8,
    flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rehash: u32,
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
    received_ce: u32,
    delivered_e1_bytes: u32,
    delivered_e0_bytes: u32,
    delivered_ce_bytes: u32,
    received_e1_bytes: u32,
    received_e0_bytes: u32,
    received_ce_bytes: u32,
    accecn_fail_mode: u16,
    accecn_opt_seen: u16,
}

/// Length of the structure in bytes.
const LENGTH: usize = 280;
/// ssthresh before the first reduction.
const INFINITE: u32 = 0x7fff_ffff;
/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE.
const OPTIONS: [u8; 3] = [1, 2, 4];
/// TCPI_OPT_ECN, TCPI_OPT_ECN_SEEN.
const ECN: u8 = 8;
const ECN_SEEN: u8 = 16;
/// No pacing rate.
const UNLIMITED: u64 = u64::MAX;
/// The state of a socket without a connection (TCP_CLOSE), and of a listener.
const CLOSED: u8 = 7;
const LISTENING: u8 = 10;

fn micros(span: Span) -> u32 {
    span.as_micros().try_into().unwrap_or(u32::MAX)
}

fn millis(span: Span) -> u32 {
    span.as_millis().try_into().unwrap_or(u32::MAX)
}

/// In bytes per second.
fn rate(rate: Option<Rate>) -> u64 {
    rate.map_or(UNLIMITED, |rate| rate.bits_per_sec() / 8)
}

fn small(n: u64) -> u32 {
    n.try_into().unwrap_or(u32::MAX)
}

impl TcpInfo {
    /// Of a socket without a connection. As in Linux it counts as limited by its application.
    pub fn closed() -> Self {
        TcpInfo { state: CLOSED, flags: 1, ..TcpInfo::default() }
    }
    /// Of a listener: the number of connections that wait to be accepted, and the backlog.
    pub fn listening(waiting: u32, max: u32) -> Self {
        TcpInfo { state: LISTENING, unacked: waiting, sacked: max, ..TcpInfo::default() }
    }
    /// The name of its state in the output of `ss`.
    pub fn state_name(&self) -> &'static str {
        const NAMES: [&str; 12] = [
            "UNKNOWN",
            "ESTAB",
            "SYN-SENT",
            "SYN-RECV",
            "FIN-WAIT-1",
            "FIN-WAIT-2",
            "TIME-WAIT",
            "UNCONN",
            "CLOSE-WAIT",
            "LAST-ACK",
            "LISTEN",
            "CLOSING",
        ];
        NAMES.get(usize::from(self.state)).copied().unwrap_or(NAMES[0])
    }
    /// The values that Linux would report.
    pub fn of(seen: &ConnectionSnapshot) -> Self {
        let (i, d, counters) = (&seen.inspection, &seen.details, &seen.counters);
        let agreed = [d.timestamps, d.sack, d.window_scale.is_some()];
        let options: u8 = OPTIONS.iter().zip(agreed).filter(|(_, on)| *on).map(|(bit, _)| bit).sum();
        let ecn = if d.ecn.0 { ECN + if d.ecn.1 { ECN_SEEN } else { 0 } } else { 0 };
        let (theirs, ours) = d.window_scale.unwrap_or_default();
        let ssthresh = if i.ssthresh == Packets::MAX { INFINITE } else { i.ssthresh.get() };
        let brief = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
        TcpInfo {
            state: match i.state {
                ConnectionState::Established if d.closing => state(ConnectionState::FinWait1),
                ConnectionState::CloseWait if d.closing && d.closed_first => state(ConnectionState::Closing),
                ConnectionState::CloseWait if d.closing => state(ConnectionState::LastAck),
                other => state(other),
            },
            ca_state: match i.recovery {
                RecoveryState::Open => 0,
                RecoveryState::Disorder => 1,
                RecoveryState::Cwr => 2,
                RecoveryState::Recovery => 3,
                RecoveryState::Loss => 4,
            },
            retransmits: brief(d.timeouts_in_row),
            probes: brief(d.probes),
            backoff: brief(d.backoff),
            options: options + ecn,
            wscale: theirs & 0xf | ours << 4,
            rto: micros(i.rto),
            snd_mss: i.mss,
            ato: micros(d.ack_timeout),
            rcv_mss: d.peer_segment,
            unacked: d.outstanding.get(),
            sacked: d.sacked.get(),
            lost: d.lost.get(),
            retrans: d.retransmitted.get(),
            fackets: d.forward.get(),
            last_data_sent: millis(d.since_sent),
            last_data_recv: millis(d.since_data),
            last_ack_recv: millis(d.since_heard),
            pmtu: d.path_mtu,
            rcv_ssthresh: d.receive_window_told.0,
            rtt: micros(i.srtt),
            rttvar: micros(d.rttvar),
            snd_ssthresh: ssthresh,
            snd_cwnd: i.cwnd.get(),
            advmss: d.largest_received,
            reordering: d.tallies.reordering.get(),
            reord_seen: small(d.tallies.reord_seen),
            dsack_dups: small(d.tallies.dsack_dups),
            rcv_rtt: micros(d.receiver_rtt),
            rcv_space: d.receive_window_told.1,
            total_retrans: small(seen.retransmitted),
            pacing_rate: rate(d.pacing),
            max_pacing_rate: rate(d.rate_cap),
            bytes_acked: d.acknowledged,
            bytes_received: d.received,
            segs_out: small(d.segments_sent),
            segs_in: small(counters.segments_received),
            notsent_bytes: small((d.unsent + seen.waiting).get()),
            min_rtt: i.min_rtt.or(d.min_rtt).map_or(u32::MAX, micros),
            data_segs_in: small(counters.data_segments_received),
            data_segs_out: small(counters.data_segments_sent),
            delivery_rate: i.bandwidth.map_or(0, |rate| rate.bits_per_sec() / 8),
            busy_time: d.times.busy.as_micros(),
            rwnd_limited: d.times.receive_window_limited.as_micros(),
            sndbuf_limited: d.times.send_buffer_limited.as_micros(),
            delivered: small(d.delivered),
            delivered_ce: small(d.tallies.delivered_ce),
            total_rto: u16::try_from(d.times.timeouts).unwrap_or(u16::MAX),
            total_rto_recoveries: u16::try_from(d.times.timeout_recoveries).unwrap_or(u16::MAX),
            total_rto_time: millis(d.times.timeout_time),
            bytes_sent: counters.bytes_sent.get(),
            bytes_retrans: counters.bytes_sent_again.get(),
            rcv_ooopack: small(counters.out_of_order),
            snd_wnd: small(i.rwnd.get()),
            rcv_wnd: d.receive_window_told.2,
            ..TcpInfo::default()
        }
    }
}

fn state(state: ConnectionState) -> u8 {
    match state {
        ConnectionState::Established => 1,
        ConnectionState::SynSent => 2,
        ConnectionState::SynReceived => 3,
        ConnectionState::FinWait1 => 4,
        ConnectionState::FinWait2 => 5,
        ConnectionState::TimeWait => 6,
        ConnectionState::Closed => 7,
        ConnectionState::CloseWait => 8,
        ConnectionState::LastAck => 9,
        ConnectionState::Closing => 11,
    }
}
