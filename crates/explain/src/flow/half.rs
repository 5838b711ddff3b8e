//! One direction of a connection: its data, and the ACKs for it, as they passed the capture point.
//!
//! Long because the order in which a segment's parts are taken is the algorithm.

use super::acks::{Ack, AckLog};
use super::identification::Identifications;
use super::loss::{FlowLoss, Losses, Pass, Passes, Trigger};
use super::outstanding::{Outstanding, Range};
use super::stall::{Stall, Stalls};
use super::timeline::{Slice, Stat, Timeline, Wait};
use crate::frame::{CapturedSegment, Flags};
use farpace_units::{Instant, Span};
use std::collections::VecDeque;

/// Offsets begin here, so that numbers before the first one seen have a place.
const ORIGIN: u64 = 1 << 33;
/// Late within this of a hole, where no round trip is known yet: reordered.
const REORDERED_WITHIN: Span = Span::from_millis(3);
/// A program that pauses does so for longer.
const MIN_PAUSE: Span = Span::from_micros(200);
/// The least timers that senders have.
const MIN_TIMER: Span = Span::from_millis(5);
/// Samples of round trips that are kept for the question how long queues were when a segment was lost.
const MAX_SAMPLES: usize = 512;
/// Work for a segment that was sent again, in ranges that are looked at.
const WORK_PER_LOSS: usize = 16;
/// ACKs that a receiver delays come so late (RFC 1122: up to 500 ms).
const DELAYED_ACK: [Span; 2] = [Span::from_millis(25), Span::from_millis(550)];

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Segments of this sender, all kinds.
    pub segments: u64,
    /// Segments with data.
    pub data_segments: u64,
    /// Payload, new and again.
    pub bytes: u64,
    /// Segments with data that had been sent before, or that filled a hole.
    pub retransmissions: u64,
    /// Their payload.
    pub retransmitted_bytes: u64,
    /// Retransmissions of segments that had arrived.
    pub spurious: u64,
    /// Retransmissions that came after a silence, by a timer.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Segments that came late, after others that had been sent later.
    pub reordered: u64,
    /// Numbers passed over in the capture (holes), in segments.
    pub holes: u64,
    /// Holes that the receiver acknowledged although nothing was seen that fills them: the capture misses
    /// packets.
    pub unseen: u64,
    /// Payload that the receiver acknowledged and that was not captured.
    pub unseen_bytes: u64,
    /// Segments of the other side that acknowledge.
    pub acks: u64,
    /// Of these without data.
    pub pure_acks: u64,
    /// ACKs that repeat the last number while data is outstanding.
    pub duplicate_acks: u64,
    /// ACKs with SACK blocks.
    pub sack_acks: u64,
    /// D-SACK blocks.
    pub dsacks: u64,
    /// ACKs that acknowledge one, two, up to four, up to eight, and more full segments.
    pub ack_sizes: [u64; 5],
    /// ACKs that must have been lost before the capture point, by gaps of the IP identification.
    pub missing_acks: u64,
    /// ACKs whose IP identification follows on.
    pub numbered_acks: u64,
    /// Segments shorter than full ones that were not the last.
    pub short_segments: u64,
    /// Window probes and keep-alives.
    pub keep_alives: u64,
    /// Segments with the congestion experienced mark.
    pub marked: u64,
    /// Segments that can be marked.
    pub ecn_capable: u64,
    /// ECN echoes of the other side.
    pub echoes: u64,
    /// Segments with a wrong checksum.
    pub damaged: u64,
    /// Payload of the largest segment.
    pub largest: u32,
    /// The window was announced as zero so often.
    pub zero_windows: u64,
    /// Retransmissions that were lost again.
    pub lost_again: u64,
    /// Segments after which a retransmission's loss was overlooked.
    pub overlooked: u64,
}

