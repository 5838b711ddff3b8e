//! What a study consists of: a scenario, what is varied in it, and the seeds.

use crate::axis::Axis;
use crate::error::StudyError;
use crate::grid::Grid;
use crate::keys::{externals, short_digest};
use crate::sample::Sampling;
use crate::template::ScenarioTemplate;
use farpace_lab::scenario::{MAX_TEXT, Scenario};
use farpace_tcp::config::ExternalControl;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most runs of a study. All rows are in memory when the data set is written: about 1 kB for each flow of a
/// run.
pub const MAX_RUNS: u64 = 1_000_000;
/// Most seeds of a point.
pub const MAX_SEEDS: u64 = 100_000;

/// What was asked for; it stands in the study's folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanSpec {
    /// Paths and values, as behind `--vary`.
    pub vary: Vec<String>,
    /// Runs of each point, with seeds from the scenario's on.
    pub seeds: u64,
    /// As behind `--samples`; none: all combinations.
    pub samples: Option<String>,
    /// Seeds of a point end when the half width of the 95 % confidence interval of its goodput is at most
    /// this part of the mean; none: all seeds are run.
    pub stop_at: Option<f64>,
    /// The seed of the first run of each point.
    pub first_seed: u64,
}

impl PlanSpec {
    /// The points.
    ///
    /// # Errors
    /// Axes that are none, or do not fit together.
    pub fn grid(&self) -> Result<Grid, StudyError> {
        let axes = self.vary.iter().map(|text| Axis::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let sampling = self.samples.as_deref().map(str::parse::<Sampling>);
        Grid::new(axes, sampling.transpose().map_err(StudyError::Invalid)?, self.first_seed)
    }
}

/// A scenario's text, and where the files are that it names.
#[derive(Clone, Debug)]
pub struct ScenarioSource {
    /// The name in messages: the file name.
    pub name: String,
    /// The text.
    pub text: String,
    /// The folder of the files that the text names.
    pub folder: PathBuf,
    /// Values that are replaced in every run.
    pub set: Vec<(String, String)>,
}

/// A study that can be run: every value of every axis is one that the scenario takes.
#[derive(Clone, Debug)]
pub struct StudyPlan {
    /// What was asked for.
    pub spec: PlanSpec,
    /// Where the scenario came from.
    pub source: ScenarioSource,
    grid: Grid,
    template: ScenarioTemplate,
}

impl StudyPlan {
    /// Checks a study: the scenario, and each value by itself. `spec.first_seed` is taken from the scenario.
    ///
    /// # Errors
    /// See [`StudyError`]. An unknown key is named with the nearest one.
    pub fn new(source: ScenarioSource, spec: PlanSpec) -> Result<StudyPlan, StudyError> {
        StudyPlan::controlled(source, spec, Vec::new())
    }

    /// The same with congestion controls of the program's own, which flows may name. Runs are told apart by
    /// their versions. Such a study stays in this process: its [template](Self::template) travels without
    /// them.
    ///
    /// # Errors
    /// As [`StudyPlan::new`].
    pub fn controlled(
        source: ScenarioSource,
        mut spec: PlanSpec,
        controls: Vec<ExternalControl>,
    ) -> Result<StudyPlan, StudyError> {
        if spec.seeds == 0 || spec.seeds > MAX_SEEDS {
            return Err(StudyError::Invalid(format!("--seeds must be from 1 to {MAX_SEEDS}")));
        }
        if let Some(width) = spec.stop_at
            && !(width > 0.0 && width < 1.0)
        {
            return Err(StudyError::Invalid("--stop-at must be above 0 % and below 100 %".into()));
        }
        let beside = |name: &str| read_beside(&source.folder.join(name));
        let (text, name, set) = (&source.text, &source.name, &source.set);
        let mut base = Scenario::parse_controlled(text, name, set, &beside, &controls)
            .map_err(|error| StudyError::Scenario(error.to_string()))?;
        spec.first_seed = base.seed;
        // Words change no run.
        "study".clone_into(&mut base.title);
        base.description.clear();
        base.seed = 0;
        let base = base.to_toml().map_err(|error| StudyError::Invalid(error.to_string()))?;
        let grid = spec.grid()?;
        let paths: Vec<&str> = grid.paths().collect();
        if let Some((first, second)) = Scenario::same_place(&base, &paths) {
            let (first, second) = (paths[first], paths[second]);
            return Err(StudyError::Invalid(format!(
                "{first} and {second} are the same key under two names, so that rows would have values that \
                 were not used: vary it once"
            )));
        }
        let is_replaced = |(set, _): &&(String, String)| paths.iter().any(|path| replaces(&base, path, set));
        if let Some((set, _)) = source.set.iter().find(is_replaced) {
            return Err(StudyError::Invalid(format!(
                "{set} is set and varied: the value of --set would not be used; leave it out"
            )));
        }
        let paths = paths.into_iter().map(str::to_owned).collect();
        let mut template = ScenarioTemplate::new(&source.name, base, paths, controls);
        refuse_equals(&grid, template.check(checked(&grid), &beside)?)?;
        Ok(StudyPlan { spec, source, grid, template })
    }

