//! The report: the table, and each variable of all ways in one picture.

use super::backend_run::{BackendRun, CompareSample};
use super::plan::Plan;
use super::results::Results;
use anyhow::Result;
use farpace_process::outdir::OutDir;
use farpace_report::{Figure, Page, TimeLine, lines};

/// Over so long goodput is averaged in the picture, in seconds.
const WINDOW: f64 = 0.2;

/// Adds to a page why the flow took its time; the last is the file of the figure over the same time.
pub type LabReason<'a> = dyn Fn(&mut Page, &str) + 'a;

/// Writes report, figures and samples. `command` is the command line that repeats it, `reason` why the flow
/// took its time in the lab.
///
/// # Errors
/// A file that cannot be written.
pub fn write(
    out: OutDir,
    command: &str,
    plan: &Plan,
    results: &Results,
    reason: Option<&LabReason<'_>>,
) -> Result<()> {
    let figures = figures(plan, results);
    out.write("report.html", page(command, plan, results, &figures, reason).as_bytes())?;
    out.write("samples.csv", results.csv().as_bytes())?;
    for figure in &figures {
        out.write(&figure.file_name, figure.svg.as_bytes())?;
    }
    out.commit()?;
    Ok(())
}

/// One variable of the first run of each way.
fn picture(
    results: &Results,
    title: &str,
    y_label: &str,
    points: impl Fn(&BackendRun) -> Vec<(f64, f64)>,
) -> farpace_report::Drawing {
    let firsts = results.ways().iter().filter_map(|way| results.of(*way).next());
    let series: Vec<TimeLine<'_>> =
        firsts.map(|trial| TimeLine { label: trial.way.name(), points: points(trial) }).collect();
    lines(title, y_label, &series, None)
}

fn of_samples(trial: &BackendRun, value: impl Fn(&CompareSample) -> f64) -> Vec<(f64, f64)> {
    trial.samples.iter().map(|sample| (sample.at, value(sample))).collect()
}

/// Goodput over windows of [`WINDOW`].
fn goodput(trial: &BackendRun) -> Vec<(f64, f64)> {
    let (mut points, mut from) = (Vec::new(), (0.0, 0));
    for sample in &trial.samples {
        let passed = sample.at - from.0;
        if passed >= WINDOW {
            points.push((from.0, sample.delivered.saturating_sub(from.1) as f64 * 8e-6 / passed));
            from = (sample.at, sample.delivered);
        }
    }
    points
}

fn figures(plan: &Plan, results: &Results) -> Vec<Figure> {
    let title = &plan.base().title;
    vec![
        picture(results, &format!("Congestion window: {title}"), "segments", |trial| {
            of_samples(trial, |sample| f64::from(sample.cwnd))
        })
        .figure(
            "figures/cwnd.svg",
            "The sender's congestion window, every 10 ms, in the first run of each way.",
        ),
        picture(results, &format!("Smoothed round trip: {title}"), "ms", |trial| {
            of_samples(trial, |sample| sample.srtt)
        })
        .figure("figures/srtt.svg", "The sender's smoothed round trip, every 10 ms."),
        picture(results, &format!("Goodput: {title}"), "Mbit/s", goodput)
            .figure("figures/goodput.svg", "Payload that reached the receiving program, over 200 ms each."),
        picture(results, &format!("Sent again: {title}"), "segments", |trial| {
            of_samples(trial, |sample| sample.again as f64)
        })
        .figure("figures/again.svg", "Segments that the sender has sent again so far."),
    ]
}

fn page(
    command: &str,
    plan: &Plan,
    results: &Results,
    figures: &[Figure],
    reason: Option<&LabReason<'_>>,
) -> String {
    let base = plan.base();
    let mut page = Page::new(&format!("Lab and reality: {}", base.title));
    page.one_clock();
    if !base.description.is_empty() {
        page.paragraph(base.description.trim());
    }
    page.table(&results.table(plan));
    if let Some(reason) = reason {
        page.heading("Why it took its time in the lab");
        reason(&mut page, "figures/cwnd.svg");
        page.heading("The course of it");
    }
    figures.iter().for_each(|figure| _ = page.figure(figure));
    page.paragraph(
        "Lab is farpace's TCP in virtual time; farpace, real time, the same at both ends of the same network \
         on devices; kernel, the kernel's TCP at both ends of it. Everything counts from the first SYN. \
         Drops are those of the network. Random losses meet the same packets in all ways, by their number, \
         as long as the numbers of packets agree.",
    );
    page.heading("How to repeat this").command(command);
    if let Ok(text) = base.to_toml() {
        page.details("The scenario of the first run", &text);
    }
    page.render()
}