/// Round trips, in full: near (capture point to sender) and far (capture point to receiver).
#[derive(Clone, Copy, Debug, Default)]
pub struct Trips {
    /// All far samples.
    pub far: Stat,
    /// All near samples.
    pub near: Stat,
    /// Of the handshake, whose segments are short: from the capture point to the receiver and back.
    pub hello: Option<Span>,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct Half {
    first_seq: Option<u32>,
    nxt: u64,
    una: u64,
    /// Highest number that was SACKed or acknowledged.
    delivered_to: u64,
    sacked: u64,
    edge: u64,
    scale: u8,
    /// Segment size that the SYNs agreed on, without options.
    pub mss: u32,
    log: AckLog,
    out: Outstanding,
    sack_cache: Vec<(u64, u64)>,
    /// Counters.
    pub counts: Counts,
    /// Round trips.
    pub trips: Trips,
    /// The course in slices.
    pub timeline: Timeline,
    /// Segments sent again.
    pub losses: Losses,
    /// Points of data that passed.
    pub passes: Passes,
    /// Stretches without data.
    pub stalls: Stalls,
    /// First and last data, and last ACK of data.
    pub first_data: Option<(Instant, u64)>,
    /// Last segment with data.
    pub last_data: Option<(Instant, u64)>,
    /// Last ACK that acknowledged data.
    pub last_ack: Option<(Instant, u64)>,
    /// FIN.
    pub fin: Option<(Instant, u64)>,
    /// Last data of the other side before the first data of this one: a request.
    pub asked: Option<Instant>,
    /// The longest pause of the sender within the last round trip.
    recent_silence: Span,
    silence_ended: Instant,
    /// When a timer last sent something.
    last_timer: Instant,
    far_recent: Span,
    far_last: Span,
    /// Newest samples of the far trip, by when their segments were sent.
    far_by_sent: VecDeque<(Instant, Span)>,
    delayed: bool,
    /// The last segment of new data was shorter than full ones.
    last_short: bool,
    burst: u8,
    /// The same before the newest segment.
    burst_before: u8,
    /// Time per byte at which ACKs come when they come densely, in nanoseconds: the rate of the bottleneck.
    line: f64,
    /// A timeout's recovery lasts until this number is acknowledged.
    loss_until: Option<u64>,
    /// The numbering of the data's packets, and of the ACKs'.
    ids: Identifications,
    ack_ids: Identifications,
    /// By how much the way to the capture point took longer than at best for the last segment.
    last_excess: Span,
    /// Highest window ever offered.
    pub largest_window: u64,
    /// Data segments between a timeout and the end of its recovery, and the rounds they took.
    pub after_timeout: AfterTimeout,
    /// Longest run of retransmissions of one segment.
    pub most_sent: u32,
    /// Largest distance by which a segment was late, in bytes and in time.
    pub lateness: (u64, Span),
    /// Frame of the first late segment.
    pub first_late: Option<(u64, Instant)>,
    /// Sizes of segments, for the question whether long ones are lost more often: sent and lost below and
    /// above half.
    pub by_size: [[u64; 2]; 2],
    /// First frame with a wrong checksum.
    pub first_damaged: Option<u64>,
    /// Largest segment that was acknowledged.
    pub largest_delivered: u32,
    /// Histogram of the packets sent back to back before a segment, in powers of two.
    pub bursts: [u64; 9],
    /// First frame with a zero window.
    pub first_zero_window: Option<u64>,
    /// Scoreboard evidence.
    sack_high: u64,
    /// Frames of the first and last D-SACK.
    pub first_dsack: Option<u64>,
}

/// How a sender came out of its timeouts.
#[derive(Clone, Copy, Debug, Default)]
pub struct AfterTimeout {
    /// ACKs of new data in the recovery after timeouts.
    pub acks: u64,
    /// Of these that came a round trip after the one before and had released one segment at most.
    pub single: u64,
    /// Time in it.
    pub time: Span,
    /// Begin of the present one.
    since: Option<Instant>,
    /// Segments sent since the last ACK.
    sent: u64,
    /// First and last frame.
    pub frames: Option<(u64, u64)>,
    /// Bytes acknowledged in it.
    pub bytes: u64,
}

/// What a segment tells the other direction.
pub(super) struct PeerState {
    /// The sender's side has asked for, or the peer sent, data since the last data of this sender.
    pub spoke: Option<Instant>,
}

impl Half {
    /// The SYN of this direction's sender.
    pub fn syn(&mut self, segment: &CapturedSegment) {
        let first = segment.seq.wrapping_add(1);
        self.first_seq = Some(first);
        self.nxt = ORIGIN;
        self.una = ORIGIN;
        self.delivered_to = ORIGIN;
        self.sack_high = ORIGIN;
        self.edge = self.edge.max(ORIGIN);
        self.log.known.una = ORIGIN;
    }

    /// True if the stream's first byte has this number.
    pub(super) fn starts_at(&self, seq: u32) -> bool {
        self.first_seq == Some(seq)
    }

    /// Sets the scale of the windows that the receiver announces.
    pub fn set_scale(&mut self, scale: u8) {
        self.scale = scale;
    }

    /// What the handshake says about the way from the capture point to the sender.
    pub fn set_near(&mut self, span: Span) {
        self.log.handshake(span);
    }

    /// What the handshake says about the way from the capture point to the receiver.
    pub fn set_far(&mut self, span: Span) {
        self.trips.hello = Some(span);
        self.far_recent = span;
        self.far_last = span;
    }

    /// The least time from the capture point to the sender and back.
    pub fn near(&self) -> Option<Span> {
        self.log.base
    }

    /// The least time from the capture point to the receiver and back.
    pub fn far(&self) -> Option<Span> {
        let data = (self.trips.far.n > 0).then_some(self.trips.far.min);
        data.into_iter().chain(self.trips.hello).min()
    }

    /// The least round trip between the ends, if both parts are known.
    pub fn base_rtt(&self) -> Option<Span> {
        Some(self.far()? + self.near().unwrap_or_default())
    }

    /// Payload per second that the bottleneck lets through, by the densest ACKs; none before there are any.
    pub fn line_rate(&self) -> Option<f64> {
        (self.line > 0.0).then(|| 1e9 / self.line)
    }

    /// Ticks per second of the sender's timestamps.
    pub fn clock(&self) -> Option<f64> {
        self.log.one_way.rate()
    }

    /// Payload that was acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.una.saturating_sub(ORIGIN)
    }

    /// Payload up to the highest number sent.
    pub fn stream(&self) -> u64 {
        self.nxt.saturating_sub(ORIGIN)
    }

    /// Ranges that could not be followed.
    pub fn overflow(&self) -> u64 {
        self.out.overflow
    }

    /// Bytes outstanding at the end.
    pub fn outstanding(&self) -> u64 {
        self.nxt.saturating_sub(self.una)
    }

