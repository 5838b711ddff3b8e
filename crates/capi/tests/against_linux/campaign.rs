//! Many programs side by side: they mostly wait. A difference has to show again before it counts, and is made
//! small.

use super::calls::Library;
use super::draw::draw;
use super::judge::Difference;
use super::kernel::{Kernel, Record};
use super::program::Program;
use super::{judge, ours};
use ours::Races;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A difference counts if it shows so often.
const CONFIRMATIONS: usize = 2;
/// How often a program is played again because the machine was late.
const ATTEMPTS: usize = 6;
/// Timers of a machine that is as late as this say nothing.
const LATE_TIMER: i64 = 1_500_000;
/// Races of a program of which every outcome is tried.
const MAX_RACES: u32 = 4;
/// Phases of our clock of timestamps, in nanoseconds. That of the kernel is not known, and a tick more or
/// less decides what a receiver takes for a short round trip.
const PHASES: [i64; 4] = [0, 250_000, 500_000, 750_000];
/// Programs that are played to find a smaller one.
const SHRINKING: usize = 120;

/// A judgment.
pub struct Verdict {
    pub kernel: Record,
    pub ours: Record,
    pub difference: Option<Difference>,
}

impl Verdict {
    /// The machine had time for the program and no tick of the kernel decided, or it made no difference.
    fn is_in_time(&self) -> bool {
        let Some(difference) = &self.difference else { return true };
        let timing = ["time of", "TSval"].iter().any(|kind| difference.kind.starts_with(kind));
        self.kernel.late.is_empty()
            && !(timing && self.kernel.overslept > LATE_TIMER)
            && !judge::is_within_a_tick(difference, &self.kernel, &self.ours)
    }
}

/// Plays `program` to both once.
pub fn play(kernel: &mut Kernel, library: Library, program: &Program) -> Result<Verdict, String> {
    let theirs = kernel.run(program)?;
    let mut best: Option<(Record, Option<Difference>, i64)> = None;
    'phases: for phase in PHASES {
        // The timers that race with an input may each win or lose.
        let (mut waits, mut met) = (0, 0);
        while waits >> met.min(MAX_RACES) == 0 {
            let mut races = Races::of(waits);
            let ours = ours::run(library, program, &theirs, &mut races, phase);
            met = met.max(races.met);
            let difference = judge::compare(program, &theirs, &ours);
            let (agrees, at) = (difference.is_none(), difference.as_ref().map_or(i64::MAX, |d| d.at));
            // The one that agrees longest shows what differs.
            if best.as_ref().is_none_or(|(_, _, until)| at > *until) {
                best = Some((ours, difference, at));
            }
            if agrees {
                break 'phases;
            }
            waits += 1;
        }
    }
    let (ours, difference, _) = best.expect("it was played");
    Ok(Verdict { kernel: theirs, ours, difference })
}

/// Plays it until the machine was in time. None: it never was.
fn judged(kernel: &mut Kernel, library: Library, program: &Program) -> Option<Verdict> {
    for _ in 0..ATTEMPTS {
        let verdict =
            play(kernel, library, program).expect("the namespace lets programs change its switches");
        if verdict.is_in_time() {
            return Some(verdict);
        }
    }
    None
}

/// What came of one program.
enum Trial {
    Agrees,
    Late,
    Differs(Box<Verdict>),
}

fn trial(kernel: &mut Kernel, library: Library, program: &Program) -> Trial {
    let mut last = None;
    for _ in 0..=CONFIRMATIONS {
        match judged(kernel, library, program) {
            None => return Trial::Late,
            Some(verdict) if verdict.difference.is_none() => return Trial::Agrees,
            Some(verdict) => last = Some(Box::new(verdict)),
        }
    }
    last.map_or(Trial::Agrees, Trial::Differs)
}

/// What differs each time that the machine is in time; none: nothing does.
pub fn differs(kernel: &mut Kernel, library: Library, program: &Program) -> Option<String> {
    match trial(kernel, library, program) {
        Trial::Agrees | Trial::Late => None,
        Trial::Differs(verdict) => {
            let text = verdict.difference.as_ref().map_or("", |d| &d.text);
            Some(format!("{text}\n{}", judge::columns(program, &verdict.kernel, &verdict.ours)))
        }
    }
}

