//! The thesis on CDL, by which a sender asks for ACKs that are not delayed.
//!
//! Its author put a flag into BSD's TCP that cancels the receiver's delayed ACK, and sent for 10 s over an
//! emulated line of 512 kbit/s with six policies of when to set it. `docs/papers/ack.md` describes thesis and
//! results. [`ModernAcks`] asks what is left of the gain with modern stacks, [`EstimatorsOfAcks`] compares
//! estimators of the timeout.

mod cases;
mod choices;
mod claims;
mod clocks;
mod estimators;
mod modern;
mod page;
mod published;
mod rows;
mod transfer;
mod worlds;

pub use estimators::EstimatorsOfAcks;
pub use modern::ModernAcks;

use crate::assumptions::WorldAssumptions;
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::info::PaperInfo;
use crate::observe::Setting;
use crate::paper::{ClaimList, Paper, RowList, report};
use crate::report::ExperimentReport;
use crate::statistics::Summary;
use cases::{AckCase, AskPolicy, DelaySplit, SCENARIO, sweep};
use farpace_report::{Page, ReproductionClaim, Table};
use published::TABLE_2;
use std::collections::BTreeSet;
use transfer::AckRun;

/// Phases of the full measurement and of the quick one.
const PHASES: [u64; 2] = [10, 2];

/// What was measured for this paper.
type MeasuredAcks<'a> = Measured<'a, AckPaper>;

/// Transfers with six policies of asking for ACKs.
pub struct AckPaper {
    quick: bool,
    /// The sweep over what the thesis leaves open is made.
    sweeps: bool,
    assumed: WorldAssumptions,
}

impl AckPaper {
    /// The full or the quick measurement; `set` changes the scenario of all runs.
    pub fn new(quick: bool, set: &[Setting]) -> Self {
        AckPaper { quick, sweeps: !quick, assumed: WorldAssumptions::literal(set) }
    }
    fn phases(&self) -> u64 {
        PHASES[usize::from(self.quick)]
    }
}

impl Experiment for AckPaper {
    type Case = AckCase;
    type Measurement = AckRun;
    const NUMBER: &'static str = "phase";

    fn plan(&self) -> Vec<CaseRun<AckCase>> {
        let mut cases = BTreeSet::new();
        for split in DelaySplit::BOTH {
            cases.extend(AskPolicy::ALL.map(|policy| AckCase::new(split, policy, false)));
            cases.extend([AskPolicy::None, AskPolicy::Rtt].map(|policy| AckCase::new(split, policy, true)));
            cases.extend(TABLE_2.iter().map(|row| row.case(split).with_four_in_flight()));
        }
        if self.sweeps {
            cases.extend(sweep().into_iter().flat_map(|(_, _, cases)| cases));
        }
        let clocks = clocks::all().into_iter().map(|(.., case)| case);
        cases.extend(clocks.flat_map(|case| [clocks::short(case.clone()), case]));
        let phases = 0..self.phases();
        let runs = |case: AckCase| phases.clone().map(move |number| CaseRun { case: case.clone(), number });
        cases.into_iter().flat_map(runs).collect()
    }
    fn inputs(&self) -> String {
        self.assumed.inputs()
    }
    fn check(&self, case: &AckCase) -> Result<(), MeasureError> {
        for flow in &case.scenario(0, &self.assumed)?.flows {
            let resolved = flow.sender.resolve().and(flow.receiver.resolve());
            resolved.map_err(|error| MeasureError::Invalid(format!("{case}: {error}")))?;
        }
        Ok(())
    }
    fn measure(&self, run: &CaseRun<AckCase>, stop: &StopRequest<'_>) -> Result<AckRun, MeasureError> {
        transfer::measure(&run.case, run.number, &self.assumed, stop)
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        report(measured, command, None)
    }
}

