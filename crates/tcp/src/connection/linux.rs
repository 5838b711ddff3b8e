//! How profile `linux` sends new data: in bursts of as many segments as its pacing rate gives a device in a
//! millisecond (`tcp_tso_autosize`), with PSH at the end of each and of what was written; Nagle in the form
//! of Minshall; and a burst that waits a moment for the window to open.
//!
//! Every segment still leaves on its own, unless the device cuts bursts itself.

use super::linux_pacing::SINGLE_SEGMENT_RATE;
use super::linux_queue::{Bursts, Head, Queue};
use super::transmit::{Blocked, Transmit, expect};
use super::{Connection, ConnectionState};
use crate::recovery::{Grant, Pushed};
use crate::rto::RttSample;
use crate::segment::{OutgoingSegment, Segment};
use farpace_events::Cause;
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use farpace_wire::tcp::{SackBlocks, TcpFlags};

/// Payload of the largest burst: an IP packet of 64 KiB less the room that the kernel leaves for headers.
const MAX_BURST: u64 = 65_215;
/// No segment is made shorter than this for the sake of the peer's window.
const MIN_SEGMENT: u32 = 68 - 20;
/// Least segments of a burst.
const MIN_BURST: u64 = 2;
/// A burst is what leaves at the pacing rate in 1/1024 s.
const PACE_SHIFT: u32 = 10;
/// On short paths it is larger: by half of `MAX_BURST` for each so many microseconds (as a shift).
const RTT_SHIFT: u32 = 9;
/// A burst waits only if another has left so shortly before.
const RECENT: Span = Span::from_millis(1);
/// A burst waits if less than this part of the window is free.
const WINDOW_PART: u64 = 3;

/// What Linux remembers of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct LinuxOutput {
    /// End of the last segment that was not full.
    small: Option<Seq>,
    /// What was written and not sent. Only who is Linux has one, so that idle connections of others stay
    /// small.
    queue: Option<Box<Queue>>,
    /// Bytes a second, as of the last acknowledgment.
    pace: u64,
    /// Bytes of the burst under way, whether it has several segments, and whether some have left.
    burst: Option<(u64, bool, bool)>,
    /// SACK blocks and urgent pointer of its first segment: a device that cuts it gives them to all.
    pub shared: Option<Box<(SackBlocks, Option<u16>)>>,
    /// The shift that our SYN had, where the peer has none.
    pub offered_scale: u8,
    /// A SYN of the peer has crossed ours.
    pub crossed: bool,
    /// The ACK of a SYN-ACK leaves alone: no program can have written before it.
    pub acks_syn_ack: bool,
    /// TSval of the first and of the last SYN-ACK.
    pub syn_stamps: Option<(u32, u32)>,
    /// A reset is due that acknowledges this number, as from a host that does not know the connection.
    pub stranger_reset: Option<Seq>,
    /// Where the burst under way ends of what is sent again, if it has several segments.
    unit: Option<Seq>,
    /// When something with data left last.
    left_at: Option<Instant>,
    /// When the window last began anew.
    restarted_at: Instant,
    /// New segments that have left in this pass.
    sent: u32,
    /// The congestion window made a burst wait.
    deferred: bool,
    /// Payload of a full segment in this pass.
    mss: u32,
    /// When the kernel last read its clock for this connection; and, for what a report of the network makes
    /// it send, that it does not read it again.
    pub clock: Instant,
    /// Segments that are as expected take the fast path.
    pub predicts: bool,
    /// The segment that came last did.
    pub fast: bool,
    pub stale: bool,
    /// Nothing has happened that makes the kernel look at what is unsent.
    idle: bool,
    /// The last pass looked at what was unsent.
    pub tried: bool,
    /// The last pass ended because there was no more room for what it sends.
    unfinished: bool,
}

