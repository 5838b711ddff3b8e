//! How a congestion control does on paths that are difficult for it, or on paths at random, beside others.
//!
//! `cargo run --release -p farpace-bench --bin control -- [--controls farpace,bbr3,cubic] [--group jitter]
//! [--random 60 --seed 1] [--path "rate_mbit_s=20 rtt_ms=40 loss_percent=1"] [--json]`

mod summary;

use anyhow::{Result, anyhow};
use clap::Parser;
use farpace_papers::chosen_controls;
use farpace_papers::search::{Gene, ListedPath, PathNumbers, PathPoint};
use farpace_tcp::config::Congestion;
use rayon::prelude::*;

#[derive(Parser)]
struct Args {
    /// Congestion controls, separated by commas; the first is compared with the best of all
    #[arg(long, value_delimiter = ',', default_value = "farpace,bbr3,cubic")]
    controls: Vec<String>,
    /// Only this group of paths
    #[arg(long)]
    group: Option<String>,
    /// Instead of the listed paths so many at random, and a third as many for two of a kind and beside cubic
    #[arg(long, value_name = "N")]
    random: Option<usize>,
    /// The seed of paths at random
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random")]
    seed: u64,
    /// Instead of the listed paths this one, as it is printed; repeatable
    #[arg(long = "path", value_name = "KEY=VALUE...", conflicts_with = "random")]
    paths: Vec<String>,
    /// Print a summary of each group only
    #[arg(long)]
    brief: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn chosen(args: &Args) -> Result<Vec<ListedPath>> {
    let mut paths = match args.random {
        Some(count) => ListedPath::random(count, args.seed),
        None => ListedPath::all(),
    };
    if !args.paths.is_empty() {
        let parse = |text: &String| {
            let point: PathPoint = text.parse().map_err(|error| anyhow!("path `{text}`: {error}"))?;
            Ok(ListedPath { group: "path", point })
        };
        paths = args.paths.iter().map(parse).collect::<Result<_>>()?;
    }
    paths.retain(|path| args.group.as_ref().is_none_or(|group| group == path.group));
    Ok(paths)
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut controls = Vec::new();
    for name in &args.controls {
        controls.extend(chosen_controls(std::slice::from_ref(name))?);
    }
    let paths = chosen(&args)?;
    let runs: Vec<(usize, Congestion)> =
        (0..paths.len()).flat_map(|n| controls.iter().map(move |control| (n, *control))).collect();
    let measured: Vec<PathNumbers> = runs
        .par_iter()
        .with_max_len(1)
        .map(|(n, control)| paths[*n].measure(*control, &|| false))
        .collect::<Result<_, _>>()?;
    let all: Vec<(&ListedPath, &[PathNumbers])> =
        paths.iter().zip(measured.chunks(controls.len().max(1))).collect();
    if args.json {
        let entry = |(path, runs): &(&ListedPath, &[PathNumbers])| {
            let point = path.point.to_string();
            serde_json::json!({ "group": path.group, "path": point, "runs": runs })
        };
        println!("{}", serde_json::to_string_pretty(&all.iter().map(entry).collect::<Vec<_>>())?);
        return Ok(());
    }
    if !args.brief {
        all.iter().for_each(|(path, runs)| print(path, runs));
    }
    summary::print(&all);
    Ok(())
}

fn print(path: &ListedPath, runs: &[PathNumbers]) {
    println!("{}: {}", path.group, path.point);
    for run in runs {
        let beside = path.point.get(Gene::Neighbour).is_some();
        let late: Vec<String> = run.late_mbit_s.iter().map(|rate| format!("{rate:.2}")).collect();
        let late = if beside { format!("  second half {}", late.join(" and ")) } else { String::new() };
        println!(
            "    {:8} {:7.2} Mbit/s  queue {:6.1} / {:6.1} ms  retransmitted {:5.2} %  timeouts {}{late}",
            run.control,
            run.goodput_mbit_s,
            run.delay_mean_ms,
            run.delay_95_ms,
            run.retransmitted_percent,
            run.timeouts
        );
    }
}
