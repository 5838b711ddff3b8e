//! Whether asking pays, found out by leaving it now and then (`ack_requests = "auto"`).
//!
//! A segment that would have asked, and does not, shows how long the peer holds an ACK back here. If that is
//! nothing, asking is the exception: one in so many segments still asks, so that a change is seen.

use farpace_units::Span;

/// Candidates between two trials: at first, and at most (each trial doubles them, until one tells something
/// new).
const FIRST: u32 = 8;
const MAX: u32 = 256;
/// Less than this is not held back, but the network's and the machine's unrest.
const NOTHING: Span = Span::from_millis(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    pays: bool,
    distance: u32,
    /// Candidates until the next trial.
    left: u32,
    /// Smoothed round trip of segments that asked.
    undelayed: Option<Span>,
}

impl Default for Worth {
    fn default() -> Self {
        Worth { pays: true, distance: FIRST, left: FIRST, undelayed: None }
    }
}

impl Worth {
    /// A segment may ask; `auto`: only the automatic rule wants it.
    pub fn may_ask(&self, auto: bool) -> bool {
        let trial = self.left == 0;
        !auto || trial != self.pays
    }

    /// The automatic rule had a segment that asks, or, on trial, does not.
    pub fn on_candidate(&mut self, asks: bool) {
        if asks == self.pays {
            self.left = self.left.saturating_sub(1);
        } else {
            self.left = self.distance;
            self.distance = (self.distance * 2).min(MAX);
        }
    }

    /// A segment that asked was answered.
    pub fn on_answered(&mut self, rtt: Span) {
        self.undelayed = Some(self.undelayed.map_or(rtt, |u| (u * 7 + rtt) / 8));
    }

    /// A segment that did not ask was acknowledged.
    pub fn on_silent(&mut self, rtt: Span) {
        let Some(undelayed) = self.undelayed else { return };
        let pays = rtt > undelayed + (undelayed / 8).max(NOTHING);
        if pays != self.pays {
            *self = Worth { pays, distance: FIRST, left: FIRST, ..*self };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `n` candidates to a peer that holds back for `held` where it is not asked; returns how many
    /// asked.
    fn run(worth: &mut Worth, n: u32, held: u64) -> u32 {
        let mut asked = 0;
        for _ in 0..n {
            let asks = worth.may_ask(true);
            worth.on_candidate(asks);
            if asks {
                asked += 1;
                worth.on_answered(Span::from_millis(50));
            } else {
                worth.on_silent(Span::from_millis(50 + held));
            }
        }
        asked
    }

    /// Breaks: what `auto` costs and gains: it asks nearly always where ACKs are held back, nearly never
    /// where they are not, and notices when that changes.
    #[test]
    fn asks_as_long_as_it_pays() {
        let mut worth = Worth::default();
        assert_eq!(run(&mut worth, 1000, 40), 992, "a trial after 8, 8, 16, 32, ... candidates");
        let after_change = run(&mut worth, 1000, 0);
        assert!(after_change < 300, "{after_change}");
        assert!(run(&mut worth, 1000, 0) < 10);
        assert!(run(&mut worth, 2000, 40) > 1500);
    }

    /// Breaks: a rule that the user has set is no question of worth.
    #[test]
    fn fixed_rules_ask_always() {
        let mut worth = Worth::default();
        run(&mut worth, 100, 0);
        assert!(worth.may_ask(false));
    }
}
