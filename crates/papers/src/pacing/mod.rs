//! The paper on precise pacing by gap packets.
//!
//! Its authors kept packets apart by PAUSE frames, whose bytes are the clock, and compared that with a token
//! bucket and with nothing: bandwidth per packet, burstiness, and TCP over 200 ms through a small FIFO.
//! `docs/papers/pacing.md` describes paper and results.

mod claims;
mod classes;
mod page;
mod published;
mod rows;
mod scheduler;
mod sensitivity;
mod transfers;
mod worlds;

use crate::assumptions::WorldAssumptions;
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::info::PaperInfo;
use crate::observe::Setting;
use crate::paper::{ClaimList, Paper, RowList, report};
use crate::report::ExperimentReport;
use classes::{FrameBins, LineCase, PacedClass, RandomSet};
use farpace_report::{Page, ReproductionClaim, Table};
use farpace_units::Span;
use published::{FIFOS, FIVE, FLOWS, PublishedBandwidth, TABLE_2, TABLE_3};
use scheduler::PacingMethod;
use serde::{Deserialize, Serialize};
use std::fmt;
use transfers::{FifoCase, FifoRunKind, FifoTransfer, ONE, TWO};

/// Numbers of the full measurement and of the quick one: packets of a row of Tables 2 to 4, and of a rate of
/// Fig. 6.
const PACKETS: [u64; 2] = [250_000, 10_000];
const FIG_6_PACKETS: [u64; 2] = [10_000, 50];
/// What the line carries for a row of Tables 2 to 4 or a rate of Fig. 6 at most, in bytes: 160 s and 8 s.
const MAX_BYTES: [u64; 2] = [20_000_000_000, 1_000_000_000];
/// Random sets of classes.
const SETS: [u32; 2] = [1_000, 100];
/// Length of Table 5's transfers. What goes beyond the paper takes the second.
const TIME: [Span; 2] = [Span::from_secs(300), Span::from_secs(60)];
/// Length of Fig. 9's transfers.
const PAIR_TIME: [Span; 2] = [Span::from_secs(120), Span::from_secs(30)];
/// What Fig. 8 shows.
const SLOW_START: Span = Span::from_secs(5);
/// In how many ways the flows of Tables 3 and 4 begin.
const PHASES: [u64; 2] = [5, 25];

/// Those whose rates are exact: the paper's, and farpace's.
const EXACT: [PacingMethod; 2] = [PacingMethod::Psp, PacingMethod::Edf];
/// Rows of Table 5.
const TABLE_5: [PacingMethod; 4] =
    [PacingMethod::None, PacingMethod::TokenBucket, PacingMethod::Psp, PacingMethod::Edf];
/// Pairs of Fig. 9, and one more.
const PAIRS: [[PacingMethod; 2]; 5] = [
    [PacingMethod::Psp, PacingMethod::Psp],
    [PacingMethod::TokenBucket, PacingMethod::TokenBucket],
    [PacingMethod::Psp, PacingMethod::TokenBucket],
    [PacingMethod::TokenBucket, PacingMethod::Psp],
    [PacingMethod::Edf, PacingMethod::Edf],
];
/// Who sends in Fig. 8.
const FIG_8: [PacingMethod; 2] = [PacingMethod::TokenBucket, PacingMethod::Psp];
/// A bucket from which a FIFO of 1 MB overflows. A full bucket lets twice of what it holds pass at 1 Gbit/s;
/// half of that leaves at 500 Mbit/s meanwhile, so all that the bucket held waits in the FIFO.
const LARGE_BUCKET: &str = "2 MB";
/// The rate of a class without pacing: as much as fits the line.
const UNPACED: u64 = 984_000_000;
/// The rate at which pacers are compared.
const HALF: u64 = 500 * M;
const K: u64 = 1_000;
const M: u64 = 1_000_000;
/// Targets of Fig. 6 in bit/s: from the lowest to the highest that the paper guarantees.
const FIG_6: [u64; 16] = [
    8 * K,
    32 * K,
    128 * K,
    512 * K,
    2 * M,
    10 * M,
    50 * M,
    100 * M,
    200 * M,
    300 * M,
    400 * M,
    HALF,
    600 * M,
    700 * M,
    800 * M,
    930 * M,
];

