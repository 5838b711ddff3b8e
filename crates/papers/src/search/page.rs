//! The report of a search: for a terminal, for programs, and as a page.

use super::objective::{self, Objective, PathNumbers};
use super::scenario::PathSenders;
use super::space::{DIMENSIONS, Gene, PathPoint};
use super::{FoundPath, SEEDS, Search, SearchResult, SearchRunner, words};
use crate::bulk::BulkRun;
use crate::contender::{chosen_controls, congestion_name};
use crate::experiment::{MeasureError, StopRequest};
use crate::report::ExperimentReport;
use crate::statistics::jain;
use farpace_report::{Figure, HeatRow, Level, Page, Table, TableCell, TimeLine, heat_map, lines};
use serde_json::{Value, json};
use std::path::Path;

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
    /// The report, which belongs into `dir`. Runs each found path once more for its pictures, as long as
    /// there is time.
    ///
    /// # Errors
    /// See [`MeasureError`].
    pub fn make(
        search: &Search,
        result: &SearchResult,
        command: &str,
        dir: &Path,
        runner: &SearchRunner<'_>,
    ) -> Result<Self, MeasureError> {
        let name = congestion_name(search.control);
        let against = search.objective.compared(&search.against);
        let against: Vec<String> = against.iter().map(|c| congestion_name(*c)).collect();
        let title = format!("Paths on which {name} is worst: {}", search.objective.name());
        let mut page = Page::new(&title);
        let plural = if result.generations == 1 { "" } else { "s" };
        page.paragraph(&format!(
            "{} paths in {} generation{plural}, compared with {}. A gap of 0 is as good as the best of \
             them, 1 is nothing of it. Each of these paths is the worst of its kind and shrunk to the \
             fewest impairments and round numbers. It is worse with each of {SEEDS} seeds, and the gap is \
             their mean; its scenario repeats the run with the first one exactly.",
            result.judged.len(),
            result.generations,
            against.join(", ")
        ));
        if result.judged.is_empty() {
            page.finding("The time ended before a path was judged. Give the search a longer --budget.");
        } else if result.worst.is_empty() {
            page.finding("No path was found on which it is worse than the best of the others.");
        }
        if result.refuted > 0 {
            page.finding(&format!(
                "Left out: {} found with one seed that are no finding with another one.",
                paths(result.refuted)
            ));
        }
        let once = result.worst.iter().filter(|path| (path.gaps.len() as u64) < SEEDS).count();
        if once > 0 {
            page.finding(&format!(
                "The time ended before {} had been repeated with {SEEDS} seeds. The same command with a \
                 longer --budget goes on.",
                paths(once)
            ));
        }
        if result.unshrunk > 0 {
            page.finding(&format!(
                "The time ended before {} had been shrunk to the end: more impairments than matter may be \
                 left. The same command with a longer --budget goes on.",
                paths(result.unshrunk)
            ));
        }
        page.table(&table(search.objective, &result.worst));
        let mut scenarios = Vec::new();
        let mut found = Vec::new();
        let mut without_pictures = 0;
        for (n, path) in (1..).zip(&result.worst) {
            let file = format!("worst-{n:02}.toml");
            let sentence = words::sentence(&path.point, search.objective, &path.score);
            let text = scenario_text(search, path, &sentence);
            page.heading(&format!("Path {n}: gap {:.2}", path.mean_gap())).finding(&sentence);
            if path.gaps.len() > 1 {
                let gaps: Vec<String> = path.gaps.iter().map(|gap| format!("{gap:.2}")).collect();
                page.paragraph(&format!("The gap with each seed: {}.", gaps.join(", ")));
            }
            page.command(&format!("farpace run {}", dir.join(&file).display()));
            let drawn = match runner.draws(result) {
                true => pictures(search, path, n, &|| (runner.stop)() || !runner.draws(result)),
                false => Err(MeasureError::Interrupted),
            };
            match drawn {
                Ok(figure) => _ = page.figure(&figure),
                Err(MeasureError::Interrupted) if !(runner.stop)() => without_pictures += 1,
                Err(error) => return Err(error),
            }
            page.details("The scenario", &text);
            found.push(json!({
                "gap": path.mean_gap(),
                "least_gap": path.least_gap(),
                "gaps": path.gaps,
                "what": sentence,
                "file": file,
                "path": values(&path.point),
                "own": path.score.own,
                "other": path.score.other,
                "scenario": text,
            }));
            scenarios.push((file, text));
        }
        if without_pictures > 0 {
            page.finding(&format!(
                "The time ended before the pictures of {} had been made. The same command with a longer \
                 --budget makes them.",
                paths(without_pictures)
            ));
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
            "refuted": result.refuted,
            "worst": found,
        });
        Ok(SearchReport { report: ExperimentReport::new(page, title, json), scenarios })
    }
}

