//! `farpace nics pair`: which NIC sends to which.

use super::path_spec;
use crate::terminal;
use anyhow::{Result, bail};
use farpace_link::multi_nic::{MAX_NICS, pair};
use farpace_report::{Table, TableColumn};
use farpace_units::Rate;
use farpace_wire::NicKind;
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
NICs of equal kind are paired, the fastest first. The remaining NICs are paired in descending order. NICs \
that are then left share the neighbour's in turn. The share follows at first from the rate of each path, \
that of the slower of its two NICs. While frames flow it follows the measured rates.

Examples:
  farpace nics pair --ours 1G,100M --theirs 100M,1G
  farpace nics pair --ours 1G,1G,1G --theirs 2.5G --json";

/// The arguments of `farpace nics pair`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Our NICs, like 1G,100M
    #[arg(long, value_name = "CARDS", value_delimiter = ',', value_parser = path_spec::rate, required = true)]
    ours: Vec<Rate>,
    /// The neighbour's NICs
    #[arg(long, value_name = "CARDS", value_delimiter = ',', value_parser = path_spec::rate, required = true)]
    theirs: Vec<Rate>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

/// `farpace nics pair`.
///
/// # Errors
/// More NICs than a host may have.
pub fn run(args: &Args) -> Result<ExitCode> {
    for (option, nics) in [("--ours", args.ours.len()), ("--theirs", args.theirs.len())] {
        if nics > MAX_NICS {
            bail!("a host has at most {MAX_NICS} NICs, and {option} names {nics}: leave out the narrowest");
        }
    }
    let kinds = |rates: &[Rate]| rates.iter().map(|rate| NicKind::of_rate(*rate)).collect::<Vec<_>>();
    let to = pair(&kinds(&args.ours), &kinds(&args.theirs));
    let paths: Vec<(usize, usize, Rate)> = to
        .iter()
        .enumerate()
        .filter_map(|(i, j)| {
            let (ours, theirs) = (args.ours.get(i)?, args.theirs.get((*j)?)?);
            Some((i, (*j)?, *ours.min(theirs)))
        })
        .collect();
    let sum: f64 = paths.iter().map(|(.., rate)| rate.as_mbit_f64()).sum();
    let share = |rate: Rate| rate.as_mbit_f64() / sum;
    if args.json {
        let path = |(i, j, rate): &(usize, usize, Rate)| {
            json!({
                "nic": i, "nic_bit_s": args.ours[*i].bits_per_sec(),
                "to": j, "to_bit_s": args.theirs[*j].bits_per_sec(),
                "path_bit_s": rate.bits_per_sec(), "share": share(*rate),
            })
        };
        let paths: Vec<_> = paths.iter().map(path).collect();
        terminal::print_json(&json!({ "format": "farpace-nics-pair/2", "paths": paths }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = vec![
        TableColumn::text("NIC"),
        TableColumn::text("sends to"),
        TableColumn::number("path", ""),
        TableColumn::number("share", "%"),
    ];
    let mut table = Table::new("Ways", columns);
    for (i, j, rate) in &paths {
        table.row(vec![
            format!("{i}: {}", args.ours[*i]).into(),
            format!("{j}: {}", args.theirs[*j]).into(),
            rate.to_string().into(),
            farpace_report::TableCell::Number(share(*rate) * 100.0, Some(2)),
        ]);
    }
    terminal::print(&terminal::table(&table))?;
    for (j, rate) in args.theirs.iter().enumerate().filter(|(j, _)| paths.iter().all(|(_, to, _)| to != j)) {
        terminal::print(&format!("Nobody sends to the neighbour's NIC {j} ({rate}).\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
