//! A parameter sweep over what the paper leaves open.

use super::NicsPaper;
use super::cases::{FrameCosts, IDLE, NicsCase, NicsRunKind, OBSERVED, RATIOS};
use crate::experiment::Measured;
use farpace_report::{Table, cells};

/// An assumption: its name, costs of frames with and without an observer, and settings: keys and their value,
/// in which S, S+1 and S+2 stand for numbers.
struct CostAssumption(&'static str, [FrameCosts; 2], &'static [(&'static [&'static str], &'static str)]);

const COSTS: [FrameCosts; 2] = [OBSERVED, IDLE];
const FREE: FrameCosts = FrameCosts { send: 0.0, ack: 0.0 };
const SLOW: [FrameCosts; 2] = [IDLE.with_observer(5.0), IDLE.with_observer(15.0)];

const PROFILE: &[&str] = &["flows.bulk.sender.profile", "flows.bulk.receiver.profile"];
const FLOOR: &[&str] = &["flows.bulk.sender.cwnd_floor"];
const HOLD: &[&str] = &["hosts.a.multi_nic.hold"];
const INTERRUPTS: [&str; 4] = [
    "links.b-wide.forward.interrupts",
    "links.a-wide.backward.interrupts",
    "links.b-narrow.forward.interrupts",
    "links.a-narrow.backward.interrupts",
];
const WIDE: &[&str] = INTERRUPTS.split_at(2).0;
const NARROW: &[&str] = INTERRUPTS.split_at(2).1;

const ASSUMPTIONS: [CostAssumption; 23] = [
    CostAssumption("as assumed", COSTS, &[]),
    CostAssumption("hosts take no time", [FREE; 2], &[]),
    CostAssumption("nobody observes", [IDLE; 2], &[]),
    CostAssumption("the observer takes 5 us a frame", [SLOW[0]; 2], &[]),
    CostAssumption("the observer takes 15 us a frame", [SLOW[1]; 2], &[]),
    CostAssumption("TCP without SACK", COSTS, &[(PROFILE, "newreno")]),
    CostAssumption("TCP of Linux 2.6.17: learns of reordering", COSTS, &[(PROFILE, "linux-2.6.17")]),
    CostAssumption("modern TCP", COSTS, &[(PROFILE, "modern")]),
    CostAssumption("no floor below the window", COSTS, &[(FLOOR, "1 packets")]),
    CostAssumption("a floor of S + 2", COSTS, &[(FLOOR, "S+2 packets")]),
    CostAssumption("receive window of 32 kB", COSTS, &[(&["flows.bulk.receiver.window"], "22 packets")]),
    CostAssumption("an ACK for each segment", COSTS, &[(&["flows.bulk.receiver.delayed_ack"], "none")]),
    CostAssumption("ACKs are put in order by S as well", COSTS, &[(&["hosts.b.multi_nic.skip"], "S")]),
    CostAssumption("ACKs by the wide NIC alone", COSTS, &[(&["hosts.b.multi_nic.ratio"], "1/0")]),
    CostAssumption("frames are held for 1 ms", COSTS, &[(HOLD, "1 ms")]),
    CostAssumption("frames are held for 20 ms", COSTS, &[(HOLD, "20 ms")]),
    CostAssumption("interrupts of the wide NIC after 30 us", COSTS, &[(WIDE, "{ delay = \"30 us\" }")]),
    CostAssumption("interrupts of the wide NIC after 100 us", COSTS, &[(WIDE, "{ delay = \"100 us\" }")]),
    CostAssumption("interrupts of the narrow NIC after 100 us", COSTS, &[(NARROW, "{ delay = \"100 us\" }")]),
    CostAssumption(
        "interrupts of all NICs up to 20 us late",
        COSTS,
        &[(&INTERRUPTS, "{ jitter = \"20 us\" }")],
    ),
    CostAssumption(
        "interrupts of all NICs up to 100 us late",
        COSTS,
        &[(&INTERRUPTS, "{ jitter = \"100 us\" }")],
    ),
    CostAssumption(
        "interrupts of all NICs up to 200 us late",
        COSTS,
        &[(&INTERRUPTS, "{ jitter = \"200 us\" }")],
    ),
    CostAssumption("the narrow path is 50 us longer", COSTS, &[(&["links.b-narrow.delay"], "50 us")]),
];

/// Skip numbers of the table at 90/10.
const SKIPS: [u16; 10] = [0, 2, 4, 6, 7, 8, 9, 10, 12, 16];
/// The paper's at 99.6/0.4.
const SKIP_99: u16 = 18;

impl CostAssumption {
    fn apply(&self, mut case: NicsCase, skip: u16) -> NicsCase {
        let next = |n: u16| skip.saturating_add(n).to_string();
        for (keys, value) in self.2 {
            let value = match *value {
                "S" => next(0),
                value => value.replace("S+2", &next(2)).replace("S+1", &next(1)),
            };
            case = keys.iter().fold(case, |case, key| case.with(key, &value));
        }
        case.kind = NicsRunKind::Swept;
        case.name = format!("{}, {}", self.0, case.name);
        case
    }
    fn at_90(&self, skip: u16) -> NicsCase {
        self.apply(NicsCase::published(RATIOS[0], skip, self.1[0]), skip)
    }
    /// The paper's best at 99.6/0.4, and the wide NIC alone.
    fn unobserved(&self) -> [NicsCase; 2] {
        let both = self.apply(NicsCase::published(RATIOS[1], SKIP_99, self.1[1]), SKIP_99);
        [both, self.apply(NicsCase::alone(self.1[1]), 0)]
    }
}

/// The cases of [`table`].
pub fn cases() -> impl Iterator<Item = NicsCase> {
    ASSUMPTIONS.iter().flat_map(|a| SKIPS.iter().map(|skip| a.at_90(*skip)).chain(a.unobserved()))
}

/// What comes of each assumption.
pub fn table(m: &Measured<'_, NicsPaper>) -> Table {
    let unit = "Mbit/s (% again)";
    let mut table = Table::with(
        "What the paper leaves open, one by one: 90/10, unless said otherwise",
        &format!(
            "assumption | S = 0 [{unit}] | S = 2 [{unit}] | S = 8 [{unit}] | best S [] | with it [Mbit/s] | \
             gain [times] | 99.6/0.4, S = 18 [Mbit/s] | wide NIC alone [Mbit/s]"
        ),
    );
    for assumption in &ASSUMPTIONS {
        let both = |skip| {
            let run = m.first(&assumption.at_90(skip));
            run.map(|m| format!("{:.0} ({:.1})", m.total(), m.resent_percent()))
        };
        let all = SKIPS.map(|skip| (skip, m.total(&assumption.at_90(skip))));
        let (skip, best) =
            all.into_iter().fold((0, f64::MIN), |best, one| if one.1 > best.1 { one } else { best });
        let [at_99, alone] = assumption.unobserved().map(|case| (m.total(&case), 0));
        table.row(cells![
            assumption.0,
            both(0),
            both(2),
            both(8),
            u64::from(skip),
            (best, 0),
            (best / all[0].1, 2),
            at_99,
            alone,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Span;

    /// Breaks: an assumption is refused by the scenario reader in the middle of a long measurement.
    #[test]
    fn every_case_has_a_scenario() {
        for case in cases() {
            let scenario =
                case.scenario(Span::from_secs(10), &crate::assumptions::WorldAssumptions::default());
            assert!(scenario.is_ok(), "{case}: {scenario:?}");
        }
    }
}
