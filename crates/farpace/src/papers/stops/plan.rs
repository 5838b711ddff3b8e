//! Which transfers are made: profiles and single defects, receive windows, bursts, policer phases.

use anyhow::{Result, anyhow};
use farpace_lab::scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The paper.
pub const PAPER: &str = "Analysis and Improvement of Communication Stops using TCP/IP of Linux on a Fast Long \
                         Distance Network (National Institute of Advanced Industrial Science and Technology)";

/// The paper's path; the file that `farpace run` takes as well.
pub const SCENARIO: &str = include_str!("../../../../../scenarios/papers/stops.toml");
/// What errors call it.
pub const SCENARIO_NAME: &str = "scenarios/papers/stops.toml";

/// Receive windows in packets: the paper's buffers would announce the first; it comes closest to the last.
pub const WINDOWS: [u32; 3] = [1554, 2071, 2500];
/// The window of the figures.
pub const MAIN_WINDOW: u32 = 2500;
/// The window at which the fix still suffers timeouts.
pub const SMALL_WINDOW: u32 = 1554;
/// Phases that divide the policer's refill interval of 490 us.
pub const PHASES: u32 = 10;
/// From one phase to the next.
const PHASE_STEP_US: u32 = 49;

/// How deep the policer's bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Burst {
    /// 16 MB, the router's default: where transfers stop.
    Deep,
    /// 256 kB.
    Shallow,
}

impl Burst {
    /// As a scenario writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Burst::Deep => "16 MB",
            Burst::Shallow => "256 kB",
        }
    }
}

/// A kernel, or one with single switches turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// All three defects.
    Linux2617,
    /// The third defect alone.
    Linux2622,
    /// The paper's cure.
    Fix,
    /// The fix with byte counting as in 2.6.17.
    FixAbcBuggy,
    /// The fix with the block sort of 2.6.17.
    FixSortBuggy,
    /// 2.6.24 with the block sort of 2.6.17.
    Linux2624SortBuggy,
    /// 2.6.17 with byte counting repaired.
    Linux2617AbcFixed,
    /// 2.6.17 with the sort repaired.
    Linux2617SortOk,
    /// 2.6.17 with the paper's remedy B, and the other two defects.
    Linux2617NewBlocks,
    /// 2.6.17 with byte counting and sort repaired.
    Linux2617Ab,
    /// The paper's remedy A.
    FixMaxEnd,
    /// What Linux did.
    Linux2624,
}

use Variant as V;

impl Variant {
    /// A name for programs.
    pub const fn id(self) -> &'static str {
        match self {
            V::Linux2617 => "linux-2.6.17",
            V::Linux2622 => "linux-2.6.22",
            V::Fix => "aist-fix",
            V::FixAbcBuggy => "aist-fix+abc-defect",
            V::FixSortBuggy => "aist-fix+sort-defect",
            V::Linux2624SortBuggy => "linux-2.6.24+sort-defect",
            V::Linux2617AbcFixed => "linux-2.6.17-abc-defect",
            V::Linux2617SortOk => "linux-2.6.17-sort-defect",
            V::Linux2617NewBlocks => "linux-2.6.17-one-pass-defect",
            V::Linux2617Ab => "linux-2.6.17+ab",
            V::FixMaxEnd => "aist-fix-max-end",
            V::Linux2624 => "linux-2.6.24",
        }
    }

    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            V::Linux2617 => "linux-2.6.17",
            V::Linux2622 => "linux-2.6.22",
            V::Fix => "aist-fix",
            V::FixAbcBuggy => "aist-fix, ABC defect put back",
            V::FixSortBuggy => "aist-fix, sort defect put back",
            V::Linux2624SortBuggy => "linux-2.6.24, sort defect put back",
            V::Linux2617AbcFixed => "linux-2.6.17, only ABC repaired",
            V::Linux2617SortOk => "linux-2.6.17, only the sort repaired",
            V::Linux2617NewBlocks => "linux-2.6.17, only one-pass repaired",
            V::Linux2617Ab => "linux-2.6.17+ab, both bugs repaired",
            V::FixMaxEnd => "aist-fix-max-end (remedy A)",
            V::Linux2624 => "linux-2.6.24",
        }
    }

    /// The sender's settings.
    pub const fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            V::Linux2617 => &[("profile", "linux-2.6.17")],
            V::Linux2622 => &[("profile", "linux-2.6.22")],
            V::Fix => &[("profile", "aist-fix")],
            V::FixAbcBuggy => &[("profile", "aist-fix"), ("abc", "buggy")],
            V::FixSortBuggy => &[("profile", "aist-fix"), ("sack_sort", "buggy")],
            V::Linux2624SortBuggy => &[("profile", "linux-2.6.24"), ("sack_sort", "buggy")],
            V::Linux2617AbcFixed => &[("profile", "linux-2.6.17"), ("abc", "fixed")],
            V::Linux2617SortOk => &[("profile", "linux-2.6.17"), ("sack_sort", "ok")],
            V::Linux2617NewBlocks => {
                &[("profile", "linux-2.6.17"), ("lost_rtx", "new-blocks"), ("hint", "none")]
            }
            V::Linux2617Ab => &[("profile", "linux-2.6.17+ab")],
            V::FixMaxEnd => &[("profile", "aist-fix-max-end")],
            V::Linux2624 => &[("profile", "linux-2.6.24")],
        }
    }
}

