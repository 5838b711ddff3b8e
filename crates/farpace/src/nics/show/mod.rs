//! `farpace nics show`: what hosts tell of their NICs, and what they know of each other's.

mod heard;
mod known;

use crate::scenario;
use anyhow::{Result, bail};
use farpace_units::Span;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Of a capture: every host that announced its address, with its list of NICs, lists that broke a rule, and \
the paths that are probed. Every list that breaks no rule is shown: these messages are not authenticated. \
Of a scenario: what each host with several NICs knows of the others after a while, and the paths that it \
uses.

Examples:
  farpace nics show lan.pcapng
  tcpdump -w - 'arp or icmp6' | farpace nics show -
  farpace nics show scenarios/gallery/nics.toml --for \"1 s\"
  farpace nics show scenarios/gallery/bonding.toml --json

Exit codes: 0, or 2 if the file cannot be read, or the scenario has no host with several NICs.";

/// The arguments of `farpace nics show`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A scenario (.toml), or a capture, pcapng or pcap; - for a capture from standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Of a scenario: after how much virtual time [default: 200 ms]
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Span>,
    /// Of a scenario: replace a value, as in hosts.b.multi_nic.extended_arp=false; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = scenario::parse_set)]
    set: Vec<(String, String)>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

/// `farpace nics show`.
///
/// # Errors
/// A file that cannot be read, a scenario without such hosts, or output that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.file.extension().is_some_and(|ending| ending == "toml") {
        known::show(args)?;
    } else {
        if args.time.is_some() || !args.set.is_empty() {
            bail!("--for and --set are for scenarios, files that end in .toml");
        }
        heard::show(args)?;
    }
    Ok(ExitCode::SUCCESS)
}
