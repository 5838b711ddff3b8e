//! `farpace papers NAME --search`: from words to points, and their report.

use super::PaperArgs;
use crate::experiments::{KEPT, Made, OutputForm, REPORT, RunBar, program};
use crate::sweep::duration;
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use farpace_papers::assumption_search::{KeyValue, SearchedKey, SearchedPaper};
use farpace_papers::{CHOICE, MeasureError, Paper, PaperInfo, Runner, SCENARIO};
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_process::stopwatch::Stopwatch;
use farpace_report::{Table, cells};
use farpace_study::{Axis, Grid, QuantityValue, Sampling};
use indicatif::ProgressBar;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Points without `--points` and `--budget`.
const POINTS: u64 = 32;
/// Most points of a search.
const MAX_POINTS: u64 = 4096;
/// With a time alone, so many times the points that it suffices for are planned.
const SPARE: f64 = 1.5;
/// Draws the points of a Latin hypercube.
const SEED: u64 = 1;
/// Tables in which paths of scenarios begin.
const TABLES: [&str; 7] = ["flows", "hosts", "links", "routers", "switches", "workloads", "trace"];

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PointSampling {
    /// The Sobol sequence: a larger set contains the smaller ones.
    Sobol,
    /// Latin hypercube.
    Lhs,
    /// All combinations of the values.
    Grid,
}

/// For command lines: what has a range as a pair.
pub(super) fn as_options<S: Serializer>(search: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    let mut all = serializer.serialize_seq(Some(search.len()))?;
    for word in search {
        match word.split_once('=') {
            Some(pair) => all.serialize_element(&pair)?,
            None => all.serialize_element(word)?,
        }
    }
    all.end()
}

