//! What came of a grid: tables, figures, JSON.

use super::judge::{GridTally, GridVerdict, MAX_STALL_COST, is_disturbed, of_lab, tally};
use super::measure::{GridPlan, of_point};
use super::point::{GridPoint, GridQueue};
use super::record::GridRun;
use crate::compare::Backend;
use anyhow::Result;
use farpace_papers::congestion_name;
use farpace_papers::statistics::Summary;
use farpace_process::outdir::OutDir;
use farpace_report::{
    ComparisonRow, Figure, Page, Sides, Table, TableCell, TableColumn, comparison_of, number,
};
use farpace_tcp::config::Congestion;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Rows of a figure.
const MAX_ROWS: usize = 40;

/// A point with its runs and what they say of each way.
struct PointResult {
    point: GridPoint,
    runs: Vec<GridRun>,
    tallies: Vec<(Backend, GridTally)>,
}

impl PointResult {
    fn tally(&self, way: Backend) -> Option<&GridTally> {
        self.tallies.iter().find(|(of, _)| *of == way).map(|(_, tally)| tally)
    }
    /// The runs of a way that count.
    fn counted(&self, way: Backend) -> Vec<&GridRun> {
        let counts = |run: &&GridRun| run.way == way && run.error.is_none() && !is_disturbed(run);
        self.runs.iter().filter(counts).collect()
    }
    /// The lab's runs: with the stalls of those of `beside` that count, or all without stalls.
    fn of_lab(&self, beside: Option<Backend>) -> Vec<&GridRun> {
        let all = || self.runs.iter().filter(|run| run.way == Backend::Lab && run.beside.is_none()).collect();
        let seeds = beside.map_or_else(all, |way| self.counted(way)).into_iter().map(|run| run.seed);
        let found = seeds.filter_map(|seed| of_lab(&self.runs, beside, seed));
        found.filter(|run| run.error.is_none()).collect()
    }
}

/// The mean of a number of some runs.
fn mean(runs: &[&GridRun], value: impl Fn(&GridRun) -> f64) -> f64 {
    Summary::of(runs.iter().map(|run| value(run))).mean
}

/// What came of a grid.
pub struct GridResults<'a> {
    plan: &'a GridPlan,
    points: Vec<PointResult>,
}

