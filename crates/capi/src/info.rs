//! TCP_INFO: a look at a connection in Linux's words.

use farpace_live::socket::Snapshot;
use farpace_tcp::State;
use farpace_trace::RecoveryState;
use farpace_units::{Packets, Span};

/// The first 104 bytes of Linux's `struct tcp_info`, and the 64-bit counters that follow: layout and meaning of
/// `linux/tcp.h`. What the engine does not know is zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "linux/tcp.h explains them")]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub wscale: u8,
    pub flags: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
}

/// ssthresh while there is none.
const INFINITE: u32 = 0x7fff_ffff;
/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE.
const OPTIONS: [u8; 3] = [1, 2, 4];

fn micros(span: Span) -> u32 {
    span.as_micros().try_into().unwrap_or(u32::MAX)
}

fn small(n: u64) -> u32 {
    n.try_into().unwrap_or(u32::MAX)
}

impl TcpInfo {
    /// What Linux would say.
    pub fn of(seen: &Snapshot, config: &farpace_tcp::config::Config) -> Self {
        let i = &seen.inspection;
        let offered = [config.timestamps, config.sack, config.window_scale];
        let options = OPTIONS.iter().zip(offered).filter(|(_, on)| *on).map(|(bit, _)| bit).sum();
        let ssthresh = if i.ssthresh == Packets::MAX { INFINITE } else { i.ssthresh.get() };
        TcpInfo {
            state: state(i.state),
            ca_state: match i.recovery {
                RecoveryState::Open => 0,
                RecoveryState::Disorder => 1,
                RecoveryState::Cwr => 2,
                RecoveryState::Recovery => 3,
                RecoveryState::Loss => 4,
            },
            options,
            rto: micros(i.rto),
            snd_mss: i.mss,
            rcv_mss: i.mss,
            unacked: small(seen.memory.rows as u64),
            pmtu: i.mss + 20 + u32::from(config.network_header) + if config.timestamps { 12 } else { 0 },
            rtt: micros(i.srtt),
            snd_ssthresh: ssthresh,
            snd_cwnd: i.cwnd.get(),
            advmss: u32::from(config.mss),
            rcv_space: small(seen.receive_buffer.get()),
            total_retrans: small(seen.retransmitted),
            max_pacing_rate: u64::MAX,
            bytes_acked: i.acknowledged.get(),
            bytes_received: seen.counters.bytes_received.get(),
            segs_out: small(seen.counters.sent.iter().sum()),
            segs_in: small(seen.counters.segments_received),
            notsent_bytes: small((seen.memory.send_bytes - seen.in_flight + seen.waiting).get()),
            min_rtt: i.min_rtt.map_or(0, micros),
            delivery_rate: i.bandwidth.map_or(0, |rate| rate.bits_per_sec() / 8),
            ..TcpInfo::default()
        }
    }
}

fn state(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}
