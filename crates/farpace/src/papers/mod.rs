//! `farpace papers`: published measurements made again in virtual time. A file for the options of each paper.

pub mod ack;
pub mod all;
pub mod nics;
pub mod pacing;
pub mod satellite;
mod search;
pub mod stops;

use crate::experiments::{self, ExperimentArgs, Made, OutputForm, end};
use crate::terminal;
use anyhow::{Result, anyhow};
use clap::Subcommand;
use farpace_papers::ack::AckPaper;
use farpace_papers::nics::NicsPaper;
use farpace_papers::pacing::PacingPaper;
use farpace_papers::satellite::SatellitePaper;
use farpace_papers::stops::StopsPaper;
use farpace_papers::{Paper, PaperInfo, PaperWorld};
use farpace_process::interrupt;
use farpace_units::Span;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace papers all                 all of them, quickly, on one page
  farpace papers stops               one of them in full, with a report of its own
  farpace papers nics --assume list  the worlds of this paper: named assumptions about its hosts
  farpace papers nics --search list  the keys that it leaves open, with plausible ranges
  farpace papers nics --quick --search wide-acks.interrupts.delay,sender-host.processor.receive_ack
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
    /// The sender requests ACKs that are not delayed (CDL): policies on a link of 512 kbit/s, clocks,
    /// timeouts
    Ack(ack::Args),
    /// Packets kept apart by gap packets (PSPacer): rates, bursts, TCP over 200 ms through a small FIFO
    Pacing(pacing::Args),
    /// One TCP connection over unequal NICs: skip numbers, windows; other NICs, orders and lines; a NIC that
    /// fails
    Nics(nics::Args),
}

impl PaperCommand {
    /// What is known of a single paper, and its options.
    fn one(&self) -> Option<(&'static PaperInfo, &PaperArgs)> {
        match self {
            PaperCommand::All(_) => None,
            PaperCommand::Stops(args) => Some((StopsPaper::ABOUT, &args.paper)),
            PaperCommand::Satellite(args) => Some((SatellitePaper::ABOUT, &args.paper)),
            PaperCommand::Ack(args) => Some((AckPaper::ABOUT, &args.paper)),
            PaperCommand::Pacing(args) => Some((PacingPaper::ABOUT, &args.paper)),
            PaperCommand::Nics(args) => Some((NicsPaper::ABOUT, &args.paper)),
        }
    }
}

/// Options of every paper.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct PaperArgs {
    /// Exit with 1 if a claim fails
    #[arg(long)]
    #[serde(skip)]
    pub strict: bool,
    /// Assumptions where the paper says nothing: the name of a world for all runs, "literal", or "list"
    /// for the worlds that exist [default: literal, beside the world in which most claims
    /// hold]
    #[arg(long, value_name = "WORLD")]
    pub assume: Option<String>,
    /// Search what the published numbers imply about the hosts: run the paper over plausible ranges of keys
    /// that it leaves open. KEY or KEY=RANGE, as in --vary of farpace sweep; may be repeated. "list" for keys
    /// and ranges
    #[arg(long, value_name = "KEYS")]
    #[serde(serialize_with = "search::as_options")]
    pub search: Vec<String>,
    /// With --search: number of points [default: 32; with --budget as many as the time permits]
    #[arg(long, value_name = "N", requires = "search")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub points: Option<u64>,
    /// With --search: sampling of points: sobol, lhs (Latin hypercube) or grid (all combinations) [default:
    /// sobol]
    #[arg(long, value_name = "KIND", requires = "search")]
    pub sampling: Option<search::PointSampling>,
    /// With --search: begin no point after this time, as in 10min
    #[arg(long, value_name = "TIME", requires = "search")]
    pub budget: Option<Span>,
    /// With --search: rows whose published numbers select points, separated by commas; the others evaluate
    /// them. A prefix that ends in / means all its rows [default: every second one]
    #[arg(long, value_name = "ROWS", value_delimiter = ',', requires = "search")]
    pub fit: Vec<String>,
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
  130  interrupted; the same command continues with the finished runs"
    };
}
use exit_codes;

/// In place of a world's name: nothing is assumed but what the scenario says.
const LITERAL: &str = "literal";
/// In place of a world's name: the worlds are listed.
const LIST: &str = "list";

/// Makes a paper as `--assume` asks: literally with the best world beside it, literally alone, or in a world.
fn make_paper<P: Paper>(
    paper: P,
    line: &str,
    args: &PaperArgs,
    dir: &Path,
    form: OutputForm,
) -> Result<Made> {
    let common = &args.common;
    if !args.search.is_empty() {
        let paper = match args.assume.as_deref() {
            None | Some(LITERAL) => paper,
            Some(name) => paper.in_world(world::<P>(name)?, true)?,
        };
        return search::make(&paper, line, args, form);
    }
    let make = |paper: &P| experiments::make(paper, line, common, dir, form);
    match args.assume.as_deref() {
        None => match P::ABOUT.worlds.first() {
            Some(world) => {
                let assumed = paper.in_world(world, true)?;
                experiments::make_beside([&paper, &assumed], line, common, dir, form)
            }
            None => make(&paper),
        },
        Some(LITERAL) => make(&paper),
        Some(name) => make(&paper.in_world(world::<P>(name)?, false)?),
    }
}

/// The world of this name.
fn world<P: Paper>(name: &str) -> Result<&'static PaperWorld> {
    let names: Vec<&str> = P::ABOUT.worlds.iter().map(|world| world.name).chain([LITERAL, LIST]).collect();
    let unknown = || anyhow!("there is no world `{name}`; this paper has: {}", names.join(", "));
    P::ABOUT.world(name).ok_or_else(unknown)
}

/// Prints the worlds of a paper.
fn list(about: &PaperInfo, as_json: bool) -> Result<ExitCode> {
    if as_json {
        let worlds: Vec<Value> = about
            .worlds
            .iter()
            .map(|world| json!({ "world": world.described(), "fitted_rows": world.fitted }))
            .collect();
        let all = json!({ "format": "farpace-worlds/1", "paper": about.citation, "worlds": worlds });
        terminal::print_json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    if about.worlds.is_empty() {
        text += "No world of the authors is known that is better than the literal runs.\n";
    }
    for world in about.worlds {
        let table = terminal::table(&world.described().table());
        text += &format!("{}\n  {}\n  {}\n\n{table}\n", world.name, world.about, world.result);
    }
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// `farpace papers`.
///
/// # Errors
/// Whatever keeps the measurement from being made or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let form = |paper: &PaperArgs| OutputForm::of(paper.common.json);
    if let Some((about, paper)) = args.paper.one()
        && paper.assume.as_deref() == Some(LIST)
    {
        return list(about, paper.common.json);
    }
    if let Some((about, paper)) = args.paper.one()
        && paper.search == [LIST]
    {
        return search::list(about, paper.common.json);
    }
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