/// The three of the paper's Table 2.
pub const TABLE_2: [Variant; 3] = [V::Linux2617, V::Linux2622, V::Fix];

/// What a group of runs has in common; they differ in the policer's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Policer.
    pub burst: Burst,
    /// Receive window in packets.
    pub window: u32,
    /// Sender.
    pub variant: Variant,
}

impl Key {
    /// A group behind the deep bucket.
    pub const fn deep(variant: Variant, window: u32) -> Key {
        Key { burst: Burst::Deep, window, variant }
    }
    /// A group behind the shallow bucket.
    pub const fn shallow(variant: Variant) -> Key {
        Key { burst: Burst::Shallow, window: SMALL_WINDOW, variant }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, window {}, burst {}", self.variant.label(), self.window, self.burst.name())
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its group.
    pub key: Key,
    /// Number of the phase, 0 to 9.
    pub phase: u32,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, phase {} us", self.key, self.phase * PHASE_STEP_US)
    }
}

/// All runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Windows of Table 2.
    pub windows: Vec<u32>,
    groups: BTreeMap<Key, BTreeSet<u32>>,
    set: Vec<(String, String)>,
}

impl Plan {
    /// The runs of the full or of the quick measurement, with so many phases for Table 2 (1 to [`PHASES`]) if not the
    /// usual number. `set` changes the scenario of all of them.
    ///
    /// # Errors
    /// A scenario that `set` makes impossible.
    pub fn new(quick: bool, phases: Option<u32>, set: &[(String, String)]) -> Result<Plan> {
        let windows = if quick { vec![MAIN_WINDOW] } else { WINDOWS.to_vec() };
        let mut plan = Plan { windows: windows.clone(), groups: BTreeMap::new(), set: set.to_vec() };
        let phases = phases.unwrap_or(if quick { 3 } else { PHASES }).clamp(1, PHASES);
        // Only an even number has the phase in the middle.
        let few = if phases.is_multiple_of(2) { 2 } else { 1 };
        for window in windows {
            for variant in TABLE_2 {
                plan.need(Key::deep(variant, window), phases);
            }
        }
        for variant in TABLE_2 {
            plan.need(Key::shallow(variant), few);
        }
        for (window, variants) in ALONE {
            for variant in *variants {
                plan.need(Key::deep(*variant, *window), few);
            }
        }
        plan.base()?;
        Ok(plan)
    }

    /// Phases are spread evenly, so that those of a smaller group are among those of a larger one.
    fn need(&mut self, key: Key, phases: u32) {
        self.groups.entry(key).or_default().extend((0..phases).map(|i| i * PHASES / phases));
    }

    /// All runs, group by group.
    pub fn jobs(&self) -> Vec<Job> {
        let group = |(key, phases): (&Key, &BTreeSet<u32>)| {
            let key = *key;
            phases.clone().into_iter().map(move |phase| Job { key, phase })
        };
        self.groups.iter().flat_map(group).collect()
    }