impl<'a> GridResults<'a> {
    /// Of the runs so far.
    pub fn new(plan: &'a GridPlan, runs: &[GridRun]) -> Self {
        let result = |point: &GridPoint| {
            let runs = of_point(point, runs);
            let tallies = plan.ways.iter().map(|way| (*way, tally(&plan.rules, point, *way, &runs)));
            PointResult { point: *point, tallies: tallies.collect(), runs }
        };
        GridResults { plan, points: plan.points.iter().map(result).collect() }
    }
    /// How often there is each verdict on a way.
    fn count(&self, verdict: GridVerdict) -> usize {
        let all = self.points.iter().flat_map(|point| &point.tallies);
        all.filter(|(_, tally)| tally.verdict == verdict).count()
    }
    /// True if no way differs from the lab at any point.
    pub fn agrees(&self) -> bool {
        self.count(GridVerdict::Differs) == 0
    }
    /// What came out, in a sentence.
    pub fn sentence(&self) -> String {
        use GridVerdict::{Agrees, Differs, Failed, MachineTooBusy, Uncertain, Unfinished};
        let total = self.points.iter().map(|point| point.tallies.len()).sum::<usize>();
        let all = [Agrees, Differs, Uncertain, MachineTooBusy, Failed, Unfinished].into_iter();
        let counts = all.map(|verdict| (verdict, self.count(verdict))).filter(|(_, n)| *n > 0);
        let words: Vec<String> = counts.map(|(verdict, n)| format!("{} {n}", verdict.text())).collect();
        format!("Of {total} comparisons: {}.", words.join(", "))
    }
    /// A row for each point.
    pub fn table(&self) -> Table {
        let mut columns = ["rate", "round trip", "queue", "loss", "control"].map(TableColumn::text).to_vec();
        columns.push(TableColumn::number("lab", "Mbit/s"));
        for way in &self.plan.ways {
            columns.push(TableColumn::number(&format!("lab stalled as {}", way.key()), "Mbit/s"));
            columns.push(TableColumn::number(&format!("{} / lab stalled", way.key()), ""));
            columns.push(TableColumn::text("verdict"));
        }
        columns.push(TableColumn::number("runs (disturbed)", ""));
        let title = "Goodput over that of the lab with the same stalls, and 95 % confidence intervals";
        let mut table = Table::new(title, columns);
        for result in &self.points {
            let mut row: Vec<TableCell> = result.point.words().map(TableCell::from).to_vec();
            row.push(number(mean(&result.of_lab(None), |run| run.goodput_mbit_s)).into());
            for (_, tally) in &result.tallies {
                row.push(number(tally.stalled_mbit_s).into());
                row.push(tally.ratio.text(3).into());
                row.push(tally.verdict.text().into());
            }
            let runs = result.tallies.iter().map(|(_, tally)| match tally.disturbed {
                0 => tally.ratio.runs.to_string(),
                disturbed => format!("{} ({disturbed})", tally.ratio.runs),
            });
            row.push(runs.collect::<Vec<_>>().join(", ").into());
            table.row(row);
        }
        table
    }
    /// What else differs where a way does not agree.
    pub fn differences(&self) -> Table {
        let heads = "point | way | goodput [Mbit/s] | sent again [%] | round trip [ms] | window [segments] | \
                     stood still [%]";
        let mut table = Table::with("Where a way does not agree with the lab: means of the runs", heads);
        for result in &self.points {
            let not_alike = |(_, tally): &&(Backend, GridTally)| {
                matches!(tally.verdict, GridVerdict::Differs | GridVerdict::Uncertain)
            };
            let ways: Vec<Backend> = result.tallies.iter().filter(not_alike).map(|(way, _)| *way).collect();
            if ways.is_empty() {
                continue;
            }
            let lasts = result.point.lasts(self.plan.seconds);
            let mut row = |name: &str, runs: &[&GridRun], still: f64| {
                table.row([
                    result.point.key().into(),
                    name.into(),
                    number(mean(runs, |run| run.goodput_mbit_s)).into(),
                    number(mean(runs, |run| run.sent_again as f64 * 100.0 / run.sent.max(1) as f64)).into(),
                    number(mean(runs, |run| run.srtt_ms)).into(),
                    number(mean(runs, |run| run.cwnd)).into(),
                    number(still * 100.0).into(),
                ]);
            };
            row("lab", &result.of_lab(None), 0.0);
            for way in ways {
                let counted = result.counted(way);
                let still = mean(&counted, |run| run.stalled_share(lasts));
                row(&format!("lab stalled as {}", way.key()), &result.of_lab(Some(way)), still);
                row(way.key(), &counted, still);
            }
        }
        table
    }
    /// Why runs failed, each reason once.
    pub fn failures(&self) -> BTreeSet<String> {
        let runs = self.points.iter().flat_map(|point| &point.runs);
        runs.filter_map(|run| Some(format!("{}, {}: {}", run.point, run.way.key(), run.error.as_ref()?)))
            .collect()
    }
    /// The ratios of each congestion control with their intervals.
    fn figures(&self) -> Vec<Figure> {
        let controls: Vec<Congestion> = self.points.iter().map(|result| result.point.congestion).collect();
        let mut figures = Vec::new();
        for (i, control) in controls.iter().enumerate() {
            if controls[..i].contains(control) {
                continue;
            }
            let results: Vec<&PointResult> =
                self.points.iter().filter(|result| result.point.congestion == *control).collect();
            let name = congestion_name(*control);
            for (part, results) in results.chunks(MAX_ROWS).enumerate() {
                figures.push(self.figure(&name, part, results));
            }
        }
        figures
    }
    fn figure(&self, control: &str, part: usize, results: &[&PointResult]) -> Figure {
        let labels: Vec<String> = results
            .iter()
            .map(|result| {
                let [rate, rtt, queue, loss, _] = result.point.words();
                let loss = if result.point.loss == 0.0 { String::new() } else { format!(", {loss}") };
                format!("{rate}, {rtt}, {queue}{loss}")
            })
            .collect();
        let value = |result: &PointResult, way| {
            let ratio = result.tally(way)?.ratio;
            ratio.mean.is_finite().then(|| ratio.estimate())
        };
        let rows = results.iter().zip(&labels).map(|(result, label)| ComparisonRow {
            label,
            values: [Backend::Farpace, Backend::Kernel].map(|way| value(result, way)),
        });
        let rows: Vec<ComparisonRow<'_>> = rows.collect();
        let missing = [Backend::Farpace, Backend::Kernel].map(|way| {
            let asked = results.iter().any(|result| result.tally(way).is_some());
            if asked { "none counts" } else { "" }
        });
        let sides = Sides { names: ["farpace, real time", "kernel"], missing };
        let number = if part == 0 { String::new() } else { format!("-{}", part + 1) };
        comparison_of(&format!("Goodput over that of the lab: {control}"), "goodput / lab's", sides, &rows)
            .figure(
                &format!("figures/{control}{number}.svg"),
                "The lab has the stalls of the runs beside it. Means and their 95 % confidence intervals. \
                 Rows: rate, round trip, queue, random loss.",
            )
    }
    /// For programs.
    pub fn json(&self) -> Value {
        let point = |result: &PointResult| {
            let point = &result.point;
            let queue = match point.queue {
                GridQueue::Fifo(_) => "fifo",
                GridQueue::Policer(_) => "policer",
            };
            let way = |(way, tally): &(Backend, GridTally)| {
                let known = tally.ratio.runs > 0;
                json!({
                    "way": way, "verdict": tally.verdict.key(), "runs": tally.ratio.runs,
                    "disturbed": tally.disturbed, "lab_stalled_mbit_s": known.then_some(tally.stalled_mbit_s),
                    "failures": tally.failures, "ratio": known.then_some(tally.ratio.mean),
                    "ci95": (tally.ratio.runs > 1).then_some(tally.ratio.ci95),
                })
            };
            let lasts = point.lasts(self.plan.seconds);
            // The stalls themselves are in the journal: they are thousands.
            let runs = result.runs.iter().map(|run| {
                let still = run.stalls_us.as_ref().map(|_| run.stalled_share(lasts) * lasts.as_secs_f64());
                let mut of = json!(GridRun { stalls_us: None, ..run.clone() });
                of["stalled_s"] = json!(still);
                of
            });
            let runs: Vec<Value> = runs.collect();
            json!({
                "point": point.key(), "rate_bit_s": point.rate.bits_per_sec(),
                "rtt_s": point.rtt.as_secs_f64(),
                "queue": queue, "queue_bytes": point.queue.size().get(),
                "queue_s": point.queue_lasts().as_secs_f64(), "loss": point.loss,
                "congestion": congestion_name(point.congestion), "limit": point.limit(),
                "seconds": lasts.as_secs_f64(),
                "ways": result.tallies.iter().map(way).collect::<Vec<_>>(), "runs": runs,
            })
        };
        json!({
            "format": "farpace-lab-grid/2",
            "rules": {
                "min_runs": self.plan.rules.runs.start(), "max_runs": self.plan.rules.runs.end(),
                "half_width": self.plan.rules.half_width, "max_stall_cost": MAX_STALL_COST,
            },
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
        })
    }
    /// Writes `report.html`, `grid.json` and `figures/`. `command` is the command line that repeats it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, out: OutDir, command: &str) -> Result<()> {
        let figures = self.figures();
        let mut page = Page::new("Lab and reality over a grid of paths");
        page.verdict(&self.sentence(), self.agrees());
        page.paragraph(&format!(
            "A ratio is the mean goodput in real time over that of the lab with the same seeds and the same \
             stalls: times of at least 50 us in which the machine did not run the network. Where stalls \
             alone take more than {} % of the lab's goodput, the machine is too busy. A way agrees if the \
             whole interval is within 5 % (10 % behind less than 32 kB).",
            MAX_STALL_COST * 100.0
        ));
        page.wide_table(&self.table());
        let differences = self.differences();
        if !differences.is_empty() {
            page.wide_table(&differences);
        }
        for figure in &figures {
            page.figure(figure);
            out.write(&figure.file_name, figure.svg.as_bytes())?;
        }
        page.heading("How to repeat this").command(command);
        out.write("report.html", page.render().as_bytes())?;
        out.write("grid.json", (serde_json::to_string_pretty(&self.json())? + "\n").as_bytes())?;
        out.commit()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::GridRules;
    use super::super::points::{QUICK, parse};
    use super::*;
    use crate::compare::BackendRun;
    use farpace_live::Wait;