fn paths(count: usize) -> String {
    if count == 1 { "1 path".to_owned() } else { format!("{count} paths") }
}

fn scenario_text(search: &Search, path: &FoundPath, sentence: &str) -> String {
    let senders = PathSenders { first: search.control, itself: search.control };
    let title =
        format!("{}: {}", congestion_name(search.control), path.point.words(search.objective.changes_once()));
    path.point.scenario_text(senders, search.objective.changes_once(), &title, sentence)
}

fn values(point: &PathPoint) -> Value {
    let value = |d: &&'static super::Dimension| match point.word(d.gene) {
        Some(word) => json!(word),
        None => json!(point.of(d.gene)),
    };
    point.effective().map(|d| (d.key.to_owned(), value(&d))).collect::<serde_json::Map<_, _>>().into()
}

/// The quantity that the gap is made of stands first.
fn table(objective: Objective, worst: &[FoundPath]) -> Table {
    let delays = "delay [ms, mean] | other's delay [ms, mean]";
    let goodputs = "goodput [Mbit/s] | other's goodput [Mbit/s]";
    let heads = match objective {
        Objective::Goodput => format!("best other | {goodputs} | {delays}"),
        Objective::Delay => format!("best other | {delays} | {goodputs}"),
        Objective::Fairness => "best other | fairness [Jain] | other's fairness [Jain] | larger share \
                                [Mbit/s] | smaller share [Mbit/s]"
            .to_owned(),
        Objective::Starvation => "in its place | goodput [Mbit/s] | other's in its place [Mbit/s] | its \
                                  neighbour's [Mbit/s] | neighbour's beside the other [Mbit/s]"
            .to_owned(),
        Objective::Recovery => {
            format!("best other | after the change [Mbit/s] | other's after it [Mbit/s] | {delays}")
        }
    };
    let mut table = Table::with(
        format!("The worst paths: {}", objective.name()),
        &format!("number | gap [mean] | least gap [] | {heads} | path"),
    );
    for (n, path) in (1_u64..).zip(worst) {
        let (own, other) = (&path.score.own, &path.score.other);
        let late = |numbers: &PathNumbers, n: usize| numbers.late_mbit_s.get(n).copied().unwrap_or(0.0);
        let goodputs = [own.goodput_mbit_s, other.goodput_mbit_s];
        let delays = [own.delay_mean_ms, other.delay_mean_ms];
        let (first, second, decimals) = match objective {
            Objective::Goodput => (goodputs, delays, [2, 1]),
            Objective::Delay => (delays, goodputs, [1, 2]),
            Objective::Fairness => {
                let [a, b] = [0, 1].map(|n| late(own, n));
                ([jain(&own.late_mbit_s), jain(&other.late_mbit_s)], [a.max(b), a.min(b)], [3, 2])
            }
            Objective::Starvation => ([late(own, 0), late(other, 0)], [late(own, 1), late(other, 1)], [2, 2]),
            Objective::Recovery => ([own.after_mbit_s, other.after_mbit_s], delays, [2, 1]),
        };
        let numbers = [(first, decimals[0]), (second, decimals[1])];
        let numbers = numbers.into_iter().flat_map(|(two, d)| two.map(|value| TableCell::from((value, d))));
        let gaps = [path.mean_gap(), path.least_gap()].map(|gap| TableCell::from((gap, 2)));
        let start = [TableCell::from(n)].into_iter().chain(gaps);
        let end = TableCell::from(path.point.keys(objective.changes_once()));
        let other = TableCell::from(other.control.as_str());
        table.row(start.chain([other]).chain(numbers).chain([end]));
    }
    table
}

