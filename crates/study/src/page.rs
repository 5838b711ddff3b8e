//! A study for people and programs: a table, JSON, CSV, and a page with small multiples and heat maps.

use crate::error::StudyError;
use crate::folder::StoredStudy;
use crate::quantity::QuantityValue;
use crate::record::RunStatus;
use crate::statistics::{Metric, PointSummary};
use farpace_papers::statistics::Summary;
use farpace_report::{
    Cloud, Curve, Figure, HeatRow, MAX_CURVES, MAX_FIELDS, Page, Table, TableCell, TableColumn, clouds,
    curves, heat_map,
};
use serde_json::{Map, Value, json as value};
use std::collections::{BTreeMap, BTreeSet};

/// Most figures on a page. The others are left out, and the page says so.
pub const MAX_FIGURES: usize = 60;
/// Most dots of a figure of samples. The others are left out, and the caption says so.
pub const MAX_DOTS: usize = 2_000;
/// Most words with a colour of their own in a figure of samples.
const MAX_COLOURS: usize = 14;

/// The table of points: values, runs, and each metric as mean and half the width of its 95 % confidence
/// interval.
pub fn table(study: &StoredStudy, points: &[PointSummary]) -> Table {
    let mut columns: Vec<TableColumn> = paths(study).iter().map(|path| TableColumn::text(path)).collect();
    columns.extend(["runs", "complete"].map(|head| TableColumn::number(head, "")));
    let bad = points.iter().any(|point| point.bad > 0);
    if bad {
        columns.push(TableColumn::number("bad", ""));
    }
    let mut table = Table::new("", columns);
    for metric in Metric::ALL {
        table.column(metric.head().0, "");
    }
    for point in points {
        let mut cells: Vec<TableCell> = point.values.iter().map(|v| TableCell::from(v.as_str())).collect();
        cells.extend([point.runs, point.complete].map(|runs| TableCell::from(runs as f64)));
        if bad {
            cells.push((point.bad as f64).into());
        }
        for (metric, summary) in Metric::ALL.into_iter().zip(&point.metrics) {
            cells.push(TableCell::from(summary.text(metric.head().1).as_str()));
        }
        table.row(cells);
    }
    table
}

/// Says at how many points runs were cut, and what that means; none if all runs were complete.
pub fn cut_note(points: &[PointSummary]) -> Option<String> {
    let cut: Vec<&PointSummary> = points.iter().filter(|point| point.is_cut()).collect();
    let (runs, complete) = points.iter().fold((0, 0), |(r, c), p| (r + p.runs, c + p.complete));
    (!cut.is_empty()).then(|| {
        format!(
            "{} of {runs} runs did not deliver all data, at {} of {} points. These points have no completion \
             time: the mean of the complete runs would leave out the slow ones. A longer `duration` may \
             help.",
            runs - complete,
            cut.len(),
            points.len()
        )
    })
}

/// What is known of a study, and its points, as `farpace sweep show --json` prints them.
pub fn json(study: &StoredStudy, points: &[PointSummary]) -> Value {
    let paths = paths(study);
    let finite = |number: f64| if number.is_finite() { Value::from(number) } else { Value::Null };
    let point = |point: &PointSummary| {
        let values: Map<String, Value> =
            paths.iter().cloned().zip(point.values.iter().map(|v| Value::from(v.as_str()))).collect();
        let mut json = value!({
            "values": values,
            "runs": point.runs,
            "complete_runs": point.complete,
            "bad": point.bad,
        });
        for (metric, summary) in Metric::ALL.into_iter().zip(&point.metrics) {
            json[metric.key()] = value!({
                "mean": finite(summary.mean),
                "ci95": finite(interval(summary)),
                "runs": summary.runs,
            });
        }
        json
    };
    let p = &study.provenance;
    value!({
        "format": "farpace-sweep/1",
        "farpace": p.farpace,
        "scenario": p.scenario,
        "set": p.set.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(),
        "vary": p.plan.vary,
        "seeds": p.plan.seeds,
        "samples": p.plan.samples,
        "stop_at": p.plan.stop_at,
        "shard": p.shard,
        "digest": p.digest,
        "runs": study.planned,
        "planned_runs": study.planned_runs(),
        "missing_runs": study.missing_runs(),
        "runs_outside_of_plan": study.records.len() - study.planned,
        "status": statuses(study),
        "bad_runs": bad_runs(study),
        "points": points.iter().map(point).collect::<Vec<Value>>(),
    })
}

