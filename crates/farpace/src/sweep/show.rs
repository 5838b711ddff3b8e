//! `farpace sweep show`: the means of a study as a table, JSON or CSV, and a page with figures.

use crate::terminal;
use anyhow::Result;
use farpace_process::outdir::OutDir;
use farpace_study::{Metric, StoredStudy, StudyPage, csv_text, cut_note, json, summarize, table};
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Prints a row for each point with means over its seeds and 95 % confidence intervals, and writes report.html
and figures/*.svg to the study's folder: small multiples (a panel for each combination of values, a curve
for each value of --series) and heat maps where two axes are numbers.

Metrics are of all flows together, or with --flow of one:
  goodput        payload of all flows, from the start of the first to the end of the last
  completion     from connecting to the last byte, mean of the flows; none where a flow did not complete
  retransmitted  of all segments sent
  delay          time in queues on the path of data, mean of the flows
  fairness       Jain's index of the flows' goodputs

Examples:
  farpace sweep show study
  farpace sweep show study --x links.wan.delay --series flows.*.sender.congestion --metric goodput
  farpace sweep show study --csv > means.csv";

/// The arguments of `farpace sweep show`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ShowArgs {
    /// The study
    #[arg(value_name = "DIR")]
    study: PathBuf,
    /// Only this flow, or flows of this class
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,
    /// The path along the horizontal axis of figures [default: the numbers with the most values]
    #[arg(long, value_name = "PATH")]
    x: Option<String>,
    /// The path whose values are curves [default: the first one of words]
    #[arg(long, value_name = "PATH")]
    series: Option<String>,
    /// Figures of this metric; may be repeated [default: all that vary]
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    metric: Vec<Metric>,
    /// Print the means as one JSON object (docs/json.md)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the means as CSV
    #[arg(long)]
    csv: bool,
    /// No report and no figures
    #[arg(long)]
    no_report: bool,
}

fn metric(word: &str) -> Result<Metric, String> {
    let found = Metric::ALL.into_iter().find(|metric| metric.name() == word);
    found.ok_or_else(|| {
        format!("there is no metric `{word}`: there are {}", Metric::ALL.map(Metric::name).join(", "))
    })
}

/// Shows a study.
///
/// # Errors
/// No study, a flow or path it does not have, or a page that cannot be written.
pub(super) fn show(args: &ShowArgs) -> Result<ExitCode> {
    let stored = StoredStudy::read(&args.study)?;
    let flow = args.flow.as_deref();
    flow.map_or(Ok(()), |name| stored.check_flow(name))?;
    let points = summarize(&stored, flow);
    let layout = StudyPage { x: args.x.clone(), series: args.series.clone(), metrics: args.metric.clone() };
    let page = layout.page(&stored, &points)?;
    match () {
        () if args.json => terminal::print_json(&json(&stored, &points))?,
        () if args.csv => terminal::print(&csv_text(&stored, &points)?)?,
        () => terminal::print(&text(&stored, flow))?,
    }
    if args.no_report {
        return Ok(ExitCode::SUCCESS);
    }
    let out = OutDir::open(&args.study, &[])?;
    out.write("report.html", page.render().as_bytes())?;
    for figure in page.figures() {
        out.write(&figure.file_name, figure.svg.as_bytes())?;
    }
    out.commit()?;
    terminal::say_where(&args.study.join("report.html"), args.json || args.csv)?;
    Ok(ExitCode::SUCCESS)
}

/// The table, and what else one has to know.
pub(super) fn text(study: &StoredStudy, flow: Option<&str>) -> String {
    let points = summarize(study, flow);
    let mut text = terminal::table(&table(study, &points));
    for note in cut_note(&points).into_iter().chain(study.lacks()).chain(study.exceeds()) {
        text.push_str(&format!("\n{note}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a metric that --metric names and nobody can choose, or a wrong word that is not answered.
    #[test]
    fn metrics_have_names() {
        assert!(Metric::ALL.iter().all(|m| metric(m.name()) == Ok(*m)));
        assert!(metric("speed").unwrap_err().contains("goodput, completion"));
    }
}