/// Prints what a paper leaves open.
pub(super) fn list(about: &PaperInfo, as_json: bool) -> Result<ExitCode> {
    if as_json {
        let keys = about
            .plausible
            .iter()
            .map(|key| json!({ "key": key.name(), "range": key.range, "reason": key.reason }));
        let all = json!({
            "format": "farpace-plausible/1",
            "paper": about.citation,
            "keys": keys.collect::<Vec<_>>(),
        });
        terminal::print_json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::with("", "key | plausible range | because");
    for key in about.plausible {
        table.row(cells![key.name(), key.range, key.reason]);
    }
    terminal::print(&terminal::table(&table))?;
    Ok(ExitCode::SUCCESS)
}

/// Tries the points, prints what they imply and writes it. After an interruption that is what is done.
///
/// # Errors
/// A key, a range or a number of points that cannot be, or files that cannot be written.
pub(super) fn make<P: Paper>(paper: &P, line: &str, args: &PaperArgs, form: OutputForm) -> Result<Made> {
    let common = &args.common;
    let keys = keys(P::ABOUT, &args.search)?;
    let (grid, sampling) = grid(&keys, args)?;
    let paper = paper.assuming(paper.assumed().clone(), true)?;
    check(&paper, &keys, &grid)?;
    let dir = common.out.clone().unwrap_or_else(|| {
        let mut dir = PathBuf::from("out");
        dir.push(format!("{}-search", P::ABOUT.name));
        dir
    });
    let out = OutDir::open(&dir, &[REPORT.to_owned()])?;
    let bar = RunBar(ProgressBar::hidden());
    let runner = Runner {
        threads: common.threads,
        stop: &interrupt::asked,
        progress: &bar,
        kept: Some(dir.join(KEPT)),
        program: program(),
    };
    let watch = Stopwatch::start();
    let reference = match runner.reference(&paper) {
        Ok(reference) => reference,
        Err(error) => return refused(error),
    };
    let count = planned(&grid, args, seconds(&watch));
    let about_all = format!("{count} points take about {}", duration(seconds(&watch) * count as f64));
    if count > MAX_POINTS {
        bail!(
            "{about_all}, if all are like the runs without a point. A search has at most {MAX_POINTS} points"
        );
    }
    let mut searched = SearchedPaper {
        about: P::ABOUT,
        world: paper.world(),
        keys: &keys,
        reference: &reference.reproduction,
        points: &[],
        planned: count,
        sampling,
        fit: &args.fit,
    };
    if let Some(name) = searched.unknown_fit() {
        let ids = reference.reproduction.rows.iter().filter(|row| row.paper.is_some());
        let ids: Vec<&str> = ids.map(|row| row.id.as_str()).collect();
        bail!("--fit: no printed number is called `{name}`; there are: {}", ids.join(", "));
    }
    let end = match args.budget {
        Some(budget) => format!("; none begins after {budget}"),
        None => String::new(),
    };
    terminal::note(&format!("{about_all}{end}. Ctrl-C shows what is done by then."));
    let budget = args.budget.map(|budget| Duration::from_nanos(budget.as_nanos()));
    let enough = || budget.is_some_and(|budget| watch.elapsed() >= budget);
    let points: Vec<Vec<KeyValue>> = (0..count).map(|n| values(grid.point(n))).collect();
    let tried = match runner.try_points(&paper, &reference, &keys, &points, &enough) {
        Ok(tried) => tried,
        Err(error) => return refused(error),
    };
    if tried.is_empty() && interrupt::asked() {
        return refused(MeasureError::Interrupted);
    }
    searched.points = &tried;
    let report = searched.report(line);
    match form {
        OutputForm::Json => terminal::print_json(&report.json)?,
        OutputForm::Text => terminal::print(&report.text(terminal::width()))?,
        OutputForm::Nothing => {}
    }
    out.write(REPORT, report.page.render().as_bytes())?;
    out.commit()?;
    terminal::say_where(&dir.join(REPORT), form == OutputForm::Json)?;
    if interrupt::asked() {
        terminal::note("Interrupted: the report has the points that are done. The same command goes on.");
        return Ok(Err(ExitCode::from(terminal::INTERRUPTED)));
    }
    if tried.len() as u64 == count {
        runner.forget();
    }
    Ok(Ok(report))
}

fn refused(error: MeasureError) -> Result<Made> {
    match error {
        MeasureError::Interrupted => {
            terminal::note(
                "Interrupted before a point was done. The same command goes on with what is finished.",
            );
            Ok(Err(ExitCode::from(terminal::INTERRUPTED)))
        }
        MeasureError::Run { .. } => {
            terminal::complain(&anyhow!(error));
            Ok(Err(ExitCode::from(terminal::FAILED)))
        }
        error => Err(anyhow!(error)),
    }
}

/// How many points are planned: all, or with a time alone some more than it suffices for.
fn planned(grid: &Grid, args: &PaperArgs, one: f64) -> u64 {
    match args.budget {
        Some(budget) if args.points.is_none() && args.sampling != Some(PointSampling::Grid) => {
            let fit = budget.as_secs_f64() / one.max(1e-3) * SPARE;
            grid.len().min((fit.ceil() as u64).max(1))
        }
        _ => grid.len(),
    }
}

fn seconds(watch: &Stopwatch) -> f64 {
    watch.elapsed().as_secs_f64()
}

/// The keys that words behind `--search` name.
fn keys(about: &PaperInfo, words: &[String]) -> Result<Vec<SearchedKey>> {
    let mut all: Vec<SearchedKey> = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((name, range)) => all.push(key(about, name.trim(), Some(range))?),
            None => {
                for name in word.split(',') {
                    all.push(key(about, name.trim(), None)?);
                }
            }
        }
    }
    Ok(all)
}

