//! `farpace papers stops`: its options, and the bytes that runs send.

use super::{PaperArgs, exit_codes, make_paper};
use crate::experiments::{Made, OutputForm, command_line};
use anyhow::{Context, Result, anyhow};
use farpace_lab::Payload;
use farpace_papers::stops::StopsPaper;
use farpace_process::interrupt::Litter;
use farpace_units::{ByteCount, RandomStream};
use serde::Serialize;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = concat!(
    "\
Every run is one transfer in virtual time; every byte received is compared with the byte sent. The result
depends on nothing but the scenario (scenarios/papers/stops.toml, with --set) and the version of farpace.

Examples:
  farpace papers stops                       about a minute; report in out/stops/report.html
  farpace papers stops --quick               one window, three phases
  farpace papers stops --real-file           sends a file of 1 GB from the disk, not a pattern
  farpace papers stops --json | jq '.claims[] | select(.holds | not)'

",
    exit_codes!()
);

/// The arguments of `farpace papers stops`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Less of everything: the window of 2500 packets and three policer phases
    #[arg(long)]
    pub quick: bool,
    /// Policer phases per row of Table 2 [default: 10, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub phases: Option<u32>,
    /// A file that every run sends, in place of a pattern of the scenario's size
    #[arg(long, value_name = "FILE", conflicts_with = "real_file")]
    #[serde(skip)]
    pub payload: Option<PathBuf>,
    /// Make a file of the scenario's size with pseudo-random bytes, send it in every run, and remove it
    #[arg(long)]
    #[serde(skip)]
    pub real_file: bool,
    /// The options of every paper.
    #[command(flatten)]
    #[serde(flatten)]
    pub paper: PaperArgs,
}

pub(super) fn make(args: &Args, form: OutputForm) -> Result<Made> {
    let common = &args.paper.common;
    let mut paper = StopsPaper::new(args.quick, args.phases, &common.set)?;
    let dir = common.dir("stops");
    if let Some(path) = &args.payload {
        let payload = Payload::file(path)?;
        let changed = fs::metadata(path).and_then(|file| file.modified()).ok();
        paper.send(payload, format!("{} {changed:?}", path.display()));
    } else if args.real_file {
        let base = paper.base()?;
        let flow = base.flows.first().ok_or_else(|| anyhow!("the scenario has no flow"))?;
        paper.send(real_file(&dir, base.seed, flow.size)?, format!("random {} {}", base.seed, flow.size));
    }
    make_paper(paper, &command_line("papers stops", args), &args.paper, &dir, form)
}

/// A file of `size` pseudo-random bytes that do not repeat, in memory. It has no name any more.
fn real_file(dir: &Path, seed: u64, size: ByteCount) -> Result<Payload> {
    let path = dir.join(format!(".farpace-payload-{}", std::process::id()));
    let _litter = Litter::watch(&path);
    let payload = write_random(&path, seed, size)
        .with_context(|| format!("cannot write {size} to `{}`", path.display()))
        .and_then(|()| Ok(Payload::file(&path)?));
    let _ = fs::remove_file(&path);
    payload
}

fn write_random(path: &Path, seed: u64, size: ByteCount) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut file = File::create(path)?;
    let mut random = RandomStream::new(seed, "payload file");
    let mut block = vec![0; 1 << 20];
    let mut left = size.as_len();
    while left > 0 {
        random.fill(&mut block);
        let part = &block[..left.min(block.len())];
        file.write_all(part)?;
        left -= part.len();
    }
    file.flush()
}
