//! The paper on communication stops.
//!
//! Its authors sent 1 GB through a router that polices to 500 Mbit/s, and found transfers that stood still
//! for seconds. They traced this to three defects of Linux 2.6.17 and repaired the third one themselves.
//! `docs/papers/stops.md` describes paper and results.

mod cases;
mod claims;
mod page;
mod rows;
mod transfer;
mod worlds;

use crate::assumptions::{RunPart, WorldAssumptions};
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::info::PaperInfo;
use crate::observe::{Setting, scenario, set};
use crate::paper::{ClaimList, Paper, RowList, report};
use crate::report::ExperimentReport;
use cases::{DEFECTS, KernelVariant, MAIN_WINDOW, PolicedCase, TABLE_2, WINDOWS};
use farpace_lab::Payload;
use farpace_lab::scenario::Scenario;
use farpace_report::{Page, ReproductionClaim, Table};
use farpace_units::ByteCount;
use page::Closeup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use transfer::{POLICED, PolicedTransfer};

/// The path of the paper; `farpace run` takes the file as well.
const SCENARIO: &str = include_str!("../../../../scenarios/papers/stops.toml");
/// What errors call it.
const SCENARIO_NAME: &str = "scenarios/papers/stops.toml";
/// Phases divide the refill interval of the policer, 490 us.
const PHASES: u32 = 10;
/// From one phase to the next, in us.
const PHASE_STEP_US: u64 = 49;

/// Transfers through a policer.
pub struct StopsPaper {
    quick: bool,
    /// Phases of Table 2.
    many: u32,
    /// Windows of Table 2.
    windows: Vec<u32>,
    /// The window of the figures, which most claims are about.
    main: u32,
    phases: BTreeMap<PolicedCase, BTreeSet<u64>>,
    assumed: WorldAssumptions,
    /// In place of a pattern.
    payload: Option<Payload>,
    size: ByteCount,
    /// Identifies the payload.
    source: String,
    closeup: OnceLock<Closeup>,
}

impl StopsPaper {
    /// The full or the quick measurement, with so many phases for Table 2 (1 to 10) if not the usual number.
    /// `set` changes the scenario of all runs.
    ///
    /// # Errors
    /// A scenario that `set` makes impossible.
    pub fn new(quick: bool, phases: Option<u32>, set: &[Setting]) -> Result<Self, MeasureError> {
        let many = phases.unwrap_or(if quick { 3 } else { PHASES }).clamp(1, PHASES);
        StopsPaper::with(quick, many, WorldAssumptions::literal(set))
    }

    fn with(quick: bool, many: u32, assumed: WorldAssumptions) -> Result<Self, MeasureError> {
        let chosen = assumed.choice(worlds::WINDOW).map(str::parse::<u32>).transpose();
        let wrong = |_| MeasureError::Invalid("paper.window is a whole number of packets".into());
        let chosen = chosen.map_err(wrong)?;
        let main = chosen.unwrap_or(MAIN_WINDOW);
        let windows = if quick || chosen.is_some() { vec![main] } else { WINDOWS.to_vec() };
        // Only an even number has the phase in the middle.
        let few = if many.is_multiple_of(2) { 2 } else { 1 };
        let table_2 = windows.iter().flat_map(|w| TABLE_2.map(|v| (PolicedCase::deep(v, *w), many)));
        let shallow = TABLE_2.map(|v| (PolicedCase::shallow(v), few));
        // A world has one window.
        let of = |window: u32| chosen.unwrap_or(window);
        let defects =
            DEFECTS.iter().flat_map(|(w, all)| all.iter().map(move |v| PolicedCase::deep(*v, of(*w))));
        let mut groups: BTreeMap<PolicedCase, BTreeSet<u64>> = BTreeMap::new();
        for (case, phases) in table_2.chain(shallow).chain(defects.map(|case| (case, few))) {
            // They are spread evenly, so that those of a small group are among those of a large one.
            let spread = (0..phases).map(|i| u64::from(i * PHASES / phases));
            groups.entry(case).or_default().extend(spread);
        }
        let (payload, closeup) = (None, OnceLock::new());
        let source = String::new();
        let size = ByteCount::ZERO;
        let mut paper = StopsPaper {
            quick,
            many,
            windows,
            main,
            phases: groups,
            assumed,
            payload,
            size,
            source,
            closeup,
        };
        paper.size = paper.base()?.flows.first().map_or(ByteCount::ZERO, |flow| flow.size);
        Ok(paper)
    }

