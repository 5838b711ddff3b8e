//! `farpace view`: pages from traces and captures too large for one file, served to a browser on this
//! machine.
//!
//! [`farpace_explain_report::view`] opens them and answers the browser.

use crate::terminal;
use anyhow::Result;
use farpace_explain::FlowFilter;
use farpace_explain_report::FlowSelection;
use farpace_explain_report::view::{ViewLibrary, serve};
use farpace_process::interrupt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Between two looks whether to end.
const WAIT: Duration = Duration::from_millis(200);

const AFTER_HELP: &str = "\
The page is that of `farpace explain`, but its figure of packets shows every packet: the browser requests \
finer data when the user zooms in. For a directory, such as one of farpace run --out, it lists the \
reports, captures and traces. Only this host can reach it, with the printed address, which contains a \
secret. Ctrl-C ends it.

Examples:
  farpace view slow.pcapng
  farpace view out/stops                       what farpace run --out has written
  farpace view big.pcap.zst --flow 10.0.0.7:443 --port 8080

Exit codes:
  0    ended by Ctrl-C
  2    wrong usage, or a file that cannot be read";

/// The arguments of `farpace view`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A capture, a trace of farpace, or a directory with some
    #[arg(value_name = "DIR|FILE")]
    pub path: PathBuf,
    /// The port on 127.0.0.1 [default: one that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Only connections with this address, port or both, as in "10.0.0.1:5001"; may be repeated
    #[arg(long = "flow", value_name = "FILTER")]
    pub flows: Vec<FlowFilter>,
    /// So many connections at most, those with most data first
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub top: usize,
    /// Print the address as JSON
    #[arg(long)]
    pub json: bool,
}

/// `farpace view`.
///
/// # Errors
/// Nothing to see, a file that cannot be read, or a port that is in use.
#[allow(clippy::disallowed_methods, reason = "it waits for Ctrl-C")]
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let library = ViewLibrary::open(&args.path, FlowSelection { flows: args.flows.clone(), top: args.top })?;
    let url = serve(args.port, library)?;
    if args.json {
        terminal::print_json(&serde_json::json!({ "url": url }))?;
    } else {
        terminal::print(&format!("{}\n", url))?;
        terminal::note("Open this address in a browser; Ctrl-C ends it.");
    }
    while !interrupt::asked() {
        std::thread::sleep(WAIT);
    }
    Ok(ExitCode::from(terminal::OK))
}