/// What was measured for this paper.
type MeasuredPacing<'a> = Measured<'a, PacingPaper>;

/// Precise pacing by gap packets.
pub struct PacingPaper {
    quick: bool,
    sets: u32,
    /// Length of Table 5's transfers.
    time: Span,
    /// Length of the transfers that go beyond the paper.
    extension_time: Span,
    /// Transfers that only sensitivity tables need are made.
    sweeps: bool,
    assumed: WorldAssumptions,
}

impl PacingPaper {
    /// The full or the quick measurement; with `long`, what goes beyond the paper is as long as the paper's.
    /// `time` is that of Table 5's transfers and `sets` the number of random sets, if not the usual ones.
    /// `set` changes the scenarios of all transfers.
    ///
    /// # Errors
    /// A time that is too short or too long.
    pub fn new(
        [quick, long]: [bool; 2],
        time: Option<Span>,
        sets: Option<u32>,
        set: &[Setting],
    ) -> Result<Self, MeasureError> {
        let time = time.unwrap_or(TIME[usize::from(quick)]);
        if time < Span::from_secs(3) || time > Span::from_secs(3600) {
            return Err(MeasureError::Invalid("--time must be from 3 s to 3600 s".into()));
        }
        let sets = sets.unwrap_or(SETS[usize::from(quick)]);
        let extension_time = if long { time } else { time.min(TIME[1]) };
        let assumed = WorldAssumptions::literal(set);
        Ok(PacingPaper { quick, sets, time, extension_time, sweeps: !quick, assumed })
    }

    fn packets(&self) -> u64 {
        PACKETS[usize::from(self.quick)]
    }
    fn line(&self, pacer: PacingMethod, rates: Vec<u64>, packets: u64, phases: u64) -> PacingCase {
        let max_bytes = MAX_BYTES[usize::from(self.quick)];
        PacingCase::Lines(LineCase { pacer, rates, packets, max_bytes, phases })
    }
    /// A row of Table 2.
    fn single(&self, pacer: PacingMethod, rate: u64) -> PacingCase {
        self.line(pacer, vec![rate], self.packets(), 1)
    }
    /// Table 3.
    fn many(&self, pacer: PacingMethod) -> PacingCase {
        self.line(pacer, vec![TABLE_3.rate; FLOWS], self.packets(), PHASES[0])
    }
    /// Table 4.
    fn five(&self, pacer: PacingMethod) -> PacingCase {
        self.line(pacer, FIVE.to_vec(), self.packets(), PHASES[1])
    }
    /// A rate of Fig. 6.
    fn fig_6(&self, pacer: PacingMethod, rate: u64) -> PacingCase {
        self.line(pacer, vec![rate], FIG_6_PACKETS[usize::from(self.quick)], 1)
    }
    fn time_of(&self, case: &FifoCase) -> Span {
        match case.kind {
            FifoRunKind::Table5 => self.time,
            FifoRunKind::Pair => PAIR_TIME[usize::from(self.quick)].min(self.time),
            FifoRunKind::SlowStart => SLOW_START.min(self.time),
            FifoRunKind::Extension => self.extension_time,
        }
    }
}

/// The transfer of Fig. 8.
fn slow_start(pacer: PacingMethod) -> FifoCase {
    FifoCase::one(FifoRunKind::SlowStart, pacer, 1_024)
}