impl LinuxOutput {
    /// What was written and not sent.
    pub fn queue(&mut self) -> &mut Queue {
        self.queue.get_or_insert_default()
    }
    /// Buffers that wait to be sent.
    pub fn waiting_buffers(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.buffers())
    }
    /// A segment or a timer comes, which may be no reason to look at what is unsent.
    pub fn may_idle(&mut self, now: Instant) {
        self.idle = !self.unfinished;
        self.clock = now;
    }
    /// A report of the network is no reason to look at what is unsent.
    pub fn may_stay_idle(&mut self) {
        self.idle = !self.unfinished;
    }
    /// When a segment leaves, as the kernel's clock has it.
    pub fn stamp(&self, now: Instant) -> Instant {
        if self.stale { self.clock.min(now) } else { now }
    }
    /// What ends here belongs to a burst of several segments that is sent again.
    pub fn in_unit(&self, end: Seq) -> bool {
        self.unit.is_some_and(|until| !end.after(until))
    }
    /// There is one.
    pub fn looks_again(&mut self) {
        self.idle = false;
    }
}

impl Connection {
    /// The pacing rate, as Linux reckons it with each acknowledgment: twice the window a round trip in slow
    /// start, a fifth more than the window later.
    pub(super) fn reckon_pace(&mut self) {
        let (cwnd, ssthresh) = (self.flight.window.cwnd().get(), self.flight.window.ssthresh().get());
        let ratio = if cwnd < ssthresh / 2 { 200 } else { 120 };
        let segments = u64::from(cwnd.max(self.flight.segments.packets_out().get()));
        let rate = u128::from(self.snd.mss) * u128::from(segments) * ratio * 10_000_000;
        // Linux counts eighths of a microsecond.
        let srtt = u128::from(self.flight.rto.srtt().as_nanos()).max(125);
        self.linux.pace = u64::try_from(rate / srtt).unwrap_or(u64::MAX);
    }

    /// The rate at which payload would leave, if it were paced; none before there is one.
    pub(super) fn linux_rate(&self) -> Option<Rate> {
        let cap = self.pacer.cap().unwrap_or(Rate::from_bits_per_sec(u64::MAX));
        let rate = Rate::from_bits_per_sec(self.linux.pace.saturating_mul(8));
        (self.config.is_linux() && self.linux.pace > 0).then(|| rate.min(cap))
    }

    /// Segments of one burst.
    pub(super) fn burst(&self) -> u64 {
        // Where the congestion control paces, `sk_pacing_rate` is its own.
        let paced = self.pacer.rate().map(|rate| rate.bits_per_sec() / 8);
        let mut bytes = paced.unwrap_or(self.linux.pace) >> PACE_SHIFT;
        if let Some(rtt) = self.flight.min_rtt.get() {
            let shift = rtt.as_micros() >> RTT_SHIFT;
            if shift < 32 {
                bytes = bytes.saturating_add(MAX_BURST >> shift);
            }
        }
        let slow = self.flight.cc.pacing().is_some_and(|rate| rate < SINGLE_SEGMENT_RATE);
        (bytes.min(MAX_BURST) / u64::from(self.snd.mss.max(1))).max(if slow { 1 } else { MIN_BURST })
    }

    /// Bytes that are sent again at one instant where segments are paced, at most.
    pub(super) fn linux_quantum(&self) -> ByteCount {
        ByteCount::new(self.burst() * u64::from(self.snd.mss))
    }

    /// What is written at once is kept in pieces of this size: multiples of a segment, at most half of the
    /// peer's window.
    pub(super) fn piece(&self) -> u64 {
        let (mss, window) = (u64::from(self.snd.mss.max(1)), u64::from(self.snd.max_wnd));
        let half = if window > 536 { window / 2 } else { window };
        (MAX_BURST.min(half.max(mss)) / mss).max(1) * mss
    }

