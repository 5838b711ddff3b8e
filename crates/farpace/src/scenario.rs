//! `farpace scenario`: files that are checked, explained, and their schema. Reading a scenario for any
//! command.

use crate::terminal;
use anyhow::{Context, Result, bail};
use farpace_emulate::words;
use farpace_lab::scenario::{
    MAX_TEXT, MAX_TRACE, Scenario, Topology, TopologyFigures, explain, generate, schema,
};
use farpace_units::{ByteCount, Rate, Span};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace scenario check scenarios/*/*.toml
  farpace scenario explain wan.toml --set links.wan.delay=\"20 ms\"
  farpace scenario schema > scenario.schema.json     for completion in editors";
const EXPLAIN_HELP: &str = "\
Examples:
  farpace scenario explain scenarios/papers/stops.toml
  farpace scenario explain wan.toml --set flows.bulk.receiver.window=\"1000 packets\"";
const CHECK_HELP: &str = "\
Example:
  farpace scenario check scenarios/*/*.toml

Exit codes: 0 if all files are good, 2 if one of them is not.";
const NEW_HELP: &str = "\
Topologies:
  dumbbell       N senders and N receivers, and one link between two routers
  parking-lot    N links in a row: one flow over all of them, and one over each
  star           N hosts around a switch: all others send to the first

Links that are to be the bottleneck have --rate, --delay, and a queue of one bandwidth-delay
product; all others have ten times the rate.

Examples:
  farpace scenario new dumbbell --size 10 > dumbbell.toml
  farpace scenario new parking-lot --size 3 --rate \"50 Mbit/s\" --delay \"20 ms\" > lot.toml";
const SCHEMA_HELP: &str = "\
Example:
  farpace scenario schema > scenario.schema.json";

/// The arguments of `farpace scenario`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Check each file; report what is wrong and where
    #[command(after_help = CHECK_HELP)]
    Check {
        /// Scenario files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print a scenario of a common topology
    #[command(after_help = NEW_HELP)]
    New {
        /// dumbbell, parking-lot or star
        #[arg(value_name = "TOPOLOGY", value_parser = topology)]
        topology: Topology,
        /// Pairs, hops or hosts
        #[arg(long, value_name = "N", default_value_t = 4)]
        size: u16,
        /// Rate of the bottleneck
        #[arg(long, value_name = "RATE", default_value = "100 Mbit/s", value_parser = words::rate_above_zero)]
        rate: Rate,
        /// One-way delay of its links
        #[arg(long, value_name = "TIME", default_value = "10 ms")]
        delay: Span,
        /// Payload of each flow
        #[arg(long, value_name = "SIZE", default_value = "10 MB")]
        flow: ByteCount,
    },
    /// Print the JSON schema of scenario files
    #[command(after_help = SCHEMA_HELP)]
    Schema,
    /// Describe a scenario in words: what the path can carry, what the window allows, when a policer's
    /// bucket runs dry
    #[command(after_help = EXPLAIN_HELP)]
    Explain {
        /// The scenario file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Replace a value, as in links.wan.delay="20 ms"; may be repeated
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
        set: Vec<(String, String)>,
    },
}

fn topology(word: &str) -> Result<Topology, String> {
    let found = Topology::ALL.into_iter().find(|topology| topology.name() == word);
    found.ok_or_else(|| {
        format!("there is no topology `{word}`: there are {}", Topology::ALL.map(Topology::name).join(", "))
    })
}

/// Splits `KEY=VALUE` at the first `=`.
///
/// # Errors
/// No `=`, or nothing before it.
pub fn parse_set(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE, as in links.wan.delay=\"20 ms\"".to_owned()),
    }
}

/// Reads and checks a scenario file. Flows of workloads are drawn from its seed.
///
/// # Errors
/// A file that cannot be read, or is no scenario: then line, column and what would be right.
pub fn load(file: &Path, set: &[(String, String)]) -> Result<Scenario> {
    let (name, text) = (file.display().to_string(), read_text(file)?);
    let folder = file.parent().unwrap_or(Path::new(""));
    let scenario = Scenario::parse_beside(&text, &name, set, &|beside| read_beside(&folder.join(beside)))?;
    Ok(scenario.drawn(scenario.seed))
}

/// The text of a scenario file.
///
/// # Errors
/// A file that cannot be read, or is no text.
pub fn read_text(file: &Path) -> Result<String> {
    let name = file.display().to_string();
    let cannot = || format!("cannot read scenario `{name}`");
    let mut bytes = Vec::new();
    let limit = MAX_TEXT.get() + 1;
    if file.is_dir() {
        bail!("{}: it is a directory", cannot());
    }
    File::open(file).and_then(|f| f.take(limit).read_to_end(&mut bytes)).with_context(cannot)?;
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        anyhow::anyhow!("{}: line {line} is not text (UTF-8)", cannot())
    })
}

/// The text of a file that a scenario names.
fn read_beside(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(file).and_then(|f| f.take(MAX_TRACE.get() + 1).read_to_string(&mut text));
    read.map(|_| text).map_err(|e| e.to_string())
}

/// `farpace scenario`.
///
/// # Errors
/// A bad scenario (for `check`, they are printed, not returned), or output that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Check { files } => {
            let mut good = true;
            for file in files {
                match load(file, &[]) {
                    Ok(s) => terminal::print(&format!("{}: ok: {}\n", file.display(), s.title))?,
                    Err(error) => {
                        good = false;
                        terminal::complain(&error);
                    }
                }
            }
            Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(terminal::USAGE) })
        }
        Command::New { topology, size, rate, delay, flow } => {
            let figures = TopologyFigures { size: *size, rate: *rate, delay: *delay, flow: *flow };
            terminal::print(&generate(*topology, figures).map_err(anyhow::Error::msg)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Schema => terminal::print_json(&schema()).map(|()| ExitCode::SUCCESS),
        Command::Explain { file, set } => {
            terminal::print(&explain(&load(file, set)?))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
