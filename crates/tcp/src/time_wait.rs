//! TIME-WAIT (RFC 9293 §3.6.1): what is left of a connection that both ends have closed.

use crate::ports::Ports;
use crate::rto::TcpClock;
use crate::segment::Segment;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// Distance that a new connection keeps from the numbers of the old one: the largest window without scaling.
const ISS_DISTANCE: u32 = 1 << 16;
/// Least time between two answers to segments that ask for none (Linux: tcp_invalid_ratelimit).
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);
/// Most answers in that time to segments with data or FIN, which do ask for one.
const MAX_ANSWERS: u8 = 100;

/// A connection in TIME-WAIT. A host keeps this row, the connection's ends, and nothing else of it.
#[derive(Clone, Debug)]
pub struct TimeWait {
    snd_nxt: Seq,
    rcv_nxt: Seq,
    /// The window as announced last, in bytes.
    window: u32,
    /// TS.Recent, if `stamped`.
    ts_recent: u32,
    ts_offset: u32,
    /// The window field as announced last.
    window_field: u16,
    /// Timestamps were agreed on, and TS.Recent is not too old to tell anything (RFC 7323 §5.5).
    stamped: bool,
    /// Answers to segments with data or FIN since `answers_until` was set.
    answers: u8,
    answers_until: Instant,
    /// Segments that ask for nothing are not answered before.
    challenge_from: Instant,
    clock: TcpClock,
    /// How long the wait lasts from the peer's last FIN on, and until when it lasts now.
    lasts: Span,
    until: Instant,
}

const _: () = assert!(std::mem::size_of::<TimeWait>() <= 64);

/// What a segment for a connection in TIME-WAIT brings about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeWaitOutcome {
    /// Nothing.
    Ignored,
    /// This is to be sent.
    Answer(Box<TcpHeader>),
    /// The connection is over (RFC 1337 leaves that to the implementation).
    Ended,
}

/// What a connection hands over when it enters TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remains {
    pub snd_nxt: Seq,
    pub rcv_nxt: Seq,
    pub window: (u16, u32),
    pub ts_recent: Option<u32>,
    pub ts_offset: u32,
    pub clock: TcpClock,
    pub lasts: Span,
}

impl TimeWait {
    pub(crate) fn new(now: Instant, remains: Remains) -> Self {
        let Remains { snd_nxt, rcv_nxt, window, ts_recent, ts_offset, clock, lasts } = remains;
        TimeWait {
            snd_nxt,
            rcv_nxt,
            window: window.1,
            ts_recent: ts_recent.unwrap_or_default(),
            ts_offset,
            window_field: window.0,
            stamped: ts_recent.is_some(),
            answers: 0,
            answers_until: Instant::ZERO,
            challenge_from: Instant::ZERO,
            clock,
            lasts,
            until: now + lasts,
        }
    }

    /// When it is over.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// A segment between `ports` has arrived that does not begin a new connection
    /// ([`may_be_reused_by`](Self::may_be_reused_by)).
    pub fn on_segment(&mut self, now: Instant, ports: Ports, segment: &Segment) -> TimeWaitOutcome {
        let h = &segment.header;
        let reset = h.flags.contains(TcpFlags::RST);
        let stamp = h.options.timestamps;
        if !reset && self.stamped && stamp.is_none() {
            return TimeWaitOutcome::Ignored; // RFC 7323 §3.2
        }
        if !self.acceptable(segment, reset) {
            return if reset { TimeWaitOutcome::Ignored } else { self.answer(now, ports, segment) };
        }
        if reset {
            // RFC 5961 §3.2: only the exact number resets; another one in the window is challenged.
            return if h.seq == self.rcv_nxt {
                TimeWaitOutcome::Ended
            } else {
                self.answer(now, ports, segment)
            };
        }
        // PAWS (RFC 7323 §5.3)
        let old = stamp.is_some_and(|t| self.stamped && (t.value.wrapping_sub(self.ts_recent) as i32) < 0);
        if !old && !h.flags.intersects(TcpFlags::ACK.with(TcpFlags::SYN)) {
            return TimeWaitOutcome::Ignored;
        }
        let plain = segment.sequence_length() == 0 && h.ack.before_eq(self.snd_nxt);
        if !old && plain && h.seq == self.rcv_nxt {
            if let Some(t) = stamp.filter(|_| self.stamped) {
                self.ts_recent = t.value;
            }
            return TimeWaitOutcome::Ignored; // the peer's last ACK, come again
        }
        self.answer(now, ports, segment)
    }

