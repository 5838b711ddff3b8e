//! A search for the paths on which a congestion control is worst.
//!
//! Start reading at [`Search`]. An evolution strategy walks through [`SearchSpace`]: it keeps the worst path
//! of each kind (the same impairments), and makes children of the worst of these. Each child has a step of
//! its own, which it inherits and changes. A path is judged by runs in the lab ([`Objective`]), so everything
//! that is found repeats exactly. What is found is shrunk: impairments that do not matter go, and numbers
//! become round.

mod listed;
mod objective;
mod page;
mod scenario;
mod shrink;
mod space;
mod words;

pub use listed::{ALONE, BESIDE_CUBIC, ITSELF, ListedPath};
pub use objective::{Objective, PathNumbers, PathScore};
pub use page::SearchReport;
pub use scenario::PathSenders;
pub use space::{DIMENSIONS, Dimension, Gene, PathPoint, SearchSpace};

use crate::contender::congestion_name;
use crate::experiment::{CaseRun, MeasureError, StopRequest};
use crate::kept::{Kept, KeptRuns};
use farpace_tcp::config::Congestion;
use farpace_units::RandomStream;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Paths of a generation: fixed, so that the number of threads changes nothing.
const GENERATION: usize = 16;
/// Generations of paths at random before the first children.
const AT_RANDOM: u64 = 3;
/// Part of later generations that is at random.
const FRESH: f64 = 0.15;
/// Part of the children that have two parents.
const CROSSED: f64 = 0.25;
/// Steps of children, in parts of a dimension's range.
const STEPS: (f64, f64) = (0.02, 0.4);
/// How much a child's step differs from its parent's.
const LEARNS: f64 = 0.4;
/// What an impairment has to add to the gap to be worth keeping.
const PRICE: f64 = 0.01;
/// Paths that are shrunk and shown.
pub const WORST: usize = 10;
/// Seeds with each of which a path has to be a finding.
pub const SEEDS: u64 = 3;
/// Gaps below this are no finding.
const NO_GAP: f64 = 0.02;

/// What to search for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The control in question.
    pub control: Congestion,
    /// The controls that it is compared with; for starvation the first is put in its place.
    pub against: Vec<Congestion>,
    /// What is bad.
    pub objective: Objective,
    /// Where to look.
    pub space: SearchSpace,
    /// All random numbers of the search follow from it.
    pub seed: u64,
}

/// What a search does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPhase {
    /// It judges generations of paths.
    Searching,
    /// It judges what it has found with more seeds, and shrinks it.
    Shrinking,
    /// It runs that once more for pictures.
    Drawing,
}

impl SearchPhase {
    /// The part of the whole time at which it ends.
    pub const fn ends_at(self) -> f64 {
        match self {
            SearchPhase::Searching => 0.5,
            SearchPhase::Shrinking => 0.85,
            SearchPhase::Drawing => 1.0,
        }
    }
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            SearchPhase::Searching => "searching",
            SearchPhase::Shrinking => "shrinking",
            SearchPhase::Drawing => "drawing",
        }
    }
}

/// How far a search is.
#[derive(Clone, Debug)]
pub struct SearchProgress {
    /// Paths judged.
    pub paths: u64,
    /// The largest gap so far.
    pub worst: f64,
    /// Whole generations, those of the first ones included.
    pub generation: u64,
    /// What it does.
    pub phase: SearchPhase,
    /// Paths judged while shrinking.
    pub attempts: u64,
}

/// A path that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPath {
    /// The path.
    pub point: PathPoint,
    /// What it gave with the first seed, which its scenario has.
    pub score: PathScore,
    /// The gap with each seed, the first one's first.
    pub gaps: Vec<f64>,
}

impl FoundPath {
    fn new(point: PathPoint, score: PathScore) -> Self {
        let gaps = vec![score.gap];
        FoundPath { point, score, gaps }
    }
    /// The mean gap of all seeds.
    pub fn mean_gap(&self) -> f64 {
        self.gaps.iter().sum::<f64>() / self.gaps.len().max(1) as f64
    }
    /// The smallest gap of all seeds.
    pub fn least_gap(&self) -> f64 {
        self.gaps.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// The worst paths, shrunk, the worst first; each of another kind, and a finding with every seed.
    pub worst: Vec<FoundPath>,
    /// All paths that were judged, with their gaps.
    pub judged: Vec<(PathPoint, f64)>,
    /// Generations.
    pub generations: u64,
    /// Paths that were not, or only in part, shrunk before the end of the time.
    pub unshrunk: usize,
    /// Paths that are left out because another seed does not show them.
    pub refuted: usize,
    /// Whole generations, and paths judged in them and after.
    progress: SearchProgress,
}

/// The worst path of a kind.
#[derive(Clone, Debug)]
struct Elite {
    found: FoundPath,
    fitness: f64,
    step: f64,
}

/// Makes the runs of a search.
pub struct SearchRunner<'a> {
    /// Runs at a time; none: one per processor.
    pub threads: Option<u16>,
    /// Says when to stop at once.
    pub stop: &'a StopRequest<'a>,
    /// Asked after each generation, before each attempt to shrink, and in each bin of each run: false ends
    /// the phase at once.
    pub go_on: &'a (dyn Fn(&SearchProgress) -> bool + Sync),
    /// The file for judged paths, so that the same search goes on; none: they are not kept.
    pub kept: Option<PathBuf>,
    /// Names the program. What another program has judged is not used.
    pub program: String,
}

