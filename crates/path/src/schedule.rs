//! Rate and delay of a link over time, as a list of steps that may repeat.

use farpace_units::{Instant, Rate, Span};
use thiserror::Error;

/// Rate and delay from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// From the start of the run, or of each period.
    pub at: Span,
    /// Rate of frames whose transmission begins; none is infinitely fast.
    pub rate: Option<Rate>,
    /// Propagation time of frames whose transmission ends.
    pub delay: Span,
}

/// Why a schedule is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// There is no step at 0 s.
    #[error("the first step must be at 0 s")]
    NoStart,
    /// A step at or before the previous one.
    #[error("the step at {0} is not later than the one before it")]
    OutOfOrder(Span),
    /// A step that the period ends before.
    #[error("the step at {0} is not within the period")]
    AfterPeriod(Span),
    /// A rate of 0: no packet would ever arrive.
    #[error("the rate of the step at {0} must be above 0 bit/s")]
    ZeroRate(Span),
    /// More than [`Schedule::MAX`].
    #[error("{0} steps are more than the {max} allowed", max = Schedule::MAX)]
    TooMany(usize),
}

/// Steps in order of time, and the present one.
#[derive(Clone, Debug)]
pub struct Schedule {
    steps: Vec<RateStep>,
    period: Option<Span>,
    /// Start of the present period.
    start: Instant,
    /// The present step.
    now: usize,
}

impl Schedule {
    /// Most steps of one schedule.
    pub const MAX: usize = 100_000;

    /// The first of `steps` is at 0; with a `period` they repeat.
    ///
    /// # Errors
    /// Steps that are not in the order of time, begin later than 0 s or after the period, a rate of zero, or
    /// too many.
    pub fn new(steps: Vec<RateStep>, period: Option<Span>) -> Result<Self, ScheduleError> {
        if steps.len() > Self::MAX {
            return Err(ScheduleError::TooMany(steps.len()));
        }
        if steps.first().is_none_or(|first| !first.at.is_zero()) {
            return Err(ScheduleError::NoStart);
        }
        if let Some((_, late)) = steps.iter().zip(steps.iter().skip(1)).find(|(a, b)| b.at <= a.at) {
            return Err(ScheduleError::OutOfOrder(late.at));
        }
        if let Some(beyond) = steps.iter().find(|step| period.is_some_and(|period| step.at >= period)) {
            return Err(ScheduleError::AfterPeriod(beyond.at));
        }
        if let Some(zero) = steps.iter().find(|step| step.rate.is_some_and(|rate| rate.bits_per_sec() == 0)) {
            return Err(ScheduleError::ZeroRate(zero.at));
        }
        Ok(Schedule { steps, period, start: Instant::ZERO, now: 0 })
    }

    /// One step that holds forever.
    pub fn constant(rate: Option<Rate>, delay: Span) -> Result<Self, ScheduleError> {
        Schedule::new(vec![RateStep { at: Span::ZERO, rate, delay }], None)
    }

    /// Rate and delay at `now`. Time must not go back.
    pub fn at(&mut self, now: Instant) -> RateStep {
        if let Some(period) = self.period {
            let into = now.since(self.start);
            if into >= period {
                let whole = into.as_nanos() / period.as_nanos().max(1);
                self.start += Span::from_nanos(period.as_nanos().saturating_mul(whole));
                self.now = 0;
            }
        }
        let into = now.since(self.start);
        while self.steps.get(self.now + 1).is_some_and(|next| next.at <= into) {
            self.now += 1;
        }
        self.steps.get(self.now).copied().unwrap_or(RateStep {
            at: Span::ZERO,
            rate: None,
            delay: Span::ZERO,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(ms: u64, mbit: u64) -> RateStep {
        RateStep {
            at: Span::from_millis(ms),
            rate: Some(Rate::from_mbit(mbit)),
            delay: Span::from_millis(mbit),
        }
    }

    /// Breaks: schedules with unreachable or unordered steps, or with a rate of 0, are accepted.
    #[test]
    fn impossible_schedules_are_refused() {
        let new = |steps: &[RateStep], period: Option<u64>| {
            Schedule::new(steps.to_vec(), period.map(Span::from_millis)).map(drop)
        };
        let ms = Span::from_millis;
        assert_eq!(new(&[], None), Err(ScheduleError::NoStart));
        assert_eq!(new(&[step(1, 1)], None), Err(ScheduleError::NoStart));
        assert_eq!(new(&[step(0, 1), step(0, 2)], None), Err(ScheduleError::OutOfOrder(ms(0))));
        assert_eq!(new(&[step(0, 1), step(9, 2)], Some(9)), Err(ScheduleError::AfterPeriod(ms(9))));
        assert_eq!(new(&[step(0, 0)], None), Err(ScheduleError::ZeroRate(ms(0))));
        assert_eq!(new(&[step(0, 1), step(8, 2)], Some(9)), Ok(()));
        assert_eq!(new(&vec![step(0, 1); 100_001], None), Err(ScheduleError::TooMany(100_001)));
    }

    proptest! {
        /// Breaks: a step begins at the wrong nanosecond, in the first period or in a later one. The oracle
        /// searches all steps.
        #[test]
        fn the_present_step_is_found(
            gaps in prop::collection::vec(1u64..50, 0..6), rest in 1u64..50, repeats: bool,
            looks in prop::collection::vec(0u64..200_000_000, 1..40),
        ) {
            let mut steps = vec![step(0, 1)];
            for (n, gap) in gaps.iter().enumerate() {
                let last = steps.last().map_or(0, |s| s.at.as_millis());
                steps.push(step(last + gap, n as u64 + 2));
            }
            let period = Span::from_millis(steps.last().map_or(0, |s| s.at.as_millis()) + rest);
            let mut schedule = Schedule::new(steps.clone(), repeats.then_some(period)).unwrap();
            let mut now = Instant::ZERO;
            for gap in looks {
                now += Span::from_nanos(gap);
                let into = if repeats { now.as_nanos() % period.as_nanos() } else { now.as_nanos() };
                let present = steps.iter().rev().find(|s| s.at.as_nanos() <= into);
                prop_assert_eq!(Some(&schedule.at(now)), present);
            }
        }
    }
}