    /// Table 6 of RFC 9293. A segment without length may stand at the right edge, unless it is a reset.
    fn acceptable(&self, segment: &Segment, reset: bool) -> bool {
        let len = if reset { 0 } else { segment.sequence_length() };
        let (seq, window) = (segment.header.seq, self.window);
        let inside = |s: Seq| s.after_eq(self.rcv_nxt) && s.before(self.rcv_nxt + window);
        match (len, window) {
            (0, w) => inside(seq) || (seq == self.rcv_nxt + w && (w == 0 || !reset)),
            (_, 0) => false,
            _ => inside(seq) || inside(seq + (len - 1)),
        }
    }

    /// Answers, unless there were too many answers: those to segments that ask for nothing are few, or two
    /// ends would answer answers for ever (RFC 5961 §7).
    fn answer(&mut self, now: Instant, ports: Ports, segment: &Segment) -> TimeWaitOutcome {
        let fin = segment.header.flags.contains(TcpFlags::FIN);
        // Only the peer's FIN, come again, begins the wait anew: anybody else could prolong it for ever.
        if fin && segment.header.seq + segment.sequence_length() == self.rcv_nxt {
            self.until = now + self.lasts;
        }
        if fin || !segment.payload.is_empty() {
            if now >= self.answers_until {
                (self.answers_until, self.answers) = (now + CHALLENGE_INTERVAL, 0);
            }
            if self.answers >= MAX_ANSWERS {
                return TimeWaitOutcome::Ignored;
            }
            self.answers += 1;
        } else if now >= self.challenge_from {
            self.challenge_from = now + CHALLENGE_INTERVAL;
        } else {
            return TimeWaitOutcome::Ignored;
        }
        TimeWaitOutcome::Answer(Box::new(self.ack(now, ports)))
    }

    fn ack(&self, now: Instant, ports: Ports) -> TcpHeader {
        let value = self.clock.timestamp(now).wrapping_add(self.ts_offset);
        TcpHeader {
            src_port: ports.local,
            dst_port: ports.remote,
            seq: self.snd_nxt,
            ack: self.rcv_nxt,
            flags: TcpFlags::ACK,
            window: self.window_field,
            options: TcpOptions {
                timestamps: self.stamped.then_some(Timestamps { value, echo: self.ts_recent }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        }
    }

    /// True if `syn` may begin a new connection between the same ports: none of what it sends can be mistaken
    /// for something old. The numbers are those of RFC 6191 §2: a newer timestamp, or, where timestamps
    /// cannot tell, a sequence number beyond RCV.NXT.
    pub fn may_be_reused_by(&self, syn: &Segment) -> bool {
        let h = &syn.header;
        let opens = h.flags.contains(TcpFlags::SYN)
            && !h.flags.intersects(TcpFlags::ACK.with(TcpFlags::RST).with(TcpFlags::FIN));
        if !opens {
            return false;
        }
        let beyond = h.seq.after(self.rcv_nxt);
        match (self.stamped.then_some(self.ts_recent), h.options.timestamps) {
            (Some(recent), Some(t)) => match t.value.wrapping_sub(recent) as i32 {
                0 => beyond,
                newer => newer > 0,
            },
            // Timestamps are new: whatever is still under way from the old connection has none.
            (None, Some(_)) => true,
            (_, None) => beyond,
        }
    }

    /// The least initial sequence number that a connection in the place of this one should take, so that the
    /// peer cannot mistake its segments for old ones.
    pub fn next_iss_floor(&self) -> Seq {
        self.snd_nxt + ISS_DISTANCE
    }
}