/// Half the width of the interval; NaN without a mean.
pub fn interval(summary: &Summary) -> f64 {
    if summary.mean.is_finite() { summary.ci95 } else { f64::NAN }
}

/// How many runs of the plan ended how.
fn statuses(study: &StoredStudy) -> Value {
    let count =
        |status: RunStatus| study.records.iter().take(study.planned).filter(|r| r.status == status).count();
    let counts = RunStatus::ALL.into_iter().map(|status| (status.name().to_owned(), value!(count(status))));
    Value::Object(counts.filter(|(_, n)| *n != 0).collect())
}

/// Runs that nobody could expect, with their reasons.
fn bad_runs(study: &StoredStudy) -> Value {
    let bad = study.records.iter().take(study.planned).filter(|record| record.status.is_bad());
    let describe = |record: &crate::RunRecord| {
        let values: Map<String, Value> =
            record.values.iter().map(|(path, value)| (path.clone(), Value::from(value.as_str()))).collect();
        let (status, reason) = (record.status.name(), &record.reason);
        value!({
            "run": record.run,
            "seed": record.seed,
            "values": values,
            "status": status,
            "reason": reason,
        })
    };
    bad.map(describe).collect()
}

/// The points as CSV: values, runs, and mean and interval of each metric.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn csv_text(study: &StoredStudy, points: &[PointSummary]) -> Result<String, StudyError> {
    let failed = |error: String| StudyError::Invalid(format!("cannot write CSV: {error}"));
    let mut out = csv::Writer::from_writer(Vec::new());
    let mut head = paths(study);
    head.extend(["runs", "complete_runs", "bad"].map(str::to_owned));
    for metric in Metric::ALL {
        head.extend([metric.key().to_owned(), format!("{}_ci95", metric.key())]);
    }
    out.write_record(&head).map_err(|error| failed(error.to_string()))?;
    for point in points {
        let mut row = point.values.clone();
        row.extend([point.runs, point.complete, point.bad].map(|runs| runs.to_string()));
        for summary in &point.metrics {
            let number = |n: f64| if n.is_finite() { n.to_string() } else { String::new() };
            row.extend([number(summary.mean), number(interval(summary))]);
        }
        out.write_record(&row).map_err(|error| failed(error.to_string()))?;
    }
    let bytes = out.into_inner().map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}

fn paths(study: &StoredStudy) -> Vec<String> {
    let vary = &study.provenance.plan.vary;
    vary.iter().filter_map(|text| text.split_once('=')).map(|(path, _)| path.trim().to_owned()).collect()
}

/// How the page of a study is laid out.
#[derive(Clone, Debug, Default)]
pub struct StudyPage {
    /// The path along the horizontal axis; none: the numbers with the most values.
    pub x: Option<String>,
    /// The path whose values are curves; none: the first one of words.
    pub series: Option<String>,
    /// The metrics shown as figures; empty: those that vary.
    pub metrics: Vec<Metric>,
}

/// The axes of a figure, as places in the values of a point.
struct Layout {
    x: usize,
    series: Option<usize>,
    /// A second axis of numbers for heat maps.
    y: Option<usize>,
}

