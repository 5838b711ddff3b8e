//! The report of a comparison: table and picture.

use super::Args;
use super::plan::Plan;
use super::results::Results;
use crate::outdir::OutDir;
use anyhow::Result;
use farpace_report::{Dot, Figure, Page, scatter};
use std::path::PathBuf;

/// Writes `report.html` and the figure; the path of the report.
///
/// # Errors
/// A file that cannot be written.
pub fn write(out: OutDir, args: &Args, plan: &Plan, results: &Results) -> Result<PathBuf> {
    let figure = figure(plan, results);
    out.write("report.html", page(args, plan, results, &figure).as_bytes())?;
    out.write(&figure.file_name, figure.svg.as_bytes())?;
    out.commit()?;
    Ok(args.out.join("report.html"))
}

fn figure(plan: &Plan, results: &Results) -> Figure {
    let dot = |l: &'_ super::results::Line| (l.name.clone(), l.delay.mean, l.goodput.mean);
    let places: Vec<(String, f64, f64)> = results.lines.iter().map(dot).collect();
    let dots: Vec<Dot<'_>> = places.iter().map(|(label, x, y)| Dot { label, x: *x, y: *y }).collect();
    let title = format!("Goodput against delay: {}", plan.base.title);
    scatter(&title, "mean time in queues (ms)", "goodput (Mbit/s)", &dots).figure(
        "figures/goodput-delay.svg",
        "Each congestion control alone on the path. Up is more payload, left is less waiting for everybody who shares \
         the queue: the upper left corner is best.",
    )
}

fn page(args: &Args, plan: &Plan, results: &Results, figure: &Figure) -> String {
    let mut page = Page::new(&format!("Congestion controls compared: {}", plan.base.title));
    if !plan.base.description.is_empty() {
        page.paragraph(plan.base.description.trim());
    }
    if let Some(flow) = plan.base.flows.first()
        && let Some(b) = plan.base.bottleneck(flow)
    {
        page.paragraph(&format!(
            "The path carries at most {:.2} Mbit/s of payload; its round trip with empty queues is {}.",
            b.goodput.as_mbit_f64(),
            plan.base.base_rtt(flow)
        ));
    }
    page.figure(figure).table(&results.table(plan));
    page.paragraph(
        "Goodput, delay and retransmissions are those of a single flow. Delay is the time that a packet would wait in \
         queues on the way of data, read at the end of every bin. Fairness is Jain's index of two flows of the same \
         kind: 1 is equal, 0.5 is all for one. The last column is what a flow of CUBIC gets beside it, in percent of \
         what it gets beside another CUBIC. The second flow starts up to some seconds later, from seed to seed.",
    );
    if !plan.refused.is_empty() {
        page.paragraph(&format!(
            "Left out, because the TCP profile of this scenario does not take them: {}.",
            plan.refused.join(", ")
        ));
    }
    page.heading("How to repeat this").command(&command(args));
    if let Ok(text) = plan.base.to_toml() {
        page.details("The scenario all runs are made from", &text);
    }
    page.render()
}

fn command(args: &Args) -> String {
    let mut line = format!("farpace cc compare --path {} --seeds {}", args.path, args.seeds);
    if let Some(time) = args.time {
        line.push_str(&format!(" --time \"{time}\""));
    }
    if !args.only.is_empty() {
        line.push_str(&format!(" --only {}", args.only.join(",")));
    }
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}=\"{value}\""));
    }
    line
}