/// Judges paths, and remembers them.
struct Judge<'a> {
    search: &'a Search,
    stop: &'a StopRequest<'a>,
    kept: Kept,
    known: KeptRuns,
}

/// A path that was to be judged.
enum PathVerdict {
    /// What it gave; none: it does not fit the objective.
    Known(Option<Box<PathScore>>),
    /// The time of the phase was over before.
    TimeOver,
}

/// Says whether the time of a phase is over.
type TimeOver<'a> = dyn Fn() -> bool + Sync + 'a;

impl Judge<'_> {
    fn judge(
        &self,
        point: &PathPoint,
        seed: u64,
        is_over: &TimeOver<'_>,
    ) -> Result<PathVerdict, MeasureError> {
        // Numbers of dimensions without effect make no other path.
        let run = CaseRun { case: point.to_string(), number: seed };
        if let Some(score) = self.known.get::<_, Option<PathScore>>(&run) {
            return Ok(PathVerdict::Known(score.map(Box::new)));
        }
        let Search { control, against, objective, .. } = self.search;
        let stop = || (self.stop)() || is_over();
        match objective::score(point, *objective, *control, against, seed, &stop) {
            Err(MeasureError::Interrupted) if !(self.stop)() => Ok(PathVerdict::TimeOver),
            Err(error) => Err(error),
            Ok(score) => {
                self.kept.add(&run, &score)?;
                Ok(PathVerdict::Known(score.map(Box::new)))
            }
        }
    }

    fn judge_all(
        &self,
        points: Vec<PathPoint>,
        is_over: &TimeOver<'_>,
    ) -> Result<Vec<(PathPoint, PathVerdict)>, MeasureError> {
        let one = |point: PathPoint| self.judge(&point, 1, is_over).map(|verdict| (point, verdict));
        points.into_par_iter().with_max_len(1).map(one).collect()
    }
}

impl SearchRunner<'_> {
    /// Searches until `go_on` says no, repeats the worst paths with more seeds, and shrinks them.
    ///
    /// # Errors
    /// A space without a path that fits the objective, and see [`MeasureError`].
    pub fn run(&self, search: &Search) -> Result<SearchResult, MeasureError> {
        let against: Vec<String> = search.against.iter().map(|c| congestion_name(*c)).collect();
        let (name, objective) = (congestion_name(search.control), search.objective.name());
        let inputs = format!("{} search {name} {} {objective}", self.program, against.join(","));
        let (kept, known) = match &self.kept {
            Some(path) => Kept::open(path, &inputs),
            None => (Kept::default(), KeptRuns::default()),
        };
        let judge = Judge { search, stop: self.stop, kept, known };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.map_or(0, usize::from)).build();
        let pool = pool.map_err(|error| MeasureError::Invalid(format!("no threads: {error}")))?;
        pool.install(|| self.search(search, &judge))
    }

    fn search(&self, search: &Search, judge: &Judge<'_>) -> Result<SearchResult, MeasureError> {
        let space = search.objective.part_of(&search.space)?;
        let mut random = RandomStream::new(search.seed, "path search");
        let mut elites: BTreeMap<String, Elite> = BTreeMap::new();
        let mut judged = Vec::new();
        let mut progress = SearchProgress {
            paths: 0,
            worst: f64::NEG_INFINITY,
            generation: 0,
            phase: SearchPhase::Searching,
            attempts: 0,
        };
        let mut is_over = false;
        while !is_over {
            let children = generation(search, &space, &elites, progress.generation, &mut random);
            let steps: Vec<f64> = children.iter().map(|(_, step)| *step).collect();
            let points = children.into_iter().map(|(point, _)| point).collect();
            let all = judge.judge_all(points, &|| !(self.go_on)(&progress))?;
            for ((point, verdict), step) in all.into_iter().zip(steps) {
                let PathVerdict::Known(score) = verdict else {
                    is_over = true;
                    continue;
                };
                progress.paths += 1;
                let Some(score) = score else { continue };
                progress.worst = progress.worst.max(score.gap);
                judged.push((point.clone(), score.gap));
                let fitness = score.gap - PRICE * point.impairments().count() as f64;
                let kind = point.kind();
                if elites.get(&kind).is_none_or(|elite| elite.fitness < fitness) {
                    elites.insert(kind, Elite { found: FoundPath::new(point, *score), fitness, step });
                }
            }
            if !is_over {
                progress.generation += 1;
                is_over = !(self.go_on)(&progress);
            }
        }
        progress.phase = SearchPhase::Shrinking;
        let attempts = AtomicU64::new(0);
        let at = |attempts: u64| (self.go_on)(&SearchProgress { attempts, ..progress.clone() });
        let go_on = || at(attempts.fetch_add(1, Ordering::Relaxed));
        let is_over = || !at(attempts.load(Ordering::Relaxed).saturating_sub(1));
        let shrink::Shrunk { mut worst, unshrunk, refuted } =
            shrink::worst(by_fitness(&elites), judge, &go_on, &is_over)?;
        worst.truncate(WORST);
        progress.attempts = attempts.into_inner();
        Ok(SearchResult { worst, judged, generations: progress.generation, unshrunk, refuted, progress })
    }

    /// True if there is time for pictures of what was found.
    fn draws(&self, result: &SearchResult) -> bool {
        (self.go_on)(&SearchProgress { phase: SearchPhase::Drawing, ..result.progress.clone() })
    }
}