    /// Every run sends `payload` in place of a pattern; `source` identifies it.
    pub fn send(&mut self, payload: Payload, source: String) {
        self.size = payload.len();
        self.payload = Some(payload);
        self.source = source;
    }

    /// The scenario that all runs are made from.
    ///
    /// # Errors
    /// What `set` makes impossible.
    pub fn base(&self) -> Result<Scenario, MeasureError> {
        let mut all = Vec::new();
        self.assumed.apply(&mut all, &StopsPaper::parts());
        scenario(SCENARIO, SCENARIO_NAME, &all)
    }

    /// The parts of all runs that worlds may change.
    fn parts() -> [RunPart<'static>; 4] {
        [
            ("sender-host", "hosts.a"),
            ("receiver-host", "hosts.b"),
            ("sender", "flows.bulk.sender"),
            ("receiver", "flows.bulk.receiver"),
        ]
        .map(|(name, table)| (name, table.to_owned()))
    }

    fn scenario(&self, case: PolicedCase, phase: u64) -> Result<Scenario, MeasureError> {
        let mut all = vec![
            // The slowest of ours take longer than the slowest of the paper.
            set("duration", "1000 s"),
            set("links.wan.forward.policer.burst", case.burst.name()),
            set("links.wan.forward.policer.phase", format!("{} us", phase * PHASE_STEP_US)),
            set("flows.bulk.receiver.window", format!("{} packets", case.window)),
        ];
        let sender = case.variant.settings().iter();
        all.extend(sender.map(|(key, value)| set(format!("flows.bulk.sender.{key}"), *value)));
        self.assumed.apply(&mut all, &StopsPaper::parts());
        scenario(SCENARIO, SCENARIO_NAME, &all)
    }

    /// The time in which the policer lets the packets of a run pass if it is never idle, in seconds: packets
    /// of 1500 bytes carry 1448 of payload, and a full bucket of 16 MB comes on top.
    fn min_seconds(&self) -> f64 {
        let packets = self.size.get() as f64 * 1500.0 / 1448.0;
        (packets - 16e6).max(1500.0) * 8.0 / POLICED.bits_per_sec() as f64
    }
}

impl Experiment for StopsPaper {
    type Case = PolicedCase;
    type Measurement = PolicedTransfer;
    const NUMBER: &'static str = "phase";

    fn plan(&self) -> Vec<CaseRun<PolicedCase>> {
        let runs = self.phases.iter().flat_map(|(case, phases)| phases.iter().map(move |n| (*case, *n)));
        runs.map(|(case, number)| CaseRun { case, number }).collect()
    }
    fn inputs(&self) -> String {
        format!("{} {}", self.assumed.inputs(), self.source)
    }
    fn check(&self, case: &PolicedCase) -> Result<(), MeasureError> {
        self.scenario(*case, 0).map(drop)
    }
    fn measure(
        &self,
        run: &CaseRun<PolicedCase>,
        stop: &StopRequest<'_>,
    ) -> Result<PolicedTransfer, MeasureError> {
        transfer::measure(&self.scenario(run.case, run.number)?, self.payload.clone(), stop)
    }
    /// Makes the typical transfer of 2.6.17 once more, with all records.
    fn follow_up(&self, measured: &Measured<'_, Self>, stop: &StopRequest<'_>) -> Result<(), MeasureError> {
        let case = PolicedCase::deep(KernelVariant::Linux2617, self.main);
        let phase = measured.group(case).typical().unwrap_or(0);
        let closeup = Closeup::record(&self.scenario(case, phase)?, self.payload.clone(), phase, stop)?;
        // It is set once: a report is made of one measurement.
        let _ = self.closeup.set(closeup);
        Ok(())
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        report(measured, command, None)
    }
}