impl Paper for AckPaper {
    const ABOUT: &'static PaperInfo = &PaperInfo {
        name: "ack",
        citation: "A mechanism by which the sender controls acknowledgments (Cancel Delayed ACK; master's \
                   thesis, Japan Advanced Institute of Science and Technology, Shinoda laboratory)",
        title: "Cancel Delayed ACK on a line of 512 kbit/s",
        topic: "Delayed acknowledgments",
        story: "A receiver waits before it acknowledges; the sender pays with a window that opens slowly and \
                round trips that are wrong. A flag in the segment asks for an ACK at once.",
        key_figures: &["figures/table-5-2.svg"],
        key_claims: &[],
        single_run: "farpace run scenarios/papers/ack.toml --out cdl",
        document: include_str!("../../../../docs/papers/ack.md"),
        worlds: worlds::WORLDS,
        plausible: worlds::PLAUSIBLE,
    };

    fn assumed(&self) -> &WorldAssumptions {
        &self.assumed
    }
    fn assuming(&self, assumed: WorldAssumptions, brief: bool) -> Result<Self, MeasureError> {
        Ok(AckPaper { quick: self.quick, sweeps: self.sweeps && !brief, assumed })
    }

    fn scope(measured: &Measured<'_, Self>) -> String {
        format!("{} runs", measured.count())
    }
    fn rows(measured: &Measured<'_, Self>, rows: &mut RowList) {
        rows::rows(measured, rows);
    }
    fn claims(measured: &Measured<'_, Self>, claims: &mut ClaimList) {
        claims::claims(measured, claims);
    }
    fn verdict(measured: &Measured<'_, Self>) -> String {
        let policies = [AskPolicy::None, AskPolicy::Rtt, AskPolicy::SlowStart];
        let [none, rtt, all] = policies.map(|policy| measured.delivered(DelaySplit::Even, policy).mean);
        let [none_4, rtt_4, all_4] = policies.map(|policy| {
            let case = AckCase::new(DelaySplit::Even, policy, false).with_four_in_flight();
            measured.over(&case, |m| m.sent_kb).mean
        });
        format!(
            "In 10 s a sender that never asks delivers {none:.0} kB, one that asks with the segment it times \
             {rtt:.0} kB, one that asks with all segments of slow start {all:.0} kB. The thesis sent 568, \
             581 and 626: as much as comes out here with four segments in flight instead of the six of its \
             window ({none_4:.0}, {rtt_4:.0}, {all_4:.0})."
        )
    }
    fn body(measured: &Measured<'_, Self>, claims: &[ReproductionClaim], page: &mut Page) {
        page::body(measured, claims, page);
    }
    fn key_table(measured: &Measured<'_, Self>) -> Table {
        page::second(measured, DelaySplit::Even)
    }
    fn scenarios(_: &Measured<'_, Self>) -> Vec<(String, String)> {
        vec![("The scenario".into(), SCENARIO.into())]
    }
}

impl Measured<'_, AckPaper> {
    /// Payload that reached the program, without timestamps, in kB.
    fn delivered(&self, split: DelaySplit, policy: AskPolicy) -> Summary {
        self.over(&AckCase::new(split, policy, false), |m| m.delivered)
    }
    /// How much more than without CDL a policy delivers, in kB.
    fn gain(&self, split: DelaySplit, policy: AskPolicy) -> f64 {
        self.delivered(split, policy).mean - self.delivered(split, AskPolicy::None).mean
    }
    /// The same with four segments in flight.
    fn gain_of_four(&self, split: DelaySplit, policy: AskPolicy) -> f64 {
        let case = |policy| AckCase::new(split, policy, false).with_four_in_flight();
        let mean = |policy| self.over(&case(policy), |m| m.delivered).mean;
        mean(policy) - mean(AskPolicy::None)
    }
    /// ACKs per MB delivered.
    fn acks_per_mb(&self, split: DelaySplit, policy: AskPolicy) -> Summary {
        self.over(&AckCase::new(split, policy, false), |m| m.acks / m.delivered * 1e3)
    }
    /// How many more ACKs a policy takes, in percent.
    fn more_acks(&self, split: DelaySplit, policy: AskPolicy) -> f64 {
        let acks = |policy| self.over(&AckCase::new(split, policy, false), |m| m.acks).mean;
        (acks(policy) / acks(AskPolicy::None) - 1.0) * 100.0
    }
}
