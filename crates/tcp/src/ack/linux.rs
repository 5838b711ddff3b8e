//! Linux of today (6.x): quick ACKs at the start and after trouble, unless the connection is a conversation;
//! then more than one segment, or a timer that follows the sender's pace.
//!
//! `tests/against_linux` has the kernel play the same scripts.

use super::DataArrival;
use super::compressed::CompressedSacks;
use farpace_events::Cause;
use farpace_units::{Instant, Span};

const ATO_MIN: Span = Span::from_millis(40);
/// Longest wait of a conversation, and of all others after the look at the round trip.
const DELAY_MAX: Span = Span::from_millis(200);
/// Longest wait before that look.
const DELAY_LIMIT: Span = Span::from_millis(500);
/// Most ACKs that are sent at once before delaying begins.
const MAX_QUICK: u8 = 16;
/// What counts as a full-size segment before a larger one was seen.
const FIRST_FULL_SIZE: u32 = 536;
/// Smaller segments are never full.
const MIN_FULL_SIZE: u32 = 88;

/// The kernel's clock for this (jiffies, with HZ = 250).
const TICK: Span = Span::from_millis(4);

/// A time as that clock shows it, in the middle of what it may show.
fn in_ticks(time: Span) -> Span {
    let tick = TICK.as_nanos();
    Span::from_nanos((time.as_nanos() + tick / 2) / tick * tick)
}

/// The quick-ACK counter, the delayed-ACK timeout (ato), and whether data goes both ways.
#[derive(Clone, Debug, Default)]
pub struct QuickAck {
    quick: u8,
    /// None before the first data.
    ato: Option<Span>,
    last: Instant,
    /// We have answered data with data, or heard a FIN ("pingpong"): what we send next will carry the next
    /// ACK, too.
    conversation: bool,
    /// What counts as a full-size segment, in bytes (`rcv_mss`); 0 before the first data.
    full_size: u32,
    /// Size of the last segment that looked full for another size.
    other_size: u32,
    /// Segments since the last ACK that ended something: short ones, full ones with PSH.
    ends: u8,
    /// Until when an ACK is held back now.
    held: Option<Instant>,
    compressed: CompressedSacks,
}

impl QuickAck {
    /// Up to Linux 4.17.
    pub fn without_compression() -> Self {
        QuickAck { compressed: CompressedSacks::off(), ..QuickAck::default() }
    }

    /// Data has arrived: until when its ACK may wait; none: not at all.
    pub fn on_data(&mut self, a: &DataArrival) -> Option<Instant> {
        if a.duplicate {
            self.arm(a);
            self.conversation = false;
            self.ato = Some(ATO_MIN);
            return None;
        }
        self.measure(a);
        let since = in_ticks(a.now.since(self.last));
        self.last = a.now;
        match self.ato {
            None => {
                self.arm(a);
                self.ato = Some(ATO_MIN);
            }
            Some(ato) if since <= ATO_MIN / 2 => self.ato = Some(ato / 2 + ATO_MIN / 2),
            Some(ato) if since < ato => self.ato = Some((ato / 2 + since).min(a.rto)),
            // The sender should have begun anew with a small window: it needs its ACKs.
            Some(_) if since > a.rto => self.arm(a),
            Some(_) => {}
        }
        // The sender should hear of a window that opens.
        if a.opens {
            self.quick |= 1;
        }
        // What leaves a hole is acknowledged at once, and counts among the ACKs of its number.
        if a.holes { self.hold_early(a) } else { self.hold(a) }
    }

    /// Data ahead of its turn: until when its ACK may wait; none: not at all.
    pub fn on_early(&mut self, a: &DataArrival) -> Option<Instant> {
        self.measure(a);
        self.quick |= u8::from(a.opens);
        self.hold_early(a)
    }

    /// A FIN in order: the program will close in answer, which is waited for.
    pub fn on_fin(&mut self, a: &DataArrival) -> Option<Instant> {
        if a.len > 0 {
            let _ = self.on_data(a);
        }
        self.conversation = true;
        if self.ato.is_none() {
            // Without data so far the timer has no time to wait for, but it is a timer.
            self.held = Some(a.now + Span::from_nanos(1));
            return self.held;
        }
        self.hold(a)
    }

    /// Neither a delayed nor a compressed ACK: at once.
    fn is_due(&self, a: &DataArrival) -> bool {
        let quick = self.quick > 0 && !self.conversation;
        quick || (a.unacknowledged > self.full_size() && a.steady)
    }

    fn hold_early(&mut self, a: &DataArrival) -> Option<Instant> {
        if self.is_due(a) { None } else { self.compressed.hold(a) }
    }

    fn hold(&mut self, a: &DataArrival) -> Option<Instant> {
        if self.is_due(a) {
            return None;
        }
        let delay = self.delay(a.srtt);
        // A timer that is about to fire is not waited for.
        if self.held.is_some_and(|held| held <= a.now + delay / 4) {
            return None;
        }
        let until = a.now + delay;
        let until = self.held.map_or(until, |held| held.min(until));
        self.held = Some(until);
        Some(until)
    }

