//! `farpace papers`: measurements of published papers, made again in virtual time.
//!
//! One file per paper; each ends in a [`farpace_report::Reproduction`], so that programs read all of them alike.

pub mod stops;

use anyhow::Result;
use clap::Subcommand;
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
}

/// `farpace papers`.
///
/// # Errors
/// Whatever keeps the measurement from being made or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.paper {
        Paper::Stops(args) => stops::run(args),
    }
}
