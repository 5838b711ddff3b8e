//! One direction of a connection: its data, and the ACKs for it, as they passed the capture point.
//!
//! What becomes of a segment of the sender stands in `half/data.rs`, then `waits.rs` and `retransmission.rs`;
//! of one of the receiver in `acknowledgment.rs`, then `sack.rs`.

mod acknowledgment;
mod counts;
mod data;
mod retransmission;
mod sack;
mod waits;

pub use counts::{AfterTimeout, Counts, Trips};

use super::acks::AckLog;
use super::identification::Identifications;
use super::loss::{Losses, Passes};
use super::outstanding::Outstanding;
use super::refills::Refills;
use super::round_trips::FarTrips;
use super::segment_size::SegmentSize;
use super::stall::Stalls;
use super::timeline::{Stat, Timeline};
use crate::frame::CapturedSegment;
use farpace_units::{Instant, Span};
use std::collections::VecDeque;

/// Offsets begin here, so that numbers before the first one seen have a place.
const ORIGIN: u64 = 1 << 33;
/// The largest window scale (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;
/// Segments that a window of unknown scale must hold to be taken for a limit.
const MIN_GUESSED: u64 = 4;
/// Segments for each end of a write that left room in such a window, if the program writes enough to fill it.
const MIN_BETWEEN_ENDS: u64 = 32;
/// Payload that every path takes: 576 bytes of IPv4 (RFC 791) less headers and options, and some to spare.
const MIN_PATH: u32 = 480;
/// Segments that each end a write, from which on a program writes messages, and the payload of a full one
/// over Ethernet with timestamps: what is agreed on as a rule.
const MIN_MESSAGES: u64 = 20;
const USUAL_MSS: u32 = 1_448;
/// ACKs that a receiver delays come so late (RFC 1122: up to 500 ms).
const DELAYED_ACK: [Span; 2] = [Span::from_millis(25), Span::from_millis(550)];

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct Half {
    first_seq: Option<u32>,
    /// The first segment or ACK, where the beginning was not captured.
    began: Option<Instant>,
    nxt: u64,
    una: u64,
    /// Highest number that was SACKed or acknowledged.
    delivered_to: u64,
    sacked: u64,
    edge: u64,
    /// Shift of the windows that the receiver announces; without the handshake the least that explains what
    /// was sent.
    scale: u8,
    scale_is_known: bool,
    /// Segment size that the SYNs agreed on, without options; without them, what lengths have in common.
    pub mss: u32,
    mss_is_agreed: bool,
    lengths: SegmentSize,
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
    /// When data last came that had not been seen before, and all payload by then.
    last_new: Option<(Instant, u64)>,
    /// Delay in queues before the capture point when it came.
    last_queue: Span,
    /// Last ACK that acknowledged data.
    pub last_ack: Option<(Instant, u64)>,
    /// FIN.
    pub fin: Option<(Instant, u64)>,
    /// Where the stream ends: the FIN's own number, as offset.
    data_end: Option<u64>,
    /// Last data of the other side before the first data of this one: a request.
    pub asked: Option<Instant>,
    /// The longest pause of the sender within the last round trip.
    recent_silence: Span,
    silence_ended: Instant,
    /// Payload that had passed then.
    passed_at_silence: u64,
    /// When a timer last sent something.
    last_timer: Instant,
    far_recent: Span,
    far_last: Span,
    /// Newest samples of the far trip, by when their segments were sent.
    far_by_sent: VecDeque<(Instant, Span)>,
    /// Samples of the far trip of the whole transfer.
    pub(crate) round_trips: FarTrips,
    /// When the latest ACK passed, if it was delayed and acknowledged all there was.
    delayed: Option<Instant>,
    /// Segments with data that did not end a write (without PSH).
    unpushed: u64,
    /// Segments have become shorter: the path takes no longer ones (RFC 1191, RFC 8899).
    pub shorter: Option<u32>,
    /// How many segments in a row had this length or a multiple of it, and how many of them ended no write.
    same_length: (u32, u32, u32),
    /// The last segment of new data was shorter than full ones.
    last_short: bool,
    /// Short segments of new data that left room in the window: ends of writes.
    ends: u64,
    /// What releases data behind such a segment.
    refills: Refills,
    burst: u8,
    /// The same before the newest segment.
    burst_before: u8,
    /// Time per byte at which ACKs come when they come densely, in nanoseconds: the rate of the bottleneck.
    line: f64,
    /// A timeout's recovery lasts until this number is acknowledged.
    loss_until: Option<u64>,
    /// The numbering of the data's packets, and of the ACKs'.
    ids: Identifications,
    /// Packets that left since the last data and did not pass.
    missing_ids: u16,
    ack_ids: Identifications,
    /// How long the other side took to speak, with everything acknowledged: a round trip and its own time.
    pub turns: Stat,
    /// The packet of the peer before carried no data.
    pure_ack_before: bool,
    /// The last segment left directly behind an ACK, or in a burst that did.
    prompt: bool,
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

    /// Sets the segment size, without options.
    pub fn agree_on(&mut self, mss: u32) {
        (self.mss, self.mss_is_agreed) = (mss, true);
    }

    /// Sets the scale of the windows that the receiver announces.
    pub fn set_scale(&mut self, scale: u8) {
        self.scale = scale;
        self.scale_is_known = true;
    }

    /// The handshake told the scale of the windows: what is offered is known, and not only that it is at
    /// least what was sent.
    pub fn knows_windows(&self) -> bool {
        self.scale_is_known
    }

    /// Data up to `end` passed. If the windows that the sender knows do not allow it, they have a larger
    /// scale.
    fn fit_scale(&mut self, end: u64) {
        let known = self.log.known;
        if self.scale_is_known || known.window == 0 {
            return;
        }
        let full = u64::from(self.full());
        let before = self.scale;
        // A window that is a multiple of the scale's unit may retreat by less than it.
        let allowed = |scale: u8| known.una + (known.window << scale) + (1 << scale) + full;
        while self.scale < MAX_SCALE && end > allowed(self.scale) {
            self.scale += 1;
        }
        let more = self.scale - before;
        if more > 0 {
            self.edge = self.una + (self.edge.saturating_sub(self.una) << more);
            self.largest_window <<= more;
            self.log.rescale(self.scale);
            self.timeline.rescale(more);
        }
        if more > 0 || !self.is_window_a_limit() {
            self.log.shut = None;
        }
    }

    /// A window of unknown scale that holds a few segments is nearly full by chance. So is one beside a
    /// program whose writes end within it again and again: what it writes is what is sent.
    fn is_window_a_limit(&self) -> bool {
        let least = MIN_GUESSED * u64::from(self.full());
        let fills = self.ends * MIN_BETWEEN_ENDS <= self.counts.data_segments;
        self.scale_is_known || fills && self.log.known.window << self.scale >= least
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

    /// Behind the end of a write data leaves when an ACK comes: one that makes room in the send buffer.
    pub fn is_refilled_by_acks(&self) -> bool {
        self.refills.by_acks()
    }

    /// Ticks per second of the sender's timestamps.
    pub fn clock(&self) -> Option<f64> {
        self.log.one_way.rate()
    }

    /// When a segment with this TSval would have come without queues, to a tick of its sender's clock;
    /// none if that is not known.
    pub fn undelayed(&self, tsval: u32) -> Option<Instant> {
        self.log.one_way.undelayed(tsval)
    }

    /// Payload that was acknowledged. A FIN has a number and no payload.
    pub fn acknowledged(&self) -> u64 {
        self.data_end.map_or(self.una, |fin| self.una.min(fin)).saturating_sub(ORIGIN)
    }

    /// Payload up to the highest number sent, without the FIN's.
    pub fn payload(&self) -> u64 {
        self.data_end.map_or(self.nxt, |end| self.nxt.min(end)).saturating_sub(ORIGIN)
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
            + self.round_trips.memory()
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
        self.round_trips.shrink();
    }

    fn offset(&self, seq: u32) -> u64 {
        let first = self.first_seq.unwrap_or(seq);
        let near = self.nxt.max(self.una).max(ORIGIN);
        let near_seq = first.wrapping_add((near - ORIGIN) as u32);
        near.wrapping_add_signed(i64::from(seq.wrapping_sub(near_seq) as i32))
    }

    fn full(&self) -> u32 {
        match (self.mss, self.counts.largest) {
            (mss, largest) if !self.mss_is_agreed && self.writes_messages(mss, largest) => USUAL_MSS,
            (0, largest) => largest.max(536),
            (mss, largest) if self.writes_messages(mss, largest) => mss,
            (_, largest) if self.shorter.is_some_and(|len| len < largest) => self.shorter.unwrap_or(largest),
            // Once there is enough of it, what is sent tells better than what was agreed on.
            (mss, largest) if self.counts.data_segments > 10 && largest > 0 => mss.min(largest),
            (mss, _) => mss,
        }
    }

    /// The program writes less than a segment at a time, so that none is full: the largest is far below what
    /// was agreed on, and no path takes so little, or each ends a write. Without the handshake each of many
    /// has to end one.
    fn writes_messages(&self, mss: u32, largest: u32) -> bool {
        if !self.mss_is_agreed {
            let many = self.counts.data_segments >= MIN_MESSAGES;
            return many && self.unpushed == 0 && largest < USUAL_MSS;
        }
        let few = largest * 10 < mss * 7;
        few && (largest < MIN_PATH || self.unpushed == 0)
    }

    fn round(&self) -> Span {
        self.far_recent + self.log.distance()
    }

    /// Hardly a round trip has passed since the capture began within the transfer: data that was sent before
    /// is still under way.
    fn is_first_round(&self, now: Instant) -> bool {
        let in_round = |began| self.far().is_none_or(|_| now.since(began) <= self.round() * 3 / 2);
        self.began.is_some_and(in_round)
    }

    /// A lower limit of the round trip, against which retransmissions are held.
    fn least_round(&self) -> Option<Span> {
        self.base_rtt()
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