impl StudyPage {
    /// The page: what was run, figures, and the table of points.
    ///
    /// # Errors
    /// A path that is not varied.
    pub fn page(&self, study: &StoredStudy, points: &[PointSummary]) -> Result<Page, StudyError> {
        let p = &study.provenance;
        let mut page = Page::new(&format!("Study: {}", p.scenario));
        page.paragraph(&format!(
            "{} at {}, by farpace {}. Means are over the seeds of a point; whiskers and ± \
             are 95 % confidence intervals (Student's t).",
            counted(study.planned as u64, "run"),
            counted(points.len() as u64, "point"),
            p.farpace
        ));
        let bad = study.records.iter().take(study.planned).filter(|r| r.status.is_bad()).count();
        if bad > 0 {
            page.verdict(
                &format!("{bad} runs have no result, or a wrong one; their reasons are in the data set."),
                false,
            );
        }
        if let Some(note) = cut_note(points) {
            page.paragraph(&note);
        }
        let mut figures = Vec::new();
        let metrics: Vec<Metric> = match self.metrics.is_empty() {
            true => Metric::ALL.into_iter().filter(|metric| varies(points, *metric)).collect(),
            false => self.metrics.clone(),
        };
        match (self.layout(study)?, &p.plan.samples) {
            (layout, Some(_)) => {
                let x = self.x.as_ref().and(layout.as_ref()).map(|layout| layout.x);
                let colours = layout.and_then(|layout| layout.series);
                samples(study, points, &metrics, (x, colours), &mut figures)?;
            }
            (Some(layout), None) => {
                for metric in &metrics {
                    multiples(study, points, *metric, &layout, &mut figures);
                }
                for metric in &metrics {
                    heat_maps(study, points, *metric, &layout, &mut figures);
                }
            }
            (None, None) => {}
        }
        let more = figures.len().saturating_sub(MAX_FIGURES);
        for figure in figures.iter().take(MAX_FIGURES) {
            page.figure(figure);
        }
        if more > 0 {
            page.paragraph(&format!(
                "{more} further figures are left out: choose one with --metric, --x and --series."
            ));
        }
        page.heading("All points").table(&table(study, points));
        page.details("The plan", &serde_json::to_string_pretty(p).unwrap_or_default());
        Ok(page)
    }

    fn layout(&self, study: &StoredStudy) -> Result<Option<Layout>, StudyError> {
        let paths = paths(study);
        let place = |path: &Option<String>| match path {
            None => Ok(None),
            Some(path) => match paths.iter().position(|p| p == path) {
                Some(place) => Ok(Some(place)),
                None => Err(StudyError::Invalid(format!(
                    "{path} is not varied in this study: there are {}",
                    paths.join(", ")
                ))),
            },
        };
        let (x, series) = (place(&self.x)?, place(&self.series)?);
        if let Some(path) = self.x.as_ref().filter(|_| x == series) {
            return Err(StudyError::Invalid(format!(
                "--x and --series are both {path}: a curve would be a dot"
            )));
        }
        let grid = study.provenance.plan.grid()?;
        let values = grid.values();
        let numbers = |axis: &usize| values[*axis].iter().all(|value| QuantityValue::parse(value).is_some());
        let varied: Vec<usize> = (0..values.len()).filter(|axis| values[*axis].len() > 1).collect();
        let longest = |axes: Vec<usize>| axes.into_iter().rev().max_by_key(|axis| values[*axis].len());
        let free = |taken: &[Option<usize>]| -> Vec<usize> {
            varied.iter().copied().filter(|axis| !taken.contains(&Some(*axis))).collect()
        };
        let of_numbers = |axes: Vec<usize>| axes.into_iter().filter(numbers).collect::<Vec<_>>();
        let x = x.or_else(|| longest(of_numbers(free(&[series])))).or_else(|| longest(free(&[series])));
        let Some(x) = x else { return Ok(None) };
        let words = free(&[Some(x)]).into_iter().find(|axis| !numbers(axis));
        let series = series.or(words).or_else(|| free(&[Some(x)]).first().copied());
        let y = longest(of_numbers(free(&[Some(x), series])))
            .or(series.filter(|s| numbers(s)))
            .filter(|y| *y != x);
        Ok(Some(Layout { x, series, y }))
    }
}

/// False for a metric that is the same at all points, or unknown.
fn varies(points: &[PointSummary], metric: Metric) -> bool {
    let means: Vec<f64> = points.iter().filter_map(|p| p.metric(metric)).map(|s| s.mean).collect();
    let known: Vec<f64> = means.into_iter().filter(|mean| mean.is_finite()).collect();
    known.iter().any(|mean| (mean - known[0]).abs() > 1e-9)
}

/// Finds points by their values. A search of all points for each field of a map takes the square of their
/// number.
struct PointIndex<'a>(BTreeMap<&'a [String], &'a PointSummary>);

impl<'a> PointIndex<'a> {
    fn new(points: &'a [PointSummary]) -> Self {
        PointIndex(points.iter().map(|point| (point.values.as_slice(), point)).collect())
    }
    /// The point of a panel with further values of its other axes.
    fn find(&self, panel: &[(usize, String)], others: &[(usize, &str)]) -> Option<&'a PointSummary> {
        let mut values = vec![String::new(); panel.len() + others.len()];
        let all = panel.iter().map(|(axis, value)| (*axis, value.as_str())).chain(others.iter().copied());
        for (axis, value) in all {
            value.clone_into(values.get_mut(axis)?);
        }
        self.0.get(values.as_slice()).copied()
    }
}

