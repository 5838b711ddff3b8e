//! `farpace pacing show`: what a configuration means.

use super::{file, statistics};
use crate::terminal;
use anyhow::{Result, bail};
use farpace_link::pacing::tc::to_tc;
use farpace_link::pacing::{
    ClassFilter, ClassPlan, ClassRate, ConfigError, PacingConfig, PacingPlan, SchedulerKind,
};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::Rate;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// The line that is taken if nobody says: the paper's.
const USUAL_LINE: Rate = Rate::from_mbit(1_000);

const AFTER_HELP: &str = "\
Rates count layer 2: frames with their headers and check sequences. A frame takes 20 B more of the link: \
preamble, start delimiter, inter-frame gap. The interval is from the start of a full frame to the start of \
the next, the gap is the idle part of it.

Examples:
  farpace pacing show --line \"1 Gbit/s\"
  farpace pacing show --file lan.toml --json
  farpace pacing show --tc                            as commands of tc
  farpace pacing show -s out                          the counters of a run's classes

Exit codes: 0 if the configuration can be built on the line, 2 if it cannot, or a file cannot be read.";

/// The arguments of `farpace pacing show`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The file with the configuration
    #[arg(long, value_name = "FILE", default_value = "pacing.toml")]
    file: PathBuf,
    /// The link rate [default: that of the file, or 1 Gbit/s]
    #[arg(long, value_name = "RATE")]
    line: Option<Rate>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
    /// Print the commands of tc that produce it
    #[arg(long, conflicts_with = "json")]
    tc: bool,
    /// With --tc, the name of the device
    #[arg(long, value_name = "NAME", default_value = "eth0")]
    device: String,
    /// Print the counters of classes in a run: its directory, or its summary.json
    #[arg(long, short, value_name = "RUN", conflicts_with_all = ["file", "line", "tc"])]
    statistics: Option<PathBuf>,
}

