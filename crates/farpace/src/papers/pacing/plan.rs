//! Which runs are made.

use super::pace::Pace;
use super::printed::{FIFOS, FIVE, FLOWS, TABLE_2, TABLE_3};
use super::transfers::Case as Transfer;
use super::{Args, sensitivity};
use super::{lines::Case as Lines, transfers};
use anyhow::Result;
use farpace_units::{ByteCount, Span};
use std::collections::BTreeSet;
use std::fmt;

/// The paper.
pub const PAPER: &str =
    "Precise Software Pacing Method Using Gap Packets (Takano, Kudoh, Kodama, Matsuda, Ishikawa, Okazaki)";

/// Packets of a row of Tables 2 to 4, about; of the quick measurement.
const PACKETS: (u64, u64) = (250_000, 10_000);
/// In how many ways the flows of Tables 3 and 4 begin.
pub const PHASES: (u64, u64) = (5, 25);
/// Packets of a rate of Fig. 6; of the quick measurement.
const FIG_6_PACKETS: (u64, u64) = (10_000, 50);
/// What the line carries for a row of Tables 2 to 4 or a rate of Fig. 6 at most: 160 s of Gigabit Ethernet; in the quick
/// measurement 8 s.
const MAX: (ByteCount, ByteCount) = (ByteCount::new(20_000_000_000), ByteCount::new(1_000_000_000));
/// Sets that are searched; in the quick measurement.
const SETS: (u32, u32) = (1_000, 100);
/// Table 5's transfers; of the quick measurement, and what goes beyond the paper.
const TIME: (Span, Span) = (Span::from_secs(300), Span::from_secs(60));
/// Fig. 9's transfers; of the quick measurement.
const PAIR: (Span, Span) = (Span::from_secs(120), Span::from_secs(30));
/// Fig. 8 shows so much.
const SLOW_START: Span = Span::from_secs(5);
/// Its bins.
const FINE: Span = Span::from_micros(500);

/// Those whose rates are exact: the paper's, and farpace's.
pub const EXACT: [Pace; 2] = [Pace::Psp, Pace::Edf];
/// Rows of Table 5.
pub const TABLE_5: [Pace; 4] = [Pace::None, Pace::TokenBucket, Pace::Psp, Pace::Edf];
/// Pairs of Fig. 9, and one of our own.
pub const PAIRS: [(Pace, Pace); 5] = [
    (Pace::Psp, Pace::Psp),
    (Pace::TokenBucket, Pace::TokenBucket),
    (Pace::Psp, Pace::TokenBucket),
    (Pace::TokenBucket, Pace::Psp),
    (Pace::Edf, Pace::Edf),
];
/// FIFO of Fig. 8 in kB.
pub const FIG_8_FIFO: u32 = 1_024;
/// Who sends in Fig. 8.
pub const FIG_8: [Pace; 2] = [Pace::TokenBucket, Pace::Psp];
/// A bucket from which a FIFO of 1 MB overflows: what comes at 1 Gbit/s and leaves at 500 Mbit/s leaves half of it behind.
pub const LARGE_BUCKET: &str = "2 MB";

/// What a class without pacing is said to have: as much as fits the line.
pub const UNPACED: u64 = 984_000_000;
/// Targets of Fig. 6 in bit/s: from the least to the greatest that the paper guarantees.
pub const FIG_6: [u64; 16] = [
    8_000,
    32_000,
    128_000,
    512_000,
    2_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    300_000_000,
    400_000_000,
    500_000_000,
    600_000_000,
    700_000_000,
    800_000_000,
    930_000_000,
];

/// One run.
#[derive(Clone, Debug)]
pub enum Job {
    /// Full classes on a line.
    Lines(Lines),
    /// Fig. 7.
    Switching(Pace),
    /// The search.
    Sets(u32),
    /// A transfer of so long.
    Transfer(Transfer, Span),
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Job::Lines(case) => case.fmt(f),
            Job::Switching(pace) => write!(f, "{pace}, classes that come and go"),
            Job::Sets(count) => write!(f, "{count} sets of classes"),
            Job::Transfer(case, _) => case.fmt(f),
        }
    }
}

/// All runs.
pub struct Plan {
    /// In order.
    pub jobs: Vec<Job>,
    /// Packets of each row of Tables 2 to 4, about.
    pub packets: u64,
    /// Packets of each rate of Fig. 6.
    fig_6_packets: u64,
    /// See [`MAX`].
    most: ByteCount,
    /// How long Table 5's transfers take.
    pub time: Span,
    /// How long those take that are not in the paper.
    pub beyond: Span,
    set: Vec<(String, String)>,
}

