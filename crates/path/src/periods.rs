//! Periods of time in their order, as elements look them up.

use farpace_units::Instant;
use std::ops::Range;
use thiserror::Error;

/// Why a list of periods is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeriodError {
    /// An end at or before its beginning, or a beginning before the end of the previous period.
    #[error("the period from {from} to {to} is empty, or begins before the one before it is over")]
    OutOfOrder {
        /// Where it begins.
        from: Instant,
        /// Where it ends.
        to: Instant,
    },
    /// More than [`Periods::MAX`].
    #[error("{0} periods are more than the {max} allowed", max = Periods::MAX)]
    TooMany(usize),
}

/// Periods in the order of time, without overlap: each from its start up to but not including its end.
#[derive(Clone, Debug, Default)]
pub struct Periods {
    all: Vec<Range<Instant>>,
    /// So many of them are over.
    over: usize,
}

impl Periods {
    /// Most periods of a list.
    pub const MAX: usize = 100_000;

    /// Takes them in the order of time.
    ///
    /// # Errors
    /// Ranges that are empty, overlap or are out of order, or too many of them.
    pub fn new(all: Vec<Range<Instant>>) -> Result<Self, PeriodError> {
        if all.len() > Self::MAX {
            return Err(PeriodError::TooMany(all.len()));
        }
        let mut end = Instant::ZERO;
        for period in &all {
            if period.is_empty() || period.start < end {
                return Err(PeriodError::OutOfOrder { from: period.start, to: period.end });
            }
            end = period.end;
        }
        Ok(Periods { all, over: 0 })
    }
    /// The end of the period that `now` is in; none between periods. Time must not go back.
    pub fn end_at(&mut self, now: Instant) -> Option<Instant> {
        while self.all.get(self.over).is_some_and(|period| period.end <= now) {
            self.over += 1;
        }
        self.all.get(self.over).filter(|period| period.contains(&now)).map(|period| period.end)
    }
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.all.len()
    }
    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Breaks: a period begins or ends at the wrong nanosecond.
    #[test]
    fn a_period_has_its_start_and_not_its_end() {
        let mut periods = Periods::new(vec![at(10)..at(20), at(20)..at(21), at(30)..at(40)]).unwrap();
        let ends = [9, 10, 19, 20, 21, 29, 30, 40].map(|ns| periods.end_at(at(ns)).map(Instant::as_nanos));
        assert_eq!(ends, [None, Some(20), Some(20), Some(21), None, None, Some(40), None]);
    }

    /// Breaks: periods out of order are accepted, and some of them never happen.
    #[test]
    fn unordered_periods_are_refused() {
        for all in [vec![at(1)..at(1)], vec![at(5)..at(9), at(8)..at(10)], vec![at(5)..at(9), at(1)..at(2)]] {
            assert!(matches!(Periods::new(all), Err(PeriodError::OutOfOrder { .. })));
        }
        assert_eq!(Periods::new(vec![at(1)..at(2); 100_001]).map(drop), Err(PeriodError::TooMany(100_001)));
    }
}
