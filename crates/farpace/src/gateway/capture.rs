//! `farpace gateway capture`: captures of a gateway that runs.

use crate::terminal;
use anyhow::{Context, Result};
use farpace_gateway_service::{CaptureConfig, DEFAULT_PCAP_LIMIT, status, switch_capture};
use farpace_units::ByteCount;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
The directory gets files for each side: lan-000001.pcapng, ..., and wan-000001.pcapng, ... They keep the \
headers of packets alone, unless --snaplen says more. All of them together have at most --limit: the oldest \
are removed. If the disk is full, the capture ends, and the gateway goes on.

Examples:
  farpace gateway capture start captures
  farpace gateway capture start captures --snaplen 200 --limit \"100 MB\"
  farpace gateway capture stop
  farpace explain captures/wan-000001.pcapng        why transfers over the far link are slow
  tshark -r captures/lan-000001.pcapng

Exit codes: 0 done, 2 no gateway runs, there is a capture already or none, or the directory cannot be used.";

/// The arguments of `farpace gateway capture`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CaptureArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Begin a capture
    #[command(after_help = "Examples:\n  farpace gateway capture start captures")]
    Start {
        /// Directory of the files; made if it is not there
        dir: PathBuf,
        /// Bytes kept of each packet, 96 to 65549 [default: its headers]
        #[arg(long, value_name = "BYTES")]
        snaplen: Option<u32>,
        /// Bytes of all captures in the directory together [default: 1 GiB]
        #[arg(long, value_name = "BYTES", value_parser = crate::transfer::bytes)]
        limit: Option<ByteCount>,
        #[command(flatten)]
        which: Which,
    },
    /// End the capture
    #[command(after_help = "Examples:\n  farpace gateway capture stop")]
    Stop {
        #[command(flatten)]
        which: Which,
    },
}

#[derive(Clone, Debug, clap::Args)]
struct Which {
    /// Process of the gateway, if several run
    #[arg(long)]
    pid: Option<u32>,
    /// Print JSON: {"capture": {"dir", "packets", "bytes", ...}}
    #[arg(long)]
    json: bool,
}

/// `farpace gateway capture`.
///
/// # Errors
/// No gateway runs, or it refuses.
pub fn run(args: &CaptureArgs) -> Result<ExitCode> {
    let (which, config) = match &args.command {
        Command::Stop { which } => (which, None),
        Command::Start { dir, snaplen, limit, which } => {
            let folder = std::path::absolute(dir).context("the path of the directory")?;
            let limit = limit.unwrap_or(DEFAULT_PCAP_LIMIT);
            (which, Some(CaptureConfig { folder, snaplen: *snaplen, limit }))
        }
    };
    if let Some(config) = &config {
        config.check()?;
    }
    let capture = switch_capture(which.pid, config.as_ref())?;
    match which.json {
        true => terminal::print_json(&json!({ "capture": capture }))?,
        false => terminal::print(&format!("{}\n", status::capture(&capture).trim_start()))?,
    }
    Ok(ExitCode::SUCCESS)
}
