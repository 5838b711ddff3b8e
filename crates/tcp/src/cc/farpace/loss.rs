//! Is this loss congestion? A full queue and a policer deliver at one rate, and lose what is sent beyond
//! it, in every round trip. What a path loses depends on no rate, and may come in bursts: then many round
//! trips lose nothing, and single ones much.
//!
//! So three things are learned of the path: the part that it usually loses, and how much the number of
//! losses varies ([`LossStatistics`]). More than both explain is a suspicion, and a suspicion is tested:
//!
//! * *Was more sent than came through?* If the loss is what was sent beyond the delivery rate, the window
//!   falls to that rate. Where there is no queue, that happens twice in a row: a policer.
//! * If not, the window stays. A burst is over in the next round trips, and is learned. Where a short queue
//!   was too long the window comes down all the same, and nothing is learned.
//! * If the loss goes on at the same window, the window falls to 0.7: the path goes on to lose as much,
//!   which is learned, and a policer loses next to nothing. Where a short queue shows, that one has
//!   overflowed, and the window does not fall so far.
//!
//! Chance can make that look like a policer, too. So losses at windows that it let pass are counted on
//! ([`LossJudge::is_no_policer`]).

/// Samples of fewer segments are put together.
const MIN_SAMPLE: f64 = 20.0;
/// Standard deviations above the usual that are chance.
const DEVIATIONS: f64 = 3.0;
/// What the usual may be exceeded by besides.
const MARGIN: f64 = 0.01;
/// Round trips after a change of the window whose losses are still those of before.
const LAG: u32 = 2;
/// The part that is usually lost is a mean over so many samples; of all, while there are fewer.
const MAX_SAMPLES: f64 = 32.0;
/// What is known of how losses vary is a mean over so many samples.
const MEMORY: f64 = 1.0 / 32.0;
/// The same of what seems to exceed the delivery rate.
const EXCESS_MEMORY: f64 = 1.0 / 8.0;
/// Below this sum of losses nothing is forgotten.
const MIN_SINGLES: f64 = 1.0;
/// The variance is at most so many times that of single losses, whatever was seen.
const MAX_DISPERSION: f64 = 64.0;
/// More than this is congestion, however usual it is.
const MAX_USUAL: f64 = 0.3;
/// Losses of this part of those before are those before.
const MIN_PERSISTING: f64 = 0.5;
/// Losses of more than this part of those before have another cause.
const MAX_PERSISTING: f64 = 2.0;
/// What was sent beyond the delivery rate explains a loss if it is this part of it at least.
const MIN_EXPLAINED_PART: f64 = 0.5;
/// Times in a row that a loss was what was sent beyond the delivery rate, where there was no queue, until
/// that is a policer.
const MIN_EXPLAINED: u32 = 2;
/// Fewer losses than these are no reason for a much lower window.
const MIN_LOSSES: f64 = 3.0;
/// Losses that a lower window must have been expected to have, in units of the dispersion, before it proves
/// anything ...
const MIN_EXPECTED: f64 = 12.0;
/// ... and round trips after which that is not awaited any longer.
const MAX_ROUNDS: u32 = 16;
/// A policer loses at most this part of what it lost before, at the lower window.
const MAX_LEFT: f64 = 0.25;

/// What a round trip's losses mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossVerdict {
    /// No more than usual.
    Usual,
    /// A loss is being tested: the window stays.
    Waits,
    /// More was sent than came through: the window has to come down to the delivery rate.
    Congestion,
    /// Much is lost at the same window, in round trip after round trip: the window has to come down far,
    /// for a test.
    Persistent,
    /// After it came down as much is lost as before: that is usual.
    Learned,
    /// After it came down next to nothing is lost, or it was too much again and again: a policer.
    Policed,
}

/// A round trip's losses, and what tells whose they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossSample {
    /// Segments found lost.
    pub lost: f64,
    /// Segments delivered.
    pub delivered: f64,
    /// There was no queue.
    pub empty: bool,
    /// There was none, or no more than this connection keeps there.
    pub short: bool,
    /// Segments wait in a short queue, whoever sent them.
    pub queued: bool,
    /// The part of what was sent that exceeded the delivery rate, if the window was in use.
    pub excess: f64,
    /// The window was in use.
    pub limited: bool,
}

