//! `farpace papers`: measurements of published papers, made again in virtual time.
//!
//! One file per paper; each ends in a [`farpace_report::Reproduction`], so that programs read all of them alike.

pub mod ack;
pub mod nics;
pub mod pacing;
pub mod satellite;
pub mod stops;

use anyhow::Result;
use clap::Subcommand;
use farpace_report::Claim;
use std::process::ExitCode;

/// The arguments of `farpace papers`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which paper
    #[command(subcommand)]
    pub paper: Paper,
}

/// The papers.
#[derive(Clone, Debug, Subcommand)]
pub enum Paper {
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
        Paper::Stops(args) => stops::run(args),
        Paper::Satellite(args) => satellite::run(args),
        Paper::Ack(args) => ack::run(args),
        Paper::Pacing(args) => pacing::run(args),
        Paper::Nics(args) => nics::run(args),
    }
}

/// Claims with their verdicts and evidence, for a terminal.
fn claims_text(claims: &[Claim]) -> String {
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
