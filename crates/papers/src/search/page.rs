//! The report of a search: for a terminal, for programs, and as a page.

use super::objective::{self, Objective};
use super::scenario::PathSenders;
use super::space::{DIMENSIONS, Gene, PathPoint};
use super::{FoundPath, Search, SearchResult, words};
use crate::bulk::BulkRun;
use crate::contender::{chosen_controls, congestion_name};
use crate::experiment::{MeasureError, StopRequest};
use crate::report::ExperimentReport;
use farpace_report::{HeatRow, Page, Table, TableCell, TimeLine, heat_map, lines};
use serde_json::{Value, json};

/// Edges of the classes of rates, Mbit/s, and of round trips, ms.
const RATES: [f64; 6] = [1.0, 3.0, 10.0, 30.0, 100.0, f64::INFINITY];
const RTTS: [f64; 6] = [5.0, 15.0, 50.0, 150.0, 400.0, f64::INFINITY];

/// A search with what it has found.
pub struct SearchReport {
    /// The report, with its page.
    pub report: ExperimentReport,
    /// The scenario of each found path, with the name of its file.
    pub scenarios: Vec<(String, String)>,
}

impl SearchReport {
    /// Runs each found path once more for its pictures.
    ///
    /// # Errors
    /// See [`MeasureError`].
    pub fn make(
        search: &Search,
        result: &SearchResult,
        command: &str,
        stop: &StopRequest<'_>,
    ) -> Result<Self, MeasureError> {
        let name = congestion_name(search.control);
        let against: Vec<String> = search.against.iter().map(|c| congestion_name(*c)).collect();
        let title = format!("Paths on which {name} is worst: {}", search.objective.name());
        let mut page = Page::new(&title);
        page.paragraph(&format!(
            "{} paths in {} generations, compared with {}. A gap of 0 is as good as the best of them, 1 is \
             nothing of it. Each of these paths is the worst of its kind and shrunk to the fewest \
             impairments and round numbers; its scenario repeats it exactly.",
            result.judged.len(),
            result.generations,
            against.join(", ")
        ));
        if result.worst.is_empty() {
            page.finding("No path was found on which it is worse than the best of the others.");
        }
        if result.unshrunk > 0 {
            page.finding(&format!(
                "The time ended before {} of the found paths were shrunk: they may have more impairments \
                 than matter. The same command with a longer --budget goes on.",
                result.unshrunk
            ));
        }
        page.table(&table(search.objective, &result.worst));
        let mut scenarios = Vec::new();
        let mut found = Vec::new();
        for (n, path) in (1..).zip(&result.worst) {
            let file = format!("worst-{n:02}.toml");
            let sentence = words::sentence(&path.point, search.objective, &path.score);
            let text = scenario_text(search, path, &sentence);
            page.heading(&format!("{n}. gap {:.2}", path.score.gap)).finding(&sentence);
            page.command(&format!("farpace run {file}"));
            let pictures = pictures(search, path, n, stop)?;
            for figure in &pictures {
                page.figure(figure);
            }
            page.details("The scenario", &text);
            found.push(json!({
                "gap": path.score.gap,
                "what": sentence,
                "file": file,
                "path": values(&path.point),
                "own": path.score.own,
                "other": path.score.other,
                "scenario": text,
            }));
            scenarios.push((file, text));
        }
        space_pictures(&mut page, result);
        page.heading("How to repeat this").command(command);
        let json = json!({
            "format": "farpace-cc-search/1",
            "control": name,
            "against": against,
            "objective": search.objective,
            "seed": search.seed,
            "paths": result.judged.len(),
            "generations": result.generations,
            "unshrunk": result.unshrunk,
            "worst": found,
        });
        Ok(SearchReport { report: ExperimentReport::new(page, title, json), scenarios })
    }
}

fn scenario_text(search: &Search, path: &FoundPath, sentence: &str) -> String {
    let senders = PathSenders { first: search.control, itself: search.control };
    let title = format!("{}: {}", congestion_name(search.control), path.point.words());
    path.point.scenario_text(senders, search.objective.changes_once(), &title, sentence)
}

fn values(point: &PathPoint) -> Value {
    let value = |d: &&'static super::Dimension| match point.word(d.gene) {
        Some(word) => json!(word),
        None => json!(point.of(d.gene)),
    };
    point.effective().map(|d| (d.key.to_owned(), value(&d))).collect::<serde_json::Map<_, _>>().into()
}

