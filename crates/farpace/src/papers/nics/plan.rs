//! Which runs are made.

use super::case::{Case, Kind, Measured};
use super::host::{IDLE, OBSERVED};
use super::sets::{JITTERED, ORDERS, Receiver, Set, TCPS, WAN, WIRED};
use super::{Args, failure, turns};
use anyhow::Result;
use farpace_units::Span;
use std::collections::BTreeSet;

/// The paper.
pub const PAPER: &str = "Reduction of TCP Retransmission for Higher Throughput with Multiple-Route Transmission in Ethernet LAN \
                         (Kato, Higaki; Tokyo Denki University)";

/// Skip numbers of Fig. 9.
pub const SKIPS: std::ops::RangeInclusive<u16> = 0..=30;
/// Those of the quick measurement: around the best ones.
const FEW: [u16; 13] = [0, 2, 4, 6, 7, 8, 9, 10, 12, 16, 17, 18, 20];
/// Ratios of the paper.
pub const RATIOS: [&str; 2] = ["90/10", "99.6/0.4"];
/// Skip numbers of Fig. 10.
pub const FIG_10: [u16; 2] = [0, 8];

/// All runs.
pub struct Plan {
    /// In order.
    pub cases: Vec<Case>,
    /// Skip numbers that were measured.
    pub skips: Vec<u16>,
    /// Virtual time of the paper's transfers.
    pub time: Span,
    /// Sets of cards.
    pub sets: Vec<Set>,
    /// Orders.
    pub orders: Vec<&'static str>,
    quick: bool,
    set: Vec<(String, String)>,
}

impl Plan {
    /// All runs.
    pub fn new(args: &Args) -> Plan {
        let quick = args.quick;
        let default = if quick { Span::from_secs(1) } else { Span::from_secs(3) };
        let mut plan = Plan {
            cases: Vec::new(),
            skips: if quick { FEW.into() } else { SKIPS.collect() },
            time: args.time.unwrap_or(default),
            sets: if quick { vec![WIRED[0], WAN] } else { WIRED.into_iter().chain([WAN]).collect() },
            orders: if quick { vec!["earliest", "round-robin"] } else { ORDERS.into() },
            quick,
            set: args.set.clone(),
        };
        let mut cases: Vec<Case> = plan.beyond();
        if !quick {
            cases.extend(turns::cases());
        }
        cases.push(failure::case(quick));
        for skip in &plan.skips {
            cases.extend([at_90(*skip), at_99(*skip)]);
        }
        cases.extend(FIG_10.map(fig_10));
        cases.extend([Case::alone(IDLE), Case::udp("90/10", IDLE), Case::udp("99.6/0.4", IDLE)]);
        // A case that two tables show is measured once.
        let mut seen = BTreeSet::new();
        cases.retain(|case| seen.insert(case.clone()));
        plan.cases = cases;
        plan
    }

    /// What goes beyond the paper. Long runs come first, so that no core waits for the last.
    fn beyond(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let sets = self.sets.iter().rev().chain(if self.quick { &[][..] } else { &JITTERED });
        for set in sets {
            for receiver in Receiver::BOTH {
                let orders = self.orders.iter().filter(|order| self.is_measured(set, order, receiver));
                cases.extend(orders.map(|order| set.case(order, receiver)));
            }
            cases.push(set.single());
        }
        for set in self.sets.iter().filter(|_| !self.quick) {
            cases.extend([set.two("earliest", Receiver::Resequences), set.udp("earliest")]);
            cases.extend(TCPS.map(|profile| set.tcp(profile)));
        }
        cases
    }

    /// In the quick measurement the lines of a house, which take long, are measured once.
    fn is_measured(&self, set: &Set, order: &str, receiver: Receiver) -> bool {
        !self.quick || set.is_switched() || (order == "earliest" && receiver == Receiver::Resequences)
    }

    /// How long a run takes, and how much of that does not count as goodput.
    pub fn times(&self, kind: Kind) -> (Span, Span) {
        match kind {
            Kind::Paper | Kind::Turned => (self.time, self.time / 10),
            Kind::Wired if self.quick => (Span::from_millis(400), Span::from_millis(200)),
            Kind::Wired => (Span::from_secs(2), Span::from_millis(500)),
            Kind::Wan if self.quick => (Span::from_secs(3), Span::from_millis(1_500)),
            Kind::Wan => (Span::from_secs(30), Span::from_secs(5)),
            Kind::Failure => (failure::time(self.quick), Span::ZERO),
        }
    }
    /// True if short.
    pub const fn is_quick(&self) -> bool {
        self.quick
    }

    /// Makes a run; none if interrupted.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub fn measure(&self, case: &Case) -> Result<Option<Measured>> {
        let (time, skipped) = self.times(case.kind);
        case.measure(time, skipped, self.set_of(case.kind))
    }
    /// Finds out whether every case can be run, before the first one is.
    ///
    /// # Errors
    /// What `--set` has made impossible.
    pub fn check(&self) -> Result<()> {
        let check = |case: &Case| case.scenario(self.times(case.kind).0, self.set_of(case.kind)).map(drop);
        self.cases.iter().try_for_each(check)
    }
    fn set_of(&self, kind: Kind) -> &[(String, String)] {
        if matches!(kind, Kind::Paper | Kind::Turned) { &self.set } else { &[] }
    }
}

/// Fig. 9: 90/10, retransmissions are observed.
pub fn at_90(skip: u16) -> Case {
    Case::paper(RATIOS[0], skip, OBSERVED)
}

/// Fig. 10: the same with the receive window that Linux 2.2 had by itself, 32,120 B, and finer bins.
pub fn fig_10(skip: u16) -> Case {
    at_90(skip).with("flows.bulk.receiver.window", "22 packets").with("trace.bin", "1 ms").drawn()
}

/// 99.6/0.4, not observed.
pub fn at_99(skip: u16) -> Case {
    Case::paper(RATIOS[1], skip, IDLE)
}
