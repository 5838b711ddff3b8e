//! Makes the runs of a grid.

use super::journal::GridJournal;
use super::judge::{GridRules, NextGridRun, left, next_run};
use super::point::GridPoint;
use super::record::GridRun;
use crate::compare::{Backend, Plan, run_by};
use anyhow::{Context, Result, ensure};
use farpace_explain::input::RecordFollower;
use farpace_live::{Namespace, Wait};
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_tcp::config::Profile;

/// The TCP profile of farpace's ends.
const PROFILE: Profile = Profile::Linux;

/// What is run.
#[derive(Clone, Debug)]
pub struct GridPlan {
    /// The points, in the order in which they are run.
    pub points: Vec<GridPoint>,
    /// The ways in real time. The lab is always run.
    pub ways: Vec<Backend>,
    /// When runs are enough.
    pub rules: GridRules,
    /// How long each run lasts, in seconds; longer on paths with a round trip above a fiftieth of it.
    pub seconds: u64,
    /// How the network in real time waits.
    pub wait: Wait,
}

/// How far a grid is.
#[derive(Clone, Debug, PartialEq)]
pub struct GridProgress {
    /// Points that need no more runs.
    pub finished: usize,
    /// All points.
    pub points: usize,
    /// Runs in real time that are there.
    pub runs: usize,
    /// What is run now.
    pub now: String,
    /// Seconds that it still takes: at least, and at most if no run is disturbed.
    pub left_s: [f64; 2],
}

impl GridProgress {
    /// In a line.
    pub fn text(&self) -> String {
        let [least, most] = self.left_s.map(duration);
        format!("{}/{} points, {least} to {most} left: {}", self.finished, self.points, self.now)
    }
}

/// A time for people.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// Is told how far a grid is.
pub trait GridObserver {
    /// Before each run.
    fn progress(&mut self, progress: &GridProgress);
}

impl GridPlan {
    /// Of these points by these ways.
    ///
    /// # Errors
    /// No way in real time, or no width of an interval.
    pub fn new(
        points: Vec<GridPoint>,
        ways: &[Backend],
        rules: GridRules,
        seconds: u64,
        wait: Wait,
    ) -> Result<Self> {
        let has = |way: &Backend| ways.contains(way);
        let ways: Vec<Backend> = [Backend::Farpace, Backend::Kernel].into_iter().filter(has).collect();
        ensure!(!ways.is_empty(), "nothing to hold against the lab: expected farpace, kernel or both");
        let width = rules.half_width;
        ensure!(width > 0.0 && width < 1.0, "an interval of {} %: expected 0 to 100", width * 100.0);
        Ok(GridPlan { points, ways, rules, seconds, wait })
    }
    /// How far it is with these runs, if a run takes longer than it lasts by `extra` seconds.
    pub fn progress(&self, runs: &[GridRun], extra: f64, now: String) -> GridProgress {
        let mut progress = GridProgress {
            finished: 0,
            points: self.points.len(),
            runs: runs.iter().filter(|run| run.way != Backend::Lab).count(),
            now,
            left_s: [0.0; 2],
        };
        for point in &self.points {
            let bounds = left(&self.rules, point, &self.ways, &of_point(point, runs));
            progress.finished += usize::from(bounds == [0, 0]);
            let each = point.lasts(self.seconds).as_secs_f64() + extra;
            for (sum, runs) in progress.left_s.iter_mut().zip(bounds) {
                *sum += each * runs as f64;
            }
        }
        progress
    }
}

/// The runs of a point.
pub(super) fn of_point(point: &GridPoint, runs: &[GridRun]) -> Vec<GridRun> {
    let key = point.key();
    runs.iter().filter(|run| run.point == key).cloned().collect()
}