/// How much a path loses, and how much that varies.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossStatistics {
    /// The part that is lost in the mean.
    usual: f64,
    /// Samples that it is a mean of.
    samples: f64,
    /// Segments that it was learned from.
    seen: f64,
    /// Decaying sums over samples: squares of the difference to the mean, and what these would be if losses
    /// came one by one.
    squares: f64,
    singles: f64,
}

impl LossStatistics {
    /// Variance of the number of losses, in that of losses that come one by one.
    fn dispersion(&self) -> f64 {
        if self.singles > 0.0 { (self.squares / self.singles).clamp(1.0, MAX_DISPERSION) } else { 1.0 }
    }

    /// The losses among `n` segments that chance makes, beyond the mean.
    fn chance(&self, n: f64) -> f64 {
        // One more loss than none, for a path that has shown none; and one in all that was seen, because few
        // segments show little.
        let p = self.usual.max(0.25 / n).max(if self.seen > 0.0 { 1.0 / self.seen } else { 0.0 }).min(1.0);
        DEVIATIONS * libm::sqrt(self.dispersion() * p * (1.0 - p) * n)
    }

    /// The same, for a path that loses nothing if it has shown nothing.
    fn chance_of_usual(&self, n: f64) -> f64 {
        DEVIATIONS * libm::sqrt(self.dispersion() * self.usual * (1.0 - self.usual) * n)
    }

    fn learn(&mut self, lost: f64, n: f64) {
        let part = lost / n;
        self.seen += n;
        self.samples = (self.samples + 1.0).min(MAX_SAMPLES);
        self.usual += (part - self.usual) / self.samples;
        if lost <= 0.0 && self.singles <= MIN_SINGLES {
            return; // where nothing is lost, what is known of losses is not forgotten
        }
        let difference = lost - self.usual * n;
        self.squares += (difference * difference - self.squares) * MEMORY;
        self.singles += (lost * (1.0 - part) - self.singles) * MEMORY;
    }
}

/// A test of a suspicion.
#[derive(Clone, Copy, Debug, Default)]
struct LossTest {
    /// Round trips whose losses are those of before.
    lag: u32,
    /// Round trips since then.
    rounds: u32,
    /// Losses, of so many segments, before the window came down.
    before: (f64, f64),
    /// Those of them that gave rise to the test. There were many of them, or there were no test.
    trigger: (f64, f64),
    /// The same after that.
    after: (f64, f64),
    stage: LossStage,
    /// The window came down in a short queue when the test began: that the loss has ended does not make it a
    /// burst.
    came_down: bool,
    /// A short queue has shown meanwhile: it is no policer.
    queued: bool,
}

/// What a test waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LossStage {
    /// The window is the same: is the loss over?
    #[default]
    Same,
    /// The window is what was delivered: is the loss over?
    Delivered,
    /// The window is far lower: is the loss over?
    Lower,
}

/// Losses since a policer was found, at windows that it let pass.
#[derive(Clone, Copy, Debug, Default)]
struct PolicerTest {
    /// The part that was lost before the window came down.
    part: f64,
    /// Round trips whose losses are those of a larger window.
    lag: u32,
    /// Round trips since then.
    rounds: u32,
    lost: f64,
    total: f64,
}

/// What the path usually loses, and what more than that means.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossJudge {
    statistics: LossStatistics,
    lost: f64,
    total: f64,
    /// The part that seems to exceed the delivery rate when no more than usual is lost: round trips that vary
    /// make one.
    usual_excess: f64,
    /// Losses beyond the usual in the last samples, and of how many segments.
    beyond: f64,
    among: f64,
    test: Option<LossTest>,
    policer: Option<PolicerTest>,
    /// Times in a row that a loss without a queue was what was sent beyond the delivery rate.
    explained: u32,
    /// Beside others the window has just come down.
    after_overflow: bool,
}

