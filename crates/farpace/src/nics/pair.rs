//! `farpace nics pair`: which card sends to which.

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
Cards of equal kind go together, the widest first; what is left goes together in descending order; cards that are left then \
share the neighbour's in turn. The share is what each way carries at first, the slower of its two cards; while frames flow \
it follows what is measured.

Examples:
  farpace nics pair --ours 1G,100M --theirs 100M,1G
  farpace nics pair --ours 1G,1G,1G --theirs 2.5G --json";

/// The arguments of `farpace nics pair`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Our cards, like 1G,100M
    #[arg(long, value_name = "CARDS", value_delimiter = ',', value_parser = path_spec::rate, required = true)]
    ours: Vec<Rate>,
    /// The neighbour's cards
    #[arg(long, value_name = "CARDS", value_delimiter = ',', value_parser = path_spec::rate, required = true)]
    theirs: Vec<Rate>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

/// `farpace nics pair`.
///
/// # Errors
/// More cards than a machine may have.
pub fn run(args: &Args) -> Result<ExitCode> {
    for (option, cards) in [("--ours", args.ours.len()), ("--theirs", args.theirs.len())] {
        if cards > MAX_NICS {
            bail!(
                "a machine has at most {MAX_NICS} cards, and {option} names {cards}: leave out the narrowest"
            );
        }
    }
    let kinds = |rates: &[Rate]| rates.iter().map(|rate| NicKind::of_rate(*rate)).collect::<Vec<_>>();
    let to = pair(&kinds(&args.ours), &kinds(&args.theirs));
    let ways: Vec<(usize, usize, Rate)> = to
        .iter()
        .enumerate()
        .filter_map(|(i, j)| {
            let (ours, theirs) = (args.ours.get(i)?, args.theirs.get((*j)?)?);
            Some((i, (*j)?, *ours.min(theirs)))
        })
        .collect();
    let sum: f64 = ways.iter().map(|(.., rate)| rate.as_mbit_f64()).sum();
    let share = |rate: Rate| rate.as_mbit_f64() / sum;
    if args.json {
        let way = |(i, j, rate): &(usize, usize, Rate)| {
            json!({
                "card": i, "card_bit_s": args.ours[*i].bits_per_sec(),
                "to": j, "to_bit_s": args.theirs[*j].bits_per_sec(),
                "way_bit_s": rate.bits_per_sec(), "share": share(*rate),
            })
        };
        let ways: Vec<_> = ways.iter().map(way).collect();
        terminal::print_json(&json!({ "format": "farpace-nics-pair/1", "ways": ways }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = vec![
        TableColumn::text("card"),
        TableColumn::text("sends to"),
        TableColumn::number("way", ""),
        TableColumn::number("share", "%"),
    ];
    let mut table = Table::new("Ways", columns);
    for (i, j, rate) in &ways {
        table.row(vec![
            format!("{i}: {}", args.ours[*i]).into(),
            format!("{j}: {}", args.theirs[*j]).into(),
            rate.to_string().into(),
            farpace_report::TableCell::Number(share(*rate) * 100.0, Some(2)),
        ]);
    }
    terminal::print(&table.to_text())?;
    for (j, rate) in args.theirs.iter().enumerate().filter(|(j, _)| ways.iter().all(|(_, to, _)| to != j)) {
        terminal::print(&format!("Nobody sends to the neighbour's card {j} ({rate}).\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
