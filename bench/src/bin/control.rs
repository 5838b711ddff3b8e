//! How a congestion control does on paths that are difficult for it, beside others.
//!
//! `cargo run --release -p farpace-bench --bin control -- [--controls farpace,bbr3,cubic] [--group jitter]
//! [--json]`

use anyhow::Result;
use clap::Parser;
use farpace_papers::chosen_controls;
use farpace_papers::search::{Gene, ListedPath, PathNumbers};
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut controls = Vec::new();
    for name in &args.controls {
        controls.extend(chosen_controls(std::slice::from_ref(name))?);
    }
    let mut paths = ListedPath::all();
    paths.retain(|path| args.group.as_ref().is_none_or(|group| group == path.group));
    let runs: Vec<(usize, Congestion)> =
        (0..paths.len()).flat_map(|n| controls.iter().map(move |control| (n, *control))).collect();
    let measured: Vec<PathNumbers> = runs
        .par_iter()
        .with_max_len(1)
        .map(|(n, control)| paths[*n].measure(*control, &|| false))
        .collect::<Result<_, _>>()?;
    if args.json {
        let all: Vec<_> = paths.iter().zip(measured.chunks(controls.len())).collect();
        let all: Vec<_> = all
            .iter()
            .map(|(path, runs)| {
                let point = path.point.to_string();
                serde_json::json!({ "group": path.group, "path": point, "runs": runs })
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    for (path, runs) in paths.iter().zip(measured.chunks(controls.len())) {
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
    Ok(())
}
