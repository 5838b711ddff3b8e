//! The solutions of the papers, and what each changes in a scenario.

use crate::observe::{Setting, set};
use std::fmt;

/// What one paper solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Solution {
    /// Lost retransmissions are found (stops).
    Recovery,
    /// Bit errors are told from congestion (satellite).
    Control,
    /// The sender asks for ACKs that the receiver delays (ack).
    AckRequests,
    /// NICs send evenly, at the rate of their contracts (pacing).
    Pacing,
    /// Frames of one connection go by all NICs (nics).
    Nics,
}

impl Solution {
    /// All of them, in the order of the papers.
    pub const ALL: [Solution; 5] =
        [Solution::Recovery, Solution::Control, Solution::AckRequests, Solution::Pacing, Solution::Nics];

    /// For programs and people.
    pub const fn name(self) -> &'static str {
        ["recovery", "control", "ack-requests", "pacing", "nics"][self as usize]
    }
}

/// Some of the solutions, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SolutionSet(u8);

impl SolutionSet {
    /// No solution.
    pub const NONE: SolutionSet = SolutionSet(0);
    /// All five.
    pub const ALL: SolutionSet = SolutionSet((1 << Solution::ALL.len()) - 1);

    /// This one too.
    pub const fn with(self, solution: Solution) -> Self {
        SolutionSet(self.0 | 1 << solution as u8)
    }
    /// All but this one.
    pub const fn without(self, solution: Solution) -> Self {
        SolutionSet(self.0 & !(1 << solution as u8))
    }
    /// True if it is in.
    pub const fn has(self, solution: Solution) -> bool {
        self.0 & 1 << solution as u8 != 0
    }
    /// The names of those that are in.
    pub fn names(self) -> Vec<&'static str> {
        Solution::ALL.into_iter().filter(|solution| self.has(*solution)).map(Solution::name).collect()
    }
    /// None, each alone, all but one, and all.
    pub fn compared() -> impl Iterator<Item = SolutionSet> {
        let alone = Solution::ALL.into_iter().map(|solution| SolutionSet::NONE.with(solution));
        let but = Solution::ALL.into_iter().map(|solution| SolutionSet::ALL.without(solution));
        [SolutionSet::NONE].into_iter().chain(alone).chain(but).chain([SolutionSet::ALL])
    }
}

/// How solutions are implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// As the papers publish them, in a Linux 2.6.17.
    Published,
    /// With what is known now. Without a solution, as RFCs 5681 and 6675 say.
    Modern,
}

impl Era {
    /// Both, older first.
    pub const BOTH: [Era; 2] = [Era::Published, Era::Modern];

    /// For people.
    pub const fn name(self) -> &'static str {
        ["as published", "modern"][self as usize]
    }
    /// For programs.
    pub const fn id(self) -> &'static str {
        ["printed", "today"][self as usize]
    }

    /// The settings that give a scenario these solutions and no others. It has hosts `ship` and `shore`,
    /// links `wide` and `narrow` and the flow `bulk`.
    pub fn settings(self, solutions: SolutionSet) -> Vec<Setting> {
        let published = self == Era::Published;
        let pick = |solution, of_eras: [&'static str; 2], off| {
            if solutions.has(solution) { of_eras[self as usize] } else { off }
        };
        let before = if published { "linux-2.6.17" } else { "rfc6675" };
        let requests = pick(Solution::AckRequests, ["classic", "tarr"], "off");
        let scheduler = pick(Solution::Pacing, ["psp", "edf"], "fifo");
        let mut all = vec![
            ("flows.bulk.sender.profile", pick(Solution::Recovery, ["aist-fix", "modern"], before)),
            ("flows.bulk.sender.congestion", pick(Solution::Control, ["star", "farpace"], "reno")),
            ("flows.bulk.sender.ack_control", requests),
            ("flows.bulk.receiver.ack_control", requests),
            ("links.wide.forward.pacing.scheduler", scheduler),
            ("links.narrow.forward.pacing.scheduler", scheduler),
        ];
        if published {
            all.push(("hosts.ship.multi_nic.order", "skip"));
        }
        let mut all: Vec<Setting> =
            all.into_iter().map(|(key, value)| set(key, format!("{value:?}"))).collect();
        if !solutions.has(Solution::Nics) {
            all.push(set("hosts.ship.multi_nic.extended_arp", "false"));
        }
        if published {
            // The paper's receiver takes frames as they come.
            all.push(set("hosts.shore.multi_nic", "{}"));
        }
        all
    }
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SolutionSender {
    /// farpace, with some of the solutions.
    Solved(Era, SolutionSet),
    /// A TCP as in Linux 6.x.
    Outsider {
        /// `cubic` or `bbr3`.
        congestion: &'static str,
        /// With the modern solutions below TCP: pacing and NICs.
        below: bool,
    },
}

