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
use crate::grid::run_all_or_end;
use crate::outdir::OutDir;
use crate::{interrupt, terminal};
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
    let measured = match run_all_or_end(&plan.cells, args.threads, results::measure) {
        Ok(measured) => measured,
        Err(code) => return Ok(code),
    };
    let results = Results::new(&plan, measured);
    if args.json {
        terminal::print_json(&tables::json(&results))?;
    } else {
        terminal::print(&tables::text(&results))?;
    }
    page::write(out, args, &results)?;
    terminal::say_where(&args.out_dir().join("report.html"), args.json)?;
    Ok(ExitCode::SUCCESS)
}
