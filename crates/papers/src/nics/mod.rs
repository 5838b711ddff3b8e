//! The paper on one TCP connection over several unequal NICs.
//!
//! Its authors gave two hosts a NIC of 1 Gbit/s and one of 100 Mbit/s each, sent the frames of one connection
//! by both, and those for the narrow NIC ahead of their turn by a skip number S. `docs/papers/nics.md`
//! describes paper and results. `sets` has what goes beyond the paper: other NICs, send orders, a NIC that
//! fails.

mod cases;
mod claims;
mod extensions;
mod page;
mod rows;
mod sensitivity;
mod sets;
mod striped;
mod worlds;

use crate::assumptions::WorldAssumptions;
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::info::PaperInfo;
use crate::observe::Setting;
use crate::paper::{ClaimList, Paper, RowList, report};
use crate::report::ExperimentReport;
use cases::{FIG_10, FILE, IDLE, NicsCase, NicsRunKind, RATIOS, TESTBED};
use farpace_report::{Page, ReproductionClaim, Table};
use farpace_units::Span;
use sets::{JITTERED, NicSet, ORDERS, ReceivingHost, SWITCHED, TCPS, WAN, failure_case, failure_time};
use std::collections::BTreeSet;
use striped::StripedRun;

/// Skip numbers of the quick measurement: around the best ones. The full one has those of Fig. 9, 0 to 30.
const FEW: [u16; 13] = [0, 2, 4, 6, 7, 8, 9, 10, 12, 16, 17, 18, 20];

/// What was measured for this paper.
type MeasuredNics<'a> = Measured<'a, NicsPaper>;

/// One TCP connection over several NICs.
pub struct NicsPaper {
    quick: bool,
    /// Skip numbers that are measured.
    skips: Vec<u16>,
    /// Virtual time of the paper's transfers.
    time: Span,
    /// Other assumptions are measured as well.
    sweeps: bool,
    /// What is assumed of the paper's scenario.
    assumed: WorldAssumptions,
    sets: Vec<NicSet>,
    orders: Vec<&'static str>,
}

impl NicsPaper {
    /// The full or the quick measurement. `time` is that of each of the paper's transfers, if not the usual
    /// one, and `set` changes their scenario.
    ///
    /// # Errors
    /// A time that is too short or too long.
    pub fn new(quick: bool, time: Option<Span>, set: &[Setting]) -> Result<Self, MeasureError> {
        let time = time.unwrap_or(Span::from_secs(if quick { 1 } else { 3 }));
        if time < Span::from_millis(200) || time > Span::from_secs(600) {
            return Err(MeasureError::Invalid("--time must be from 200 ms to 600 s".into()));
        }
        Ok(NicsPaper {
            quick,
            skips: if quick { FEW.into() } else { (0..=30).collect() },
            time,
            sweeps: !quick,
            assumed: WorldAssumptions::literal(set),
            sets: if quick { vec![SWITCHED[0], WAN] } else { SWITCHED.into_iter().chain([WAN]).collect() },
            orders: if quick { vec!["earliest", "round-robin"] } else { ORDERS.into() },
        })
    }

    /// All sets of NICs, those with jitter too.
    fn all_sets(&self) -> impl DoubleEndedIterator<Item = &NicSet> {
        self.sets.iter().chain(if self.quick { &[][..] } else { &JITTERED })
    }

    /// What goes beyond the paper. Long runs come first, so that no processor waits for the last.
    fn extensions(&self) -> Vec<NicsCase> {
        let mut cases = Vec::new();
        for set in self.sets.iter().rev().chain(if self.quick { &[][..] } else { &JITTERED }) {
            for receiver in ReceivingHost::BOTH {
                // In the quick measurement the lines of a house, which take long, are measured once.
                let once = |order: &str| order == "earliest" && receiver == ReceivingHost::Resequences;
                let orders = self.orders.iter().filter(|o| !self.quick || set.is_switched() || once(o));
                cases.extend(orders.map(|order| set.case(order, receiver)));
            }
            cases.push(set.single());
        }
        for set in self.sets.iter().filter(|_| !self.quick) {
            cases.extend([set.two("earliest", ReceivingHost::Resequences), set.udp("earliest")]);
            cases.extend(TCPS.map(|profile| set.tcp(profile)));
        }
        cases.push(failure_case(self.quick));
        cases
    }

    /// How long a run takes, and how much of that does not count as goodput.
    fn times(&self, kind: NicsRunKind) -> [Span; 2] {
        let ms = |times: [u64; 2]| times.map(Span::from_millis);
        match kind {
            NicsRunKind::Published | NicsRunKind::Swept => [self.time, self.time / 10],
            NicsRunKind::Switched => ms(if self.quick { [400, 200] } else { [2_000, 500] }),
            NicsRunKind::Wan => ms(if self.quick { [3_000, 1_500] } else { [30_000, 5_000] }),
            NicsRunKind::Failure => [failure_time(self.quick), Span::ZERO],
        }
    }
    fn assumed_of(&self, kind: NicsRunKind) -> WorldAssumptions {
        if kind.is_published() { self.assumed.clone() } else { WorldAssumptions::default() }
    }
}

impl Experiment for NicsPaper {
    type Case = NicsCase;
    type Measurement = StripedRun;
    const NUMBER: &'static str = "run";