impl Paper for StopsPaper {
    const ABOUT: &'static PaperInfo = &PaperInfo {
        name: "stops",
        citation: "Analysis and Improvement of Communication Stops using TCP/IP of Linux on a Fast Long \
                   Distance Network (National Institute of Advanced Industrial Science and Technology)",
        title: "Why transfers behind a policer stop for seconds, and what prevents it",
        topic: "Transfers that stand still behind a policer",
        story: "A router that polices drops half of a window at once, and then part of the retransmissions. \
                Linux 2.6.17 did not notice that, and stood still for seconds. The fix finds lost \
                retransmissions by what the receiver reports.",
        key_figures: &["figures/bandwidth-2.6.17.svg", "figures/bandwidth-cured.svg"],
        key_claims: &["order/window-2500", "fix-saturates", "patient-stops", "cured-do-not-stop"],
        single_run: "farpace run scenarios/papers/stops.toml --set flows.bulk.sender.profile=linux-2.6.17 \
                     --out stops-2.6.17",
        document: include_str!("../../../../docs/papers/stops.md"),
        worlds: worlds::WORLDS,
        plausible: worlds::PLAUSIBLE,
    };

    fn assumed(&self) -> &WorldAssumptions {
        &self.assumed
    }
    fn assuming(&self, assumed: WorldAssumptions, _brief: bool) -> Result<Self, MeasureError> {
        let mut paper = StopsPaper::with(self.quick, self.many, assumed)?;
        if let Some(payload) = &self.payload {
            paper.send(payload.clone(), self.source.clone());
        }
        Ok(paper)
    }

    fn scope(measured: &Measured<'_, Self>) -> String {
        format!("{} transfers of {}", measured.count(), measured.of.size)
    }
    fn rows(measured: &Measured<'_, Self>, rows: &mut RowList) {
        rows::rows(measured, rows);
    }
    fn claims(measured: &Measured<'_, Self>, claims: &mut ClaimList) {
        claims::claims(measured, claims);
    }
    fn verdict(measured: &Measured<'_, Self>) -> String {
        let [old, newer, fix] = TABLE_2.map(|v| measured.main(v).time().mean);
        format!(
            "Mean times for {}: {old:.1} s with linux-2.6.17, {newer:.1} s with linux-2.6.22, {fix:.1} s \
             with the fix of the paper (paper, for 1 GB: 52.4, 21.3 and 16.6 s).",
            measured.of.size
        )
    }
    fn body(measured: &Measured<'_, Self>, claims: &[ReproductionClaim], page: &mut Page) {
        page::body(measured, claims, page);
    }
    fn key_table(measured: &Measured<'_, Self>) -> Table {
        page::table_2(measured, measured.of.main)
    }
    fn scenarios(_: &Measured<'_, Self>) -> Vec<(String, String)> {
        vec![("The scenario that all transfers are made from".into(), SCENARIO.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use KernelVariant as V;
    use farpace_tcp::config::{Hint, LostRtx, Profile, Recovery, Settings};

    /// Breaks: the settings of a variant are refused by the scenario reader, in the middle of a long
    /// measurement.
    #[test]
    fn every_run_has_a_scenario() {
        let paper = StopsPaper::new(false, None, &[]).unwrap();
        for CaseRun { case, number } in paper.plan() {
            let scenario = paper.scenario(case, number).unwrap_or_else(|e| panic!("{case}: {e}"));
            assert!(scenario.flows[0].sender.resolve().is_ok(), "{case}");
        }
    }

    /// Breaks: "2.6.22 is the fix with the one-pass walk put back", which the claim on that defect relies on.
    #[test]
    fn linux_2622_is_the_fix_with_the_third_defect() {
        let paper = StopsPaper::new(true, None, &[]).unwrap();
        let base = paper.scenario(PolicedCase::deep(V::Fix, 2500), 0).unwrap();
        let mut fix = Settings::clone(&base.flows[0].sender);
        fix.lost_rtx = Some(LostRtx::PerBlock);
        fix.hint = Some(Hint::FirstBlock);
        let Recovery::Linux26(switches) = fix.resolve().unwrap().recovery else { panic!() };
        assert_eq!(Recovery::Linux26(switches), Profile::Linux2622.config().recovery);
    }

    /// Breaks: variants are compared with runs of other phases, so that chance looks like an effect.
    #[test]
    fn the_phases_of_small_groups_are_among_those_of_large_ones() {
        for phases in 1..=PHASES {
            let groups = StopsPaper::new(false, Some(phases), &[]).unwrap().phases;
            let fix = &groups[&PolicedCase::deep(V::Fix, MAIN_WINDOW)];
            assert_eq!(fix.len(), phases as usize);
            assert!(groups[&PolicedCase::deep(V::Linux2624, MAIN_WINDOW)].is_subset(fix), "{phases}");
        }
    }
}
