//! Is this loss congestion? Bit errors lose the same part of the segments whatever is sent; a full queue and a policer lose
//! what is too much. So the usual loss is learned, more than usual cuts the window, and what is still lost after the
//! cut is the usual.

/// Samples of fewer segments are put together.
const FEW: f64 = 20.0;
/// Standard deviations above the usual that are chance.
const DEVIATIONS: f64 = 3.0;
/// What the usual may be exceeded by besides.
const MARGIN: f64 = 0.01;
/// Round trips after a cut whose losses are still those of before.
const LAG: u32 = 2;
/// The usual follows what is lost: up slowly, down fast.
const UP: f64 = 1.0 / 16.0;
const DOWN: f64 = 1.0 / 4.0;
/// More than this is congestion, however usual it is.
const TOO_MUCH: f64 = 0.3;

/// Beside others that fill the queue, so many times the usual loss is no chance.
const NO_CHANCE: f64 = 2.0;

/// What a round trip's losses mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossVerdict {
    /// No more than usual.
    Usual,
    /// More than usual: the window has to come down.
    Congestion,
    /// After it came down as much is lost as before: that is usual.
    Learned,
    /// After it came down less is lost: it was too much.
    Confirmed,
}

/// After a cut, losses of this part of those before are those before.
const PERSISTS: f64 = 0.5;

/// What the path usually loses.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossJudge {
    usual: f64,
    lost: f64,
    total: f64,
    /// After a cut: round trips until its effect is seen.
    looking: Option<u32>,
    /// What was lost before it.
    before: f64,
}

impl LossJudge {
    /// This many of so many segments were lost at a rate that cannot have been too much: that is the usual. False: it is
    /// too much all the same.
    pub fn learn(&mut self, lost: f64, delivered: f64) -> bool {
        let part = lost / (lost + delivered).max(1.0);
        if part > TOO_MUCH {
            return false;
        }
        self.usual = part;
        true
    }

    /// A round trip's losses. `empty`: there was no queue, so that what was lost was not too much.
    pub fn judge(&mut self, lost: f64, delivered: f64, empty: bool) -> LossVerdict {
        self.lost += lost;
        self.total += lost + delivered;
        if self.total < FEW {
            return LossVerdict::Usual;
        }
        let (part, n) = (self.lost / self.total, self.total);
        (self.lost, self.total) = (0.0, 0.0);
        match self.looking {
            Some(0) => {
                self.looking = None;
                if empty && part <= TOO_MUCH {
                    self.usual = part;
                    let persists = part >= PERSISTS * self.before;
                    return if persists { LossVerdict::Learned } else { LossVerdict::Confirmed };
                }
            }
            Some(rounds) => {
                self.looking = Some(rounds - 1);
                return LossVerdict::Usual;
            }
            None => {}
        }
        // One more loss than none, for a path that has shown none.
        let p = self.usual.max(0.25 / n);
        let chance = DEVIATIONS * libm::sqrt(p * (1.0 - p) / n);
        if part > (self.usual + chance + MARGIN).min(TOO_MUCH) {
            self.looking = Some(LAG);
            self.before = part;
            return LossVerdict::Congestion;
        }
        if part <= self.usual {
            self.usual += (part - self.usual) * DOWN;
        } else if empty {
            self.usual += (part - self.usual) * UP;
        }
        LossVerdict::Usual
    }

    /// The window came down, and what that has changed is not known yet.
    pub fn is_looking(&self) -> bool {
        self.looking.is_some()
    }

    /// The same, where only a reason to come down counts.
    pub fn is_congestion(&mut self, lost: f64, delivered: f64, empty: bool) -> bool {
        self.judge(lost, delivered, empty) == LossVerdict::Congestion
    }

    /// A round trip's losses beside others that keep the queue filled. A loss then means that it was full, as it does for them:
    /// who waits for a certain proof leaves them nothing. True: the window has to come down. What the next round trip loses was sent
    /// before that.
    pub fn is_overflow(&mut self, lost: f64, delivered: f64) -> bool {
        (self.lost, self.total) = (0.0, 0.0);
        if let Some(rounds) = self.looking {
            self.looking = rounds.checked_sub(1);
            return false;
        }
        let overflow = lost >= 1.0 && lost > NO_CHANCE * self.usual * (lost + delivered);
        self.looking = overflow.then_some(0);
        overflow
    }
}