impl LossJudge {
    /// This many of so many segments were lost at a rate that cannot have been too much: that is the usual.
    /// False: it is too much all the same.
    pub fn learn(&mut self, lost: f64, delivered: f64) -> bool {
        let part = lost / (lost + delivered).max(1.0);
        if part > MAX_USUAL {
            return false;
        }
        // The first round trip that is judged takes its place: it may be a policer's after all.
        (self.statistics.usual, self.statistics.samples) = (part, 0.0);
        self.statistics.seen = lost + delivered;
        true
    }

    /// A round trip's losses.
    pub fn judge(&mut self, sample: &LossSample) -> LossVerdict {
        self.lost += sample.lost;
        self.total += sample.lost + sample.delivered;
        if self.total < MIN_SAMPLE {
            return if self.test.is_some() { LossVerdict::Waits } else { LossVerdict::Usual };
        }
        let (lost, n) = (self.lost, self.total);
        (self.lost, self.total) = (0.0, 0.0);
        if let Some(test) = self.test.take() {
            return self.go_on(test, lost, n, sample);
        }
        // What exceeds the usual adds up: chance does not, so a small excess shows in some round trips.
        self.beyond += lost - (self.statistics.usual + MARGIN) * n;
        self.among += n;
        if self.beyond <= 0.0 {
            (self.beyond, self.among) = (0.0, 0.0);
        }
        if self.beyond <= self.statistics.chance(self.among.max(1.0)) && lost <= MAX_USUAL * n {
            if sample.limited && lost <= self.statistics.usual * n {
                self.usual_excess += (sample.excess - self.usual_excess) * EXCESS_MEMORY;
            }
            if sample.empty && !sample.queued || lost <= self.statistics.usual * n {
                self.statistics.learn(lost, n);
            }
            return LossVerdict::Usual;
        }
        (self.beyond, self.among) = (0.0, 0.0);
        let explained = (sample.excess - self.usual_excess) * n >= MIN_EXPLAINED_PART * lost;
        let stage = if explained { LossStage::Delivered } else { LossStage::Same };
        self.explained = if explained && sample.empty && !sample.queued { self.explained + 1 } else { 0 };
        if self.explained >= MIN_EXPLAINED && lost >= MIN_LOSSES {
            return self.lower((lost, n));
        }
        let trigger = (lost, n);
        self.test = Some(LossTest {
            lag: LAG,
            before: trigger,
            trigger,
            stage,
            came_down: !sample.short && sample.queued,
            queued: sample.queued,
            ..LossTest::default()
        });
        if explained || !sample.short { LossVerdict::Congestion } else { LossVerdict::Waits }
    }

    /// A sample while a test is under way.
    fn go_on(&mut self, mut test: LossTest, lost: f64, n: f64, sample: &LossSample) -> LossVerdict {
        test.queued |= sample.queued;
        if test.lag > 0 {
            test.lag -= 1;
            test.before = (test.before.0 + lost, test.before.1 + n);
            self.test = Some(test);
            return if test.stage == LossStage::Delivered { LossVerdict::Usual } else { LossVerdict::Waits };
        }
        test.rounds += 1;
        test.after = (test.after.0 + lost, test.after.1 + n);
        let expected = test.before.0 / test.before.1 * test.after.1;
        let left = test.after.0 / expected.max(f64::MIN_POSITIVE);
        if test.stage != LossStage::Lower {
            if left < MIN_PERSISTING || test.after.0 <= self.statistics.usual * test.after.1 {
                if test.stage == LossStage::Same {
                    self.explained = 0;
                    if !test.came_down {
                        // It was a burst.
                        self.statistics.learn(test.before.0, test.before.1);
                        self.statistics.learn(test.after.0, test.after.1);
                    }
                }
                return LossVerdict::Usual;
            }
            if !sample.short && test.stage == LossStage::Same {
                return LossVerdict::Congestion;
            }
            if !sample.empty || test.queued || test.after.0 < MIN_LOSSES {
                return LossVerdict::Usual;
            }
            // A sample that was chosen for its losses says too much of what the path loses.
            let LossTest { before, trigger, after, .. } = test;
            return self.lower((before.0 - trigger.0 + after.0, before.1 - trigger.1 + after.1));
        }
        // Bursts need more to be told from luck, but nobody is lucky for so long.
        let is_long = test.rounds >= MAX_ROUNDS;
        let dispersion = if is_long { 1.0 } else { self.statistics.dispersion() };
        let is_enough = expected >= MIN_EXPECTED * dispersion;
        if !is_enough && !is_long && left < MIN_PERSISTING {
            self.test = Some(test);
            return LossVerdict::Waits;
        }
        let part = test.after.0 / test.after.1;
        if is_enough && left <= MAX_LEFT || part > MAX_USUAL {
            // What the lower window loses is the path's.
            if part <= MAX_USUAL {
                self.statistics.learn(test.after.0, test.after.1);
                self.statistics.usual = part;
            }
            let before = test.before.0 / test.before.1;
            self.policer = Some(PolicerTest { part: before, lag: LAG, ..PolicerTest::default() });
            // The next time it takes less to see it.
            self.explained = MIN_EXPLAINED - 1;
            return LossVerdict::Policed;
        }
        self.statistics.learn(test.before.0, test.before.1);
        self.statistics.learn(test.after.0, test.after.1);
        if left >= MIN_PERSISTING {
            self.statistics.usual = part;
        }
        LossVerdict::Learned
    }

