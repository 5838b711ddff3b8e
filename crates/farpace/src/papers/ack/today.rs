//! `farpace papers ack --today`: where asking for ACKs still makes a flow end sooner, and what the ACKs cost.
//!
//! `words` names receivers and ways of asking, `plan` says which runs are made, `results` compares each with the run
//! that does not ask, `tables` and `page` show it.

mod page;
mod plan;
mod results;
mod tables;
pub(super) mod words;

use super::Args;
use crate::grid::run_all;
use crate::outdir::OutDir;
use crate::{cli, interrupt};
use anyhow::Result;
use plan::Plan;
use results::Results;
use std::process::ExitCode;

/// The runs, the comparison, and the report.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let plan = Plan::new(args.quick);
    let out = OutDir::open(&args.out_dir(), &["report.html".to_owned()])?;
    let measured = match run_all(&plan.cells, args.threads, results::measure) {
        Ok(Some(measured)) => measured,
        Ok(None) => {
            cli::note("Interrupted: nothing was written.");
            return Ok(ExitCode::from(cli::INTERRUPTED));
        }
        Err(error) => {
            cli::complain(&error);
            return Ok(ExitCode::from(cli::FAILED));
        }
    };
    let results = Results::new(&plan, measured);
    if args.json {
        cli::print_json(&tables::json(&results))?;
    } else {
        cli::print(&tables::text(&results))?;
    }
    page::write(out, args, &results)?;
    say_where(args)
}

/// Says where the report is.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn say_where(args: &Args) -> Result<ExitCode> {
    let line = format!("\nReport: {}\n", args.out_dir().join("report.html").display());
    if args.json {
        cli::note(line.trim());
    } else {
        cli::print(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}