/// The values of all axes but `without`, of the points in order, each once.
fn panels(points: &[PointSummary], without: &[Option<usize>]) -> Vec<Vec<(usize, String)>> {
    let mut panels: Vec<Vec<(usize, String)>> = Vec::new();
    let mut seen = BTreeSet::new();
    for point in points {
        let values = point.values.iter().cloned().enumerate();
        let panel: Vec<_> = values.filter(|(axis, _)| !without.contains(&Some(*axis))).collect();
        if seen.insert(panel.clone()) {
            panels.push(panel);
        }
    }
    panels
}

fn axis_values(points: &[PointSummary], axis: usize) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for value in points.iter().filter_map(|point| point.values.get(axis)) {
        if seen.insert(value) {
            values.push(value.clone());
        }
    }
    // The numbers of a grown grid stand in the order of the plan; curves need theirs.
    let number = |value: &String| QuantityValue::parse(value).map(|q| q.base);
    if values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    }
    values
}

fn title_of(metric: Metric, panel: &[(usize, String)], paths: &[String]) -> String {
    let head = metric.head().0.split(" [").next().unwrap_or_default();
    let place = |(axis, value): &(usize, String)| format!("{} = {value}", paths[*axis]);
    let places: Vec<String> = panel.iter().map(place).collect();
    if places.is_empty() { head.to_owned() } else { format!("{head}, {}", places.join(", ")) }
}

/// A panel of curves for each combination of the other axes' values.
fn multiples(
    study: &StoredStudy,
    points: &[PointSummary],
    metric: Metric,
    layout: &Layout,
    figures: &mut Vec<Figure>,
) {
    let paths = paths(study);
    let cases = axis_values(points, layout.x);
    let series = layout.series.map_or(vec![String::new()], |axis| axis_values(points, axis));
    let index = PointIndex::new(points);
    for (n, panel) in panels(points, &[Some(layout.x), layout.series]).iter().enumerate() {
        let estimate = |label: &str, case: &str| {
            let others: Vec<_> =
                [(layout.x, case)].into_iter().chain(layout.series.map(|axis| (axis, label))).collect();
            let summary = index.find(panel, &others)?.metric(metric)?;
            summary.mean.is_finite().then(|| summary.estimate())
        };
        let name = layout.series.map_or(String::new(), |axis| paths[axis].clone());
        let labels: Vec<String> =
            series.iter().map(|label| if label.is_empty() { "all".into() } else { label.clone() }).collect();
        let all: Vec<Curve<'_>> = series
            .iter()
            .zip(&labels)
            .map(|(value, label)| Curve {
                label,
                points: cases.iter().map(|case| estimate(value, case)).collect(),
            })
            .collect();
        let words: Vec<&str> = cases.iter().map(String::as_str).collect();
        let title = title_of(metric, panel, &paths);
        let caption = format!("Each curve is a value of {name}. Whiskers are 95 % confidence intervals.");
        let mut caption =
            if name.is_empty() { "Whiskers are 95 % confidence intervals.".to_owned() } else { caption };
        caption.push_str(&left_out(cases.len(), MAX_CURVES, &paths[layout.x]));
        caption.push_str(&left_out(series.len(), MAX_CURVES, &name));
        figures.push(
            curves(&title, &paths[layout.x], metric.head().0, &words, &all)
                .figure(&format!("figures/{}-{}.svg", metric.name(), n + 1), &caption),
        );
    }
}

