//! What the receive buffer of profile `linux` decides: windows, ACKs that may wait, and the fast path.

use super::Connection;
use crate::ack::DataArrival;
use crate::config::WindowGrowth;
use crate::receive::{Incoming, LinuxMemory};
use crate::segment::Segment;
use crate::segments::Tags;
use farpace_events::Cause;
use farpace_units::{ByteCount, Instant};
use farpace_wire::tcp::TCP_LEN;

/// Memory that a buffer of the send queue occupies beside its bytes.
pub(super) const SEND_BUFFER_COST: u64 = 832;
/// Segments outstanding of which it is counted how many buffers they are in; of more each is taken for one.
const MAX_COUNTED: usize = 256;

impl Connection {
    /// The handshake is over: the receive buffer is counted as Linux counts it, unless its size was chosen.
    pub(super) fn begin_memory(&mut self, now: Instant) {
        let auto = !self.config.receive_buffer.is_fixed() && self.config.window_growth == WindowGrowth::Linux;
        self.linux.predicts = !self.opened_actively() || self.snd.wscale == 0;
        if !auto {
            return;
        }
        let window = self.rcv.adv.bytes_since(self.rcv.nxt);
        let max = u32::try_from(self.config.receive_buffer.max.get()).unwrap_or(u32::MAX);
        let most = if self.rcv.wscale > 0 { u32::MAX } else { u32::from(u16::MAX) };
        let most = self.config.tuning.window_clamp.map_or(most, |clamp| most.min(clamp));
        let mut memory = LinuxMemory::new(now, window, most, self.window_unit(), max);
        memory.freeze(self.rcv.shortage.asked.frozen);
        self.rcv.memory = Some(Box::new(memory));
    }

    /// What counts as a full segment of the peer.
    pub(super) fn full_segment(&self) -> u32 {
        self.ack.policy.segment(self.snd.mss, self.rcv.window.size())
    }

    /// Data has come that ends at stream offset `end`; `early`: ahead of its turn.
    pub(super) fn charge(&mut self, arrival: &mut DataArrival, end: u64, len: usize, early: bool) {
        let full = self.full_segment();
        let (next, shift, sack) = (self.rcv.reassembly.next(), self.rcv.wscale, self.sack);
        let each = arrival.segment.max(1);
        let count = (len as u32).div_ceil(each).max(1);
        let headers = u32::from(self.config.network_header) + TCP_LEN as u32 + arrival.all_options;
        let Some(memory) = &mut self.rcv.memory else { return };
        let start = end.saturating_sub(len as u64);
        let incoming = Incoming { start, end, len: len as u32, packet: headers + each, count, full };
        arrival.opens = if early {
            memory.on_early(&incoming, sack, next)
        } else {
            let opens = memory.on_data(&incoming);
            memory.fill(next);
            opens
        };
        let full = if each >= full { each.min(arrival.most) } else { full };
        arrival.steady = memory.select(full, shift) >= memory.window();
        arrival.window = memory.window();
        self.rcv.reassembly.set_buffer(ByteCount::new(u64::from(memory.size())));
    }

    /// The window field of what is sent now; none: the buffer is not counted so.
    pub(super) fn announce_memory(&mut self) -> Option<u16> {
        let (left, full, shift) =
            (self.rcv.adv.bytes_since(self.rcv.nxt), self.full_segment(), self.rcv.wscale);
        let short = self.rcv.shortage.asked.share != ByteCount::MAX;
        let most = if short { self.free() } else { u32::MAX };
        let memory = self.rcv.memory.as_mut()?;
        let window = memory.announce(left, full, shift, most);
        self.rcv.adv = self.rcv.nxt + window;
        Some((window.min(u32::from(u16::MAX) << shift) >> shift) as u16)
    }

    /// The program has read so much in all, which whoever moves data between it and the connection tells from
    /// now on. True: it wants to be told each time.
    pub fn told_of_reads(&mut self, now: Instant, read: u64) -> bool {
        if !self.config.is_linux() {
            return false;
        }
        self.rcv.reads_are_reported = true;
        self.program_has_read(now, read);
        true
    }

    /// The program has read so much in all (`tcp_cleanup_rbuf`).
    pub(super) fn program_has_read(&mut self, now: Instant, read: u64) {
        let (left, full, shift) =
            (self.rcv.adv.bytes_since(self.rcv.nxt), self.full_segment(), self.rcv.wscale);
        let waiting = self.rcv.nxt.bytes_since(self.ack.last_sent);
        let rtt = self.rcv.window.rtt_estimate();
        let Some(memory) = self.rcv.memory.as_mut().filter(|memory| memory.is_unread(read)) else { return };
        memory.read(now, read, rtt);
        self.linux.may_stay_idle();
        let emptied = memory.used() == 0;
        let opened = memory.has_opened(left, full, shift);
        if self.ack.deadline.is_some() && (waiting > full || (emptied && self.ack.policy.on_all_read())) {
            self.ack.due.get_or_insert(Cause::AckNow);
        } else if opened && self.state.receives() {
            self.ack.due.get_or_insert(Cause::AckWindow);
        }
    }

    /// The segment is as expected, and the socket has memory for its data: the kernel looks at nothing else
    /// then.
    pub(super) fn takes_fast_path(&self, segment: &Segment) -> bool {
        if !self.is_predicted(segment) {
            return false;
        }
        let data = !segment.payload.is_empty();
        let Some(memory) = &self.rcv.memory else {
            return !data || self.counters.bytes_received > ByteCount::ZERO;
        };
        let stamps = segment.header.options.timestamps.filter(|_| self.ts.enabled);
        if !self.linux.predicts || stamps.is_some_and(|t| (t.value.wrapping_sub(self.ts.recent) as i32) < 0) {
            return false;
        }
        let headers = u32::from(self.config.network_header) + TCP_LEN as u32 + self.ts.option_bytes();
        !data || memory.is_charged_for(headers + segment.payload.len() as u32, self.sending_memory())
    }

    /// Memory of what was written and is not acknowledged.
    fn sending_memory(&self) -> u64 {
        let rows = self.flight.segments.len();
        let first = |i: &usize| !self.flight.segments.tags(*i).any(Tags::JOINED);
        let sent = if rows > MAX_COUNTED { rows } else { (0..rows).filter(first).count() };
        let buffers = (sent + self.linux.waiting_buffers()) as u64;
        buffers * SEND_BUFFER_COST + self.snd.buffer.len().get()
    }
}
