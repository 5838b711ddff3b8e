//! Transfers over far paths with nothing set but the profile: how much of what the path carries arrives, what
//! the start costs, and how much memory both ends take. Runs the lab in virtual time.
//!
//! `plan` says which runs, `cell` makes one, `show` prints them, `check` judges them, `saved` reads those of
//! earlier calls. `--help` has examples.

mod cell;
mod check;
mod plan;
mod saved;
mod show;

use anyhow::Context;
use cell::Outcome;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use plan::{Args, Cell};
use rayon::prelude::*;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(missed) if missed.is_empty() => ExitCode::SUCCESS,
        Ok(missed) => {
            missed.iter().for_each(|what| eprintln!("far: {what}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("far: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// What `--check` finds missed.
fn run(args: &Args) -> anyhow::Result<Vec<String>> {
    let done = if args.from.is_empty() { make(args)? } else { saved::read(&args.from)? };
    print!("{}", show::text(args, &done));
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&show::json(args, &done))? + "\n";
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, show::svg(args, &done))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(if args.check { check::misses(args, &done) } else { Vec::new() })
}

/// All runs.
fn make(args: &Args) -> anyhow::Result<Vec<(Cell, Outcome)>> {
    let cells = plan::cells(args)?;
    let bar = ProgressBar::new(cells.len() as u64);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let one = |cell: &Cell| -> anyhow::Result<Outcome> {
        bar.set_message(cell.to_string());
        let outcome = cell::run(cell, args).with_context(|| cell.to_string());
        bar.inc(1);
        outcome
    };
    // The order of results is that of the cells, whatever the number of threads.
    let outcomes: Vec<Outcome> =
        cells.par_iter().with_max_len(1).map(one).collect::<anyhow::Result<Vec<_>>>()?;
    bar.finish_and_clear();
    Ok(cells.into_iter().zip(outcomes).collect())
}