/// `farpace pacing show`.
///
/// # Errors
/// A file that cannot be read. What is wrong with the configuration is printed, and the exit code tells.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(run) = &args.statistics {
        return statistics::run(run, args.json);
    }
    let config = file::read(&args.file)?;
    if args.tc {
        let checked = config.check(args.line.unwrap_or(farpace_link::pacing::LinkClock::MAX_RATE));
        if let Some(error) = checked.first() {
            bail!("{}: {}", args.file.display(), located(error));
        }
        terminal::print(&(to_tc(&config, &args.device)?.join("\n") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (line, assumed) = match (args.line, config.device_rate) {
        (Some(line), _) => (line, false),
        (None, Some(line)) => (line, false),
        (None, None) => (USUAL_LINE, true),
    };
    let plan = PacingPlan::new(&config, line);
    if args.json {
        terminal::print_json(&as_json(&config, &plan, assumed))?;
    } else {
        terminal::print(&as_text(&config, &plan, assumed))?;
    }
    Ok(if plan.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(terminal::USAGE) })
}

fn as_text(config: &PacingConfig, plan: &PacingPlan, assumed: bool) -> String {
    let of = |rate: Rate| {
        if plan.link_rate.bits_per_sec() == 0 {
            0.0
        } else {
            rate.as_mbit_f64() / plan.link_rate.as_mbit_f64()
        }
    };
    let gaps = if config.scheduler == SchedulerKind::Edf {
        format!(", gaps by {}", word(&config.gaps))
    } else {
        String::new()
    };
    let mut text = format!(
        "Scheduler {}{gaps}, on a line of {}{}\nA full frame has {} of layer 2 ({} of IP) and takes {} of \
         the line, {:.3} us.\n\n",
        word(&config.scheduler),
        plan.link_rate,
        if assumed { " (assumed: say --line)" } else { "" },
        plan.full_frame,
        config.mtu,
        plan.full_frame_wire_len,
        micros(plan.link_rate.time_for(plan.full_frame_wire_len)),
    );
    text += &terminal::table(&classes(plan));
    text += "\n";
    if config.filters.is_empty() {
        text += "No filters.\n";
    } else {
        text += &terminal::table(&filters(config, plan));
    }
    let rest = plan.classes.iter().find(|class| class.is_default).map_or("", |class| class.name.as_str());
    text += &format!("Packets that no filter matches go to {rest}.\n\n");
    text += &format!(
        "Promised: {:.3} Mbit/s of layer 2, {:.3} Mbit/s of the line with what surrounds full frames: {:.2} \
         % of it. Left: {:.3} Mbit/s of layer 2.\n",
        plan.reserved.as_mbit_f64(),
        plan.reserved_on_wire.as_mbit_f64(),
        of(plan.reserved_on_wire) * 100.0,
        plan.available.as_mbit_f64(),
    );
    for (what, list) in [("error", &plan.errors), ("warning", &plan.warnings)] {
        for one in list {
            text += &format!("{what}: {}\n", located(one));
        }
    }
    text
}

fn classes(plan: &PacingPlan) -> Table {
    let columns = vec![
        TableColumn::text("class"),
        TableColumn::number("rate", ""),
        TableColumn::number("of the line", "%"),
        TableColumn::number("interval", "B"),
        TableColumn::number("interval", "us"),
        TableColumn::number("gap", "B"),
        TableColumn::number("gap", "us"),
        TableColumn::number("queue", ""),
        TableColumn::number("filters", ""),
    ];
    let mut table = Table::new("Classes", columns);
    for class in &plan.classes {
        let ClassPlan { name, rate, limit, filters, is_default: _, spacing: pace } = class;
        table.row(vec![
            name.as_str().into(),
            rate.map_or_else(|| "what is left".to_owned(), |rate| rate.to_string()).into(),
            pace.map_or(TableCell::Missing, |pace| TableCell::Number(pace.share as f64 / 1e4, Some(2))),
            pace.map(|pace| pace.interval.get()).into(),
            pace.map_or(TableCell::Missing, |pace| TableCell::Number(micros(pace.interval_time), Some(3))),
            pace.map(|pace| pace.gap.get()).into(),
            pace.map_or(TableCell::Missing, |pace| TableCell::Number(micros(pace.gap_time), Some(3))),
            limit.to_string().into(),
            (*filters as u64).into(),
        ]);
    }
    table
}

fn filters(config: &PacingConfig, plan: &PacingPlan) -> Table {
    let columns = vec![
        TableColumn::number("filter", ""),
        TableColumn::number("priority", ""),
        TableColumn::text("matches"),
        TableColumn::text("class"),
    ];
    let mut table = Table::new("Filters, in the order in which they are tried", columns);
    for at in &plan.order {
        let Some(filter) = config.filters.get(*at) else { continue };
        table.row(vec![
            (*at as u64).into(),
            u64::from(filter.priority).into(),
            matches(filter).into(),
            filter.class.as_str().into(),
        ]);
    }
    table
}

/// What a filter matches, by its keys.
fn matches(filter: &ClassFilter) -> String {
    let ClassFilter { class: _, priority: _, protocol, src, dst, src_port, dst_port, dscp } = filter;
    let keys = [
        protocol.map(|p| p.to_string()),
        src.map(|net| format!("src {net}")),
        dst.map(|net| format!("dst {net}")),
        src_port.map(|port| format!("src_port {port}")),
        dst_port.map(|port| format!("dst_port {port}")),
        dscp.map(|dscp| format!("dscp {dscp}")),
    ];
    let keys: Vec<String> = keys.into_iter().flatten().collect();
    if keys.is_empty() { "all packets".to_owned() } else { keys.join(", ") }
}

fn as_json(config: &PacingConfig, plan: &PacingPlan, assumed: bool) -> Value {
    let class = |class: &ClassPlan| {
        let pace = class.spacing;
        json!({
            "name": class.name,
            "rate_bit_s": match class.rate {
                Some(ClassRate::Fixed(rate)) => Some(rate.bits_per_sec()),
                _ => None,
            },
            "follows_connections": class.rate == Some(ClassRate::Connection),
            "limit": class.limit,
            "filters": class.filters,
            "default": class.is_default,
            "share_of_line": pace.map(|pace| pace.share as f64 / 1e6),
            "interval_bytes": pace.map(|pace| pace.interval.get()),
            "interval_us": pace.map(|pace| micros(pace.interval_time)),
            "gap_bytes": pace.map(|pace| pace.gap.get()),
            "gap_us": pace.map(|pace| micros(pace.gap_time)),
        })
    };
    let found = |list: &[ConfigError]| -> Vec<Value> {
        list.iter().map(|one| json!({ "at": one.at.join("."), "problem": one.problem })).collect()
    };
    let filters = plan.order.iter().filter_map(|at| config.filters.get(*at).map(|filter| (at, filter)));
    let filter = |(at, filter): (&usize, &ClassFilter)| json!({ "filter": at, "priority": filter.priority, "matches": matches(filter), "class": filter.class });
    json!({
        "scheduler": config.scheduler,
        "gaps": config.gaps,
        "line_bit_s": plan.link_rate.bits_per_sec(),
        "line_is_assumed": assumed,
        "full_frame_bytes": plan.full_frame.get(),
        "full_frame_line_bytes": plan.full_frame_wire_len.get(),
        "promised_bit_s": plan.reserved.bits_per_sec(),
        "promised_of_line_bit_s": plan.reserved_on_wire.bits_per_sec(),
        "left_bit_s": plan.available.bits_per_sec(),
        "classes": plan.classes.iter().map(class).collect::<Vec<_>>(),
        "filters": filters.map(filter).collect::<Vec<_>>(),
        "errors": found(&plan.errors),
        "warnings": found(&plan.warnings),
    })
}

/// The word that the configuration has for a choice.
fn word(choice: &impl serde::Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn located(error: &ConfigError) -> String {
    if error.at.is_empty() {
        error.problem.clone()
    } else {
        format!("{}: {}", error.at.join("."), error.problem)
    }
}

fn micros(span: farpace_units::Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}
