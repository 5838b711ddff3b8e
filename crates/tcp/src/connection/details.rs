//! A closer look at a connection than [`Inspection`](super::Inspection) gives, for people and for TCP_INFO.

use super::Connection;
use farpace_units::{ByteCount, Instant, Packets, Rate, Span};
use farpace_wire::tcp::TCP_LEN;

/// What is seldom asked for: what both ends agreed on, the scoreboard, clocks, and what paces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// Both ends use SACK.
    pub sack: bool,
    /// Both ends use timestamps.
    pub timestamps: bool,
    /// By how many bits the peer's window and ours are shifted; none: they are not, or it makes no difference.
    pub window_scale: Option<(u8, u8)>,
    /// IP packet of a full segment, in bytes: what the path is known to carry, or both ends allow.
    pub path_mtu: u32,
    /// The MSS that we have offered.
    pub offered_mss: u16,
    /// Segments sent and not cumulatively acknowledged.
    pub outstanding: Packets,
    /// Of them, those that were SACKed.
    pub sacked: Packets,
    /// Of them, those that are believed lost.
    pub lost: Packets,
    /// Retransmissions that are believed to be in flight.
    pub retransmitted: Packets,
    /// Outstanding segments up to the highest one that was SACKed.
    pub forward: Packets,
    /// Retransmission timeouts in a row, and so doublings of the timeout.
    pub timeouts_in_row: u32,
    /// Probes of a closed window, or else of an idle peer, that were not answered.
    pub probes: u32,
    /// Variation of the smoothed round-trip time.
    pub rttvar: Span,
    /// The least round trip of the last five minutes, or that of the handshake if it was less.
    pub min_rtt: Option<Span>,
    /// Since data (or SYN) was last sent.
    pub since_sent: Span,
    /// Since data was last received; since the beginning, if none was.
    pub since_data: Span,
    /// Since anything was last received.
    pub since_heard: Span,
    /// Payload leaves at this rate at most just now; none: it is not paced.
    pub pacing: Option<Rate>,
    /// The program's own limit of that.
    pub rate_cap: Option<Rate>,
    /// What we have announced, less what has come since.
    pub receive_window: ByteCount,
    /// Written by the application and not sent for the first time yet.
    pub unsent: ByteCount,
    /// The receive buffer as it is now, fixed or autotuned.
    pub receive_buffer: ByteCount,
    /// The send buffer as it is now, fixed or autotuned.
    pub send_buffer: ByteCount,
    /// The round trip as the receiver measures it for autotuning; zero if it does not.
    pub receiver_rtt: Span,
}

impl Connection {
    /// A closer look.
    pub fn details(&self, now: Instant) -> Details {
        let scales = (self.snd_wscale, self.rcv_wscale);
        let segments = &self.segments;
        Details {
            sack: self.sack,
            timestamps: self.timestamps,
            window_scale: (scales != (0, 0)).then_some(scales),
            path_mtu: self.mss + self.option_bytes() + TCP_LEN as u32 + u32::from(self.config.network_header),
            offered_mss: self.config.mss,
            outstanding: segments.packets_out(),
            sacked: segments.sacked_out(),
            lost: segments.lost_out(),
            retransmitted: segments.retrans_out(),
            forward: segments.fackets_out(),
            timeouts_in_row: self.timeouts_in_row,
            probes: self.patience.probes(),
            rttvar: self.rto.rttvar(),
            min_rtt: self.min_rtt.get().into_iter().chain(self.handshake_rtt).min(),
            since_sent: now.since(self.last_sent),
            since_data: now.since(self.patience.data_at()),
            since_heard: now.since(self.patience.heard_at()),
            pacing: self.pacer.rate(),
            rate_cap: self.pacer.cap(),
            receive_window: ByteCount::new(u64::from(self.rcv_adv.bytes_since(self.rcv_nxt))),
            unsent: ByteCount::new(self.unsent()),
            receive_buffer: ByteCount::new(u64::from(self.receive.size())),
            send_buffer: self.buffer.limit(),
            receiver_rtt: self.receive.rtt_estimate(),
        }
    }
}