/// That of Fig. 8 (a) with [`LARGE_BUCKET`].
fn large_bucket() -> FifoCase {
    slow_start(PacingMethod::TokenBucket).with("links.nic.forward.pacing.burst", LARGE_BUCKET)
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacingCase {
    /// A transfer.
    Transfer(FifoCase),
    /// The search for sets of classes that are not paced precisely.
    Sets(u32),
    /// Full classes on a line.
    Lines(LineCase),
    /// Fig. 7.
    Switching(PacingMethod),
}

impl fmt::Display for PacingCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacingCase::Transfer(case) => case.fmt(f),
            PacingCase::Sets(count) => write!(f, "{count} sets of classes"),
            PacingCase::Lines(LineCase { pacer, rates, .. }) => match rates.as_slice() {
                [one] => write!(f, "{pacer} at {one} bit/s"),
                many => write!(f, "{pacer} with {} classes", many.len()),
            },
            PacingCase::Switching(pacer) => write!(f, "{pacer}, classes that come and go"),
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PacingRun {
    /// Of a transfer.
    Transfer(FifoTransfer),
    /// Of the search.
    Sets(Vec<RandomSet>),
    /// Of full classes.
    Lines(Vec<PacedClass>),
    /// Of Fig. 7.
    Switching(FrameBins),
}

impl Experiment for PacingPaper {
    type Case = PacingCase;
    type Measurement = PacingRun;
    const NUMBER: &'static str = "run";

    fn plan(&self) -> Vec<CaseRun<PacingCase>> {
        let mut transfers: Vec<FifoCase> =
            TABLE_5.iter().flat_map(|pacer| FIFOS.map(|fifo| FifoCase::table_5(*pacer, fifo))).collect();
        transfers.extend(PAIRS.map(|[first, second]| FifoCase::pair(first, second)));
        transfers.extend(FIG_8.map(slow_start).into_iter().chain([large_bucket()]));
        if self.sweeps {
            transfers.extend(sensitivity::cases());
        }
        let mut cases: Vec<PacingCase> = transfers.into_iter().map(PacingCase::Transfer).collect();
        cases.push(PacingCase::Sets(self.sets));
        for pacer in EXACT {
            cases.extend(TABLE_2.iter().map(|row| self.single(pacer, row.rate)));
            cases.extend(FIG_6.iter().map(|rate| self.fig_6(pacer, *rate)));
            cases.extend([self.many(pacer), self.five(pacer), PacingCase::Switching(pacer)]);
        }
        cases.extend([PacingMethod::TokenBucket, PacingMethod::Fq].map(|pacer| self.single(pacer, HALF)));
        cases.push(self.single(PacingMethod::None, UNPACED));
        cases.into_iter().map(|case| CaseRun { case, number: 1 }).collect()
    }
    fn inputs(&self) -> String {
        format!("{} {} {} {}", self.quick, self.time, self.extension_time, self.assumed.inputs())
    }
    fn check(&self, case: &PacingCase) -> Result<(), MeasureError> {
        match case {
            PacingCase::Transfer(case) => case.scenario(self.time_of(case), &self.assumed).map(drop),
            _ => Ok(()),
        }
    }
    fn measure(&self, run: &CaseRun<PacingCase>, stop: &StopRequest<'_>) -> Result<PacingRun, MeasureError> {
        Ok(match &run.case {
            PacingCase::Transfer(case) => {
                PacingRun::Transfer(case.measure(self.time_of(case), &self.assumed, stop)?)
            }
            PacingCase::Sets(count) => PacingRun::Sets(classes::search(*count, stop)?),
            PacingCase::Lines(case) => PacingRun::Lines(case.measure(stop)?),
            PacingCase::Switching(pacer) => PacingRun::Switching(classes::begin_and_end(*pacer)?),
        })
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        report(measured, command, None)
    }
}

impl Paper for PacingPaper {
    const ABOUT: &'static PaperInfo = &PaperInfo {
        name: "pacing",
        citation: "Precise Software Pacing Method Using Gap Packets (Takano, Kudoh, Kodama, Matsuda, \
                   Ishikawa, Okazaki)",
        title: "Precise pacing by gap packets",
        topic: "Bursts and small router queues",
        story: "A NIC sends in bursts at twice the rate of the bottleneck; a router with a small queue drops \
                them. \
                PSPacer fills the time between two packets with gap packets, whose bytes are the clock.",
        key_figures: &["figures/table5.svg"],
        key_claims: &[],
        single_run: "farpace run scenarios/papers/pacing.toml --set links.line.queue=\"16 kB\" --out gap",
        document: include_str!("../../../../docs/papers/pacing.md"),
        worlds: &[],
        plausible: worlds::PLAUSIBLE,
    };

    fn assumed(&self) -> &WorldAssumptions {
        &self.assumed
    }
    fn assuming(&self, assumed: WorldAssumptions, brief: bool) -> Result<Self, MeasureError> {
        let (quick, sets, sweeps) = (self.quick, self.sets, self.sweeps && !brief);
        let (time, extension_time) = (self.time, self.extension_time);
        Ok(PacingPaper { quick, sets, time, extension_time, sweeps, assumed })
    }
    fn depends_on_world(case: &PacingCase) -> bool {
        matches!(case, PacingCase::Transfer(_))
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
        let [paced, unpaced] = [PacingMethod::Psp, PacingMethod::None]
            .map(|pacer| measured.goodput(&FifoCase::table_5(pacer, 16)));
        format!(
            "Through a router's FIFO of 16 kB, 200 ms away, a paced sender gets {paced:.0} of 500 Mbit/s \
             (paper: 474) and loses nothing; an unpaced one gets {unpaced:.0} (paper: 29)."
        )
    }
    fn body(measured: &Measured<'_, Self>, claims: &[ReproductionClaim], page: &mut Page) {
        page::body(measured, claims, page);
    }
    fn key_table(measured: &Measured<'_, Self>) -> Table {
        page::fifos(measured)
    }
    fn scenarios(_: &Measured<'_, Self>) -> Vec<(String, String)> {
        [("The scenario of one flow", ONE), ("The scenario of two flows", TWO)]
            .map(|(title, text)| (title.to_owned(), text.to_owned()))
            .into()
    }
}