impl SolutionSender {
    /// In the order of the tables: for both eras the compared sets, then outsiders.
    pub fn all() -> Vec<SolutionSender> {
        let of = |era| SolutionSet::compared().map(move |set| SolutionSender::Solved(era, set));
        let outsiders = ["cubic", "bbr3"]
            .into_iter()
            .flat_map(|congestion| [false, true].map(|below| SolutionSender::Outsider { congestion, below }));
        Era::BOTH.into_iter().flat_map(of).chain(outsiders).collect()
    }

    /// Which solutions it has.
    pub fn solutions(self) -> SolutionSet {
        match self {
            SolutionSender::Solved(_, solutions) => solutions,
            SolutionSender::Outsider { below: true, .. } => {
                SolutionSet::NONE.with(Solution::Pacing).with(Solution::Nics)
            }
            SolutionSender::Outsider { .. } => SolutionSet::NONE,
        }
    }

    /// The settings for a scenario, as with [`Era::settings`].
    pub fn settings(self) -> Vec<Setting> {
        let congestion = match self {
            SolutionSender::Solved(era, solutions) => return era.settings(solutions),
            SolutionSender::Outsider { congestion, .. } => congestion,
        };
        let mut all = Era::Modern.settings(self.solutions());
        for (key, value) in &mut all {
            match key.as_str() {
                "flows.bulk.sender.profile" => *value = "\"linux\"".to_owned(),
                "flows.bulk.sender.congestion" => *value = format!("{congestion:?}"),
                _ => {}
            }
        }
        all
    }
}

impl fmt::Display for SolutionSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let solutions = self.solutions();
        match *self {
            SolutionSender::Outsider { congestion, below } => {
                let name = if congestion == "cubic" { "Linux, CUBIC" } else { "Linux, BBRv3" };
                write!(f, "{name}{}", if below { ", with pacing and nics" } else { "" })
            }
            SolutionSender::Solved(_, SolutionSet::NONE) => f.write_str("no cure"),
            SolutionSender::Solved(_, SolutionSet::ALL) => f.write_str("all five"),
            SolutionSender::Solved(..) => {
                let missing = Solution::ALL.into_iter().filter(|solution| !solutions.has(*solution));
                let missing: Vec<&str> = missing.map(Solution::name).collect();
                match (solutions.names().as_slice(), missing.as_slice()) {
                    ([only], _) => write!(f, "{only} alone"),
                    (_, [but]) => write!(f, "all but {but}"),
                    (some, _) => f.write_str(&some.join(" + ")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Breaks: a solution that is said to be out is in, or two kinds of runs are called the same.
    #[test]
    fn every_combination_has_its_own_settings_and_name() {
        for era in Era::BOTH {
            let sets = || (0..32).map(SolutionSet);
            let settings: BTreeSet<_> = sets().map(|set| era.settings(set)).collect();
            let names: BTreeSet<String> =
                sets().map(|set| SolutionSender::Solved(era, set).to_string()).collect();
            assert_eq!((settings.len(), names.len()), (32, 32), "{era:?}");
        }
        let name = |set| SolutionSender::Solved(Era::Modern, set).to_string();
        assert_eq!(name(SolutionSet::ALL.without(Solution::Pacing)), "all but pacing");
        assert_eq!(name(SolutionSet::NONE.with(Solution::Nics)), "nics alone");
        assert_eq!(name(SolutionSet(31)), "all five");
    }
}
