//! Buffers that follow what the path needs (autotuning).

use super::Connection;
use super::linux_receive::SEND_BUFFER_COST;
use crate::config::WindowGrowth;
use farpace_units::{ByteCount, Instant, Span};

/// What the application may write ahead is what leaves in this time, ...
const AHEAD: Span = Span::from_millis(5);
/// ... but not less than so many bytes, ...
const MIN_AHEAD: u64 = 256 << 10;
/// ... and not more than this part of a congestion window, or so many bytes, or this part of a small one.
const PART: u64 = 8;
const SMALL: u64 = 1 << 20;
const PART_OF_SMALL: u64 = 2;
/// What Linux counts for a segment in its send buffer: MAX_TCP_HEADER and skb_shared_info, rounded up to a
/// power of two together with the payload, and sk_buff (x86-64, aligned to cache lines).
const MAX_TCP_HEADER: u64 = 320;
const SKB_SHARED_INFO: u64 = 320;
const SK_BUFF: u64 = 256;
/// TCP_INIT_CWND: segments that a send buffer of Linux has room for at least.
const TCP_INIT_CWND: u64 = 10;

impl Connection {
    /// An autotuned send buffer holds what is outstanding, also behind a hole, and what leaves until the
    /// application has written on. How long that takes is a matter of its processor and not of the path: on a
    /// far one it is a small part of what is outstanding. True if it has grown.
    pub(super) fn tune_send_buffer(&mut self) -> bool {
        let size = self.config.send_buffer;
        if size.is_fixed() || self.rcv.shortage.asked.frozen {
            return false;
        }
        let window = u64::from(self.flight.window.cwnd().get()).saturating_mul(u64::from(self.snd.mss));
        let before = self.snd.buffer.limit();
        let wanted = match self.config.window_growth {
            WindowGrowth::Ahead => {
                let outstanding = u64::from(self.snd.nxt.bytes_since(self.snd.una)).max(window);
                let in_time =
                    window.saturating_mul(AHEAD.as_micros()) / self.flight.rto.srtt().as_micros().max(1);
                let ahead = in_time.clamp(MIN_AHEAD, (window / PART).max(SMALL)).min(window / PART_OF_SMALL);
                ByteCount::new(outstanding.saturating_add(ahead))
            }
            WindowGrowth::Linux => self.linux_send_buffer().max(before),
        };
        self.snd.buffer.set_limit(wanted.clamp(size.initial, size.max));
        self.snd.buffer.limit() > before
    }

    /// Payload that the send buffer of Linux holds (tcp_sndbuf_expand). It is sized by the memory of single
    /// segments, and filled with bursts, which need less.
    fn linux_send_buffer(&self) -> ByteCount {
        let mss = u64::from(self.snd.mss);
        let with_headers = mss + u64::from(self.ts.option_bytes()) + MAX_TCP_HEADER + SKB_SHARED_INFO;
        let segment = with_headers.next_power_of_two() + SK_BUFF;
        let segments = u64::from(self.flight.window.cwnd().get()).max(TCP_INIT_CWND);
        let windows = u64::from(self.flight.cc.send_buffer_windows());
        let memory = (windows * segments).saturating_mul(segment).min(self.config.send_buffer.max.get());
        let burst = self.burst() * mss;
        ByteCount::new(memory.saturating_mul(burst) / (burst + SEND_BUFFER_COST))
    }

    /// The round trip of the receiving side, from a timestamp that comes back with a full segment. Linux
    /// takes the last that came back where a segment has none, and looks also at segments without data
    /// (tcp_rcv_rtt_measure_ts).
    pub(super) fn time_echo(&mut self, now: Instant, len: usize) {
        if self.config.receive_buffer.is_fixed() || !self.ts.enabled {
            return;
        }
        let echo = self.ts.echo;
        let linux = self.config.is_linux();
        let full = if linux { self.full_segment() } else { self.ack.policy.full_size() };
        let is_full = len >= full as usize;
        let rtt = self.believable(now, self.timestamp(now).wrapping_sub(echo)).filter(|_| is_full);
        if linux || rtt.is_some() {
            let next = self.rcv.reassembly.next();
            let unread = self.rcv.memory.as_ref().is_some_and(|memory| memory.is_unread(next));
            self.rcv.window.rtt().on_echo(echo, rtt, unread);
        }
    }

    /// The same, from how long a window takes. Linux asks this beside timestamps (tcp_rcv_rtt_measure), of
    /// segments that bring the next bytes of the stream (`turn`).
    pub(super) fn time_window(&mut self, now: Instant, turn: bool) {
        let asks = if self.config.is_linux() { turn } else { !self.ts.enabled };
        if asks && !self.config.receive_buffer.is_fixed() {
            self.rcv.window.rtt().on_data(now, self.rcv.nxt, self.rcv.adv);
        }
    }
}
