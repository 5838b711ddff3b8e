//! `farpace explain`: why did this transfer take so long, from anybody's capture.
//!
//! The analysis is [`farpace_explain`]; [`farpace_explain_report`] opens files and puts what came out into
//! words, JSON and a page.

mod live;

use crate::terminal;
use anyhow::{Result, bail};
use farpace_explain::FlowFilter;
use farpace_explain_report::{
    FlowSelection, MAX_PIECES, collect_packets, examine, json, page, pair, try_cures, words,
};
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_units::Span;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
For each connection it prints where the time went, which events mattered, with packet numbers and a \
Wireshark filter for each, the confidence, and what would help. The capture may come from the sender, the \
receiver, or between; headers are enough (tcpdump -s 128). It reads gzip and zstd.

Examples:
  farpace explain slow.pcapng
  farpace explain slow.pcap.gz --flow 10.0.0.7:443
  farpace explain slow.pcapng --json | jq '.captures[0].flows[0].dominant'
  farpace explain slow.pcapng --cure --out why       the effect of a remedy, tested in the lab
  farpace explain sender.pcap receiver.pcap          both ends: clocks aligned, losses by direction
  farpace explain ss.log                             the output of `ss -tin`, repeated
  farpace explain out/trace.parquet                  a trace of farpace run
  farpace explain --live eth0 --for \"30 s\"         a running interface

Exit codes:
  0    the capture was read
  2    wrong usage, or a file that cannot be read or written
  130  interrupted; nothing was written";

/// The arguments of `farpace explain`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Captures (pcapng or pcap, also compressed by gzip or zstd), traces of farpace, or logs of `ss -tin`;
    /// - for a capture on standard input
    #[arg(value_name = "FILE", required_unless_present = "live")]
    pub files: Vec<PathBuf>,
    /// Capture on this interface instead
    #[arg(long, value_name = "IFACE", conflicts_with = "files")]
    pub live: Option<String>,
    /// With --live, the duration [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", requires = "live")]
    pub lasts: Option<Span>,
    /// Run the measured path in the lab, as it was and with the remedy
    #[arg(long)]
    pub cure: bool,
    /// Only connections with this address, port or both, as in "10.0.0.1:5001"; may be repeated
    #[arg(long = "flow", value_name = "FILTER")]
    pub flows: Vec<FlowFilter>,
    /// So many connections at most, those with most data first
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Print JSON; the report is also written
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html, report.json and figures [default: no report]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `farpace explain`.
///
/// # Errors
/// A capture that cannot be read, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    if args.top == 0 {
        bail!("--top 0 would explain nothing");
    }
    let out = match &args.out {
        None => None,
        Some(dir) => Some(OutDir::open(dir, &["report.html".to_owned(), "report.json".to_owned()])?),
    };
    let selection = args.selection();
    let mut examined = Vec::new();
    if let Some(interface) = &args.live {
        examined.push(live::listen(interface, args.lasts, &selection)?);
    }
    for file in &args.files {
        examined.push(examine(file, &selection)?);
        if interrupt::asked() {
            return Ok(ExitCode::from(terminal::INTERRUPTED));
        }
    }
    if args.cure {
        try_cures(&mut examined, &interrupt::asked)?;
    }
    if args.out.is_some() {
        examined.iter_mut().try_for_each(|e| collect_packets(e, MAX_PIECES))?;
    }
    let pair = pair(&examined)?;
    let value = json::report(&examined, pair.as_ref());
    if args.json {
        terminal::print_json(&value)?;
    } else {
        terminal::print(&words::text(&examined, pair.as_ref(), terminal::width()))?;
    }
    if let (Some(out), Some(dir)) = (out, &args.out) {
        let page = page::page(&examined, pair.as_ref(), None);
        out.write("report.html", page.html.as_bytes())?;
        for figure in &page.figures {
            out.write(&figure.file_name, figure.svg.as_bytes())?;
        }
        out.write("report.json", (serde_json::to_string_pretty(&value)? + "\n").as_bytes())?;
        for cured in examined.iter().flat_map(|e| &e.transfers).filter_map(|t| t.cured.as_ref()) {
            let [was, with] = &cured.files;
            out.write(&was.to_string_lossy(), cured.scenarios.as_measured.as_bytes())?;
            out.write(&with.to_string_lossy(), cured.scenarios.cured.as_bytes())?;
        }
        out.commit()?;
        terminal::say_where(&dir.join("report.html"), args.json)?;
    }
    Ok(ExitCode::from(terminal::OK))
}

impl Args {
    fn selection(&self) -> FlowSelection {
        FlowSelection { flows: self.flows.clone(), top: self.top }
    }
}
