//! Which segments ask: the thesis's policies (§5.4), those of today, and any of them together.

use crate::config::{RequestRule, RequestRules};
use farpace_units::Packets;

/// What is special about the next new segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Its round trip will be timed.
    pub timed: bool,
    /// Nothing is known to be missing.
    pub calm: bool,
    /// The connection is in slow start.
    pub slow_start: bool,
    /// After it the window is full.
    pub fills_window: bool,
    /// There is no data after it.
    pub last: bool,
    /// Nothing is outstanding.
    pub first: bool,
    /// Congestion control measures the empty path.
    pub probing: bool,
    /// It carries a FIN.
    pub fin: bool,
}

/// The rules, and the count that one of them needs.
#[derive(Clone, Debug)]
pub(super) struct RequestPolicy {
    when: RequestRules,
    every: Option<u32>,
    count: u32,
}

impl RequestPolicy {
    pub fn new(when: RequestRules, every: Option<Packets>) -> Self {
        RequestPolicy { when, every: every.map(|n| n.get().max(1)), count: 0 }
    }

    /// A segment asks if any of the rules says so.
    pub fn wants(&self, m: &Moment) -> bool {
        self.fixed(m) || self.auto(m)
    }

    /// Only the automatic rule says so.
    pub fn is_auto(&self, m: &Moment) -> bool {
        self.auto(m) && !self.fixed(m)
    }

    /// New data has left.
    pub fn on_sent(&mut self) {
        self.count = self.count.wrapping_add(1);
    }

    fn fixed(&self, m: &Moment) -> bool {
        let has = |when| self.when.has(when);
        (has(RequestRule::Rtt) && m.timed)
            || (has(RequestRule::SlowStart) && m.slow_start)
            || (has(RequestRule::WindowEnd) && m.fills_window)
            || (has(RequestRule::FlightEnd) && m.last)
            || (has(RequestRule::AfterIdle) && m.first)
            || (has(RequestRule::ProbeRtt) && m.probing)
            || has(RequestRule::Everything)
            || self.every.is_some_and(|n| self.count.is_multiple_of(n))
    }

    /// Where a held-back ACK costs something: nothing else follows that would bring it out.
    fn auto(&self, m: &Moment) -> bool {
        let waits = m.timed || m.last || m.first || (m.slow_start && m.fills_window) || m.probing;
        self.when.has(RequestRule::Auto) && waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(when: &[RequestRule], every: Option<u32>, moments: &[Moment]) -> Vec<bool> {
        let mut policy = RequestPolicy::new(when.iter().copied().collect(), every.map(Packets::new));
        let mut ask = |m: &Moment| {
            let wants = policy.wants(m);
            policy.on_sent();
            wants
        };
        moments.iter().map(&mut ask).collect()
    }

    /// Breaks: the thesis's policies 1 to 6 (§5.4) and the fourth of Table 5.2, and that they add up.
    #[test]
    fn published_policies() {
        use RequestRule as A;
        let plain = Moment::default();
        let timed = Moment { timed: true, ..plain };
        let starting = Moment { slow_start: true, ..plain };
        let full = Moment { fills_window: true, ..plain };
        let all = [timed, plain, plain, starting, plain, full, plain];
        let row = |text: &str| text.chars().map(|c| c == 'D').collect::<Vec<_>>();
        let table = [
            (&[][..], None, "......."),
            (&[A::Rtt], None, "D......"),
            (&[A::Rtt], Some(2), "D.D.D.D"),
            (&[A::Rtt], Some(3), "D..D..D"),
            (&[A::Rtt], Some(4), "D...D.."),
            (&[A::Rtt, A::WindowEnd], None, "D....D."),
            (&[A::Rtt, A::SlowStart], None, "D..D..."),
            (&[A::Everything], None, "DDDDDDD"),
        ];
        for (when, every, expected) in table {
            assert_eq!(asks(when, every, &all), row(expected), "{when:?} {every:?}");
        }
    }

    /// Breaks: `auto` asks where the sender would have to wait, and nowhere else.
    #[test]
    fn auto_asks_where_the_sender_waits() {
        let plain = Moment::default();
        let table = [
            (plain, false),
            (Moment { slow_start: true, ..plain }, false),
            (Moment { fills_window: true, ..plain }, false),
            (Moment { slow_start: true, fills_window: true, ..plain }, true),
            (Moment { last: true, ..plain }, true),
            (Moment { first: true, ..plain }, true),
            (Moment { timed: true, ..plain }, true),
            (Moment { probing: true, ..plain }, true),
        ];
        for (moment, expected) in table {
            assert_eq!(asks(&[RequestRule::Auto], None, &[moment]), [expected], "{moment:?}");
        }
    }
}