    fn plan(&self) -> Vec<CaseRun<NicsCase>> {
        let mut cases = self.extensions();
        if self.sweeps {
            cases.extend(sensitivity::cases());
        }
        cases.extend(self.skips.iter().flat_map(|skip| [NicsCase::at_90(*skip), NicsCase::at_99(*skip)]));
        cases.extend(FIG_10.map(NicsCase::fig_10));
        cases.push(NicsCase::alone(IDLE));
        cases.extend(RATIOS.map(|ratio| NicsCase::udp(ratio, IDLE)));
        // A case that two tables show is measured once.
        let mut seen = BTreeSet::new();
        cases.retain(|case| seen.insert(case.clone()));
        cases.into_iter().map(|case| CaseRun { case, number: 1 }).collect()
    }
    fn inputs(&self) -> String {
        format!("{} {} {}", self.quick, self.time, self.assumed.inputs())
    }
    fn check(&self, case: &NicsCase) -> Result<(), MeasureError> {
        case.scenario(self.times(case.kind)[0], &self.assumed_of(case.kind)).map(drop)
    }
    fn measure(&self, run: &CaseRun<NicsCase>, stop: &StopRequest<'_>) -> Result<StripedRun, MeasureError> {
        let kind = run.case.kind;
        striped::measure(&run.case, self.times(kind), &self.assumed_of(kind), stop)
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        report(measured, command, None)
    }
}

impl Paper for NicsPaper {
    const ABOUT: &'static PaperInfo = &PaperInfo {
        name: "nics",
        citation: "Reduction of TCP Retransmission for Higher Throughput with Multiple-Route Transmission in \
                   Ethernet LAN (Kato, Higaki; Tokyo Denki University)",
        title: "One connection over several unequal NICs",
        topic: "Two unequal NICs",
        story: "If the frames of one connection go by a fast and a slow NIC in turn, those by the slow one \
                come late and are taken for lost. Sent ahead of their turn, they arrive in it.",
        key_figures: &["figures/fig09-goodput.svg"],
        key_claims: &[],
        single_run: "farpace run scenarios/papers/nics.toml --set hosts.a.multi_nic.skip=0 --out turns",
        document: include_str!("../../../../docs/papers/nics.md"),
        worlds: worlds::WORLDS,
        plausible: worlds::PLAUSIBLE,
    };

    fn assumed(&self) -> &WorldAssumptions {
        &self.assumed
    }
    fn assuming(&self, assumed: WorldAssumptions, brief: bool) -> Result<Self, MeasureError> {
        Ok(NicsPaper {
            quick: self.quick,
            skips: self.skips.clone(),
            time: self.time,
            sweeps: self.sweeps && !brief,
            assumed,
            sets: self.sets.clone(),
            orders: self.orders.clone(),
        })
    }
    fn depends_on_world(case: &NicsCase) -> bool {
        case.kind.is_published()
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
        let (skip, best) = measured.best(NicsCase::at_90);
        format!(
            "By NICs of 1 Gbit/s and 100 Mbit/s, on the paper's machine, one TCP connection gets {:.0} \
             Mbit/s if the NICs just take turns (paper: 143) and {best:.0} if frames for the narrow NIC are \
             sent {skip} ahead (paper: 373 with 8).",
            measured.total(&NicsCase::at_90(0)),
        )
    }
    fn body(measured: &Measured<'_, Self>, claims: &[ReproductionClaim], page: &mut Page) {
        page::body(measured, claims, page);
    }
    fn key_table(measured: &Measured<'_, Self>) -> Table {
        page::published(measured)
    }
    fn scenarios(measured: &Measured<'_, Self>) -> Vec<(String, String)> {
        let of_set = |set: &NicSet| {
            (format!("The scenario of {}", set.name), set.case("earliest", ReceivingHost::Stock).text)
        };
        let paper = (format!("The scenario of the paper, {FILE}"), TESTBED.to_owned());
        [paper].into_iter().chain(measured.of.sets.iter().map(of_set)).collect()
    }
}

impl Measured<'_, NicsPaper> {
    /// Goodput of all flows of a run, in Mbit/s; NaN if it was not made.
    fn total(&self, case: &NicsCase) -> f64 {
        self.of_first(case, StripedRun::total)
    }
    /// Goodput of datagrams over both NICs of the paper, in Mbit/s.
    fn udp(&self, ratio: &str) -> f64 {
        self.of_first(&NicsCase::udp(ratio, IDLE), |m| m.udp.unwrap_or(f64::NAN))
    }
    /// The skip number with the best goodput, and that goodput in Mbit/s.
    fn best(&self, case: impl Fn(u16) -> NicsCase) -> (u16, f64) {
        let all = self.of.skips.iter().map(|skip| (*skip, self.total(&case(*skip))));
        all.fold((0, f64::MIN), |best, one| if one.1 > best.1 { one } else { best })
    }
    /// How many times as fast the best skip number at 90/10 is as none.
    fn gain(&self) -> f64 {
        self.best(NicsCase::at_90).1 / self.total(&NicsCase::at_90(0))
    }
    /// What a run reaches of the sum of what the links carry, in percent; NaN if it was not made.
    fn share(&self, set: &NicSet, case: &NicsCase) -> f64 {
        self.total(case) * 100.0 / set.payload()
    }
    /// Mean windows of Fig. 10, in segments.
    fn windows(&self) -> [f64; 2] {
        FIG_10.map(|skip| self.of_first(&NicsCase::fig_10(skip), |m| m.window))
    }
}