    /// The window comes down far, to see whether that changes the loss.
    fn lower(&mut self, before: (f64, f64)) -> LossVerdict {
        self.explained = 0;
        self.test = Some(LossTest { lag: LAG, before, stage: LossStage::Lower, ..LossTest::default() });
        LossVerdict::Persistent
    }

    /// Something else has changed the window: what a test would show says nothing.
    pub fn stop_test(&mut self) {
        self.test = None;
    }

    /// A round trip's losses where a policer was found. `passes`: its window is one that the policer let
    /// pass. True: about as much is lost there as before it was found, so it was chance, and the path loses
    /// that.
    pub fn is_no_policer(&mut self, passes: bool, lost: f64, delivered: f64) -> bool {
        let Some(test) = &mut self.policer else { return false };
        if !passes || test.lag > 0 {
            test.lag = if passes { test.lag - 1 } else { LAG };
            return false;
        }
        test.lost += lost;
        test.total += lost + delivered;
        test.rounds += 1;
        let expected = test.part * test.total;
        // Others that come to a policer make it lose much for a few round trips.
        if expected < MIN_EXPECTED || test.rounds < MAX_ROUNDS {
            return false;
        }
        if !(MIN_PERSISTING..MAX_PERSISTING).contains(&(test.lost / expected)) {
            (test.rounds, test.lost, test.total) = (test.rounds / 2, test.lost / 2.0, test.total / 2.0);
            return false;
        }
        let (lost, n) = (test.lost, test.total);
        self.policer = None;
        self.explained = 0;
        self.statistics.learn(lost, n);
        self.statistics.usual = lost / n;
        true
    }

    /// The same, where only a reason to come down counts.
    pub fn is_congestion(&mut self, sample: &LossSample) -> bool {
        matches!(self.judge(sample), LossVerdict::Congestion | LossVerdict::Persistent | LossVerdict::Policed)
    }

    /// A round trip's losses beside others that keep the queue filled, or at a policer. A loss then means
    /// that it was full, as it does for them: who waits for a certain proof leaves them nothing. `high`: the
    /// queue was long, so that no loss of that round trip is usual. Overflows before others were known may
    /// have been learned as the path's. True: the window has to come down. What the next round trip loses was
    /// sent before that.
    pub fn is_overflow(&mut self, lost: f64, delivered: f64, high: bool) -> bool {
        (self.lost, self.total, self.test) = (0.0, 0.0, None);
        if std::mem::take(&mut self.after_overflow) {
            return false;
        }
        let n = lost + delivered;
        let usual = self.statistics.usual * n + self.statistics.chance_of_usual(n);
        self.after_overflow = lost >= 1.0 && (high || lost > usual.min(MAX_USUAL * n));
        self.after_overflow
    }
}