    /// Retransmissions and new data, in Linux's order. `full`: no more than that in `out`.
    pub(super) fn fill_linux(
        &mut self,
        now: Instant,
        out: &mut Vec<OutgoingSegment>,
        full: usize,
    ) -> Transmit {
        self.linux.deferred = false;
        let mut result = Transmit::Idle;
        let looks = !self.linux.idle || self.flight.recovery.probes_new();
        let tried = looks && self.snd.has_unsent();
        self.linux.tried = tried;
        if tried && !self.linux.stale {
            self.linux.clock = now;
        }
        if self.flight.recovery.new_data_first() {
            result = self.push_new(now, out, full, true);
            self.flight.recovery.pass_is_over(self.snd.nxt);
        }
        if !self.linux.unfinished {
            self.linux.unit = None;
        }
        while out.len() < full && self.send_retransmission(now, out) {}
        if out.len() < full {
            self.flight.recovery.pass_is_over(self.snd.nxt);
            if looks {
                result = self.push_new(now, out, full, false);
            } else if self.snd.has_unsent() {
                result = Transmit::Blocked(Blocked::CongestionWindow);
            }
        }
        self.linux.unfinished = out.len() >= full;
        if self.linux.unfinished {
            return Transmit::Sent(0);
        }
        self.linux.idle = false;
        self.linux.stale = false;
        let pushed = Pushed {
            now,
            snd_una: self.snd.una,
            snd_nxt: self.snd.nxt,
            sent: std::mem::take(&mut self.linux.sent),
            tried,
            limited: self.linux.deferred,
            initial_window: self.config.first_window(self.snd.mss),
        };
        let (recovery, mut cx) = self.flight.recovery(self.sack);
        recovery.pushed(&pushed, &mut cx);
        result
    }

    /// What left in one burst is sent again in bursts, cut for the size of segments now. True: the segment
    /// ends one of several.
    pub(super) fn begin_unit(&mut self, grant: &Grant) -> bool {
        if !self.config.is_linux() || self.is_probing() || self.flight.cc.wants_rates() {
            return false;
        }
        let (index, fin) = (grant.index, self.snd.fin_seq);
        let Some(row) = self.flight.segments.row(index).copied() else { return false };
        if let Some(end) = self.linux.unit.filter(|end| row.seq.before(*end)) {
            return row.end() == end;
        }
        (self.linux.unit, self.linux.shared) = (None, None);
        let mss = self.mss_beside_sack();
        if grant.cause == Cause::TailLossProbe {
            let start = self.flight.segments.burst_start(index);
            let before = index - start;
            let from = self.flight.segments.row(start).map_or(row.seq, |first| first.seq);
            let rest = row.end().bytes_since(from).checked_sub(before as u32 * mss);
            if before > 0 && row.len != mss && rest.is_some_and(|rest| rest > 0 && rest <= mss) {
                self.flight.segments.retile(start, index + 1, mss, None, fin);
            }
            self.flight.segments.cut_burst(index);
            let longer = self
                .flight
                .segments
                .row(index)
                .is_some_and(|row| row.len - u32::from(fin.is_some_and(|f| row.end() == f + 1)) > mss);
            if longer {
                self.flight.segments.retile(index, index + 1, mss, None, fin);
                self.flight.segments.cut_burst(index + 1);
            }
            return false;
        }
        let room = match grant.cause {
            Cause::TimeoutRetransmit => 1,
            _ => {
                let (cwnd, out) = (self.flight.window.cwnd().get(), self.flight.segments.in_flight().get());
                u64::from(cwnd.saturating_sub(out)).min(self.burst())
            }
        };
        let window = u64::from((self.snd.una + self.snd.wnd).bytes_since(row.seq) / mss.max(1));
        let count = room.min(window).max(1) as usize;
        let end = self.flight.segments.burst_end(index);
        let len = |i: usize| self.flight.segments.row(i).map_or(0, |row| row.len);
        let fits = (index..end).all(|i| len(i) == mss || (i + 1 == end && len(i) <= mss));
        if !fits {
            self.flight.segments.retile(index, end, mss, None, fin);
        }
        let last = self.flight.segments.burst_end(index).min(index + count);
        self.flight.segments.cut_burst(last);
        if last > index + 1 {
            self.linux.unit = self.flight.segments.row(last - 1).map(|row| row.end());
        }
        false
    }

    /// Sends new data. `at_once`: Nagle's algorithm does not hold it.
    fn push_new(
        &mut self,
        now: Instant,
        out: &mut Vec<OutgoingSegment>,
        full: usize,
        at_once: bool,
    ) -> Transmit {
        if !self.fill_queue(now, out, full) {
            return Transmit::Sent(0);
        }
        self.push_queue(now, out, full, at_once, Bursts::All)
    }