impl Plan {
    /// All runs of the paper.
    pub fn new(args: &Args) -> Plan {
        let pick = |(full, quick): (Span, Span)| if args.quick { quick } else { full };
        let time = args.time.unwrap_or(pick(TIME));
        let mut plan = Plan {
            jobs: Vec::new(),
            packets: if args.quick { PACKETS.1 } else { PACKETS.0 },
            fig_6_packets: if args.quick { FIG_6_PACKETS.1 } else { FIG_6_PACKETS.0 },
            most: if args.quick { MAX.1 } else { MAX.0 },
            time,
            beyond: if args.full { time } else { time.min(TIME.1) },
            set: args.set.clone(),
        };
        // Long ones first, so that no core waits for the last.
        for pace in TABLE_5 {
            for fifo in FIFOS {
                plan.jobs.push(Job::Transfer(Transfer::one(pace, fifo), plan.time));
            }
        }
        for (first, second) in PAIRS {
            plan.jobs.push(Job::Transfer(Transfer::two(first, second), pick(PAIR).min(plan.time)));
        }
        for pace in FIG_8 {
            plan.jobs.push(Job::Transfer(slow_start(pace), SLOW_START.min(plan.time)));
        }
        plan.jobs.push(Job::Transfer(large_bucket(), SLOW_START.min(plan.time)));
        if !args.quick {
            let mut more = BTreeSet::from_iter(sensitivity::cells());
            more.extend(sensitivity::beyond());
            let beyond = plan.beyond;
            plan.jobs.extend(more.into_iter().map(|case| Job::Transfer(case, beyond)));
        }
        plan.jobs.push(Job::Sets(args.sets.unwrap_or(if args.quick { SETS.1 } else { SETS.0 })));
        let cases: BTreeSet<Lines> = EXACT.into_iter().flat_map(|pace| plan.lines(pace)).collect();
        plan.jobs.extend(cases.into_iter().map(Job::Lines));
        plan.jobs.push(Job::Lines(plan.single(Pace::TokenBucket, 500_000_000)));
        plan.jobs.push(Job::Lines(plan.single(Pace::Fq, 500_000_000)));
        plan.jobs.push(Job::Lines(plan.single(Pace::None, UNPACED)));
        plan.jobs.extend(EXACT.map(Job::Switching));
        plan
    }

    fn lines(&self, pace: Pace) -> Vec<Lines> {
        let table_2 = TABLE_2.iter().map(|row| self.single(pace, row.rate));
        let fig_6 = FIG_6.iter().map(|rate| self.fig_6(pace, *rate));
        table_2.chain(fig_6).chain([self.many(pace), self.five(pace)]).collect()
    }

    fn case(&self, pace: Pace, rates: Vec<u64>, packets: u64, phases: u64) -> Lines {
        Lines { pace, rates, packets, most: self.most, phases }
    }
    /// A row of Table 2.
    pub fn single(&self, pace: Pace, rate: u64) -> Lines {
        self.case(pace, vec![rate], self.packets, 1)
    }
    /// Table 3.
    pub fn many(&self, pace: Pace) -> Lines {
        self.case(pace, vec![TABLE_3.rate; FLOWS], self.packets, PHASES.0)
    }
    /// Table 4.
    pub fn five(&self, pace: Pace) -> Lines {
        self.case(pace, FIVE.to_vec(), self.packets, PHASES.1)
    }
    /// A rate of Fig. 6.
    pub fn fig_6(&self, pace: Pace, rate: u64) -> Lines {
        self.case(pace, vec![rate], self.fig_6_packets, 1)
    }

    /// Makes a run; none if interrupted.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub fn measure(&self, job: &Job) -> Result<Option<Measured>> {
        Ok(Some(match job {
            Job::Lines(case) => Measured::Lines(case.measure()?),
            Job::Switching(pace) => Measured::Switching(super::switching::measure(*pace)?),
            Job::Sets(count) => match super::sets::search(*count)? {
                Some(sets) => Measured::Sets(sets),
                None => return Ok(None),
            },
            Job::Transfer(case, time) => match case.measure(*time, &self.set)? {
                Some(transfer) => Measured::Transfer(transfer),
                None => return Ok(None),
            },
        }))
    }

    /// Finds out whether every transfer can be made, before the first one is.
    ///
    /// # Errors
    /// What `--set` has made impossible.
    pub fn check(&self) -> Result<()> {
        self.jobs.iter().try_for_each(|job| match job {
            Job::Transfer(case, time) => case.scenario(*time, &self.set).map(drop),
            _ => Ok(()),
        })
    }
}

/// The transfer of Fig. 8.
pub fn slow_start(pace: Pace) -> Transfer {
    Transfer::one(pace, FIG_8_FIFO).drawn(FINE)
}

/// The transfer of Fig. 8 (a) with [`LARGE_BUCKET`].
pub fn large_bucket() -> Transfer {
    slow_start(Pace::TokenBucket).with("links.nic.forward.pacing.burst", LARGE_BUCKET)
}

/// What came of a run.
#[derive(Clone, Debug)]
pub enum Measured {
    /// Of [`Job::Lines`].
    Lines(Vec<super::lines::Class>),
    /// Of [`Job::Switching`].
    Switching(super::switching::Bins),
    /// Of [`Job::Sets`].
    Sets(Vec<super::sets::Set>),
    /// Of [`Job::Transfer`].
    Transfer(transfers::Transfer),
}