/// Goodput over time of every flow, with the control in question and with the best of the others.
fn pictures(
    search: &Search,
    path: &FoundPath,
    n: usize,
    stop: &StopRequest<'_>,
) -> Result<Figure, MeasureError> {
    let once = search.objective.changes_once();
    let other = chosen_controls(std::slice::from_ref(&path.score.other.control))?;
    let mut curves = Vec::new();
    for control in std::iter::once(search.control).chain(other) {
        let senders = PathSenders { first: control, itself: control };
        let (_, run) = objective::run(&path.point, senders, once, 1, stop)?;
        let (name, end) = (congestion_name(control), path.point.duration().as_secs_f64());
        curves.push((name.clone(), goodput(&run, 0, end)));
        if run.flows.len() > 1 {
            curves.push((format!("neighbour of {name}"), goodput(&run, 1, end)));
        }
    }
    let all: Vec<TimeLine<'_>> =
        curves.iter().map(|(label, points)| TimeLine { label, points: points.clone() }).collect();
    let senders = PathSenders { first: search.control, itself: search.control };
    let scenario = path.point.scenario(senders, once)?;
    let ceiling = scenario.flows.first().and_then(|flow| scenario.bottleneck(flow));
    let level =
        ceiling.map(|b| Level { label: "the most that the path carries", value: b.goodput.as_mbit_f64() });
    Ok(lines("Goodput over time", "Mbit/s in bins of 500 ms", &all, level.as_ref()).figure(
        &format!("figures/worst-{n:02}.svg"),
        &format!("Path {n}: what reaches the receiving program."),
    ))
}

/// To the `end` of the run, in s.
fn goodput(run: &BulkRun, flow: usize, end: f64) -> Vec<(f64, f64)> {
    let readings = run.flows.get(flow).map_or(&[][..], |f| &f.readings);
    let chunk = |bins: &[crate::bulk::FlowReading]| {
        let bytes: u64 = bins.iter().map(|r| r.delivered).sum();
        let at = bins.first().map_or(0.0, |r| r.at().as_secs_f64() - 0.1);
        (at.max(0.0), bytes as f64 * 8e-6 / (0.1 * bins.len() as f64))
    };
    let mut points: Vec<(f64, f64)> = readings.chunks(5).map(chunk).collect();
    // A value holds until the next one.
    points.extend(points.last().map(|(_, value)| (end, *value)));
    points
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

#[cfg(test)]
mod tests {
    use super::super::objective::PathScore;
    use super::*;
    use farpace_tcp::config::Congestion;

    /// Breaks: the table of an objective lacks the quantity of its gap, such as the neighbour's share, or the
    /// page names controls that were not run.
    #[test]
    fn the_table_shows_what_the_gap_is_made_of() {
        let numbers = |control: &str, late: [f64; 2], after: f64| PathNumbers {
            control: control.into(),
            goodput_mbit_s: 11.0,
            late_mbit_s: late.into(),
            after_mbit_s: after,
            delay_mean_ms: 22.0,
            delay_95_ms: 33.0,
            delay_99_ms: 44.0,
            retransmitted_percent: 0.0,
            timeouts: 0,
        };
        let (own, other) = (numbers("farpace", [7.25, 1.75], 6.5), numbers("cubic", [4.5, 4.25], 9.5));
        let score = PathScore { gap: 0.5, own, other };
        let point = PathPoint::default().with(Gene::DelayStep, 0.5).with(Gene::StepTime, 7.0);
        let path = FoundPath { point, score, gaps: vec![0.5, 0.25, 0.75] };
        let row = |objective| table(objective, std::slice::from_ref(&path)).to_json()["rows"][0].to_string();
        for (objective, all) in [
            (Objective::Goodput, r#"0.5,0.25,"cubic",11.0,11.0,22.0,22.0"#),
            (Objective::Delay, r#""cubic",22.0,22.0,11.0,11.0"#),
            (Objective::Starvation, r#""cubic",7.25,4.5,1.75,4.25"#),
            (Objective::Recovery, r#""cubic",6.5,9.5,22.0,22.0"#),
        ] {
            assert!(row(objective).contains(all), "{objective:?}: {}", row(objective));
        }
        assert!(row(Objective::Fairness).ends_with(r#"step_s=7"]"#), "{}", row(Objective::Fairness));
        assert!(!row(Objective::Recovery).contains("step_s"));
        let against = [Congestion::Cubic, Congestion::Bbr3];
        assert_eq!(Objective::Starvation.compared(&against), [Congestion::Cubic]);
        assert_eq!(Objective::Fairness.compared(&against), against);
    }
}