/// The worst first.
fn by_fitness(elites: &BTreeMap<String, Elite>) -> Vec<&Elite> {
    let mut all: Vec<&Elite> = elites.values().collect();
    all.sort_by(|a, b| b.fitness.total_cmp(&a.fitness));
    all
}

/// The paths of a generation, each with its step.
fn generation(
    search: &Search,
    space: &SearchSpace,
    elites: &BTreeMap<String, Elite>,
    number: u64,
    random: &mut RandomStream,
) -> Vec<(PathPoint, f64)> {
    let ranked = by_fitness(elites);
    let mut children = Vec::with_capacity(GENERATION);
    let mut tries = 0;
    while children.len() < GENERATION {
        tries += 1;
        let fresh = number < AT_RANDOM || ranked.is_empty() || random.chance(FRESH);
        let (mut point, step) = if fresh {
            (space.random(random), STEPS.1 / 2.0)
        } else {
            // The worst have more children: half of those that are left, each time.
            let pick = |random: &mut RandomStream| {
                let place = (libm::log2(random.unit().max(1e-9)) * -2.0) as usize;
                ranked.get(place.min(ranked.len() - 1)).copied()
            };
            let (Some(first), Some(second)) = (pick(random), pick(random)) else { continue };
            let step = (first.step * libm::exp(LEARNS * space::normal(random))).clamp(STEPS.0, STEPS.1);
            let parent = if random.chance(CROSSED) {
                space.crossed(&first.found.point, &second.found.point, random)
            } else {
                first.found.point.clone()
            };
            (space.mutated(&parent, step, random), step)
        };
        if search.objective.needs().is_empty() || tries > 1_000 * GENERATION {
            children.push((point, step));
            continue;
        }
        // The impairment that the objective is about.
        if !search.objective.takes(&point) {
            let other = space.random(random);
            for gene in search.objective.needs() {
                point = point.with(*gene, other.get(*gene));
            }
        }
        if search.objective.takes(&point) {
            children.push((point, step));
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SearchSpace {
        SearchSpace::parse("rate_mbit_s = [1, 5]\nrtt_ms = [5, 50]\nload = false\npolicer_ms = false\n")
            .unwrap()
    }

    fn search(objective: Objective) -> Search {
        Search {
            control: Congestion::Reno,
            against: vec![Congestion::Bbr3],
            objective,
            space: small(),
            seed: 3,
        }
    }

    /// What a search of so many generations finds that may shrink with so many attempts, and the last
    /// generation of which it told.
    fn found(threads: u16, generations: u64, most: u64, kept: Option<PathBuf>) -> (SearchResult, u64) {
        let told = AtomicU64::new(0);
        let go_on = |progress: &SearchProgress| match progress.phase {
            SearchPhase::Searching => {
                told.fetch_max(progress.generation, Ordering::Relaxed);
                progress.generation < generations
            }
            SearchPhase::Shrinking => progress.attempts < most,
            SearchPhase::Drawing => true,
        };
        let runner = SearchRunner {
            threads: Some(threads),
            stop: &|| false,
            go_on: &go_on,
            kept,
            program: "test".into(),
        };
        let result = runner.run(&search(Objective::Goodput)).unwrap();
        (result, told.into_inner())
    }

    /// Breaks: a search finds something else with more threads or when it goes on, or misses that Reno takes
    /// random loss for congestion, or what it has found does not repeat.
    #[test]
    fn a_search_repeats_and_finds_losses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept");
        let (once, told) = found(2, 4, u64::MAX, Some(path.clone()));
        assert_eq!((told, once.unshrunk), (4, 0));
        let (again, _) = found(1, 4, u64::MAX, Some(path));
        assert_eq!(once.worst, again.worst);
        let worst = &once.worst[0];
        let kinds = [Gene::Loss, Gene::BurstLoss, Gene::BitErrors, Gene::Reorder, Gene::Outage];
        assert!(worst.score.gap > 0.4, "{worst:?}");
        let lossy = |found: &FoundPath| kinds.iter().any(|g| found.point.get(*g).is_some());
        assert!(once.worst.iter().any(lossy), "{:?}", once.worst);
        assert!(once.worst.is_sorted_by(|a, b| a.mean_gap() >= b.mean_gap()));
        for found in &once.worst {
            assert!(found.gaps.len() == 3 && found.gaps[0] == found.score.gap, "{found:?}");
            assert!(found.least_gap() > NO_GAP, "{found:?}");
        }
        let score = objective::score(
            &worst.point,
            Objective::Goodput,
            Congestion::Reno,
            &[Congestion::Bbr3],
            1,
            &|| false,
        );
        assert_eq!(score.unwrap().as_ref(), Some(&worst.score));
    }

    /// Breaks: a search shrinks long after its time, or loses what it could not shrink.
    #[test]
    fn shrinking_ends_with_the_time() {
        let (all, _) = found(2, 4, u64::MAX, None);
        let (none, _) = found(2, 4, 0, None);
        assert!(none.unshrunk > 0 && none.worst.len() >= all.worst.len(), "{none:?}");
        let impairments = |found: &FoundPath| found.point.impairments().count();
        assert!(none.worst.iter().map(impairments).sum::<usize>() > all.worst.iter().map(impairments).sum());
    }

    /// Breaks: a path that one seed alone shows is printed as a finding.
    #[test]
    fn other_seeds_refute_a_path() {
        let search = search(Objective::Goodput);
        let (kept, known) = (Kept::default(), KeptRuns::default());
        let judge = Judge { search: &search, stop: &|| false, kept, known };
        let of = |point: PathPoint| match judge.judge(&point, 1, &|| false).unwrap() {
            PathVerdict::Known(Some(score)) => FoundPath::new(point, *score),
            PathVerdict::Known(None) | PathVerdict::TimeOver => panic!("it has no score"),
        };
        let base = PathPoint::default().with(Gene::Rate, 5.0).with(Gene::Rtt, 20.0);
        let lossy = of(base.clone().with(Gene::Loss, 2.0));
        let mut lucky = of(base);
        assert!(lossy.score.gap > 0.1 && lucky.score.gap < NO_GAP, "{lossy:?} {lucky:?}");
        lucky.score.gap = 0.9;
        lucky.gaps = vec![0.9];
        let step = STEPS.0;
        let elites = [lucky, lossy.clone()].map(|found| Elite { fitness: found.mean_gap(), found, step });
        let shrunk = |is_over: bool| {
            shrink::worst(elites.iter().collect(), &judge, &|| !is_over, &|| is_over).unwrap()
        };
        let all = shrunk(false);
        assert_eq!((all.worst.len(), all.refuted, all.unshrunk), (1, 1, 0));
        let found = &all.worst[0];
        assert!(found.point.get(Gene::Loss).is_some() && found.gaps.len() == 3, "{found:?}");
        assert!(found.least_gap() > NO_GAP && found.gaps[0] == found.score.gap, "{found:?}");
        let none = shrunk(true);
        assert_eq!((none.worst.len(), none.unshrunk, none.worst[0].gaps.len()), (2, 2, 1), "no time");
    }

    /// Breaks: a search ends only with its generation, whatever the time.
    #[test]
    fn a_generation_ends_with_the_time() {
        let asked = AtomicU64::new(0);
        let go_on = |progress: &SearchProgress| {
            progress.phase != SearchPhase::Searching || asked.fetch_add(1, Ordering::Relaxed) < 1_000
        };
        let runner = SearchRunner {
            threads: Some(1),
            stop: &|| false,
            go_on: &go_on,
            kept: None,
            program: "test".into(),
        };
        let result = runner.run(&search(Objective::Goodput)).unwrap();
        assert!(result.generations == 0 && result.judged.len() < GENERATION, "{result:?}");
        assert!(!result.judged.is_empty());
    }

    /// Breaks: a generation of an objective has paths on which there is nothing to measure.
    #[test]
    fn paths_fit_the_objective() {
        for objective in Objective::ALL {
            let search = search(objective);
            let space = objective.part_of(&search.space).unwrap();
            let mut random = RandomStream::new(1, "test");
            let all = generation(&search, &space, &BTreeMap::new(), 0, &mut random);
            assert_eq!(all.len(), GENERATION);
            assert!(all.iter().all(|(point, _)| objective.takes(point)), "{objective:?}: {all:?}");
        }
    }
}
