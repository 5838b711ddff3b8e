//! The report: a picture and tables for each path.

use super::Args;
use super::cures::{Cures, Era, Sender};
use super::devices;
use super::results::{Line, Results};
use crate::outdir::OutDir;
use anyhow::Result;
use farpace_report::{ComparedEstimate, ComparisonRow, Figure, Page, Sides, TimeLine, comparison_of, lines};

/// Writes `report.html` and `figures/*.svg`.
///
/// # Errors
/// A file that cannot be written.
pub fn write(out: OutDir, args: &Args, all: &[Results]) -> Result<()> {
    let mut page = Page::new("Five cures on one path");
    page.paragraph(
        "Five papers each cured one reason why TCP fails on far networks, each on a path with that one trouble. Here are paths with all of them. \
         Every cure is there as its paper prints it, in a Linux 2.6.17, and as one would do it today; each alone, all but one, and all.",
    );
    for results in all {
        let figures = figures(results);
        add_to(&mut page, results, &figures);
        for figure in &figures {
            out.write(&figure.file_name, figure.svg.as_bytes())?;
        }
    }
    page.paragraph(
        "Goodput counts from connecting, so that the time in which the window opens is in it. The ceiling is what the contracts let pass, as payload. \
         Silence is the longest time without a byte after the first one. Lost to congestion: by a policer or a full queue.",
    );
    page.heading("How to repeat this").command(&command(args));
    for results in all {
        page.details(&format!("The scenario: {}", results.plan.meeting.file), results.plan.meeting.text);
    }
    out.write("report.html", page.render().as_bytes())?;
    out.commit().map(drop)
}

/// One path, on any page.
pub fn add_to(page: &mut Page, results: &Results, figures: &[Figure]) {
    page.heading(&results.plan.base.title).paragraph(results.plan.base.description.trim());
    page.paragraph(&results.verdict());
    for figure in figures {
        page.figure(figure);
    }
    for table in results.tables() {
        page.table(&table);
    }
    for era in Era::ALL {
        for (cure, without) in results.hinder(era) {
            page.paragraph(&format!(
                "Without {} the other four, {}, carry more: {without:.2} Mbit/s. It stands in their way.",
                cure.name(),
                era.name()
            ));
        }
    }
}

/// Goodput of all combinations, and what arrives over time with some of them.
pub fn figures(results: &Results) -> Vec<Figure> {
    let path = results.plan.meeting.name;
    let estimate = |sender| {
        let range = |line: &Line| (results.plan.seeds > 1).then_some(line.range);
        results.line(sender).map(|line| ComparedEstimate { mean: line.goodput.mean, range: range(line) })
    };
    let cured = super::plan::combinations().map(|cures| {
        let [printed, today] = Era::ALL.map(|era| estimate(Sender::Cured(era, cures)));
        (Sender::Cured(Era::Today, cures).to_string(), printed, today)
    });
    let others = results.outsiders().map(|line| (line.sender.to_string(), None, estimate(line.sender)));
    let values: Vec<_> = cured.chain(others).collect();
    let rows: Vec<ComparisonRow<'_>> = values
        .iter()
        .map(|(label, printed, today)| ComparisonRow { label, values: [*printed, *today] })
        .collect();
    let sides = Sides { names: ["cures as printed", "cures of today, and outsiders"], missing: ["", ""] };
    let title = format!("What each cure brings ({path})");
    let goodput = comparison_of(&title, "goodput (Mbit/s)", sides, &rows).figure(
        &format!("figures/{path}-goodput.svg"),
        &match results.plan.seeds {
            1 => format!("One run each. The path can carry {:.1} Mbit/s.", results.ceiling()),
            n => format!(
                "Means and ranges of {n} runs each. The path can carry {:.1} Mbit/s.",
                results.ceiling()
            ),
        },
    );
    let shown = [
        ("all five, of today", Sender::Cured(Era::Today, Cures::all())),
        ("all five, as printed", Sender::Cured(Era::Printed, Cures::all())),
        ("no cure, of today", Sender::Cured(Era::Today, Cures::NONE)),
        ("Linux, BBRv3", Sender::Outsider { congestion: "bbr3", cards: false }),
        ("Linux, CUBIC", Sender::Outsider { congestion: "cubic", cards: false }),
    ];
    let over_time: Vec<TimeLine<'_>> = shown
        .iter()
        .filter_map(|(label, sender)| Some(TimeLine { label, points: arrived(results.line(*sender)?) }))
        .collect();
    let over_time = lines(&format!("What has arrived ({path})"), "payload (MB)", &over_time, None).figure(
        &format!("figures/{path}-arrived.svg"),
        "Everything that has arrived since the connection was opened: the slope is the goodput, a level stretch a silence.",
    );
    let devices = (!results.devices.is_empty()).then(|| devices::figure(results));
    [goodput, over_time].into_iter().chain(devices).collect()
}

/// Seconds and megabytes so far.
fn arrived(line: &Line) -> Vec<(f64, f64)> {
    let mut sum = 0.0;
    let bins = line.first.bins.iter().map(|(at, bytes)| {
        sum += bytes.get() as f64 / 1e6;
        (at.as_nanos() as f64 / 1e9, sum)
    });
    bins.collect()
}

fn command(args: &Args) -> String {
    let mut line = format!("farpace together --seeds {}", args.seeds);
    if let Some(path) = &args.path {
        line.push_str(&format!(" --path {path}"));
    }
    if let Some(time) = args.time {
        line.push_str(&format!(" --time \"{time}\""));
    }
    if args.devices {
        line.push_str(" --devices");
    }
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}=\"{value}\""));
    }
    line
}
