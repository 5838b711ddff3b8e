//! `farpace gateway status`: what running gateways do, as text or JSON.

use crate::terminal;
use anyhow::Result;
use farpace_gateway_service::status::{fetch, summary, table};
use farpace_gateway_service::write_records;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Connections in the table, unless all are wanted.
const ROWS: usize = 20;

const AFTER_HELP: &str = "\
\"up\" is towards the WAN. \"kept\" was acknowledged to one host and not yet by the other: it would be \
lost in a crash. The limit is that of the sending leg: the WAN leg up, the LAN leg down.

Examples:
  farpace gateway status
  farpace gateway status --json | jq '.gateways[0].totals'
  farpace gateway status --records connections.parquet    those that live, and the latest that have ended

Exit codes: 0 done, 2 no gateway runs, no rights, or the file cannot be written.";

/// The arguments of `farpace gateway status`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct GatewayStatusArgs {
    /// All connections that the gateway tells of, at most 1000, rather than the 20 that move most
    #[arg(long)]
    all: bool,
    /// Write a record of each connection that lives or has ended lately to this file, as Parquet
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "json"])]
    records: Option<PathBuf>,
    /// Process of the gateway whose records are written, if several run
    #[arg(long, requires = "records")]
    pid: Option<u32>,
    /// Print JSON: {"gateways": [{"totals", "connections", ...}]}
    #[arg(long)]
    json: bool,
}

/// `farpace gateway status`.
///
/// # Errors
/// No gateway runs, or it does not answer.
pub fn run(args: &GatewayStatusArgs) -> Result<ExitCode> {
    if let Some(file) = &args.records {
        let count = write_records(args.pid, file)?;
        terminal::print(&format!("{count} connections written to {}\n", file.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let gateways = fetch()?;
    if args.json {
        terminal::print_json(&json!({ "gateways": gateways }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = if args.all { usize::MAX } else { ROWS };
    for status in &gateways {
        terminal::print(&(summary(status).join("\n") + "\n"))?;
        let table = table(status, rows);
        terminal::print(&format!("\n{}\n", table.join("\n")))?;
    }
    Ok(ExitCode::SUCCESS)
}
