//! TCP_INFO: a look at a connection in Linux's words.

use farpace_live::socket::Snapshot;
use farpace_tcp::State;
use farpace_trace::RecoveryState;
use farpace_units::{Packets, Rate, Span};

/// Linux's `struct tcp_info`: layout and meaning of `linux/tcp.h`. What the engine does not know is zero: `ato`, `reordering`,
/// `rcv_rtt`, and from `busy_time` on whatever is not named in [`TcpInfo::of`].
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
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
}

/// ssthresh while there is none.
const INFINITE: u32 = 0x7fff_ffff;
/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE.
const OPTIONS: [u8; 3] = [1, 2, 4];
/// No pacing rate.
const UNLIMITED: u64 = u64::MAX;

fn micros(span: Span) -> u32 {
    span.as_micros().try_into().unwrap_or(u32::MAX)
}

fn millis(span: Span) -> u32 {
    span.as_millis().try_into().unwrap_or(u32::MAX)
}

/// In bytes a second.
fn rate(rate: Option<Rate>) -> u64 {
    rate.map_or(UNLIMITED, |rate| rate.bits_per_sec() / 8)
}

fn small(n: u64) -> u32 {
    n.try_into().unwrap_or(u32::MAX)
}

impl TcpInfo {
    /// What Linux would say.
    pub fn of(seen: &Snapshot) -> Self {
        let (i, d, counters) = (&seen.inspection, &seen.details, &seen.counters);
        let agreed = [d.timestamps, d.sack, d.window_scale.is_some()];
        let options = OPTIONS.iter().zip(agreed).filter(|(_, on)| *on).map(|(bit, _)| bit).sum();
        let (theirs, ours) = d.window_scale.unwrap_or_default();
        let ssthresh = if i.ssthresh == Packets::MAX { INFINITE } else { i.ssthresh.get() };
        let brief = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
        TcpInfo {
            state: state(i.state),
            ca_state: match i.recovery {
                RecoveryState::Open => 0,
                RecoveryState::Disorder => 1,
                RecoveryState::Cwr => 2,
                RecoveryState::Recovery => 3,
                RecoveryState::Loss => 4,
            },
            retransmits: brief(d.timeouts_in_row),
            probes: brief(d.probes),
            backoff: brief(d.timeouts_in_row),
            options,
            wscale: theirs & 0xf | ours << 4,
            rto: micros(i.rto),
            snd_mss: i.mss,
            rcv_mss: i.mss,
            unacked: d.outstanding.get(),
            sacked: d.sacked.get(),
            lost: d.lost.get(),
            retrans: d.retransmitted.get(),
            fackets: d.forward.get(),
            last_data_sent: millis(d.since_sent),
            last_data_recv: millis(d.since_data),
            last_ack_recv: millis(d.since_heard),
            pmtu: d.path_mtu,
            rcv_ssthresh: small(d.receive_window.get()),
            rtt: micros(i.srtt),
            rttvar: micros(d.rttvar),
            snd_ssthresh: ssthresh,
            snd_cwnd: i.cwnd.get(),
            advmss: u32::from(d.offered_mss),
            rcv_space: small(seen.receive_buffer.get()),
            total_retrans: small(seen.retransmitted),
            pacing_rate: rate(d.pacing),
            max_pacing_rate: rate(d.rate_cap),
            bytes_acked: i.acknowledged.get(),
            bytes_received: counters.bytes_received.get(),
            segs_out: small(counters.sent.iter().sum()),
            segs_in: small(counters.segments_received),
            notsent_bytes: small((d.unsent + seen.waiting).get()),
            min_rtt: i.min_rtt.or(d.min_rtt).map_or(0, micros),
            data_segs_in: small(counters.data_segments_received),
            data_segs_out: small(counters.data_segments_sent),
            delivery_rate: i.bandwidth.map_or(0, |rate| rate.bits_per_sec() / 8),
            bytes_sent: counters.bytes_sent.get(),
            bytes_retrans: counters.bytes_sent_again.get(),
            rcv_ooopack: small(counters.out_of_order),
            snd_wnd: small(i.rwnd.get()),
            rcv_wnd: small(d.receive_window.get()),
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