    /// Sends bursts of what is in buffers.
    pub(super) fn push_queue(
        &mut self,
        now: Instant,
        out: &mut Vec<OutgoingSegment>,
        full: usize,
        at_once: bool,
        bursts: Bursts,
    ) -> Transmit {
        self.linux.mss = self.mss_beside_sack();
        let mss = u64::from(self.linux.mss);
        let most = self.burst();
        let mut begun = self.linux.burst.is_some();
        loop {
            self.send_burst(now, out, full.saturating_sub(out.len()));
            if out.len() >= full {
                return Transmit::Sent(0);
            }
            if !self.snd.has_unsent() || (begun && bursts == Bursts::One) {
                return Transmit::Idle;
            }
            let probe = self.flight.recovery.probes_new();
            let in_flight = u64::from(self.flight.segments.in_flight().get());
            let cwnd = u64::from(self.flight.window.cwnd().get());
            let quota = if in_flight < cwnd {
                (cwnd - in_flight).min((cwnd / 2).max(1)).min(most)
            } else if probe {
                1
            } else {
                self.snd.limited_at = Some(self.snd.nxt);
                return Transmit::Blocked(Blocked::CongestionWindow);
            };
            let urgent = self.urgent_pointer(self.snd.una).is_some();
            let (unsent, sent) = (self.snd.unsent(), self.snd.sent_offset());
            let Head { len, last } = self.linux.queue().head(sent, quota * mss);
            let fin = self.snd.fin_queued && sent + len == self.snd.buffer.end();
            if len == 0 && !fin {
                return Transmit::Idle; // the rest is not in buffers yet
            }
            let window = u64::from(self.snd.usable_window());
            let first = if len > mss { mss } else { len + u64::from(fin) };
            if first > window {
                return Transmit::Blocked(Blocked::ReceiveWindow);
            }
            let free = at_once || probe || !last || urgent || fin;
            let mut limit = mss;
            if len <= mss {
                if len < mss && !free && self.small_waits(unsent) {
                    return Transmit::Blocked(Blocked::Nagle);
                }
            } else {
                if !probe && bursts == Bursts::All && self.waits_for_more(now, most, len, last, fin) {
                    let by_cwnd = cwnd.saturating_sub(in_flight) * mss < window;
                    let why = if by_cwnd { Blocked::CongestionWindow } else { Blocked::ReceiveWindow };
                    return Transmit::Blocked(why);
                }
                if !urgent {
                    limit = self.split_point(quota, unsent, len, window, last, free);
                }
            }
            if !self.burst_may_leave(now) {
                return Transmit::Blocked(Blocked::Pacing);
            }
            let limit = limit.min(len);
            let limit = match self.queue_takes_of(now, limit, self.linux.mss) {
                0 if limit > 0 => return Transmit::Blocked(Blocked::TransmitQueue),
                taken => taken,
            };
            self.linux.burst = Some((limit, limit > mss, false));
            begun = true;
            if probe {
                self.send_burst(now, out, full - out.len());
                return Transmit::Idle;
            }
        }
    }

    /// Less than a segment has to wait: another such is not acknowledged (Minshall), or more was promised.
    fn small_waits(&self, unsent: u64) -> bool {
        if self.is_held(unsent) {
            return true;
        }
        let small = self.linux.small.is_some_and(|end| end.after(self.snd.una) && !end.after(self.snd.nxt));
        self.config.nagle && !self.flight.segments.is_empty() && small
    }

    /// How much of a piece of `len` bytes leaves as one burst.
    fn split_point(&self, quota: u64, unsent: u64, len: u64, window: u64, last: bool, free: bool) -> u64 {
        let mss = u64::from(self.linux.mss.max(1));
        let most = mss * quota;
        if most <= window && !last {
            return most;
        }
        let needed = len.min(window);
        if most <= needed {
            return most;
        }
        let partial = needed % mss;
        if partial != 0 && !free && self.small_waits(unsent) { needed - partial } else { needed }
    }

