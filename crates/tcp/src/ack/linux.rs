//! Linux of today (6.x): quick ACKs at the start and after trouble, unless the connection is a conversation; then more than
//! one segment, or a timer that follows the sender's pace.
//!
//! Left out: compressed SACKs (from the fourth duplicate on Linux may hold one back for up to 1 ms), a window that a slow
//! reader keeps from moving, and the look at PSH.

use super::DataArrival;
use farpace_units::{Instant, Span};

const ATO_MIN: Span = Span::from_millis(40);
/// Longest wait of a conversation, and of all others after the look at the round trip.
const DELAY_MAX: Span = Span::from_millis(200);
/// Longest wait before that look.
const DELAY_LIMIT: Span = Span::from_millis(500);
/// Most ACKs that are sent at once before delaying begins.
const MAX_QUICK: u32 = 16;
/// What counts as a full-size segment before a larger one was seen.
const FIRST_FULL_SIZE: u32 = 536;

/// The quick-ACK counter, the delayed-ACK timeout (ato), and whether data goes both ways.
#[derive(Clone, Debug, Default)]
pub struct QuickAck {
    quick: u32,
    /// None before the first data.
    ato: Option<Span>,
    last: Instant,
    /// We have answered data with data ("pingpong"): an answer will carry the next ACK, too.
    conversation: bool,
    /// Segments since the last ACK that were not full.
    short: u32,
    /// Until when an ACK is held back now.
    held: Option<Instant>,
}

impl QuickAck {
    /// Data has arrived: until when its ACK may wait; none: not at all.
    pub fn on_data(&mut self, a: &DataArrival, full_size: u32) -> Option<Instant> {
        let full_size = full_size.max(FIRST_FULL_SIZE);
        self.short = self.short.saturating_add(u32::from(a.len < full_size));
        let since = a.now.since(self.last);
        self.last = a.now;
        match self.ato {
            None => {
                self.arm(a, full_size);
                self.ato = Some(ATO_MIN);
            }
            Some(ato) if since <= ATO_MIN / 2 => self.ato = Some(ato / 2 + ATO_MIN / 2),
            Some(ato) if since < ato => self.ato = Some((ato / 2 + since).min(a.rto)),
            // The sender should have begun anew with a small window: it needs its ACKs.
            Some(_) if since > a.rto => self.arm(a, full_size),
            Some(_) => {}
        }
        if a.duplicate {
            self.arm(a, full_size);
            self.conversation = false;
            self.ato = Some(ATO_MIN);
        }
        let quick = self.quick > 0 && !self.conversation;
        if quick || a.unacknowledged > full_size {
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

    fn arm(&mut self, a: &DataArrival, full_size: u32) {
        let n = (a.window / (2 * full_size)).max(2);
        self.quick = self.quick.max(n.min(MAX_QUICK));
    }

    fn delay(&self, srtt: Span) -> Span {
        let ato = self.ato.unwrap_or(ATO_MIN);
        if ato <= ATO_MIN {
            return ato;
        }
        let mut most = if self.conversation || self.short > 0 { DELAY_MAX } else { DELAY_LIMIT };
        if !srtt.is_zero() {
            most = most.min(srtt.max(ATO_MIN));
        }
        ato.min(most).min(DELAY_MAX)
    }

    /// An ACK went out; with the last quick one the timeout begins small.
    pub fn on_ack_sent(&mut self) {
        if self.quick == 1 {
            self.ato = self.ato.map(|_| ATO_MIN);
        }
        self.quick = self.quick.saturating_sub(1);
        self.short = 0;
        self.held = None;
    }

    /// Data went out: within the ato of what came last it is an answer.
    pub fn on_data_sent(&mut self, now: Instant) {
        self.conversation |= self.ato.is_some_and(|ato| now.since(self.last) < ato);
    }

    /// The timer fired: wait longer next time; or the answer that was waited for did not come.
    pub fn on_timer(&mut self, rto: Span) {
        if self.conversation {
            self.conversation = false;
            self.ato = Some(ATO_MIN);
        } else {
            self.ato = self.ato.map(|ato| (ato * 2).min(rto));
        }
    }

    /// Everything was read: a short segment is the end of something, and nothing else will come soon.
    pub fn on_all_read(&self) -> bool {
        self.short > 1 || (self.short == 1 && !self.conversation)
    }
}