/// Makes the runs that are missing, until all points are finished or somebody asks for an end. True if they
/// are finished. A run that fails is kept with its reason.
///
/// # Errors
/// No rights to make networks, or a journal that cannot be written.
pub fn measure(plan: &GridPlan, journal: &mut GridJournal, observer: &mut dyn GridObserver) -> Result<bool> {
    Namespace::create(&format!("far-grid-{}", std::process::id()))
        .map(drop)
        .context("real time needs root, or the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN")?;
    // What runs in real time have taken, and how long they have lasted.
    let (clock, mut lasted, mut runs) = (Stopwatch::start(), 0.0, 0_u32);
    for point in &plan.points {
        let points_plan = Plan::new(
            point.scenario()?,
            vec![Backend::Lab, Backend::Farpace, Backend::Kernel],
            (PROFILE, point.congestion),
            point.lasts(plan.seconds),
            plan.wait,
            &point.key(),
        )?;
        while let Some(NextGridRun { way, seed, beside }) =
            next_run(&plan.rules, point, &plan.ways, &of_point(point, journal.runs()))
        {
            let extra = (clock.elapsed().as_secs_f64() - lasted).max(0.0) / f64::from(runs.max(1));
            let now = format!("{}: {}, seed {seed}", point.key(), way.name());
            observer.progress(&plan.progress(journal.runs(), extra, now));
            let mut scenario = points_plan.scenario(seed.saturating_sub(points_plan.base().seed));
            if let Some(beside) = beside {
                let same = |run: &&GridRun| run.point == point.key() && run.way == beside && run.seed == seed;
                let stalls = journal.runs().iter().find(same).and_then(GridRun::stalls).unwrap_or_default();
                scenario.hosts.values_mut().for_each(|host| host.stalls.clone_from(&stalls));
            }
            let made = run_by(&points_plan, &scenario, way, &mut RecordFollower::default());
            if interrupt::asked() {
                return Ok(false);
            }
            let run = match made {
                Ok(run) => GridRun { seed, beside, ..GridRun::of(point.key(), &run, load()) },
                Err(error) => GridRun { beside, ..GridRun::failed(point.key(), way, seed, &error) },
            };
            journal.add(run)?;
            if way != Backend::Lab {
                runs += 1;
                lasted += point.lasts(plan.seconds).as_secs_f64();
            }
        }
    }
    Ok(true)
}

/// The machine's load over the last minute; 0 if it is not known.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::points::{QUICK, parse};
    use super::*;
    use crate::compare::BackendRun;
    use farpace_tcp::config::Congestion;

    /// Breaks: how long a grid is said to take, and how much of it is done.
    #[test]
    fn remaining_time_follows_from_what_is_there() {
        let points = parse(QUICK, "quick", &[Congestion::Cubic]).unwrap();
        let plan = GridPlan {
            points: points[..2].to_vec(),
            ways: vec![Backend::Kernel],
            rules: GridRules { runs: 2..=4, half_width: 0.01 },
            seconds: 10,
            wait: Wait::Sleep,
        };
        let at = |runs: &[GridRun]| {
            let progress = plan.progress(runs, 1.0, String::new());
            (progress.finished, progress.runs, progress.left_s)
        };
        let run = |way, seed, beside| {
            let run = BackendRun { seed, goodput_mbit_s: 4.0, ..BackendRun::of(way, Vec::new(), 0) };
            let stalls_us = (way != Backend::Lab).then(Vec::new);
            GridRun { stalls_us, beside, ..GridRun::of(points[0].key(), &run, 0.0) }
        };
        assert_eq!(at(&[]), (0, 0, [44.0, 88.0]));
        let kernel = Backend::Kernel;
        let of_seed = |seed| {
            [run(Backend::Lab, seed, None), run(kernel, seed, None), run(Backend::Lab, seed, Some(kernel))]
        };
        let runs: Vec<GridRun> = (1..=2).flat_map(of_seed).collect();
        assert_eq!(at(&runs[..3]), (0, 1, [33.0, 77.0]));
        assert_eq!(at(&runs), (1, 2, [22.0, 44.0]));
        let text =
            GridProgress { left_s: [90.0, 9_000.0], ..plan.progress(&runs, 1.0, "x".to_owned()) }.text();
        assert_eq!(text, "1/2 points, 90 s to 2.5 h left: x");
    }
}