    /// A burst that is not full waits for an acknowledgment that is due (`tcp_tso_should_defer`).
    fn waits_for_more(&mut self, now: Instant, most: u64, len: u64, last: bool, fin: bool) -> bool {
        use farpace_events::RecoveryState;
        if self.flight.recovery.state() >= RecoveryState::Recovery
            || self.linux.left_at.is_none_or(|at| now.since(at) > RECENT)
        {
            return false;
        }
        let mss = u64::from(self.linux.mss.max(1));
        let cwnd = u64::from(self.flight.window.cwnd().get());
        let free = cwnd.saturating_sub(u64::from(self.flight.segments.in_flight().get())) * mss;
        let window = u64::from(self.snd.usable_window());
        let limit = free.min(window);
        if limit >= most * mss || (!last && limit >= len) {
            return false;
        }
        if limit >= u64::from(self.snd.wnd).min(cwnd * mss) / WINDOW_PART {
            return false;
        }
        let Some(head) = self.flight.segments.row(0) else { return false };
        let srtt = self.flight.rto.srtt();
        let soon = (srtt / 2).min(Span::from_millis(1));
        if head.sent_at + srtt > now + soon {
            return false; // it would wait for too long
        }
        if free < window {
            if free <= len {
                self.linux.deferred = true;
                return true;
            }
        } else if window <= len {
            return true;
        }
        !fin
    }

    /// Sends the burst under way (zero bytes: a FIN alone) in segments that leave together, `room` of them at
    /// most.
    fn send_burst(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, room: usize) {
        let mss = self.linux.mss;
        for _ in 0..room {
            let Some((left, several, begun)) = self.linux.burst.take() else { break };
            let len = left.min(u64::from(mss)) as u32;
            let left = left - u64::from(len);
            let seq = self.snd.nxt;
            let start = self.snd.sent_offset();
            let end = start + u64::from(len);
            let number = self.flight.segments.begin_transmission();
            let mut flags = self.enqueue(now, len);
            // At the end of a burst of several; and where a call ended.
            if begun {
                self.flight.segments.mark_joined();
            }
            let pushed = len > 0 && left == 0 && self.linux.queue().send(end);
            if pushed {
                self.flight.segments.mark_pushed();
            }
            if pushed || (left == 0 && several) {
                flags = flags.with(TcpFlags::PSH);
            }
            self.book_new(now);
            self.linux.sent += 1;
            if len < mss {
                self.linux.small = Some(self.snd.nxt);
            }
            let payload = self.snd.buffer.slice(start, len as usize);
            let cause = if len == 0 { Cause::Fin } else { Cause::NewData };
            if !begun {
                self.linux.shared = None;
            }
            self.emit(now, out, seq, flags, payload, cause);
            self.share_header(out, !begun && left > 0, left == 0);
            expect(out, number);
            self.linux.left_at = Some(now);
            self.linux.burst = (left > 0).then_some((left, several, true));
        }
    }

    /// What the segments of a burst have in common: `first` of several is in `out`, or the `last`.
    pub(super) fn share_header(&mut self, out: &[OutgoingSegment], first: bool, last: bool) {
        if last {
            self.linux.shared = None;
        } else if first && let Some(sent) = out.last() {
            let header = &sent.segment.header;
            let urgent = header.flags.contains(TcpFlags::URG).then_some(header.urgent);
            self.linux.shared = Some(Box::new((header.options.sack.clone(), urgent)));
        }
    }

    /// A window that is too small for a segment is probed with what it takes (`tcp_write_wakeup`). False: it
    /// takes nothing.
    pub(super) fn probe_with_data(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) -> bool {
        let sent = self.snd.sent_offset();
        let head = self.linux.queue().head(sent, 0).len.min(self.snd.unsent());
        let len = u64::from(self.snd.usable_window()).min(head).min(u64::from(self.snd.mss));
        if len == 0 || !self.flight.segments.is_empty() {
            return false;
        }
        self.linux.mss = self.snd.mss;
        self.push();
        self.linux.queue().cut(sent + len);
        self.linux.burst = Some((len, false, false));
        self.send_burst(now, out, 1);
        true
    }