/// A smaller program with a difference of the same kind.
fn shrink(kernel: &mut Kernel, library: Library, program: Program, kind: &str) -> Program {
    let mut best = program;
    let mut left = SHRINKING;
    let mut fails = |candidate: &Program, left: &mut usize| {
        *left = left.saturating_sub(1);
        let verdict = judged(kernel, library, candidate);
        verdict.and_then(|v| v.difference).is_some_and(|d| d.kind == kind)
    };
    let mut size = best.steps.len() / 2;
    while size > 0 && left > 0 {
        let mut at = 0;
        while at < best.steps.len() && left > 0 {
            let mut candidate = best.clone();
            candidate.steps.drain(at..(at + size).min(best.steps.len()));
            if fails(&candidate, &mut left) {
                best = candidate;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    for name in best.switches.clone().into_keys() {
        let mut candidate = best.clone();
        candidate.switches.remove(&name);
        if fails(&candidate, &mut left) {
            best = candidate;
        }
    }
    best
}

/// What is to be played.
pub struct Plan {
    pub seeds: Box<dyn Iterator<Item = u64> + Send>,
    pub time: Option<Duration>,
    pub theme: Option<String>,
    /// Namespaces at once.
    pub namespaces: usize,
    /// Differences of one kind are made small once.
    pub shrinks: bool,
}

/// What came of it.
#[derive(Default)]
pub struct Report {
    pub agreed: u64,
    pub late: Vec<u64>,
    /// By kind: seeds, and the first as it was made small.
    pub differences: BTreeMap<String, (Vec<u64>, String)>,
}

impl Report {
    pub fn played(&self) -> u64 {
        self.agreed
            + self.late.len() as u64
            + self.differences.values().map(|d| d.0.len() as u64).sum::<u64>()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut kinds: Vec<_> = self.differences.iter().collect();
        kinds.sort_by_key(|(_, (seeds, _))| seeds.len());
        for (_, (_, text)) in &kinds {
            writeln!(f, "{text}\n")?;
        }
        for (kind, (seeds, _)) in &kinds {
            let few = &seeds[..seeds.len().min(8)];
            writeln!(f, "{:5} x {kind}: seeds {few:?}", seeds.len())?;
        }
        write!(f, "{} programs: {} agree, {} never in time", self.played(), self.agreed, self.late.len())
    }
}

/// A difference as people need it.
fn describe(program: &Program, verdict: &Verdict, seed: u64, theme: Option<&str>) -> String {
    let Some(Difference { kind, text, .. }) = &verdict.difference else { return String::new() };
    let columns = judge::columns(program, &verdict.kernel, &verdict.ours);
    let theme = theme.map_or_else(String::new, |t| format!(" FARPACE_THEME={t}"));
    format!(
        "=== {kind} (seed {seed})\n{text}\n{columns}replay: FARPACE_SEED={seed}{theme}, or with this as a \
         file FARPACE_PROGRAM=file, cargo test -p farpace-capi --test against_linux -- --nocapture\n{program}"
    )
}

/// Plays programs.
///
/// # Errors
/// There can be no namespace here.
#[allow(clippy::disallowed_methods, reason = "the kernel runs in real time")]
pub fn run(plan: Plan, library: Library) -> Result<Report, String> {
    let (seeds, start) = (Mutex::new(plan.seeds), Instant::now());
    let report = Mutex::new(Report::default());
    let why = Mutex::new(None);
    let theme = plan.theme.as_deref();
    let worker = || {
        let mut kernel = match Kernel::new() {
            Ok(kernel) => kernel,
            Err(e) => return *why.lock().expect("no panic") = Some(e),
        };
        while plan.time.is_none_or(|time| start.elapsed() < time) {
            let Some(seed) = seeds.lock().expect("no panic").next() else { break };
            let program = draw(seed, theme);
            match trial(&mut kernel, library, &program) {
                Trial::Agrees => report.lock().expect("no panic").agreed += 1,
                Trial::Late => report.lock().expect("no panic").late.push(seed),
                Trial::Differs(verdict) => {
                    let kind = verdict.difference.as_ref().map(|d| d.kind.clone()).unwrap_or_default();
                    let first = {
                        let mut report = report.lock().expect("no panic");
                        let (seeds, _) = report.differences.entry(kind.clone()).or_default();
                        seeds.push(seed);
                        seeds.len() == 1
                    };
                    if first {
                        let (mut program, mut verdict) = (program, verdict);
                        if plan.shrinks {
                            let small = shrink(&mut kernel, library, program.clone(), &kind);
                            if let Some(v) = judged(&mut kernel, library, &small)
                                && v.difference.as_ref().is_some_and(|d| d.kind == kind)
                            {
                                (program, verdict) = (small, Box::new(v));
                            }
                        }
                        let text = describe(&program, &verdict, seed, theme);
                        let mut report = report.lock().expect("no panic");
                        report.differences.entry(kind).or_default().1 = text;
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.namespaces {
            scope.spawn(worker);
        }
    });
    match why.into_inner().expect("no panic") {
        Some(why) => Err(why),
        None => Ok(report.into_inner().expect("no panic")),
    }
}
