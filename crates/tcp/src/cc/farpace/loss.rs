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

/// What the path usually loses.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossJudge {
    usual: f64,
    lost: f64,
    total: f64,
    /// After a cut: round trips until its effect is seen.
    looking: Option<u32>,
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

    /// A round trip's losses. True: the window has to come down. `empty`: there was no queue, so that what was lost was
    /// not too much.
    pub fn is_congestion(&mut self, lost: f64, delivered: f64, empty: bool) -> bool {
        self.lost += lost;
        self.total += lost + delivered;
        if self.total < FEW {
            return false;
        }
        let (part, n) = (self.lost / self.total, self.total);
        (self.lost, self.total) = (0.0, 0.0);
        match self.looking {
            Some(0) => {
                self.looking = None;
                if empty && part <= TOO_MUCH {
                    self.usual = part;
                    return false;
                }
            }
            Some(rounds) => {
                self.looking = Some(rounds - 1);
                return false;
            }
            None => {}
        }
        // One more loss than none, for a path that has shown none.
        let p = self.usual.max(0.25 / n);
        let chance = DEVIATIONS * libm::sqrt(p * (1.0 - p) / n);
        if part > (self.usual + chance + MARGIN).min(TOO_MUCH) {
            self.looking = Some(LAG);
            return true;
        }
        if part <= self.usual {
            self.usual += (part - self.usual) * DOWN;
        } else if empty {
            self.usual += (part - self.usual) * UP;
        }
        false
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