    /// Nothing is outstanding, and something is about to be sent: half of the window goes for each timeout
    /// that has passed (RFC 2861, `tcp_slow_start_after_idle`).
    pub(super) fn restart_linux(&mut self, now: Instant) {
        let crate::config::Recovery::Linux(switches) = self.config.recovery else { return };
        let (idle, rto) = (now.since(self.snd.last_sent.max(self.linux.restarted_at)), self.flight.rto.rto());
        if !switches.restart_after_idle || self.flight.cc.owns_window() || idle <= rto {
            return;
        }
        let cwnd = self.flight.window.cwnd().get();
        let ssthresh = self.flight.window.ssthresh().get().max(cwnd / 2 + cwnd / 4);
        self.flight.window.set_ssthresh(Packets::new(ssthresh));
        let least = self.config.first_window(self.snd.mss).get().min(cwnd);
        let (mut left, mut cwnd) = (idle.as_nanos(), cwnd);
        while left > rto.as_nanos() && cwnd > least {
            left -= rto.as_nanos();
            cwnd /= 2;
        }
        self.flight.window.set_cwnd(Packets::new(cwnd.max(least)));
        self.linux.restarted_at = now;
    }

    /// The handshake is over. `rtt`: it took so long, if its segments were sent once.
    pub(super) fn established_as_linux(&mut self, now: Instant, rtt: Option<Span>, by: &Segment) {
        self.snd.last_sent = now;
        let scale = if by.header.flags.contains(TcpFlags::SYN) { 0 } else { self.snd.wscale };
        self.snd.max_wnd = u32::from(by.header.window) << scale;
        self.size_anew();
        self.begin_memory(now);
        self.ack.policy.begin(now, self.snd.mss, self.rcv.window.size());
        self.handshake.rtt = rtt;
        if let Some(rtt) = rtt {
            self.ack.answering.on_handshake(rtt);
        }
        // A timestamp tells it even if they were sent again.
        let rtt = rtt.or_else(|| {
            let echo = by.header.options.timestamps.filter(|t| self.ts.enabled && t.echo != 0)?.echo;
            let ticks = self.timestamp(now).wrapping_sub(echo);
            self.believable(now, ticks).map(|rtt| rtt.max(self.flight.rto.clock().tick()))
        });
        let (snd_una, snd_nxt) = (self.snd.una, self.snd.nxt);
        match rtt {
            Some(rtt) => {
                self.flight.min_rtt.sample(now, rtt);
                self.flight.rto.sample(&RttSample { now, rtt, undelayed: None, snd_una, snd_nxt });
            }
            None if self.handshake.syn_sent_at.is_some() => self.flight.rto.restart_after_syn_timeout(),
            None => {}
        }
        // One loss may have been the path's: the window is cut at the second (RFC 6298 makes the first
        // timeout 1 s).
        if self.counters.sent[Cause::SynRetransmit as usize] > 1 && self.counters.timeouts > 0 {
            self.flight.window.set_cwnd(Packets::new(1));
        }
        self.reckon_pace();
        if self.opened_actively() && self.handshake.syn_retransmitted && self.counters.timeouts > 0 {
            // The window that the timeout left is still there when the answer to the SYN is taken.
            self.linux.pace /= u64::from(self.flight.window.cwnd().get().max(1));
        }
    }

    /// A segment is no longer than half of the largest window that the peer ever had, so that there can be
    /// two (or, of a window of at most 536 bytes, than the window; `tcp_bound_to_half_wnd`).
    pub(super) fn half_window(&self, mss: u32) -> u32 {
        let most = if self.snd.max_wnd > 536 { self.snd.max_wnd / 2 } else { self.snd.max_wnd };
        if most > 0 && mss > most { most.max(MIN_SEGMENT - self.ts.option_bytes()) } else { mss }
    }

    /// SACK blocks come off the segments that carry them (`tcp_current_mss`).
    pub(super) fn mss_beside_sack(&self) -> u32 {
        let most = if self.ts.enabled { 3 } else { 4 };
        let blocks = if self.sack { self.rcv.sack_blocks.count().min(most) as u32 } else { 0 };
        let option = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        self.snd.mss.saturating_sub(option).max(1)
    }

    /// States in which Linux's output is used.
    pub(super) fn sends_as_linux(&self) -> bool {
        self.config.is_linux() && self.state != ConnectionState::Closed
    }
}
