//! `farpace papers all`: all five papers, and their solutions together, on one page.

use super::{ack, nics, pacing, satellite, stops};
use crate::experiments::{ExperimentArgs, Made, OutputForm, make};
use crate::terminal;
use anyhow::{Result, bail};
use clap::Parser;
use farpace_papers::Overview;
use farpace_papers::together::Together;
use farpace_process::outdir::OutDir;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Each paper is made again as with --quick, and written to a directory of its own below --out; then the
solutions of all of them meet on two paths, as in `farpace together`. One page shows the most important
figures, with the claims that hold and those that fail.

Examples:
  farpace papers all                     about a minute on two cores; page in out/index.html
  farpace papers all --only stops,nics   these alone
  farpace papers all --full              nothing is left out: some ten minutes
  farpace papers all --json | jq '.papers[].claims[] | select(.holds | not)'

Exit codes:
  0    all runs were made and all bytes were right; claims may fail, which is printed
  1    bytes arrived other than they were sent
  2    a file that cannot be written
  130  interrupted; what was complete by then has been written";

/// The arguments of `farpace papers all`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print JSON: all papers, and the combined runs
    #[arg(long)]
    pub json: bool,
    /// The directory for index.html and a directory for each paper
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Only these, separated by commas: stops, satellite, ack, pacing, nics, together
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Everything that each paper's own command does
    #[arg(long)]
    pub full: bool,
    /// Also in the best world of each paper, side by side: it takes twice as long
    #[arg(long)]
    pub worlds: bool,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// The arguments of a paper's own command, read as if they had been typed: so its defaults are its own.
#[derive(Debug, Parser)]
struct Typed<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

impl Args {
    fn typed<A: clap::Args>(&self, dir: &Path) -> Result<A> {
        let mut words = vec!["paper".into(), "--out".into(), dir.as_os_str().to_owned()];
        if !self.full {
            words.push("--quick".into());
        }
        if !self.worlds {
            words.extend(["--assume".into(), "literal".into()]);
        }
        if let Some(threads) = self.threads {
            words.extend(["--threads".into(), threads.to_string().into()]);
        }
        Ok(Typed::<A>::try_parse_from(words)?.args)
    }
}

/// Makes one of the parts, and writes its report to a directory.
type MakePart = fn(&Args, &Path) -> Result<Made>;

/// The name of a part, and how it is made. The last one is no paper.
const PARTS: [(&str, MakePart); 6] = [
    ("stops", |args, dir| stops::make(&args.typed(dir)?, OutputForm::Nothing)),
    ("satellite", |args, dir| satellite::make(&args.typed(dir)?, OutputForm::Nothing)),
    ("ack", |args, dir| ack::make(&args.typed(dir)?, OutputForm::Nothing)),
    ("pacing", |args, dir| pacing::make(&args.typed(dir)?, OutputForm::Nothing)),
    ("nics", |args, dir| nics::make(&args.typed(dir)?, OutputForm::Nothing)),
    (TOGETHER, |args, dir| {
        let common = ExperimentArgs { threads: args.threads, ..ExperimentArgs::default() };
        let together = Together::new(None, 1, None, &[])?;
        make(&together, "farpace together --seeds 1", &common, dir, OutputForm::Nothing)
    }),
];
const TOGETHER: &str = "together";

/// `farpace papers all`.
///
/// # Errors
/// A file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(word) = args.only.iter().find(|word| !PARTS.iter().any(|(name, _)| name == word)) {
        bail!("there is no paper `{word}`: {}", PARTS.map(|(name, _)| name).join(", "));
    }
    let is_wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|word| word == name);
    let parts: Vec<_> = PARTS.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    let mut overview = Overview { papers: Vec::new(), together: None, full: args.full };
    for (number, (name, make)) in parts.iter().enumerate() {
        terminal::note(&format!("{} of {}: {name}", number + 1, parts.len()));
        match make(args, &args.out.join(name))? {
            Ok(report) if *name == TOGETHER => overview.together = Some(report),
            Ok(report) => {
                if let Some(summary) = &report.summary {
                    terminal::note(&format!("   {}", summary.verdict));
                }
                overview.papers.push(report);
            }
            Err(code) => return Ok(code),
        }
    }
    let out = OutDir::open(&args.out, &["index.html".to_owned()])?;
    out.write("index.html", overview.page().render().as_bytes())?;
    out.commit()?;
    if args.json {
        terminal::print_json(&overview.json())?;
    } else {
        terminal::print(&terminal::table(&overview.summary()))?;
    }
    terminal::say_where(&args.out.join("index.html"), args.json)?;
    Ok(ExitCode::SUCCESS)
}
