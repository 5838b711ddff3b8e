//! `farpace papers`: measurements of published papers, made again in virtual time.
//!
//! One file per paper; each ends in a [`farpace_report::Reproduction`], so that programs read all of them alike.

pub mod ack;
pub mod all;
pub mod nics;
pub mod pacing;
pub mod satellite;
pub mod stops;

use crate::outdir::OutDir;
use crate::terminal;
use anyhow::Result;
use clap::Subcommand;
use farpace_report::{Figure, Reproduction, ReproductionClaim, Table};
use std::path::{Path, PathBuf};
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
    pub paper: Paper,
}

/// The papers.
#[derive(Clone, Debug, Subcommand)]
pub enum Paper {
    /// All five, quickly, and the combined runs of `farpace together`, on one page
    All(all::Args),
    /// Why transfers behind a policer stop for seconds in Linux 2.6.17, and what cures it
    Stops(stops::Args),
    /// TCP-STAR and others over a satellite link with bit errors, lost ACKs and small queues
    Satellite(satellite::Args),
    /// The sender asks for ACKs that are not delayed (CDL): policies on a line of 512 kbit/s, clocks, timeouts
    Ack(ack::Args),
    /// Packets kept apart by gap packets (PSPacer): rates, bursts, TCP over 200 ms through a small FIFO
    Pacing(pacing::Args),
    /// One TCP connection over unequal network cards: skip numbers, windows; other cards, orders and lines; a card that dies
    Nics(nics::Args),
}

/// `farpace papers`.
///
/// # Errors
/// Whatever keeps the measurement from being made or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.paper {
        Paper::All(args) => all::run(args),
        Paper::Stops(args) => stops::run(args),
        Paper::Satellite(args) => satellite::run(args),
        Paper::Ack(args) => ack::run(args),
        Paper::Pacing(args) => pacing::run(args),
        Paper::Nics(args) => nics::run(args),
    }
}

/// A paper made again; the exit code if not all runs were made.
pub type Made = Result<Overview, ExitCode>;

/// What has been made and written.
#[derive(Debug)]
pub struct Overview {
    /// What says it all.
    pub shown: Shown,
    /// The numbers and claims.
    pub reproduction: Reproduction,
    /// Where the whole report is.
    pub report: PathBuf,
}

/// A report, before it is written.
#[derive(Debug)]
struct Report {
    html: String,
    /// All, each written as a file of its own.
    figures: Vec<Figure>,
    /// The file names of those that say it all.
    telling: &'static [&'static str],
    verdict: String,
    /// The paper's numbers beside what was measured.
    table: Table,
}

/// Says and writes what came out.
fn deliver(
    out: OutDir,
    saying: Saying,
    reproduction: Reproduction,
    text: &str,
    made: Report,
) -> Result<Made> {
    saying.say(&reproduction, text)?;
    let Report { html, mut figures, telling, verdict, table } = made;
    let report = out.dir().join(REPORT);
    out.write(REPORT, html.as_bytes())?;
    for figure in &figures {
        out.write(&figure.file_name, figure.svg.as_bytes())?;
    }
    out.commit()?;
    saying.say_where(&report)?;
    figures.retain(|figure| telling.contains(&figure.file_name.as_str()));
    debug_assert_eq!(figures.len(), telling.len(), "figures that say it all: {telling:?}");
    Ok(Ok(Overview { shown: Shown { verdict, figures, table }, reproduction, report }))
}

/// The name of a report.
const REPORT: &str = "report.html";

/// The little that says it all.
#[derive(Debug)]
pub struct Shown {
    /// What came out, in a sentence or two.
    pub verdict: String,
    /// One picture, or two to compare.
    pub figures: Vec<Figure>,
    /// The paper's numbers beside what was measured.
    pub table: Table,
}

/// What is said on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saying {
    /// Tables and claims.
    Text,
    /// JSON.
    Json,
    /// Nothing: somebody else speaks.
    Nothing,
}

impl Saying {
    /// All of it, as JSON or as text.
    pub const fn all(json: bool) -> Saying {
        if json { Saying::Json } else { Saying::Text }
    }
    fn say(self, reproduction: &Reproduction, text: &str) -> Result<()> {
        match self {
            Saying::Json => terminal::print_json(reproduction),
            Saying::Text => terminal::print(text),
            Saying::Nothing => Ok(()),
        }
    }
    fn say_where(self, report: &Path) -> Result<()> {
        if self == Saying::Nothing { Ok(()) } else { terminal::say_where(report, self == Saying::Json) }
    }
}

/// How the command ends; if `strict`, claims that fail count.
fn ended(made: Made, strict: bool) -> ExitCode {
    match made {
        Ok(overview) if strict && !overview.reproduction.holds() => ExitCode::from(terminal::FAILED),
        Ok(_) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

/// Claims with their verdicts and evidence, for a terminal.
fn claims_text(claims: &[ReproductionClaim]) -> String {
    let mut out = String::from("Claims\n");
    for claim in claims {
        out.push_str(&wrapped(&format!("{}  {}", claim.verdict(), claim.text), "  ", "         "));
        out.push_str(&wrapped(&claim.evidence, "         ", "         "));
    }
    out
}

const WIDTH: usize = 110;

fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}
