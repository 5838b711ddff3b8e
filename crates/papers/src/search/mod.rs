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

/// How far a search is.
#[derive(Clone, Debug)]
pub struct SearchProgress {
    /// Paths judged.
    pub paths: u64,
    /// The largest gap so far.
    pub worst: f64,
    /// Generations, those of the first ones included.
    pub generation: u64,
    /// The found paths are being shrunk.
    pub shrinking: bool,
    /// Paths judged while shrinking.
    pub attempts: u64,
}

/// A path that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPath {
    /// The path.
    pub point: PathPoint,
    /// What it gave.
    pub score: PathScore,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// The worst paths, shrunk, the worst first; each of another kind.
    pub worst: Vec<FoundPath>,
    /// All paths that were judged, with their gaps.
    pub judged: Vec<(PathPoint, f64)>,
    /// Generations.
    pub generations: u64,
    /// Paths that were not, or only in part, shrunk before the end of the time.
    pub unshrunk: usize,
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
    /// Asked after each generation, and before each path while shrinking: false ends the search, so that what
    /// was found is shrunk, and then the shrinking.
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

impl Judge<'_> {
    fn judge(&self, point: &PathPoint) -> Result<Option<PathScore>, MeasureError> {
        // Numbers of dimensions without effect make no other path.
        let run = CaseRun { case: point.to_string(), number: 1 };
        if let Some(score) = self.known.get(&run) {
            return Ok(score);
        }
        let Search { control, against, objective, .. } = self.search;
        let score = objective::score(point, *objective, *control, against, self.stop)?;
        self.kept.add(&run, &score)?;
        Ok(score)
    }

    fn judge_all(&self, points: Vec<PathPoint>) -> Result<Vec<(PathPoint, Option<PathScore>)>, MeasureError> {
        let one = |point: PathPoint| self.judge(&point).map(|score| (point, score));
        points.into_par_iter().with_max_len(1).map(one).collect()
    }
}

impl SearchRunner<'_> {
    /// Searches until `go_on` says no, and shrinks the worst paths.
    ///
    /// # Errors
    /// See [`MeasureError`].
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
        let space = search.objective.within(search.space.clone());
        let mut random = RandomStream::new(search.seed, "path search");
        let mut elites: BTreeMap<String, Elite> = BTreeMap::new();
        let mut judged = Vec::new();
        let mut progress = SearchProgress {
            paths: 0,
            worst: f64::NEG_INFINITY,
            generation: 0,
            shrinking: false,
            attempts: 0,
        };
        loop {
            let children = generation(search, &space, &elites, progress.generation, &mut random);
            let steps: Vec<f64> = children.iter().map(|(_, step)| *step).collect();
            let points = children.into_iter().map(|(point, _)| point).collect();
            for ((point, score), step) in judge.judge_all(points)?.into_iter().zip(steps) {
                progress.paths += 1;
                let Some(score) = score else { continue };
                progress.worst = progress.worst.max(score.gap);
                judged.push((point.clone(), score.gap));
                let fitness = score.gap - PRICE * point.impairments().count() as f64;
                let kind = point.kind();
                if elites.get(&kind).is_none_or(|elite| elite.fitness < fitness) {
                    elites.insert(kind, Elite { found: FoundPath { point, score }, fitness, step });
                }
            }
            progress.generation += 1;
            if !(self.go_on)(&progress) {
                break;
            }
        }
        progress.shrinking = true;
        let attempts = AtomicU64::new(0);
        let go_on = || {
            let attempts = attempts.fetch_add(1, Ordering::Relaxed);
            (self.go_on)(&SearchProgress { attempts, ..progress.clone() })
        };
        let (mut worst, unshrunk) = shrink::worst(by_fitness(&elites), judge, &go_on)?;
        worst.truncate(WORST);
        Ok(SearchResult { worst, judged, generations: progress.generation, unshrunk })
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
        if search.objective.takes(&PathPoint::default()) || tries > 1_000 * GENERATION {
            children.push((point, step));
            continue;
        }
        // The impairment that the objective is about.
        if !search.objective.takes(&point) {
            let genes: &[Gene] = match search.objective {
                Objective::Recovery => &[Gene::RateStep, Gene::DelayStep, Gene::Outage],
                _ => &[Gene::Neighbour],
            };
            let other = space.random(random);
            for gene in genes {
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

    /// What a search of so many generations finds that may shrink with so many attempts, and how often it
    /// told of a generation.
    fn found(threads: u16, generations: u64, most: u64, kept: Option<PathBuf>) -> (SearchResult, u64) {
        let told = AtomicU64::new(0);
        let go_on = |progress: &SearchProgress| {
            told.fetch_add(u64::from(!progress.shrinking), Ordering::Relaxed);
            if progress.shrinking { progress.attempts < most } else { progress.generation < generations }
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
        assert!(once.worst.is_sorted_by(|a, b| a.score.gap >= b.score.gap));
        let score = objective::score(
            &worst.point,
            Objective::Goodput,
            Congestion::Reno,
            &[Congestion::Bbr3],
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

    /// Breaks: a generation of an objective has paths on which there is nothing to measure.
    #[test]
    fn paths_fit_the_objective() {
        for objective in Objective::ALL {
            let search = search(objective);
            let space = objective.within(search.space.clone());
            let mut random = RandomStream::new(1, "test");
            let all = generation(&search, &space, &BTreeMap::new(), 0, &mut random);
            assert_eq!(all.len(), GENERATION);
            assert!(all.iter().all(|(point, _)| objective.takes(point)), "{objective:?}: {all:?}");
        }
    }
}
