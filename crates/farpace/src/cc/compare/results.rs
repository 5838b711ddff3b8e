//! What came of a comparison: one line per congestion control.

use super::plan::{Company, Job, Plan};
use crate::grid::Measurement;
use crate::grid::contender::name;
use crate::statistics::{Summary, jain};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_tcp::config::Congestion;
use serde_json::{Value, json};

/// One congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Mbit/s, alone.
    pub goodput: Summary,
    /// Milliseconds in queues, alone: mean.
    pub delay: Summary,
    /// The same: what 95 % of readings do not exceed.
    pub delay_95: Summary,
    /// Percent of segments sent, alone.
    pub retransmitted: Summary,
    /// Jain's index of two of its kind.
    pub fairness: Summary,
    /// What a CUBIC beside it gets, in percent of what it gets beside another CUBIC.
    pub cubic_keeps: Summary,
}

/// All lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// In the order of the list.
    pub lines: Vec<Line>,
}

impl Results {
    /// `measured` in the order of the plan's jobs.
    pub fn new(plan: &Plan, measured: Vec<Measurement>) -> Results {
        let runs: Vec<(Job, Measurement)> = plan.jobs().into_iter().zip(measured).collect();
        let of = |congestion: Congestion, company: Company| {
            runs.iter()
                .filter(move |(j, _)| j.congestion == congestion && j.company == company)
                .map(|(_, m)| m)
        };
        // Both flows of both kinds have the same chances.
        let twins = of(Congestion::Cubic, Company::Twin);
        let measure = Summary::of(twins.flat_map(shares)).mean;
        let line = |c: &Congestion| {
            let alone = |of_run: fn(&Measurement) -> f64| Summary::of(of(*c, Company::Alone).map(of_run));
            let (company, of_cubic): (_, fn(&Measurement) -> Vec<f64>) = match c {
                Congestion::Cubic => (Company::Twin, |m| shares(m).to_vec()),
                _ => (Company::Cubic, |m| shares(m).into_iter().skip(1).collect()),
            };
            let kept = of(*c, company).flat_map(of_cubic).map(|g| g / measure * 100.0);
            Line {
                name: name(*c),
                goodput: alone(|m| m.goodput(0)),
                delay: alone(|m| m.delay_mean),
                delay_95: alone(|m| m.delay_95),
                retransmitted: alone(|m| m.flows.first().map_or(f64::NAN, |f| f.retransmitted)),
                fairness: Summary::of(of(*c, Company::Twin).map(|m| jain(&shares(m)))),
                cubic_keeps: Summary::of(kept),
            }
        };
        Results { lines: plan.contenders.iter().map(line).collect() }
    }

    /// For terminal and report.
    pub fn table(&self, plan: &Plan) -> Table {
        let columns = vec![
            TableColumn::text("congestion control"),
            TableColumn::number("goodput", "Mbit/s"),
            TableColumn::number("delay", "ms, mean"),
            TableColumn::number("", "ms, 95 %"),
            TableColumn::number("retransmitted", "%"),
            TableColumn::number("fairness", "Jain"),
            TableColumn::number("CUBIC keeps", "%"),
        ];
        let seeds = plan.seeds;
        let title = format!(
            "{}: {} each, {seeds} seed{} (mean ± 95 % confidence)",
            plan.base.title,
            plan.time,
            if seeds == 1 { "" } else { "s" },
        );
        let mut table = Table::new(&title, columns);
        for l in &self.lines {
            let cell = |s: &Summary, decimals| TableCell::from(s.text(decimals));
            table.row(vec![
                l.name.as_str().into(),
                cell(&l.goodput, 2),
                cell(&l.delay, 1),
                cell(&l.delay_95, 1),
                cell(&l.retransmitted, 2),
                cell(&l.fairness, 3),
                cell(&l.cubic_keeps, 0),
            ]);
        }
        table
    }

    /// For programs; docs/json.md describes it.
    pub fn json(&self, plan: &Plan) -> Value {
        let line = |l: &Line| {
            json!({
                "name": l.name,
                "goodput_mbit_s": l.goodput,
                "delay_mean_ms": l.delay,
                "delay_95_ms": l.delay_95,
                "retransmitted_percent": l.retransmitted,
                "jain": l.fairness,
                "cubic_keeps_percent": l.cubic_keeps,
            })
        };
        json!({
            "format": "farpace-cc-compare/1",
            "path": plan.path,
            "title": plan.base.title,
            "time_s": plan.time.as_secs_f64(),
            "seeds": plan.seeds,
            "left_out": plan.refused,
            "congestion": self.lines.iter().map(line).collect::<Vec<Value>>(),
        })
    }
}

/// Goodput of the first flow and of the one that was added, which is the last.
fn shares(m: &Measurement) -> [f64; 2] {
    [m.goodput(0), m.goodput(m.flows.len().saturating_sub(1))]
}