    /// Memory on the heap, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.out.memory()
            + self.log.memory()
            + self.timeline.memory()
            + self.losses.memory()
            + self.passes.memory()
            + self.stalls.memory()
            + self.far_by_sent.capacity() * size_of::<(Instant, Span)>()
    }

    /// No segment follows: what only the next ones need goes.
    pub(super) fn stop(&mut self) {
        self.out.forget();
        self.log.forget();
        self.far_by_sent = VecDeque::new();
        // A list that has just doubled may take more than the flow was to have.
        self.timeline.shrink();
        self.losses.shrink();
        self.passes.shrink();
        self.stalls.shrink();
    }

    fn offset(&self, seq: u32) -> u64 {
        let first = self.first_seq.unwrap_or(seq);
        let near = self.nxt.max(self.una).max(ORIGIN);
        let near_seq = first.wrapping_add((near - ORIGIN) as u32);
        near.wrapping_add_signed(i64::from(seq.wrapping_sub(near_seq) as i32))
    }

    fn full(&self) -> u32 {
        match (self.mss, self.counts.largest) {
            (0, largest) => largest.max(536),
            // Once there is enough of it, what is sent tells better than what was agreed on.
            (mss, largest) if self.counts.data_segments > 10 && largest > 0 => mss.min(largest),
            (mss, _) => mss,
        }
    }

    fn round(&self) -> Span {
        self.far_recent + self.log.distance()
    }

    /// A lower limit of the round trip, against which retransmissions are held.
    fn least_round(&self) -> Option<Span> {
        self.base_rtt()
    }

    /// A segment of this direction's sender. `seq_len` counts SYN and FIN.
    pub(super) fn sent(&mut self, segment: &CapturedSegment, peer: &PeerState) {
        let now = segment.time;
        self.counts.segments += 1;
        self.out.earn();
        if segment.flags.has(Flags::SYN) {
            return;
        }
        if self.first_seq.is_none() {
            self.begin_in_the_middle(segment);
        }
        if let Some(sample) = self.log.echoed(now, segment.options.timestamps)
            && segment.len > 0
        {
            self.trips.near.add(sample);
            if let Some(slice) = self.timeline.last() {
                slice.near.add(sample);
            }
        }
        if segment.damaged == Some(true) {
            self.counts.damaged += 1;
            self.first_damaged.get_or_insert(segment.frame);
            // It never reached the receiver's TCP, whatever it says.
            return;
        }
        if segment.flags.has(Flags::FIN) {
            self.fin.get_or_insert((now, segment.frame));
        }
        if segment.len > 0 {
            self.data(segment, peer);
        }
    }

    fn begin_in_the_middle(&mut self, segment: &CapturedSegment) {
        self.first_seq = Some(segment.seq);
        for place in [&mut self.nxt, &mut self.una, &mut self.delivered_to, &mut self.sack_high] {
            *place = ORIGIN;
        }
        self.edge = self.edge.max(ORIGIN);
        self.log.known.una = ORIGIN;
    }

    fn data(&mut self, segment: &CapturedSegment, peer: &PeerState) {
        let now = segment.time;
        let start = self.offset(segment.seq);
        let end = start + u64::from(segment.len);
        let len = segment.len;
        self.log.advance(now, self.nxt, u64::from(len.min(self.full())));
        // Window probes of one byte and keep-alives are no data.
        if len <= 1 && (end <= self.una || self.edge <= start) {
            self.counts.keep_alives += 1;
            return;
        }
        self.counts.data_segments += 1;
        self.counts.bytes += u64::from(len);
        match segment.ecn {
            3 => {
                self.counts.marked += 1;
                self.counts.ecn_capable += 1;
            }
            1 | 2 => self.counts.ecn_capable += 1,
            _ => {}
        }
        let full = self.full();
        let short = !len.is_multiple_of(full) && !segment.flags.has(Flags::FIN);
        self.note_burst(now, len);
        self.ids.see(segment.ip_id);
        let wait = self.attribute(segment, start, end, peer);
        self.last_excess = self.log.one_way.excess().unwrap_or_default();
        let round = self.round();
        let known = self.log.known;
        let flight = self.nxt.max(end).saturating_sub(known.una).saturating_sub(known.sacked);
        let window = known.edge.saturating_sub(known.una);
        let slice = self.timeline.at(now, round);
        if slice.first_frame == 0 {
            slice.first_frame = segment.frame;
        }
        slice.last_frame = segment.frame;
        slice.segments += 1;
        slice.short += u32::from(short);
        slice.flight = slice.flight.max(flight);
        if known.edge > 0 {
            slice.window = slice.window.min(window);
        }
        if short {
            self.counts.short_segments += 1;
        }
        let (passed, queued) = (self.counts.bytes - u64::from(len), self.queued());
        self.passes.add(Pass { time: now, frame: segment.frame, passed, burst: self.burst, queued, len });
        let new_from = start.max(self.nxt);
        if start < self.nxt {
            self.again(segment, start, end.min(self.nxt), wait);
        } else if start > self.nxt && self.nxt > ORIGIN.min(self.una) {
            self.hole(segment, start);
        }
        if end > new_from {
            self.counts.largest = self.counts.largest.max(len);
            // A segment may also be short because it fills the window.
            self.last_short = short && self.log.known.edge > end;
            if let Some(slice) = self.timeline.last() {
                slice.sent += end - new_from;
            }
            self.push_new(segment, new_from, end, flight);
        }
        if self.first_data.is_none() {
            self.asked = peer.spoke;
        }
        self.first_data.get_or_insert((now, segment.frame));
        self.last_data = Some((now, segment.frame));
        self.after_timeout.sent += u64::from(len.div_ceil(full));
    }

    fn push_new(&mut self, segment: &CapturedSegment, start: u64, end: u64, flight: u64) {
        let now = segment.time;
        let tsval = segment.options.timestamps.map(|(value, _)| value);
        let long = u64::from(segment.len) * 2 > u64::from(self.full());
        self.by_size[0][usize::from(long)] += 1;
        let passed = self.counts.bytes - u64::from(segment.len);
        self.out.push(Range {
            start,
            end,
            first: now,
            last: now,
            frame: segment.frame,
            last_frame: segment.frame,
            sent: 1,
            hole: false,
            sacked: false,
            tsval,
            first_tsval: tsval,
            ip_id: segment.ip_id,
            burst: self.burst,
            nxt: end,
            passed,
            loss: 0,
            flight: u32::try_from(flight).unwrap_or(u32::MAX),
            silence: Span::ZERO,
            queued: self.near_queue(),
        });
        self.nxt = end;
    }

    /// Delay in queues as the newest samples have it.
    fn queued(&self) -> Span {
        let far = self.far_last - self.trips.far.min;
        far + self.near_queue()
    }

    fn near_queue(&self) -> Span {
        let least =
            if self.trips.near.n > 0 { self.trips.near.min } else { self.log.base.unwrap_or_default() };
        self.log.distance() - least
    }

    /// Counts packets that leave back to back: at more than twice the rate at which the bottleneck takes
    /// them.
    fn note_burst(&mut self, now: Instant, len: u32) {
        if let Some((last, _)) = self.last_data {
            let gap = now.since(last).as_nanos() as f64;
            let per_byte = gap / f64::from(len.max(1));
            let round = self.round().as_nanos() as f64;
            // Behind the bottleneck, trains have its rate; before it, they are faster.
            let faster = if self.log.distance() < self.far_recent { 0.5 } else { 1.5 };
            let close = if self.line > 0.0 { per_byte < self.line * faster } else { gap * 32.0 < round };
            self.burst_before = self.burst;
            // A super-segment is a burst by itself.
            let more = (len / self.full().max(1)).clamp(1, 255) as u8;
            self.burst = if close { self.burst.saturating_add(more) } else { more - 1 };
        }
        let at = (8 - self.burst.leading_zeros()).min(8) as usize;
        self.bursts[at] += 1;
    }

    /// Says what the sender waited for since its last segment.
    fn attribute(&mut self, segment: &CapturedSegment, start: u64, end: u64, peer: &PeerState) -> Wait {
        let now = segment.time;
        let Some((last, last_frame)) = self.last_data else { return Wait::Connect };
        let gap = now.since(last);
        let known = self.log.known;
        let near = self.log.distance();
        let arrived = known.time + near;
        let since_ack = now.since(arrived.max(last));
        let resent = start < self.nxt;
        let round = self.round();
        let outstanding = self.nxt.saturating_sub(known.una);
        if gap > round * 3 / 2 || now.since(self.silence_ended) > round * 2 {
            self.recent_silence = gap;
            self.silence_ended = now;
        }
        let mut waits = [Span::ZERO; Wait::COUNT];

        let timer = MIN_TIMER.max(round * 3 / 5);
        // A lone segment's ACK may be delayed.
        let timeout = if outstanding <= 2 * u64::from(self.full()) { DELAYED_ACK[1] } else { DELAYED_ACK[0] };
        let shut = self.log.shut.filter(|_| !resent && known.edge > 0);
        let closed = if shut.is_some_and(|s| s.zero) { Wait::ZeroWindow } else { Wait::Window };
        // The segment left early in the pause, or others left in it that did not come to the capture point.
        let pause = round * 3 / 2 + MIN_TIMER;
        let later = self.log.one_way.excess().unwrap_or_default() - self.last_excess;
        let held_on_path = gap > pause && later * 2 >= gap;
        let lost_before = outstanding == 0 && gap > pause && self.ids.missing() > 0;
        let shut_for = shut.map_or(Span::ZERO, |s| s.until.unwrap_or(now).since(last)).min(gap);
        if held_on_path {
            waits[Wait::Ack as usize] += gap;
        } else if lost_before {
            waits[Wait::Timer as usize] += gap;
        } else if shut.is_some() {
            // Until the window opened; then as long as the sender took.
            waits[closed as usize] += shut_for;
            waits[Wait::Sender as usize] += gap - shut_for;
        } else if outstanding == 0 && !resent {
            // All was acknowledged when this left.
            let mut idle = now.since(arrived.max(last));
            // Who had more to send would have sent it when the ACK came: nothing was there since the last
            // segment.
            if idle > near / 4 + MIN_PAUSE {
                idle = gap;
            }
            let before = gap - idle;
            let spoke = peer.spoke.filter(|t| *t + near > last).map(|t| (t + near).since(last));
            let peer_time = spoke.unwrap_or_default().min(idle);
            waits[Wait::Peer as usize] += peer_time;
            waits[Wait::Program as usize] += idle - peer_time;
            waits[if self.delayed { Wait::DelayedAck } else { Wait::Ack } as usize] += before;
        } else if resent && since_ack >= timer && (start <= known.una.max(self.una) || end >= self.nxt) {
            waits[Wait::Timer as usize] += gap;
        } else if !resent && self.last_short && since_ack > MIN_PAUSE.max(gap / 16) {
            // The last segment was short: there was nothing more to send.
            waits[Wait::Program as usize] += gap;
        } else if !resent && since_ack >= round * 3 / 2 + timeout {
            // No ACK for what is outstanding, for so long: what goes out now is a probe.
            waits[Wait::Timer as usize] += gap;
        } else {
            // The window is full once this is sent.
            let pressed =
                known.edge.saturating_sub(self.nxt + u64::from(segment.len)) < u64::from(self.full());
            let waited_for_ack = gap - since_ack;
            let kind = if !resent && known.edge > 0 && pressed {
                Wait::Window
            } else if self.delayed && waited_for_ack >= DELAYED_ACK[0] {
                Wait::DelayedAck
            } else {
                Wait::Ack
            };
            waits[kind as usize] += waited_for_ack;
            waits[Wait::Sender as usize] += since_ack;
        }
        if !waits[Wait::Timer as usize].is_zero() {
            self.last_timer = now;
        }
        let mut most = 0;
        for (at, span) in waits.iter().enumerate() {
            if *span > waits[most] {
                most = at;
            }
        }
        let wait = Wait::ALL[most];
        // With many segments under way, nothing for more than a round trip is a pause; with few, ACKs may
        // be delayed.
        let many = outstanding >= 8 * u64::from(self.full());
        let threshold = if many { round * 6 / 5 + Span::from_millis(10) } else { round * 2 };
        if gap > threshold.max(Span::from_millis(20)) {
            let head = self.out.front();
            self.stalls.add(Stall {
                start: last,
                end: now,
                first_frame: last_frame,
                last_frame: segment.frame,
                wait,
                outstanding,
                round,
                sacked: known.sacked,
                segments: self.out.len() as u32,
                head_sent: head.map_or(0, |r| r.sent),
                spurious: false,
                heard: known.time > last,
                overlooked: head.is_some_and(|r| r.sent > 1 && self.sack_high > r.nxt),
                loss: 0,
                tail: lost_before || end >= self.nxt && start > known.una,
                unseen: if lost_before { self.ids.missing() } else { 0 },
                len: segment.len,
                upstream: head.is_some_and(|r| r.hole),
            });
        }
        let slice: &mut Slice = self.timeline.at(last, Span::MAX);
        for (to, from) in slice.waits.iter_mut().zip(waits) {
            *to += from;
        }
        slice.end = slice.end.max(now);
        wait
    }

    /// Something between SND.UNA and SND.NXT, or below, again.
    fn again(&mut self, segment: &CapturedSegment, start: u64, end: u64, wait: Wait) {
        let now = segment.time;
        let tsval = segment.options.timestamps.map(|(value, _)| value);
        let (least, nxt, una) = (self.least_round(), self.nxt, self.una);
        let known = self.log.known;
        let trigger = match wait {
            Wait::Timer if end >= nxt && start > known.una => Trigger::Probe,
            Wait::Timer => Trigger::Timeout,
            _ if self.loss_until.is_some_and(|until| start < until) => Trigger::Timeout,
            _ => Trigger::Fast,
        };
        let silence = self.last_data.map_or(Span::ZERO, |d| now.since(d.0));
        let mut late = None;
        let mut resent = 0;
        let mut needless = 0;
        let mut added: Vec<FlowLoss> = Vec::new();
        let mut lost_again = 0;
        let mut overlooked = 0;
        let sack_high = self.sack_high;
        let (samples, far_least, far_last) =
            (std::mem::take(&mut self.far_by_sent), self.trips.far.min, self.far_last);
        let far_queue = |sent: Instant| {
            let at = samples.partition_point(|(time, _)| *time <= sent);
            let before = at.checked_sub(1).and_then(|at| samples.get(at));
            before.or(samples.front()).map_or(far_last, |(_, span)| *span) - far_least
        };
        let mut most_sent = self.most_sent;
        let passed = self.counts.bytes - u64::from(segment.len);
        let full = u64::from(self.full());
        let mut sizes = [0u64; 2];
        self.out.each_within(start.max(una), end, WORK_PER_LOSS, |range| {
            if range.hole {
                let waited = now.since(range.first);
                let older = match (tsval, range.tsval) {
                    (Some(own), Some(shown)) if own != shown => Some((own.wrapping_sub(shown) as i32) < 0),
                    _ => None,
                };
                let newer_id = segment.ip_id.wrapping_sub(range.ip_id) as i16;
                let by_id = (segment.ip_id != 0 && range.ip_id != 0 && newer_id.unsigned_abs() < 2_000)
                    .then_some(newer_id < 0);
                let soon = waited < least.map_or(REORDERED_WITHIN, |r| r * 4 / 5);
                let reordered = older.or(by_id.filter(|_| soon)).unwrap_or(soon);
                range.hole = false;
                range.last = now;
                range.last_frame = segment.frame;
                if reordered {
                    range.first = now;
                    range.frame = segment.frame;
                    range.sent = 1;
                    range.tsval = tsval;
                    range.first_tsval = tsval;
                    late = Some((nxt - range.start, waited));
                    return;
                }
                range.sent = 2;
                range.nxt = nxt;
                range.tsval = tsval;
                resent += range.len();
                sizes[usize::from(range.len() * 2 > full)] += 1;
                added.push(FlowLoss {
                    id: 0,
                    sent: range.first,
                    frame: range.frame,
                    resent: now,
                    resent_frame: segment.frame,
                    offset: range.start - ORIGIN,
                    len: range.len() as u32,
                    upstream: true,
                    trigger,
                    spurious: false,
                    times: 1,
                    queued: range.queued,
                    burst: range.burst,
                    flight: range.flight,
                    passed: range.passed,
                    silence: range.silence,
                    sacked_above: true,
                    tail: false,
                    overlooked: false,
                    copy: false,
                });
                return;
            }
            resent += range.len();
            range.sent += 1;
            most_sent = most_sent.max(range.sent);
            let seen_lost = range.sent > 2 && range.loss > 0;
            if seen_lost {
                lost_again += 1;
                if trigger == Trigger::Timeout && wait == Wait::Timer && sack_high > range.nxt {
                    overlooked += 1;
                }
            }
            if range.sacked {
                needless += 1;
            }
            // What was lost is the transmission before this one: the first, or one of its copies.
            let copy = range.loss != 0;
            if !copy {
                sizes[usize::from(range.len() * 2 > full)] += 1;
            }
            added.push(FlowLoss {
                id: 0,
                sent: range.last,
                frame: range.last_frame,
                resent: now,
                resent_frame: segment.frame,
                offset: range.start - ORIGIN,
                len: range.len() as u32,
                upstream: false,
                trigger,
                spurious: range.sacked,
                times: range.sent - 1,
                queued: far_queue(range.last) + if copy { Span::ZERO } else { range.queued },
                burst: if copy { 0 } else { range.burst },
                flight: range.flight,
                passed: range.passed,
                silence,
                sacked_above: sack_high > range.end,
                tail: range.end >= nxt,
                overlooked: false,
                copy,
            });
            range.nxt = nxt;
            range.last = now;
            range.last_frame = segment.frame;
            range.tsval = tsval;
            range.passed = passed;
        });
        for (to, from) in self.by_size[1].iter_mut().zip(sizes) {
            *to += from;
        }
        self.most_sent = most_sent;
        self.counts.lost_again += lost_again;
        self.counts.overlooked += overlooked;
        if let Some((bytes, time)) = late {
            self.counts.reordered += 1;
            self.lateness = (self.lateness.0.max(bytes), self.lateness.1.max(time));
            self.first_late.get_or_insert((segment.frame, now));
            if resent == 0 {
                self.far_by_sent = samples;
                return;
            }
        }
        // What had been acknowledged already when it passed.
        let below = una.min(end).saturating_sub(start);
        self.counts.retransmissions += 1;
        self.counts.retransmitted_bytes += resent + below;
        if resent == 0 && below > 0 {
            needless += 1;
            let id = self.losses.add(FlowLoss {
                id: 0,
                sent: now,
                frame: segment.frame,
                resent: now,
                resent_frame: segment.frame,
                offset: start.saturating_sub(ORIGIN),
                len: below as u32,
                upstream: false,
                trigger,
                spurious: true,
                times: 1,
                queued: far_queue(now),
                burst: 0,
                flight: 0,
                passed: self.counts.bytes,
                silence,
                sacked_above: false,
                tail: false,
                overlooked: false,
                copy: false,
            });
            self.stalls_of(id, segment, wait);
            self.stalls.set_spurious(id);
        }
        self.far_by_sent = samples;
        if needless > 0 {
            self.counts.spurious += 1;
        }
        let lost = added.iter().filter(|l| !l.spurious).count() as u32;
        if let Some(slice) = self.timeline.last() {
            slice.resent += resent + below;
            slice.losses += lost;
        }
        for loss in added {
            let (offset, upstream) = (loss.offset + ORIGIN, loss.upstream);
            let end = offset + u64::from(loss.len);
            let id = self.losses.add(loss);
            self.stalls_of(id, segment, wait);
            if !upstream {
                self.out.each_within(offset, end, 0, |range| range.loss = id);
            }
        }
        if wait == Wait::Timer {
            match trigger {
                Trigger::Probe => self.counts.probes += 1,
                _ => {
                    self.counts.timeouts += 1;
                    if let Some(slice) = self.timeline.last() {
                        slice.timeouts += 1;
                    }
                    self.loss_until = Some(nxt);
                    self.after_timeout.since.get_or_insert(now);
                    self.after_timeout.sent = 0;
                    let frames = self.after_timeout.frames.get_or_insert((segment.frame, segment.frame));
                    frames.1 = segment.frame;
                }
            }
        }
    }

    fn stalls_of(&mut self, id: u64, segment: &CapturedSegment, wait: Wait) {
        if wait == Wait::Timer {
            self.stalls.end_by(segment.frame, id);
        }
    }

    /// Numbers were passed over.
    fn hole(&mut self, segment: &CapturedSegment, start: u64) {
        let now = segment.time;
        let tsval = segment.options.timestamps.map(|(value, _)| value);
        let full = u64::from(self.full());
        let missing = start - self.nxt;
        self.counts.holes += missing.div_ceil(full);
        let mut at = self.nxt;
        // A range for each segment that must be missing, so that each can come by itself; a long hole stays
        // one.
        let step = if missing > full * 256 { missing } else { full };
        while at < start {
            let end = (at + step).min(start);
            self.out.push(Range {
                start: at,
                end,
                first: now,
                last: now,
                frame: segment.frame,
                last_frame: segment.frame,
                sent: 0,
                hole: true,
                sacked: false,
                tsval,
                first_tsval: None,
                ip_id: segment.ip_id,
                burst: self.burst_before.saturating_add(1),
                nxt: start,
                passed: self.counts.bytes - u64::from(segment.len),
                loss: 0,
                flight: u32::try_from(self.nxt.saturating_sub(self.log.known.una)).unwrap_or(u32::MAX),
                silence: self.recent_silence,
                queued: self.near_queue(),
            });
            at = end;
        }
        self.nxt = start;
    }

    /// A segment of the other side, which acknowledges.
    pub(super) fn acked(&mut self, segment: &CapturedSegment, has_data: bool) {
        let now = segment.time;
        if !segment.flags.has(Flags::ACK) || segment.flags.has(Flags::RST) {
            return;
        }
        if segment.damaged == Some(true) {
            return;
        }
        if self.first_seq.is_none() {
            // Data was never seen: begin where the ACK says.
            self.first_seq = Some(segment.ack);
            for place in [&mut self.nxt, &mut self.una, &mut self.delivered_to, &mut self.sack_high] {
                *place = ORIGIN;
            }
            self.log.known.una = ORIGIN;
        }
        let ack = self.offset(segment.ack);
        let syn = segment.flags.has(Flags::SYN);
        let window = u64::from(segment.window) << if syn { 0 } else { self.scale };
        // An old ACK says nothing new.
        if ack + (1 << 30) < self.una || ack > self.nxt + (1 << 30) {
            return;
        }
        self.counts.acks += 1;
        self.out.earn();
        self.counts.pure_acks += u64::from(!has_data);
        if segment.flags.has(Flags::ECE) && !syn {
            self.counts.echoes += 1;
            if let Some(slice) = self.timeline.last() {
                slice.echoes += 1;
            }
        }
        if !has_data {
            self.note_ack_id(segment.ip_id);
        }
        if window == 0 && !syn {
            self.counts.zero_windows += 1;
            self.first_zero_window.get_or_insert(segment.frame);
        }
        self.largest_window = self.largest_window.max(window);
        let edge = ack + window;
        let before = self.una;
        let advanced = ack.saturating_sub(before);
        if ack > self.nxt {
            // Acknowledged, and never seen. A FIN takes a number of its own.
            let unseen = ack - self.nxt;
            if unseen > 1 && self.counts.data_segments > 0 {
                self.counts.unseen += unseen.div_ceil(u64::from(self.full()));
                self.counts.unseen_bytes += unseen;
            }
            self.nxt = ack;
        }
        let sacked_before = self.sacked;
        if advanced > 0 {
            self.advance_una(segment, ack, advanced);
        } else if advanced == 0
            && ack == before
            && self.nxt > self.una
            && !has_data
            && edge == self.edge
            && !syn
        {
            self.counts.duplicate_acks += 1;
        }
        self.edge = if advanced > 0 || ack == before { edge } else { self.edge };
        self.take_sack(segment, ack, before);
        let gained = advanced
            .saturating_sub(sacked_before.saturating_sub(self.sacked))
            .max(self.sacked.saturating_sub(sacked_before));
        if let Some(slice) = self.timeline.last() {
            slice.delivered += gained;
            slice.end = slice.end.max(if self.nxt > self.una || advanced > 0 { now } else { slice.end });
        }
        if ack >= before {
            let tsval = segment.options.timestamps.map(|(value, _)| value);
            let una = self.una;
            self.log.push(Ack { time: now, una, edge: self.edge, sacked: self.sacked }, tsval);
        }
    }

    fn advance_una(&mut self, segment: &CapturedSegment, ack: u64, advanced: u64) {
        let now = segment.time;
        let echo = segment.options.timestamps.map(|(_, echo)| echo);
        let far_least = self.far();
        let full = u64::from(self.full());
        let mut sample: Option<(Span, Instant)> = None;
        let mut unseen = 0;
        let mut unseen_bytes = 0;
        let mut needless = Vec::new();
        let mut ranges = 0;
        let mut sacked = 0;
        let mut largest = self.largest_delivered;
        let last_timer = self.last_timer;
        self.out.acknowledge(ack, |range| {
            ranges += 1;
            if range.sacked {
                sacked += range.len();
            }
            if range.hole {
                unseen += 1;
                unseen_bytes += range.len();
                return;
            }
            largest = largest.max(range.len() as u32);
            if range.sent == 1 {
                // A sample across a timeout tells of the timeout, not of queues.
                if !range.sacked && range.end <= ack && range.first >= last_timer {
                    sample = Some((now.since(range.first), range.first));
                }
            } else if range.loss > 0 && !range.sacked {
                let by_time = far_least.is_some_and(|least| now.since(range.last) < least * 4 / 5);
                let by_echo = match (echo, range.tsval, range.first_tsval) {
                    (Some(echo), Some(last), Some(first)) if first != last => {
                        (echo.wrapping_sub(last) as i32) < 0
                            && (echo.wrapping_sub(first) as i32) >= 0
                            && range.end == ack.min(range.end)
                    }
                    _ => false,
                };
                if by_time || by_echo {
                    needless.push(range.loss);
                }
            }
        });
        self.largest_delivered = largest;
        self.sacked = self.sacked.saturating_sub(sacked);
        self.una = ack;
        self.delivered_to = self.delivered_to.max(ack);
        self.counts.unseen += unseen;
        self.counts.unseen_bytes += unseen_bytes;
        for id in needless {
            self.needless(id);
        }
        self.delayed = false;
        if let Some((span, sent)) = sample {
            self.far_recent = if self.far_recent.is_zero() { span } else { (self.far_recent * 7 + span) / 8 };
            let late = span - self.far().unwrap_or_default();
            let alone = ranges <= 1 && advanced <= full && late >= DELAYED_ACK[0] && late <= DELAYED_ACK[1];
            self.delayed = alone && self.nxt <= ack;
            // What the receiver waited is not the path's: the odd segment at the end of a train.
            let last = self.last_ack.map(|(time, _)| now.since(time));
            if !(self.delayed || alone && last.is_some_and(|gap| gap >= DELAYED_ACK[0])) {
                self.far_sample(span, sent);
            }
        }
        let segments = advanced.div_ceil(full.max(1));
        let bucket = match segments {
            0 | 1 => 0,
            2 => 1,
            3..=4 => 2,
            5..=8 => 3,
            _ => 4,
        };
        self.counts.ack_sizes[bucket] += 1;
        let before_this = self.last_ack.map(|(time, _)| time);
        if let Some((before, _)) = self.last_ack
            && advanced >= full
        {
            let per_byte = now.since(before).as_nanos() as f64 / advanced as f64;
            // The lower tenth.
            let gain = if per_byte < self.line { 0.1 } else { 0.011 };
            self.line += (per_byte - self.line) * if self.line == 0.0 { 1.0 } else { gain };
        }
        self.last_ack = Some((now, segment.frame));
        if let Some(until) = self.loss_until {
            let after = &mut self.after_timeout;
            after.acks += 1;
            after.bytes += advanced;
            // One segment goes out, and its ACK comes a round trip later.
            let round = far_least.unwrap_or_default();
            if after.sent <= 1 && before_this.is_some_and(|t| now.since(t) * 10 >= round * 7) {
                after.single += 1;
            }
            after.sent = 0;
            if let Some(frames) = &mut after.frames {
                frames.1 = segment.frame;
            }
            if ack >= until {
                self.loss_until = None;
                if let Some(since) = after.since.take() {
                    after.time += now.since(since);
                }
            }
        }
    }

    fn far_sample(&mut self, span: Span, sent: Instant) {
        self.trips.far.add(span);
        self.far_last = span;
        if let Some(slice) = self.timeline.last() {
            slice.far.add(span);
        }
        if self.far_by_sent.back().is_none_or(|(last, _)| *last <= sent) {
            if self.far_by_sent.len() >= MAX_SAMPLES {
                self.far_by_sent.pop_front();
            }
            self.far_by_sent.push_back((sent, span));
        }
    }

    fn needless(&mut self, id: u64) {
        let Some(loss) = self.losses.get_mut(id) else {
            self.counts.spurious += 1;
            return;
        };
        if loss.spurious {
            return;
        }
        loss.spurious = true;
        self.counts.spurious += 1;
        self.stalls.set_spurious(id);
        if let Some(slice) = self.timeline.last() {
            slice.losses = slice.losses.saturating_sub(1);
        }
    }

    fn note_ack_id(&mut self, id: u16) {
        // Identifications that jump about say nothing.
        if let Some(step @ 1..=64) = self.ack_ids.see(id) {
            self.counts.numbered_acks += 1;
            self.counts.missing_acks += u64::from(step) - 1;
        }
    }

    fn take_sack(&mut self, segment: &CapturedSegment, ack: u64, una_before: u64) {
        if segment.options.sack.is_empty() {
            self.sack_cache.clear();
            return;
        }
        self.counts.sack_acks += 1;
        let now = segment.time;
        let blocks: Vec<(u64, u64)> =
            segment.options.sack.iter().map(|(s, e)| (self.offset(*s), self.offset(*e))).collect();
        let mut taken = Vec::with_capacity(blocks.len());
        let mut newest: Option<(Span, Instant)> = None;
        let last_timer = self.last_timer;
        let mut sacked = 0;
        for (at, (start, end)) in blocks.iter().copied().enumerate() {
            if start >= end || end > self.nxt + (1 << 30) {
                continue;
            }
            let inside = blocks.get(1).is_some_and(|(s, e)| *s <= start && end <= *e);
            if at == 0 && (end <= ack.max(una_before) || start < ack || inside) {
                self.dsack(segment, start, end);
                continue;
            }
            if start < ack {
                continue;
            }
            taken.push((start, end));
            self.sack_high = self.sack_high.max(end);
            // What the last ACK's blocks said already.
            let (mut from, mut to) = (start, end);
            for (s, e) in &self.sack_cache {
                if *s <= from && from < *e {
                    from = *e;
                }
                if *s < to && to <= *e {
                    to = *s;
                }
            }
            if from >= to {
                continue;
            }
            self.out.each_within(from, to, 1, |range| {
                if range.sacked {
                    return;
                }
                range.sacked = true;
                sacked += range.len();
                if range.sent == 1 && !range.hole && range.first >= last_timer {
                    newest = Some((now.since(range.first), range.first));
                }
            });
        }
        self.sacked += sacked;
        if let Some((span, sent)) = newest {
            self.far_sample(span, sent);
        }
        self.sack_cache = taken;
    }

    /// The receiver says what it had already (RFC 2883).
    fn dsack(&mut self, segment: &CapturedSegment, start: u64, end: u64) {
        self.counts.dsacks += 1;
        self.first_dsack.get_or_insert(segment.frame);
        let (start, end) = (start.saturating_sub(ORIGIN), end.saturating_sub(ORIGIN));
        let found = self
            .losses
            .kept()
            .iter()
            .rev()
            .take(256)
            .find(|l| l.offset < end && start < l.offset + u64::from(l.len) && !l.spurious)
            .map(|l| (l.id, l.upstream));
        if let Some((id, false)) = found {
            self.needless(id);
        }
    }

    /// The capture is over.
    pub(super) fn finish(&mut self) {
        if let Some((last, _)) = self.last_ack
            && let Some(slice) = self.timeline.last()
        {
            slice.end = slice.end.max(last);
        }
    }
}