    /// Breaks: a table or JSON tells other points, ratios or verdicts than were measured, or what stalls of
    /// the machine have cost is shown as a difference.
    #[test]
    fn results_tell_what_was_measured() {
        let points = parse(QUICK, "quick", &[Congestion::Cubic]).unwrap();
        let plan = GridPlan {
            points: points[..2].to_vec(),
            ways: vec![Backend::Kernel],
            rules: GridRules { runs: 3..=4, half_width: 0.01 },
            seconds: 10,
            wait: Wait::Sleep,
        };
        let run = |point: &GridPoint, way, seed, mbit, beside| {
            let run = BackendRun { seed, goodput_mbit_s: mbit, ..BackendRun::of(way, Vec::new(), 0) };
            let stalls_us = (way == Backend::Kernel).then(|| vec![[7, 2_000_000]]);
            GridRun { stalls_us, beside, ..GridRun::of(point.key(), &run, 0.0) }
        };
        let stalled = Some(Backend::Kernel);
        let runs: Vec<GridRun> = (1..=3)
            .flat_map(|seed| {
                [
                    run(&points[0], Backend::Lab, seed, 5.0, None),
                    run(&points[0], Backend::Kernel, seed, 3.0, None),
                    run(&points[0], Backend::Lab, seed, 4.0, stalled),
                    run(&points[1], Backend::Lab, seed, 5.0, None),
                    run(&points[1], Backend::Kernel, seed, 1.0, None),
                    run(&points[1], Backend::Lab, seed, 1.0, stalled),
                ]
            })
            .collect();
        let results = GridResults::new(&plan, &runs);
        assert!(!results.agrees());
        assert_eq!(results.sentence(), "Of 2 comparisons: differs 1, machine too busy 1.");
        let json = results.json();
        let [first, second] = [0, 1].map(|i| &json["points"][i]["ways"][0]);
        assert_eq!((&first["ratio"], &first["verdict"]), (&json!(0.75), &json!("differs")));
        assert_eq!((&second["ratio"], &second["lab_stalled_mbit_s"]), (&json!(1.0), &json!(1.0)));
        assert_eq!(json["points"][0]["runs"].as_array().unwrap().len(), 9);
        assert_eq!(json["points"][0]["runs"][1]["stalled_s"], json!(2.0));
        let row = |cells: [&str; 2]| {
            let table = results.table().to_text_for(None);
            table.lines().any(|line| cells.iter().all(|cell| line.split_whitespace().any(|of| of == *cell)))
        };
        assert!(row(["0.750", "4"]), "{}", results.table().to_text_for(None));
        let text = results.table().to_text_for(None) + &results.differences().to_text_for(None);
        assert!(text.contains("differs") && text.contains("machine too busy"), "{text}");
        assert_eq!(text.matches("5 Mbit/s, 20 ms").count(), 3, "{text}");
        assert_eq!(results.figures().len(), 1);
    }
}