fn key(about: &PaperInfo, name: &str, range: Option<&str>) -> Result<SearchedKey> {
    if let Some(known) = about.plausible.iter().find(|key| key.name() == name) {
        let mut key = SearchedKey::from(known);
        if let Some(range) = range {
            (key.range, key.reason) = (range.to_owned(), None);
        }
        return Ok(key);
    }
    let keys: Vec<String> = about.plausible.iter().map(|key| key.name()).collect();
    let of_worlds = about.worlds.iter().flat_map(|world| world.settings).map(|setting| setting.part);
    let parts: BTreeSet<&str> =
        about.plausible.iter().map(|key| key.part).chain(of_worlds).filter(|part| *part != CHOICE).collect();
    let part = name.split_once('.').and_then(|(part, key)| {
        let is_part = parts.contains(part) && part != SCENARIO;
        if is_part { Some((part, key)) } else { TABLES.contains(&part).then_some((SCENARIO, name)) }
    });
    let Some((part, key)) = part else {
        let parts: Vec<&str> = parts.into_iter().filter(|part| *part != SCENARIO).collect();
        bail!(
            "--search: there is no key `{name}`. This paper leaves open: {}. With a range of your own also \
             keys of {}, and paths as in --set: --search KEY=RANGE",
            keys.join(", "),
            parts.join(", ")
        );
    };
    let range = range.with_context(|| {
        format!("--search: no plausible range of `{name}` is known: say --search {name}=FROM..TO")
    })?;
    Ok(SearchedKey { part: part.to_owned(), key: key.to_owned(), range: range.to_owned(), reason: None })
}

/// The points, and how they are drawn in words.
fn grid(keys: &[SearchedKey], args: &PaperArgs) -> Result<(Grid, String)> {
    let axes: Result<Vec<Axis>, _> =
        keys.iter().map(|key| Axis::parse(&format!("{}={}", key.name(), key.range))).collect();
    let axes = axes.map_err(|error| anyhow!("--search {error}"))?;
    let count = args.points.unwrap_or(if args.budget.is_some() { MAX_POINTS } else { POINTS });
    let sampling = match args.sampling.unwrap_or(PointSampling::Sobol) {
        PointSampling::Lhs if args.points.is_none() && args.budget.is_some() => {
            bail!("--sampling lhs needs --points: a part of a Latin hypercube is none")
        }
        PointSampling::Grid if args.points.is_some() => {
            bail!(
                "--sampling grid has all combinations, and no --points: say *N behind a range, \
                 as in 1us..9us*5"
            )
        }
        PointSampling::Grid => None,
        PointSampling::Lhs => Some(Sampling::LatinHypercube(count)),
        PointSampling::Sobol => Some(Sampling::Sobol(count)),
    };
    if count > farpace_study::MAX_SAMPLES {
        bail!("--points: {count} are too many; a search has at most {MAX_POINTS}");
    }
    let words = match sampling {
        None => "all combinations of their values".to_owned(),
        Some(Sampling::LatinHypercube(_)) => "a Latin hypercube".to_owned(),
        Some(Sampling::Sobol(_)) => "Sobol sequence".to_owned(),
    };
    Ok((Grid::new(axes, sampling, SEED).map_err(|error| anyhow!("--search: {error}"))?, words))
}

fn values(point: Vec<String>) -> Vec<KeyValue> {
    let value = |text: String| KeyValue { level: QuantityValue::parse(&text).map(|value| value.base), text };
    point.into_iter().map(value).collect()
}

/// Finds out before the first run whether the paper takes the values: each word, and the ends of each range.
fn check<P: Paper>(paper: &P, keys: &[SearchedKey], grid: &Grid) -> Result<()> {
    for (key, of_key) in keys.iter().zip(grid.values()) {
        let all = values(of_key.clone());
        let by_level = |a: &&KeyValue, b: &&KeyValue| {
            a.level.unwrap_or_default().total_cmp(&b.level.unwrap_or_default())
        };
        let numbers = || all.iter().filter(|value| value.level.is_some());
        let words = all.iter().filter(|value| value.level.is_none());
        for value in words.chain(numbers().min_by(by_level)).chain(numbers().max_by(by_level)) {
            let one = (std::slice::from_ref(key), std::slice::from_ref(value));
            Runner::check_point(paper, one.0, one.1)
                .with_context(|| format!("--search {}: {}", key.name(), value.text))?;
        }
    }
    Ok(())
}