    /// A segment without news, while an ACK waits: true if it should wait no longer.
    pub fn on_other(&self, now: Instant, srtt: Span) -> bool {
        let quick = self.quick > 0 && !self.conversation;
        let Some(ato) = self.ato else { return true };
        quick || self.held.is_some_and(|held| held <= now + self.delay(srtt).min(ato) / 4)
    }

    /// The connection begins: what a full-size segment is taken for.
    pub fn begin(&mut self, now: Instant, mss: u32, window: u32) {
        self.last = now;
        self.full_size = FIRST_FULL_SIZE.min(mss).min(window / 2).max(MIN_FULL_SIZE);
    }
    /// The delayed-ACK timeout, as TCP_INFO tells it.
    pub fn timeout(&self) -> Span {
        self.ato.unwrap_or_default()
    }
    /// What counts as a full-size segment, as TCP_INFO tells it: of a peer that has sent no data what is
    /// guessed then.
    pub fn segment(&self, mss: u32, window: u32) -> u32 {
        if self.full_size == 0 {
            FIRST_FULL_SIZE.min(mss).min(window / 2).max(MIN_FULL_SIZE)
        } else {
            self.full_size
        }
    }

    fn full_size(&self) -> u32 {
        if self.full_size == 0 { MIN_FULL_SIZE } else { self.full_size }
    }

    /// Finds what a full-size segment is: the largest; or, of two smaller ones of one size without PSH,
    /// theirs.
    fn measure(&mut self, a: &DataArrival) {
        if self.full_size == 0 {
            self.full_size = FIRST_FULL_SIZE.min(a.mss).min(a.window / 2).max(MIN_FULL_SIZE);
        }
        let other = std::mem::take(&mut self.other_size);
        if a.segment >= self.full_size {
            self.full_size = a.segment.min(a.most);
            self.ends = self.ends.max(u8::from(a.push));
            return;
        }
        // SACK blocks come off the segment that carries them: all options count.
        let whole = a.segment + a.all_options;
        if whole >= FIRST_FULL_SIZE || (whole >= MIN_FULL_SIZE && !a.ends) {
            let size = whole.saturating_sub(a.usual_options);
            self.other_size = size;
            if size == other {
                self.full_size = size;
                return;
            }
        }
        self.ends = self.ends.saturating_add(1);
    }

    fn arm(&mut self, a: &DataArrival) {
        let n = (a.window / (2 * self.full_size())).max(2);
        self.quick = self.quick.max(u8::try_from(n).unwrap_or(MAX_QUICK).min(MAX_QUICK));
    }

    fn delay(&self, srtt: Span) -> Span {
        let ato = self.ato.unwrap_or(ATO_MIN);
        if ato <= ATO_MIN {
            return ato;
        }
        let mut most = if self.conversation || self.ends > 0 { DELAY_MAX } else { DELAY_LIMIT };
        if !srtt.is_zero() {
            most = most.min(srtt.max(ATO_MIN));
        }
        ato.min(most).min(DELAY_MAX)
    }

    /// A segment went out with an ACK, which `owed` says was due; with the last quick one the timeout begins
    /// small.
    pub fn on_ack_sent(&mut self, owed: bool) {
        if owed {
            if self.quick == 1 {
                self.ato = Some(ATO_MIN);
            }
            self.quick = self.quick.saturating_sub(1);
        }
        self.ends = 0;
        self.held = None;
        self.compressed.on_ack_sent();
    }

    /// ACKs of data ahead of its turn wait.
    pub fn holds_sacks(&self) -> bool {
        self.compressed.any()
    }

    /// Data went out: within the ato of what came last it is an answer.
    pub fn on_data_sent(&mut self, now: Instant) {
        self.conversation |= self.ato.is_some_and(|ato| now.since(self.last) < ato);
    }

    /// The timer fired: wait longer next time; or the answer that was waited for did not come. Compressed
    /// ACKs have a timer of their own.
    pub fn on_timer(&mut self, rto: Span) -> Cause {
        if self.compressed.any() {
            return Cause::AckOutOfOrder;
        }
        if self.conversation {
            self.conversation = false;
            self.ato = Some(ATO_MIN);
        } else {
            self.ato = self.ato.map(|ato| (ato * 2).min(rto));
        }
        Cause::AckDelayed
    }

    /// ACKs leave at once, unless a conversation begins again; or it is one now.
    pub fn set_quick(&mut self, quick: bool) {
        self.conversation = !quick;
        if quick {
            self.quick = self.quick.max(1);
        }
    }
    /// It is no conversation.
    pub fn is_quick(&self) -> bool {
        !self.conversation
    }

    /// Everything was read: a short segment, or PSH, is the end of something, and nothing else will come
    /// soon.
    pub fn on_all_read(&self) -> bool {
        self.ends > 1 || (self.ends == 1 && !self.conversation)
    }
}
