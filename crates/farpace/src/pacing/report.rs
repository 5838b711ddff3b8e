//! `farpace pacing report`: the proof of pacing, from captures of any origin.

mod progress;

use crate::emulate::words;
use crate::terminal;
use anyhow::Result;
use clap::ValueEnum;
use farpace_inspect::pacing::{self, ProofRequest};
use farpace_link::proof::{ProofFilter, ProofQuestion};
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_units::{ByteCount, Rate, Span};
use progress::ReadProgress;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
A flow is one direction between two addresses and ports, at one interface. Its burstiness is the maximum \
of a virtual queue that drains at its mean rate, or at --rate. It is paced precisely if that queue never \
holds more than two full frames. Rates count Ethernet frames with their check sequences (layer 2), unless \
marked as IP.

The capture must be taken behind the sender's NIC, by a tap, a switch's mirror port, or the receiver. A \
capture is read twice, so it must be a file.

Examples:
  farpace pacing report trace.pcap
  farpace pacing report trace.pcap --flow \"src 10.0.0.1:5001\" --rate \"500 Mbit/s\"
  farpace pacing report out/lossy --json --no-report        the captures of a run
  farpace pacing report tap.pcapng --flow 5001 --require precise

Exit codes:
  0    the captures were read; with --require, all flows are precise
  1    with --require precise: a flow is not precise, or it cannot be told
       (flows of fewer than 100 packets do not count, unless there are no others)
  2    wrong usage, or a file that cannot be read or written
  130  interrupted; nothing was written";

/// The arguments of `farpace pacing report`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Captures, pcapng or pcap, or the directories of runs
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Only flows with this address, port or both, as in "10.0.0.1:5001" or "src 10.0.0.1"; may be repeated
    #[arg(long = "flow", value_name = "FILTER")]
    pub flows: Vec<ProofFilter>,
    /// Compare flows with this rate of layer 2, as in "500 Mbit/s" [default: the mean rate of each]
    #[arg(long, value_name = "RATE", value_parser = words::rate)]
    pub rate: Option<Rate>,
    /// The longest IP packet on the link, as in "1500 B" [default: the longest of each flow]
    #[arg(long, value_name = "SIZE")]
    pub mtu: Option<ByteCount>,
    /// The link rate, for trains of frames [default: the slowest common one that fits]
    #[arg(long, value_name = "RATE", value_parser = words::rate)]
    pub line: Option<Rate>,
    /// A tick of the capturing clock, as in "60 ns", if it is coarser than the file says
    #[arg(long, value_name = "TIME")]
    pub tick: Option<Span>,
    /// Begin at this time after the first packet, as in "5 s"
    #[arg(long, value_name = "TIME")]
    pub from: Option<Span>,
    /// End at this time after the first packet
    #[arg(long, value_name = "TIME")]
    pub until: Option<Span>,
    /// Exit with 1 unless all flows are of this kind
    #[arg(long, value_name = "WHAT")]
    pub require: Option<Required>,
    /// Print JSON; the report is also written
    #[arg(long)]
    pub json: bool,
    /// No report, no files
    #[arg(long)]
    pub no_report: bool,
    /// The directory for report.html, report.json and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/pacing")]
    pub out: PathBuf,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
}

/// What flows must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Required {
    /// Never more than two full frames in the queue.
    Precise,
}

/// `farpace pacing report`.
///
/// # Errors
/// A capture that cannot be read, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let captures = pacing::captures(&args.files)?;
    let out = match args.no_report {
        true => None,
        false => Some(OutDir::open(&args.out, &["report.html".to_owned(), "report.json".to_owned()])?),
    };
    let (mut examined, mut progress) = (Vec::new(), ReadProgress::new(args.quiet));
    for file in &captures {
        match pacing::examine(file, &args.request(), &mut progress)? {
            Some(capture) => examined.push(capture),
            None => return Ok(ExitCode::from(terminal::INTERRUPTED)),
        }
    }
    // What is required is not met by nothing: that has an exit code of its own.
    if args.require.is_none() {
        pacing::refuse_nothing(&examined, &args.request())?;
    }
    let value = pacing::report(&examined);
    if args.json {
        terminal::print_json(&value)?;
    } else {
        terminal::print(&pacing::text(&examined, terminal::width()))?;
    }
    if let Some(out) = out {
        let (html, figures) = pacing::page(&command(args), &examined);
        out.write("report.html", html.as_bytes())?;
        out.write("report.json", (serde_json::to_string_pretty(&value)? + "\n").as_bytes())?;
        for figure in figures {
            out.write(&figure.file_name, figure.svg.as_bytes())?;
        }
        out.commit()?;
        terminal::say_where(&args.out.join("report.html"), args.json)?;
    }
    let failed = args.require.is_some() && !pacing::all_precise(&examined);
    Ok(ExitCode::from(if failed { terminal::FAILED } else { terminal::OK }))
}

impl Args {
    fn request(&self) -> ProofRequest {
        let question = ProofQuestion {
            flows: self.flows.clone(),
            rate: self.rate,
            mtu: self.mtu,
            link_rate: self.line,
            tick: self.tick.unwrap_or_default(),
        };
        ProofRequest { question, from: self.from, until: self.until }
    }
}

fn command(args: &Args) -> String {
    let mut line = "farpace pacing report".to_owned();
    for file in &args.files {
        let _ = write!(line, " \"{}\"", file.display());
    }
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(line, " --{name} \"{value}\"");
        }
    };
    option("rate", args.rate.map(|v| v.to_string()));
    option("mtu", args.mtu.map(|v| v.to_string()));
    option("line", args.line.map(|v| v.to_string()));
    option("tick", args.tick.map(|v| v.to_string()));
    option("from", args.from.map(|v| v.to_string()));
    option("until", args.until.map(|v| v.to_string()));
    args.flows.iter().for_each(|flow| option("flow", Some(flow.to_string())));
    line
}
