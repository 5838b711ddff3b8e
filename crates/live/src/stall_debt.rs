//! Time that a pacer has lost in stalls, and makes up for at a bounded excess over its rate.

use farpace_units::Span;

/// While time is owed, the clock of the elements runs faster by one part in this many: 2 %.
const EXCESS_PART: u64 = 50;
/// What is owed at most. It is repaid within 50 s. Longer stalls, such as a suspended machine, are lost.
pub const MAX_STALL_DEBT: Span = Span::from_secs(1);

/// The account of stalls. Times are those of the machine since some origin.
///
/// In any interval `t` of the machine's time the clock of the elements advances by at most `t * 1.02`, so a
/// class exceeds its rate by at most 2 %. Over the life of the account it never advances by more than `t`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StallDebt {
    /// Owed at `since`.
    owed: Span,
    since: Span,
    /// Repaid until `since`.
    repaid: Span,
}

impl StallDebt {
    /// Adds a stall of `by` that was noticed at `now`.
    pub(crate) fn add(&mut self, by: Span, now: Span) {
        let repaid = self.repaid_since(now);
        self.repaid += repaid;
        self.owed = (self.owed - repaid + by).min(MAX_STALL_DEBT);
        self.since = now;
    }
    /// Repaid in total until `now`.
    pub(crate) fn repaid(&self, now: Span) -> Span {
        self.repaid + self.repaid_since(now)
    }
    /// Still owed at `now`.
    pub(crate) fn owed(&self, now: Span) -> Span {
        self.owed - self.repaid_since(now)
    }
    /// The machine's time until the clock of the elements has advanced by `time` from `now`.
    pub(crate) fn machine_time(&self, time: Span, now: Span) -> Span {
        let shorter = time / (EXCESS_PART + 1);
        time - shorter.min(self.owed(now))
    }
    fn repaid_since(&self, now: Span) -> Span {
        ((now - self.since) / EXCESS_PART).min(self.owed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    /// Breaks: a stall is not made up for, at more than 2 % over the rate, or twice.
    #[test]
    fn a_stall_is_repaid_once() {
        let mut debt = StallDebt::default();
        debt.add(MS(10), MS(1_000));
        assert_eq!((debt.repaid(MS(1_000)), debt.owed(MS(1_000))), (Span::ZERO, MS(10)));
        assert_eq!((debt.repaid(MS(1_250)), debt.owed(MS(1_250))), (MS(5), MS(5)));
        debt.add(MS(5), MS(1_250));
        assert_eq!((debt.repaid(MS(9_000)), debt.owed(MS(9_000))), (MS(15), Span::ZERO));
        debt.add(Span::from_secs(60), MS(9_000));
        assert_eq!(debt.owed(MS(9_000)), MAX_STALL_DEBT);
    }

    proptest! {
        /// Breaks: the clock of the elements runs backwards, more than 2 % too fast, or ahead of the
        /// machine's.
        #[test]
        fn the_excess_is_bounded(steps in proptest::collection::vec((0u64..3_000_000_000, 0u64..1_500_000_000), 1..50)) {
            let (mut debt, mut now, mut stalled) = (StallDebt::default(), Span::ZERO, Span::ZERO);
            for (passed, stall) in steps {
                let before = debt.repaid(now);
                let left = debt.machine_time(Span::from_nanos(passed), now);
                now += Span::from_nanos(passed);
                let repaid = debt.repaid(now) - before;
                prop_assert!(repaid.as_nanos() <= passed / EXCESS_PART + 1);
                prop_assert!(left.as_nanos() <= passed && left.as_nanos() >= passed - passed / EXCESS_PART);
                debt.add(Span::from_nanos(stall), now);
                stalled += Span::from_nanos(stall);
                prop_assert!(debt.repaid(now) + debt.owed(now) <= stalled);
                prop_assert!(debt.owed(now) <= MAX_STALL_DEBT);
            }
        }

        /// Breaks: a driver sleeps beyond the deadline of an element, or wakes long before it.
        #[test]
        fn the_time_to_sleep_ends_at_the_deadline(owed in 0u64..1_000_000_000, time in 0u64..4_000_000_000) {
            let mut debt = StallDebt::default();
            debt.add(Span::from_nanos(owed), Span::ZERO);
            let sleep = debt.machine_time(Span::from_nanos(time), Span::ZERO);
            let advanced = sleep + debt.repaid(sleep);
            prop_assert!(advanced.as_nanos().abs_diff(time) <= 1 + time / 1_000_000_000, "{advanced:?}");
        }
    }
}
