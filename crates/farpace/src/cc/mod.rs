//! `farpace cc`: the congestion controls, what each is for, how they compare on a path, and where they are
//! worst.

pub mod compare;
pub mod search;

use crate::profiles::{ProfileChoice, choices};
use crate::terminal;
use anyhow::Result;
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace cc list
  farpace cc compare --path satellite
  farpace cc compare --path my-link.toml --only cubic,bbr3,star-robust --seeds 5
  farpace cc search --control cubic --budget 2m";
const LIST_HELP: &str = "\
Example:
  farpace cc list --json | jq -r '.congestion[].name'";

/// The arguments of `farpace cc`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// List the congestion controls, with the use of each
    #[command(after_help = LIST_HELP)]
    List {
        /// Print JSON: {"congestion": [{"name", "description"}]}
        #[arg(long)]
        json: bool,
    },
    /// Compare them on one path: goodput, delay, retransmissions, fairness
    Compare(compare::Args),
    /// Search for the paths on which a control is worst
    Search(search::Args),
}

/// `farpace cc`.
///
/// # Errors
/// What keeps the comparison from being made, or output that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::List { json } => list(*json),
        Command::Compare(args) => compare::run(args),
        Command::Search(args) => search::run(args),
    }
}

/// Every congestion control with its line, as the schema of scenarios has them.
pub fn listed() -> Vec<ProfileChoice> {
    choices(&farpace_lab::scenario::schema(), "Congestion")
}

fn list(as_json: bool) -> Result<ExitCode> {
    let all = listed();
    if as_json {
        terminal::print_json(&json!({ "congestion": all }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = all.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let lines: Vec<String> = all.iter().map(|c| format!("{:width$}  {}\n", c.name, c.description)).collect();
    terminal::print(&lines.concat())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::config::Congestion;

    /// Breaks: a congestion control is missing from the list, or nobody says when to use it.
    #[test]
    fn every_one_is_listed() {
        let names: Vec<String> = listed().into_iter().map(|c| c.name).collect();
        assert_eq!(names, Congestion::ALL.map(farpace_papers::congestion_name));
        assert!(listed().iter().all(|c| c.description.len() > 20), "{:?}", listed());
    }
}
