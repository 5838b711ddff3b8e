//! `farpace pacing show -s`: the counters of a run's classes, in the style of `tc -s class show`.

use super::file;
use crate::terminal;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;

/// What is read of a summary (docs/json.md).
#[derive(Deserialize)]
struct PacingStatistics {
    #[serde(default)]
    pacing: Vec<StatisticsLine>,
}

/// A paced direction of a link.
#[derive(Deserialize)]
struct StatisticsLine {
    link: String,
    from: String,
    to: String,
    gap_frames: u64,
    gap_line_bytes: u64,
    classes: Vec<ClassLine>,
}

#[derive(Deserialize)]
struct ClassLine {
    name: String,
    rate: Option<String>,
    rate_bit_s: u64,
    packets: u64,
    sent_bytes: u64,
    dropped: u64,
    waiting: u64,
    latest_line_bytes: u64,
}

/// Prints the counters of the run in a directory, or of its summary.
pub(super) fn run(run: &Path, json: bool) -> Result<ExitCode> {
    let place = if run.is_dir() { run.join("summary.json") } else { run.to_path_buf() };
    let text = file::text(&place)?;
    let bad = || format!("`{}` is not the summary of a run (farpace run --out, or --json)", place.display());
    let value: Value = serde_json::from_str(&text).with_context(bad)?;
    let summary = PacingStatistics::deserialize(&value).with_context(bad)?;
    if summary.pacing.is_empty() {
        bail!("nothing was paced in the run of `{}`", place.display());
    }
    if json {
        terminal::print_json(&value["pacing"])?;
    } else {
        terminal::print(&summary.pacing.iter().map(line).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(line: &StatisticsLine) -> String {
    let StatisticsLine { link, from, to, gap_frames, gap_line_bytes, classes } = line;
    let mut text = format!("link {link} from {from} to {to}\n");
    for class in classes {
        let ClassLine { name, rate, rate_bit_s, packets, sent_bytes, dropped, waiting, latest_line_bytes } =
            class;
        let rate = match rate {
            None => "mode normal".to_owned(),
            Some(rate) if rate == "connection" => "mode connection".to_owned(),
            Some(_) => format!("rate {rate_bit_s}bit"),
        };
        text += &format!(
            "class {name} {rate}\n Sent {sent_bytes} bytes {packets} pkt (dropped {dropped})\n backlog \
             {waiting}p latest {latest_line_bytes}b\n"
        );
    }
    text + &format!("gaps\n Sent {gap_line_bytes} bytes of the line {gap_frames} pkt\n")
}