    /// The scenario that all runs are made from.
    ///
    /// # Errors
    /// What `--set` has made impossible.
    pub fn base(&self) -> Result<Scenario> {
        Scenario::parse_with(SCENARIO, SCENARIO_NAME, &self.set).map_err(|e| anyhow!("{e}"))
    }

    /// The scenario of one run.
    ///
    /// # Errors
    /// As [`base`](Plan::base).
    pub fn scenario(&self, job: &Job) -> Result<Scenario> {
        let Key { burst, window, variant } = job.key;
        let mut set = vec![
            // The slowest of ours take longer than the slowest of the paper.
            ("duration".to_owned(), "1000 s".to_owned()),
            ("links.wan.forward.policer.burst".to_owned(), burst.name().to_owned()),
            ("links.wan.forward.policer.phase".to_owned(), format!("{} us", job.phase * PHASE_STEP_US)),
            ("flows.bulk.receiver.window".to_owned(), format!("{window} packets")),
        ];
        let sender = variant.settings().iter();
        set.extend(sender.map(|(key, value)| (format!("flows.bulk.sender.{key}"), (*value).to_owned())));
        set.extend(self.set.iter().cloned());
        Scenario::parse_with(SCENARIO, SCENARIO_NAME, &set).map_err(|e| anyhow!("{e}"))
    }
}

/// What runs besides Table 2, and where. Each variant stands beside what it is compared with.
pub const ALONE: &[(u32, &[Variant])] = &[
    (
        SMALL_WINDOW,
        &[
            V::Linux2617,
            V::Linux2617AbcFixed,
            V::Linux2617SortOk,
            V::Linux2622,
            V::Fix,
            V::FixAbcBuggy,
            V::FixSortBuggy,
            V::FixMaxEnd,
            V::Linux2624,
        ],
    ),
    (
        MAIN_WINDOW,
        &[
            V::Linux2617,
            V::Linux2617AbcFixed,
            V::Linux2617SortOk,
            V::Linux2617NewBlocks,
            V::Linux2617Ab,
            V::Linux2622,
            V::Fix,
            V::FixAbcBuggy,
            V::FixSortBuggy,
            V::FixMaxEnd,
            V::Linux2624,
            V::Linux2624SortBuggy,
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::config::{Profile, Recovery};

    /// Breaks: a variant's settings are refused by the scenario reader, in the middle of a long measurement.
    #[test]
    fn every_run_has_a_scenario() {
        let plan = Plan::new(false, None, &[]).unwrap();
        for job in plan.jobs() {
            let scenario = plan.scenario(&job).unwrap_or_else(|e| panic!("{job}: {e}"));
            assert!(scenario.flows[0].sender.resolve().is_ok(), "{job}");
        }
    }

    /// Breaks: "2.6.22 is the fix with the one-pass walk put back", which the claim on that defect relies on.
    #[test]
    fn linux_2622_is_the_fix_with_the_third_defect() {
        let plan = Plan::new(true, None, &[]).unwrap();
        let mut fix =
            plan.scenario(&Job { key: Key::deep(V::Fix, 2500), phase: 0 }).unwrap().flows[0].sender.clone();
        fix.lost_rtx = Some(farpace_tcp::config::LostRtx::PerBlock);
        fix.hint = Some(farpace_tcp::config::Hint::FirstBlock);
        let Recovery::Linux26(switches) = fix.resolve().unwrap().recovery else { panic!() };
        assert_eq!(Some(switches), Profile::Linux2622.linux26());
    }

    /// Breaks: variants are compared with runs of other phases, so that luck looks like effect.
    #[test]
    fn the_phases_of_small_groups_are_among_those_of_large_ones() {
        for phases in 1..=PHASES {
            let plan = Plan::new(false, Some(phases), &[]).unwrap();
            let fix = &plan.groups[&Key::deep(V::Fix, MAIN_WINDOW)];
            assert_eq!(fix.len(), phases as usize);
            assert!(plan.groups[&Key::deep(V::Linux2624, MAIN_WINDOW)].is_subset(fix), "{phases}");
        }
    }
}