/// Two heat maps for each combination of the other axes' values: means, and half the widths of their
/// intervals.
fn heat_maps(
    study: &StoredStudy,
    points: &[PointSummary],
    metric: Metric,
    layout: &Layout,
    figures: &mut Vec<Figure>,
) {
    let Some(y) = layout.y else { return };
    let paths = paths(study);
    let (columns, rows) = (axis_values(points, layout.x), axis_values(points, y));
    let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
    let index = PointIndex::new(points);
    for (n, panel) in panels(points, &[Some(layout.x), Some(y)]).iter().enumerate() {
        let number = |row: &str, column: &str, of: fn(&Summary) -> f64| {
            let point = index.find(panel, &[(layout.x, column), (y, row)])?;
            point.metric(metric).map(of).filter(|v| v.is_finite())
        };
        let map = |of: fn(&Summary) -> f64| -> Vec<HeatRow<'_>> {
            let values = |row: &String| columns.iter().map(|column| number(row, column, of)).collect();
            rows.iter().map(|row| HeatRow { label: row, values: values(row) }).collect()
        };
        let title = title_of(metric, panel, &paths);
        let mut axes = format!("Columns: {}; rows: {}.", paths[layout.x], paths[y]);
        axes.push_str(&left_out(columns.len(), MAX_FIELDS, &paths[layout.x]));
        axes.push_str(&left_out(rows.len(), MAX_FIELDS, &paths[y]));
        let name = format!("figures/{}-map-{}", metric.name(), n + 1);
        figures.push(
            heat_map(&title, [metric.head().0, ""], &heads, &map(|s| s.mean))
                .figure(&format!("{name}.svg"), &format!("{axes} Mean over the seeds.")),
        );
        let widths = map(interval);
        if widths.iter().flat_map(|row| &row.values).flatten().any(|width| *width > 0.0) {
            figures.push(heat_map(&format!("± {title}"), [metric.head().0, ""], &heads, &widths).figure(
                &format!("{name}-interval.svg"),
                &format!("{axes} Half the width of the 95 % confidence interval."),
            ));
        }
    }
}

/// Samples: each metric over each axis of numbers, or over `x` alone. Each word of the axis `colours` has a
/// colour, unless it has numbers.
fn samples(
    study: &StoredStudy,
    points: &[PointSummary],
    metrics: &[Metric],
    (x, colours): (Option<usize>, Option<usize>),
    figures: &mut Vec<Figure>,
) -> Result<(), StudyError> {
    let paths = paths(study);
    let grid = study.provenance.plan.grid()?;
    let words = |axis: usize| -> Vec<String> {
        let words = grid.values().get(axis).cloned().unwrap_or_default();
        let numbers = words.iter().all(|word| QuantityValue::parse(word).is_some());
        if numbers || words.len() > MAX_COLOURS { Vec::new() } else { words }
    };
    let words = colours.map(words).unwrap_or_default();
    let shown = points.get(..MAX_DOTS).unwrap_or(points);
    for metric in metrics {
        for (axis, path) in paths.iter().enumerate().filter(|(axis, _)| x.is_none_or(|x| x == *axis)) {
            let dot = |point: &&PointSummary| {
                let x = QuantityValue::parse(point.values.get(axis)?)?.base;
                let y = point.metric(*metric)?.mean;
                y.is_finite().then_some((x, y))
            };
            if shown.iter().filter_map(|p| dot(&p)).count() < 2 {
                continue;
            }
            let of = |word: &str| {
                let here =
                    |p: &&PointSummary| word.is_empty() || colours.is_some_and(|c| p.values[c] == word);
                shown.iter().filter(here).filter_map(|p| dot(&p)).collect()
            };
            let all: Vec<Cloud<'_>> = match words.is_empty() {
                true => vec![Cloud { label: "", points: of("") }],
                false => words.iter().map(|word| Cloud { label: word, points: of(word) }).collect(),
            };
            let unit = points
                .iter()
                .find_map(|p| QuantityValue::parse(p.values.get(axis)?))
                .map_or("", |q| q.kind.unit());
            let x_label = if unit.is_empty() { path.clone() } else { format!("{path} ({unit})") };
            let title = format!("{} over {path}", title_of(*metric, &[], &paths));
            let mut caption = "Each dot is a point of the sample, mean over its seeds.".to_owned();
            if let Some(axis) = colours.filter(|_| !words.is_empty()) {
                caption.push_str(&format!(" Each colour is a value of {}.", paths[axis]));
            }
            if shown.len() < points.len() {
                caption.push_str(&format!(" These are the first {MAX_DOTS} of {} points.", points.len()));
            }
            let logarithmic = grid.is_logarithmic(axis);
            figures.push(
                clouds(&title, &x_label, metric.head().0, logarithmic, &all)
                    .figure(&format!("figures/{}-{}.svg", metric.name(), axis + 1), &caption),
            );
        }
    }
    Ok(())
}

/// `1 run`, `2 runs`.
fn counted(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// What a figure leaves out of `all` values of an axis, as a sentence for its caption.
fn left_out(all: usize, most: usize, path: &str) -> String {
    if all <= most {
        String::new()
    } else {
        format!(" These are the first {most} of {all} values of {path}.")
    }
}
