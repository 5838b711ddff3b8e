//! Buffers that follow what the path needs (autotuning).

use super::Connection;
use crate::config::WindowGrowth;
use farpace_units::{ByteCount, Instant};
use farpace_wire::tcp::TcpHeader;

/// What the application may write ahead is this part of a congestion window ...
const AHEAD_SMALL: u64 = 2;
/// ... and of a large one, which takes long to send, this part, ...
const AHEAD_LARGE: u64 = 8;
/// ... but not less than so many bytes.
const SMALL: u64 = 1 << 20;

impl Connection {
    /// An autotuned send buffer holds what is outstanding, also behind a hole, and a part of a congestion window more, so that the
    /// application has that part of a round trip to write on. That of Linux grows to two congestion windows (tcp_sndbuf_expand).
    /// True if it has grown.
    pub(super) fn tune_send_buffer(&mut self) -> bool {
        let size = self.config.send_buffer;
        if size.is_fixed() || self.shortage.asked.frozen {
            return false;
        }
        let window = u64::from(self.window.cwnd().get()).saturating_mul(u64::from(self.mss));
        let before = self.buffer.limit();
        let wanted = match self.config.window_growth {
            WindowGrowth::Ahead => {
                let outstanding = u64::from(self.snd_nxt.bytes_since(self.snd_una)).max(window);
                let ahead = (window / AHEAD_LARGE).max(SMALL).min(window / AHEAD_SMALL);
                ByteCount::new(outstanding.saturating_add(ahead))
            }
            WindowGrowth::Linux => ByteCount::new(window.saturating_mul(2)).max(before),
        };
        self.buffer.set_limit(wanted.clamp(size.initial, size.max));
        self.buffer.limit() > before
    }

    /// The round trip of the receiving side: from a timestamp that comes back with full segments, or from how long a window
    /// takes.
    pub(super) fn time_receiver(&mut self, now: Instant, header: &TcpHeader, len: usize) {
        if self.config.receive_buffer.is_fixed() {
            return;
        }
        match header.options.timestamps.filter(|_| self.timestamps) {
            Some(t) if len >= self.ack_policy.full_size() as usize => {
                let ticks = self.timestamp(now).wrapping_sub(t.echo);
                if let Some(rtt) = self.believable(now, ticks) {
                    self.receive.rtt().on_echo(t.echo, rtt);
                }
            }
            Some(_) => {}
            None => self.receive.rtt().on_data(now, self.rcv_nxt, self.rcv_adv),
        }
    }
}
