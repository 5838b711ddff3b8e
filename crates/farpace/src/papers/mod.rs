//! `farpace papers`: published measurements made again in virtual time. A file for the options of each paper.

pub mod ack;
pub mod all;
pub mod nics;
pub mod pacing;
pub mod satellite;
pub mod stops;

use crate::experiments::{ExperimentArgs, OutputForm, end};
use crate::interrupt;
use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace papers all                 all of them, quickly, on one page
  farpace papers stops               one of them in full, with a report of its own
  farpace papers nics --json | jq '.claims[] | select(.holds | not)'";

/// The arguments of `farpace papers`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Which paper
    #[command(subcommand)]
    pub paper: PaperCommand,
}

/// The papers.
#[derive(Clone, Debug, Subcommand)]
pub enum PaperCommand {
    /// All five, quickly, and the combined runs of `farpace together`, on one page
    All(all::Args),
    /// Why transfers behind a policer stop for seconds in Linux 2.6.17, and what prevents it
    Stops(stops::Args),
    /// TCP-STAR and others over a satellite link with bit errors, lost ACKs and small queues
    Satellite(satellite::Args),
    /// The sender asks for ACKs that are not delayed (CDL): policies on a line of 512 kbit/s, clocks,
    /// timeouts
    Ack(ack::Args),
    /// Packets kept apart by gap packets (PSPacer): rates, bursts, TCP over 200 ms through a small FIFO
    Pacing(pacing::Args),
    /// One TCP connection over unequal NICs: skip numbers, windows; other NICs, orders and lines; a NIC that
    /// fails
    Nics(nics::Args),
}

/// Options of every paper.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct PaperArgs {
    /// Exit with 1 if a claim fails
    #[arg(long)]
    #[serde(skip)]
    pub strict: bool,
    /// The options of every experiment.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: ExperimentArgs,
}

/// The end of the help of each paper.
macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0    all runs were made and all bytes were right; claims may fail, which is printed
  1    a transfer did not complete or bytes differ; with --strict also: a claim fails
  2    wrong usage, or a file that cannot be read or written
  130  interrupted; the same command goes on with what is finished"
    };
}
use exit_codes;

/// `farpace papers`.
///
/// # Errors
/// Whatever keeps the measurement from being made or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let form = |paper: &PaperArgs| OutputForm::of(paper.common.json);
    let (made, paper) = match &args.paper {
        PaperCommand::All(args) => return all::run(args),
        PaperCommand::Stops(args) => (stops::make(args, form(&args.paper))?, &args.paper),
        PaperCommand::Satellite(args) => (satellite::make(args, form(&args.paper))?, &args.paper),
        PaperCommand::Ack(args) => (ack::make(args, form(&args.paper))?, &args.paper),
        PaperCommand::Pacing(args) => (pacing::make(args, form(&args.paper))?, &args.paper),
        PaperCommand::Nics(args) => (nics::make(args, form(&args.paper))?, &args.paper),
    };
    Ok(end(made, paper.strict))
}
