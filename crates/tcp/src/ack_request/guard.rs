//! Paths and peers that do not bear being asked.
//!
//! Options are stripped, reserved bits cleared, and segments without ACK dropped, often on one way only, so
//! that the handshake tells nothing of it. A request that gets lost must cost no more than the request.

use super::RequestForm;
use crate::config::AckControlMode;
use farpace_units::Instant;

/// Requests in a row without an answer, while there never was one, after which the form is given up.
const NEVER_ANSWERED: u32 = 4;
/// The same where some were answered: ACKs get lost, and a busy receiver answers when it can.
const NOT_ANSWERED: u32 = 16;
/// Times that segments without ACK got lost, and none with it, after which no more are sent.
const MAX_STRIKES: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// Segments without ACK need no trial.
    literal: bool,
    answered: bool,
    unanswered: u32,
    strikes: u32,
    /// When the last of them was noticed: what was sent before is the same loss.
    struck_at: Option<Instant>,
    /// The bit goes unheard; the option may not.
    no_flag: bool,
    off: bool,
}

impl Guard {
    pub fn new(control: AckControlMode) -> Self {
        Guard {
            literal: control == AckControlMode::ClassicLiteral,
            answered: false,
            unanswered: 0,
            strikes: 0,
            struck_at: None,
            no_flag: false,
            off: false,
        }
    }

    /// Nothing is asked any more.
    pub fn forbids(&self) -> bool {
        self.off
    }

    /// What is left of what was agreed on.
    pub fn adapt(&self, form: RequestForm) -> RequestForm {
        if form == RequestForm::Flag && self.no_flag { RequestForm::Safe } else { form }
    }

    /// Segments without ACK have come through, or are believed to.
    pub fn is_proven(&self) -> bool {
        self.literal || self.answered
    }

    pub fn on_answered(&mut self) {
        (self.answered, self.unanswered, self.strikes) = (true, 0, 0);
    }

    /// An ACK covers a request, and is no answer. `flag`: the request was made by the bit beside ACK.
    pub fn on_unanswered(&mut self, flag: bool) {
        if flag && self.no_flag {
            return; // known already
        }
        self.unanswered += 1;
        let limit = if self.answered { NOT_ANSWERED } else { NEVER_ANSWERED };
        if self.unanswered < limit {
            return;
        }
        if flag {
            (self.no_flag, self.answered, self.unanswered) = (true, false, 0);
        } else {
            self.off = true;
        }
    }

    /// A segment without ACK, sent at `sent_at`, is missing; its neighbours are not, unless they had no ACK
    /// either.
    pub fn on_bare_lost(&mut self, now: Instant, sent_at: Instant) {
        if self.struck_at.is_none_or(|at| sent_at >= at) {
            self.struck_at = Some(now);
            self.strikes += 1;
            self.off |= self.strikes >= MAX_STRIKES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Span;

    /// Breaks: a stripped option or cleared bit ends the asking after four requests; lost ACKs of a working
    /// path do not.
    #[test]
    fn silence_ends_it() {
        let mut g = Guard::new(AckControlMode::Safe);
        (0..3).for_each(|_| g.on_unanswered(false));
        assert!(!g.forbids());
        g.on_unanswered(false);
        assert!(g.forbids());
        let mut g = Guard::new(AckControlMode::Safe);
        g.on_answered();
        (0..15).for_each(|_| g.on_unanswered(false));
        assert!(!g.forbids());
        g.on_answered();
        (0..16).for_each(|_| g.on_unanswered(false));
        assert!(g.forbids());
    }

    /// Breaks: a box that clears the bit costs `flag` the bit, not the answers.
    #[test]
    fn the_option_comes_after_the_bit() {
        let mut g = Guard::new(AckControlMode::Flag);
        (0..20).for_each(|_| g.on_unanswered(true)); // most of them were under way
        assert_eq!((g.adapt(RequestForm::Flag), g.forbids()), (RequestForm::Safe, false));
        (0..4).for_each(|_| g.on_unanswered(false));
        assert!(g.forbids());
    }

    /// Breaks: a black hole for segments without ACK, found in use: lost twice, with no answer between.
    #[test]
    fn two_strikes() {
        let mut g = Guard::new(AckControlMode::Classic);
        assert!(!g.is_proven());
        g.on_answered();
        assert!(g.is_proven());
        let at = |s| Instant::ZERO + Span::from_secs(s);
        g.on_bare_lost(at(2), at(1));
        g.on_answered();
        g.on_bare_lost(at(4), at(3));
        g.on_bare_lost(at(5), at(3));
        assert!(!g.forbids(), "two of one window");
        g.on_bare_lost(at(7), at(6));
        assert!(g.forbids());
    }
}
