//! `farpace gateway check`: what keeps traffic from the gateway, or harms it, with the commands that mend it.

use crate::terminal;
use anyhow::Result;
use farpace_gateway_service::{GatewayFile, check::check};
use farpace_live::doctor::{Judgement, text};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Each line has the subject, the finding, and, if needed, the command that fixes it. Nothing is changed.

Examples:
  farpace gateway check --lan eth0 --wan eth1       before the gateway is started
  farpace gateway check                             the running gateway: is traffic caught?
  farpace gateway check --lan eth0 --peer hq.conf --via wan0 --via lte0    does the peer answer on each link?
  farpace gateway check --json | jq '.findings[] | select(.judgement != \"ok\")'

Exit codes: 0 there is no problem, 1 there is one, 2 nothing to check.";

/// The arguments of `farpace gateway check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CheckArgs {
    /// Interface to the hosts of the LAN [default: those of the running gateway]
    #[arg(long, value_name = "IF")]
    lan: Vec<String>,
    /// Interface to the far link [default: those of the running gateway]
    #[arg(long, value_name = "IF")]
    wan: Vec<String>,
    /// File of the peer, if the gateway is one of a pair
    #[arg(long, value_name = "FILE", conflicts_with = "wan")]
    peer: Option<PathBuf>,
    /// Link of a path to the peer; may be repeated
    #[arg(long, value_name = "IF|ADDR", requires = "peer")]
    via: Vec<String>,
    /// Configuration file of the gateway
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON: {"findings": [{"what", "value", "judgement", "mend"}]}
    #[arg(long)]
    json: bool,
}

/// `farpace gateway check`.
///
/// # Errors
/// A bad configuration, or nothing to check.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    let file = args.config.as_deref().map(GatewayFile::read).transpose()?.unwrap_or_default();
    let findings = check(file, &args.lan, &args.wan, args.peer.as_deref(), &args.via)?;
    let bad = findings.iter().any(|finding| finding.judgement == Judgement::Problem);
    match args.json {
        true => terminal::print_json(&json!({ "findings": findings }))?,
        false => terminal::print(&text(&findings, &[]))?,
    }
    Ok(ExitCode::from(if bad { terminal::FAILED } else { terminal::OK }))
}
