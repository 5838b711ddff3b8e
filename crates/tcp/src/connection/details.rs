//! A closer look at a connection than [`ConnectionInspection`](super::ConnectionInspection) gives, for people
//! and for TCP_INFO.

use super::Connection;
use super::statistics::LimitTimes;
use crate::recovery::Tallies;
use farpace_units::{ByteCount, Instant, Packets, Rate, Span};
use farpace_wire::tcp::TCP_LEN;

/// What is seldom asked for: what both ends agreed on, the scoreboard, clocks, and what paces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// Both ends use SACK.
    pub sack: bool,
    /// Both ends use timestamps.
    pub timestamps: bool,
    /// By how many bits the peer's window and ours are shifted; none: they are not, or it makes no
    /// difference.
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
    /// Doublings of the timeout, or of the time between probes of a closed window.
    pub backoff: u32,
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
    /// Since an acknowledgment was last received.
    pub since_heard: Span,
    /// Payload leaves at this rate at most just now, or would if Linux paced it; none: it is not paced.
    pub pacing: Option<Rate>,
    /// The program's own limit of that.
    pub rate_cap: Option<Rate>,
    /// What we have announced, less what has come since.
    pub receive_window: ByteCount,
    /// Written by the application and not sent for the first time yet; a FIN counts as a byte.
    pub unsent: ByteCount,
    /// Both ends use ECN; and a packet of the peer could have been marked.
    pub ecn: (bool, bool),
    /// The sending side is closed, perhaps with data that waits before the FIN.
    pub closing: bool,
    /// What was written and not acknowledged, as SIOCOUTQ counts it: with the FIN.
    pub unacknowledged: u64,
    /// It was so before the peer's FIN came.
    pub closed_first: bool,
    /// Bytes acknowledged, and what else has a number: a FIN, and the SYN of who opened the connection.
    pub acknowledged: u64,
    /// Bytes that came in order, and the FIN.
    pub received: u64,
    /// Segments sent, but for a SYN-ACK.
    pub segments_sent: u64,
    /// Segments known to have arrived, the handshake's among them.
    pub delivered: u64,
    /// Marks, D-SACKs, reordering.
    pub tallies: Tallies,
    /// How long what was sending, and what timeouts have cost.
    pub times: LimitTimes,
    /// For how long an ACK is held back; zero before there is an estimate.
    pub ack_timeout: Span,
    /// What counts as a full segment of the peer, in bytes of payload.
    pub peer_segment: u32,
    /// Payload of the largest segment that the peer may send.
    pub largest_received: u32,
    /// The receive buffer as it is now, fixed or autotuned.
    pub receive_buffer: ByteCount,
    /// The most that is ever announced, where Linux counts it.
    pub window_clamp: Option<u32>,
    /// How far the receive window is open, what was read in a round trip, and what was announced
    /// (`tcpi_rcv_ssthresh`, `tcpi_rcv_space`, `tcpi_rcv_wnd`).
    pub receive_window_told: (u32, u32, u32),
    /// The send buffer as it is now, fixed or autotuned.
    pub send_buffer: ByteCount,
    /// The round trip as the receiver measures it for autotuning; zero if it does not.
    pub receiver_rtt: Span,
}

impl Connection {
    /// IP packet of a full segment: of Linux what the link carries, else what both ends allow.
    fn largest_packet(&self) -> u32 {
        if let Some(mtu) = self.config.tuning.link_mtu.filter(|_| self.config.is_linux()) {
            return mtu.into();
        }
        let payload = if self.config.is_linux() {
            u32::from(self.config.mss)
        } else {
            self.snd.mss + self.ts.option_bytes()
        };
        payload + TCP_LEN as u32 + u32::from(self.config.network_header)
    }

    /// A closer look.
    pub fn details(&self, now: Instant) -> Details {
        let scales = (self.snd.wscale, self.rcv.wscale);
        let segments = &self.flight.segments;
        let started = self.statistics.established_at().unwrap_or_default();
        Details {
            sack: self.sack,
            timestamps: self.ts.enabled,
            window_scale: (scales != (0, 0)).then_some(scales),
            path_mtu: self.path.reported().unwrap_or_else(|| self.largest_packet()),
            offered_mss: self.config.mss,
            outstanding: segments.packets_out(),
            sacked: segments.sacked_out(),
            lost: segments.lost_out(),
            retransmitted: segments.retrans_out(),
            forward: segments.fackets_out(),
            timeouts_in_row: self.flight.timeouts_in_row,
            probes: if segments.is_empty() { self.keep_alive.probes() } else { 0 },
            backoff: self.flight.rto.doublings().max(self.doublings()),
            rttvar: self.flight.rto.rttvar(),
            min_rtt: self.flight.min_rtt.get().into_iter().chain(self.handshake.rtt).min(),
            since_sent: now.since(self.snd.last_sent),
            since_data: now.since(self.keep_alive.data_at().max(started)),
            ecn: self.ecn.seen(),
            closing: self.snd.fin_queued,
            unacknowledged: self.unacknowledged_numbers(),
            closed_first: self.statistics.closed_first(),
            acknowledged: self.acknowledged_numbers(),
            received: self.received_numbers(),
            segments_sent: self.segments_sent(),
            delivered: self.delivered(),
            tallies: self.flight.recovery.tallies(),
            times: self.times(now),
            ack_timeout: self.ack.policy.timeout(),
            peer_segment: self.ack.policy.segment(self.snd.mss, self.rcv.window.size()),
            largest_received: u32::from(self.config.mss).saturating_sub(self.ts.option_bytes()),
            since_heard: now.since(self.keep_alive.acked_at().max(started)),
            pacing: self.pacer.rate().or_else(|| self.linux_rate()),
            rate_cap: self.pacer.cap(),
            receive_window: ByteCount::new(u64::from(self.rcv.adv.bytes_since(self.rcv.nxt))),
            unsent: ByteCount::new(
                self.snd.unsent() + u64::from(self.snd.fin_queued && self.snd.fin_seq.is_none()),
            ),
            receive_buffer: ByteCount::new(u64::from(
                self.rcv.memory.as_ref().map_or(self.rcv.window.size(), |memory| memory.size()),
            )),
            window_clamp: self.rcv.memory.as_ref().map(|memory| memory.clamp()),
            receive_window_told: self.rcv.tcp_info_memory(),
            send_buffer: self.snd.buffer.limit(),
            receiver_rtt: self.rcv.window.rtt_estimate(),
        }
    }
}