    /// The points.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// How many runs there are at most; `u64::MAX` if that is too small a number.
    pub fn runs(&self) -> u64 {
        self.grid.len().saturating_mul(self.spec.seeds)
    }

    /// The seeds of a point.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.spec.first_seed;
        (0..self.spec.seeds).map(move |n| first.wrapping_add(n))
    }

    /// The scenario with these values.
    ///
    /// # Errors
    /// Values that are impossible together; the text says why.
    pub fn scenario(&self, point: &[String]) -> Result<Scenario, String> {
        self.template.scenario(point)
    }

    /// True if flows have this control of the program's own, or get it as a value that is varied.
    pub fn uses_control(&self, name: &str) -> bool {
        let is_value = self.grid.values().iter().flatten().any(|value| value == name);
        is_value
            || self
                .scenario(&self.grid.point(0))
                .is_ok_and(|made| externals(&made).any(|own| own.name() == name))
    }

    /// What points are made from.
    pub fn template(&self) -> &ScenarioTemplate {
        &self.template
    }

    /// Identifies the scenario, whatever its words and comments.
    pub fn digest(&self) -> String {
        short_digest(self.base().as_bytes())
    }

    /// The scenario as text, with all defaults.
    pub fn base(&self) -> &str {
        self.template.base()
    }
}

/// The points that a plan is checked with: each value with the first ones of all other axes.
fn checked(grid: &Grid) -> impl Iterator<Item = Vec<String>> + '_ {
    let first = grid.point(0);
    let each = grid.values().iter().enumerate().flat_map(move |(axis, values)| {
        let first = first.clone();
        values.iter().map(move |value| {
            let mut point = first.clone();
            point[axis].clone_from(value);
            point
        })
    });
    each.chain(std::iter::once(grid.point(0)))
}

/// Values at `path` replace all that was set at `set`. A path with `*` may set more than that.
fn replaces(base: &str, path: &str, set: &str) -> bool {
    set == path || !set.contains('*') && Scenario::same_place(base, &[set, path]).is_some()
}

/// Two values that are one, as 5ms and 0.005s are, would be two points with the same runs. `keys` are those
/// of the [`checked`] points.
fn refuse_equals(grid: &Grid, keys: Vec<String>) -> Result<(), StudyError> {
    let mut keys = keys.into_iter();
    for (path, values) in grid.paths().zip(grid.values()) {
        let mut seen = BTreeMap::new();
        for (value, key) in values.iter().zip(keys.by_ref()) {
            if let Some(first) = seen.insert(key, value) {
                return Err(StudyError::Invalid(format!("{path}: {first} and {value} are the same value")));
            }
        }
    }
    Ok(())
}

fn read_beside(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(MAX_TEXT.get() + 1).read_to_string(&mut text));
    read.map(|_| text).map_err(|error| error.to_string())
}
