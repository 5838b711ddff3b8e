//! What is held back because the program says that more will come (MSG_MORE, TCP_CORK), and what it wants
//! sent at once.

use super::{Connection, Transmit};
use farpace_units::{Instant, Span};

/// Least time for which less than a full segment is held back, where nothing is outstanding whose
/// acknowledgment would end it.
const HOLD: Span = Span::from_millis(200);

/// What is held back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cork {
    /// The last write was one of several: until the next one, or until a segment comes.
    more: bool,
    /// Whatever begins before this stream offset leaves all the same.
    push_end: u64,
    /// When it leaves though nothing has come.
    pub deadline: Option<Instant>,
}

impl Connection {
    /// More will be written soon (MSG_MORE): less than a full segment waits for it. Or nothing will.
    pub fn set_more(&mut self, more: bool) {
        self.cork.more = more;
    }

    /// What was written leaves, however short it is.
    pub(super) fn push(&mut self) {
        self.cork.push_end = self.snd.buffer.end();
    }

    /// The last write was one of several.
    pub(super) fn promises_more(&self) -> bool {
        self.cork.more
    }

    /// True if less than a full segment at the end of the `unsent` bytes has to wait for the program.
    pub(super) fn is_held(&self, unsent: u64) -> bool {
        (self.config.tuning.cork || self.cork.more) && self.snd.buffer.end() - unsent >= self.cork.push_end
    }

    /// A segment has come: Linux looks then at what it may send, and MSG_MORE is no reason any more to wait.
    pub(super) fn end_more(&mut self) {
        self.cork.more = false;
    }

    /// Starts or stops the timer after an attempt to send.
    pub(super) fn update_hold(&mut self, now: Instant, result: Transmit) {
        let held = result == Transmit::Blocked(super::Blocked::Nagle)
            && self.flight.segments.is_empty()
            && !self.config.is_linux() // the timer that probes windows sends it
            && self.is_held(self.snd.unsent());
        if !held {
            self.cork.deadline = None;
        } else if self.cork.deadline.is_none() {
            self.cork.deadline = Some(now + self.flight.rto.rto().max(HOLD));
        }
    }

    /// The time is over.
    pub(super) fn on_hold_timeout(&mut self) {
        self.cork.deadline = None;
        self.push();
    }
}