fn table(objective: Objective, worst: &[FoundPath]) -> Table {
    let mut table = Table::with(
        format!("The worst paths: {}", objective.name()),
        "number | gap | goodput [Mbit/s] | best other | [Mbit/s] | delay [ms, mean] | other's [ms] | path",
    );
    for (n, FoundPath { point, score }) in (1..).zip(worst) {
        let (own, other) = (&score.own, &score.other);
        let cell = |value: f64, decimals: usize| TableCell::from(format!("{value:.decimals$}"));
        table.row([
            TableCell::from(format!("{n}")),
            cell(score.gap, 2),
            cell(own.goodput_mbit_s, 2),
            other.control.as_str().into(),
            cell(other.goodput_mbit_s, 2),
            cell(own.delay_mean_ms, 1),
            cell(other.delay_mean_ms, 1),
            point.to_string().as_str().into(),
        ]);
    }
    table
}

/// Goodput over time of every flow, with the control in question and with the best of the others.
fn pictures(
    search: &Search,
    path: &FoundPath,
    n: usize,
    stop: &StopRequest<'_>,
) -> Result<Vec<farpace_report::Figure>, MeasureError> {
    let once = search.objective.changes_once();
    let other = chosen_controls(std::slice::from_ref(&path.score.other.control))?;
    let mut curves = Vec::new();
    for control in std::iter::once(search.control).chain(other) {
        let senders = PathSenders { first: control, itself: control };
        let (_, run) = objective::run(&path.point, senders, once, stop)?;
        let name = congestion_name(control);
        curves.push((name.clone(), goodput(&run, 0)));
        if run.flows.len() > 1 {
            curves.push((format!("neighbour of {name}"), goodput(&run, 1)));
        }
    }
    let all: Vec<TimeLine<'_>> =
        curves.iter().map(|(label, points)| TimeLine { label, points: points.clone() }).collect();
    let figure = lines("Goodput over time", "Mbit/s in bins of 500 ms", &all, None).figure(
        &format!("figures/worst-{n:02}.svg"),
        &format!("Path {n}: what reaches the receiving program."),
    );
    Ok(vec![figure])
}

fn goodput(run: &BulkRun, flow: usize) -> Vec<(f64, f64)> {
    let readings = run.flows.get(flow).map_or(&[][..], |f| &f.readings);
    let chunk = |bins: &[crate::bulk::FlowReading]| {
        let bytes: u64 = bins.iter().map(|r| r.delivered).sum();
        let at = bins.first().map_or(0.0, |r| r.at().as_secs_f64() - 0.1);
        (at.max(0.0), bytes as f64 * 8e-6 / (0.1 * bins.len() as f64))
    };
    readings.chunks(5).map(chunk).collect()
}

/// The space of paths, coloured by gap: rate against round trip, and each impairment against the round trip.
fn space_pictures(page: &mut Page, result: &SearchResult) {
    let class = |edges: &[f64; 6], value: f64| {
        edges.windows(2).position(|pair| value < pair[1]).unwrap_or(edges.len() - 2)
    };
    let label = |edges: &[f64; 6], n: usize, unit: &str| match edges.get(n + 1) {
        Some(to) if to.is_finite() => format!("{}–{to} {unit}", edges[n]),
        _ => format!("from {} {unit}", edges[n]),
    };
    let columns: Vec<String> = (0..5).map(|n| label(&RTTS, n, "ms")).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let worst = |row: &dyn Fn(&PathPoint) -> bool| {
        let mut values: Vec<Option<f64>> = vec![None; 5];
        for (point, gap) in result.judged.iter().filter(|(point, _)| row(point)) {
            if let Some(place) = values.get_mut(class(&RTTS, point.of(Gene::Rtt))) {
                *place = Some(place.map_or(gap * 100.0, |known: f64| known.max(gap * 100.0)));
            }
        }
        values
    };
    let signs = ["% worse than the best", "% better than the best"];
    let names: Vec<String> = (0..5).map(|n| label(&RATES, n, "Mbit/s")).collect();
    let rows: Vec<HeatRow<'_>> = (0..5)
        .map(|n| HeatRow {
            label: &names[n],
            values: worst(&|p: &PathPoint| class(&RATES, p.of(Gene::Rate)) == n),
        })
        .collect();
    page.heading("The space of paths");
    page.figure(&heat_map("Largest gap by rate and round trip", signs, &columns, &rows).figure(
        "figures/space-rate.svg",
        "The largest gap in percent among all judged paths of each class. Empty: none was judged.",
    ));
    let impairments: Vec<_> = DIMENSIONS.iter().filter(|d| d.usual.is_none()).collect();
    let rows: Vec<HeatRow<'_>> = impairments
        .iter()
        .map(|d| HeatRow { label: d.key, values: worst(&|p: &PathPoint| p.get(d.gene).is_some()) })
        .collect();
    page.figure(&heat_map("Largest gap by impairment and round trip", signs, &columns, &rows).figure(
        "figures/space-impairments.svg",
        "The largest gap in percent among all judged paths that have the impairment, alone or with others.",
    ));
}
