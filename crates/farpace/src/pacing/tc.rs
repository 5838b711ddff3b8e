//! `farpace pacing tc`: a configuration changed by commands of tc.

use super::file;
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use farpace_link::pacing::tc::Tc;
use farpace_link::pacing::{LinkClock, PacingConfig, has_comments};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Kinds of the root: edf (recommended), psp (as in the paper), htb and tbf (token buckets), fq (a timer per \
class), pfifo and bfifo (no pacing). Besides the words of tc, a root takes device_rate, mtu, gaps, \
gap_frame, jitter, tick, burst, slack and quantum, which are the keys of the file (docs/pacing.md).

Examples:
  farpace pacing tc qdisc add dev eth0 root handle 1: psp default 3
  farpace pacing tc class add dev eth0 parent 1: classid 1:1 psp rate 500mbit
  farpace pacing tc class add dev eth0 parent 1: classid 1:3 psp mode normal
  farpace pacing tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 1000
  farpace pacing tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst 192.168.2.0/24 classid \
  1:1
  farpace pacing tc --file lan.toml --batch commands.txt

Exit codes: 0 if all commands have had their effect, 2 if one of them is wrong: then the file is as it was.";

/// The arguments of `farpace pacing tc`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The configuration file; made if it does not exist. `-`: start from an empty one, and print the result
    #[arg(long, value_name = "FILE", default_value = "pacing.toml")]
    file: PathBuf,
    /// Read commands from a file, one a line (`\` continues a line, `#` begins a comment); `-`: from standard
    /// input
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    batch: Option<PathBuf>,
    /// Replace the file even if it has comments, which are lost
    #[arg(long)]
    force: bool,
    /// One command, as after tc
    #[arg(required_unless_present = "batch", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// `farpace pacing tc`.
///
/// # Errors
/// A command that is wrong, or files that cannot be read or written. The configuration is as it was then.
pub fn run(args: &Args) -> Result<ExitCode> {
    let to_output = args.file.as_os_str() == "-";
    let before = if to_output { None } else { existing(&args.file)? };
    if !args.force && before.as_ref().is_some_and(|(text, _)| has_comments(text)) {
        bail!(
            "`{}` has comments, which would be lost: edit it by hand, or give --force",
            args.file.display()
        );
    }
    let was_there = before.is_some();
    let mut tc = Tc::new(before.map(|(_, config)| config));
    match &args.batch {
        Some(batch) => {
            let name = batch.display().to_string();
            let text = match name.as_str() {
                "-" => file::limited(io::stdin().lock(), "standard input")?,
                _ => file::text(batch)?,
            };
            tc.apply_text(&text).map_err(|error| anyhow!("{name}: {error}"))?;
        }
        None => {
            let words: Vec<String> =
                args.words.iter().flat_map(|word| word.split_whitespace()).map(str::to_owned).collect();
            tc.apply(&words)?;
        }
    }
    match tc.config() {
        Some(config) if to_output => terminal::print(&written(config)?)?,
        Some(config) => file::replace(&args.file, &written(config)?)?,
        None if was_there => {
            let name = args.file.display();
            fs::remove_file(&args.file).with_context(|| format!("cannot remove `{name}`"))?;
            terminal::note(&format!("there is no pacing any more: `{name}` is gone"));
        }
        None => {}
    }
    for note in tc.notes() {
        terminal::note(&format!("note: {note}"));
    }
    for error in tc.config().map(|config| config.check(LinkClock::MAX_RATE)).unwrap_or_default() {
        terminal::note(&format!("note: not complete yet: {error}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration there is, with its text; none if there is no file.
fn existing(place: &Path) -> Result<Option<(String, PacingConfig)>> {
    if !place.exists() {
        return Ok(None);
    }
    let text = file::text(place)?;
    let config = file::parse(&text, place)?;
    Ok(Some((text, config)))
}

fn written(config: &PacingConfig) -> Result<String> {
    config.to_toml().map_err(|error| anyhow!("the configuration cannot be written as TOML: {error}"))
}
