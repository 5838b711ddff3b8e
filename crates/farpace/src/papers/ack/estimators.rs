//! `farpace papers ack --estimators`: what ACKs that are not held back give to the estimators of round trip, timeout and
//! bandwidth, and to BBR's ProbeRTT.
//!
//! The path is known, so the truth is too: `truth` says when each segment would have been acknowledged had nothing been
//! held back. `plan` says which runs are made, `results` compares estimators with the truth, `tables` and `page` show it.

mod page;
mod plan;
mod results;
mod tables;
mod truth;

use super::Args;
use crate::grid::run_all_or_end;
use crate::outdir::OutDir;
use crate::{interrupt, terminal};
use anyhow::Result;
use results::Results;
use std::process::ExitCode;

/// The runs, the comparison, and the report.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let cells = plan::cells(args.quick);
    let out = OutDir::open(&args.out_dir(), &["report.html".to_owned()])?;
    let measured = match run_all_or_end(&cells, args.threads, results::measure) {
        Ok(measured) => measured,
        Err(code) => return Ok(code),
    };
    let results = Results::new(&cells, measured);
    if args.json {
        terminal::print_json(&tables::json(&results))?;
    } else {
        terminal::print(&tables::text(&results))?;
    }
    page::write(out, args, &results)?;
    terminal::say_where(&args.out_dir().join("report.html"), args.json)?;
    Ok(ExitCode::SUCCESS)
}