impl Measured<'_, PacingPaper> {
    /// The classes of a case; none if it was not measured.
    fn lines(&self, case: &PacingCase) -> &[PacedClass] {
        match self.first(case) {
            Some(PacingRun::Lines(classes)) => classes,
            _ => &[],
        }
    }
    /// The class of a row of Table 2.
    fn single(&self, pacer: PacingMethod, rate: u64) -> Option<&PacedClass> {
        self.lines(&self.of.single(pacer, rate)).first()
    }
    /// The class of a rate of Fig. 6.
    fn fig_6(&self, pacer: PacingMethod, rate: u64) -> Option<&PacedClass> {
        self.lines(&self.of.fig_6(pacer, rate)).first()
    }
    /// All flows of Table 3 as one: the lowest, the highest, the mean, the most bursty.
    fn many(&self, pacer: PacingMethod) -> Option<PacedClass> {
        let mut all = self.lines(&self.of.many(pacer)).iter();
        let mut whole = all.next()?.clone();
        all.for_each(|class| whole.join(class));
        Some(whole)
    }
    /// The class of a row of Table 4.
    fn five(&self, pacer: PacingMethod, row: &PublishedBandwidth) -> Option<&PacedClass> {
        self.lines(&self.of.five(pacer)).iter().find(|class| class.rate == row.rate)
    }
    /// The bins of Fig. 7.
    fn switching(&self, pacer: PacingMethod) -> Option<&FrameBins> {
        match self.first(&PacingCase::Switching(pacer)) {
            Some(PacingRun::Switching(bins)) => Some(bins),
            _ => None,
        }
    }
    /// By how many frames the bins of a class of Fig. 7 differ from its rate at most.
    fn worst_bin(&self, pacer: PacingMethod, class: usize) -> f64 {
        self.switching(pacer).map_or(f64::NAN, |bins| classes::worst_bin(bins, class))
    }
    /// The sets of the search.
    fn sets(&self) -> &[RandomSet] {
        match self.first(&PacingCase::Sets(self.of.sets)) {
            Some(PacingRun::Sets(sets)) => sets,
            _ => &[],
        }
    }
    /// A transfer; none if it was not made.
    fn transfer(&self, case: &FifoCase) -> Option<&FifoTransfer> {
        match self.first(&PacingCase::Transfer(case.clone())) {
            Some(PacingRun::Transfer(transfer)) => Some(transfer),
            _ => None,
        }
    }
    /// Goodput of all flows of a transfer, in Mbit/s; NaN if it was not made.
    fn goodput(&self, case: &FifoCase) -> f64 {
        self.transfer(case).map_or(f64::NAN, |t| t.goodput.iter().sum())
    }
    /// Packets that queues of the senders' own NICs dropped in a transfer; NaN if it was not made.
    fn dropped_at_sender(&self, case: &FifoCase) -> f64 {
        self.transfer(case).map_or(f64::NAN, |t| t.dropped_at_sender as f64)
    }
    /// Packets that the FIFO dropped in a transfer; NaN if it was not made.
    fn lost(&self, case: &FifoCase) -> f64 {
        self.transfer(case).map_or(f64::NAN, |t| t.lost as f64)
    }
}
