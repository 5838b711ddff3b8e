//! What the commands that move files have in common.

use crate::terminal;
use anyhow::{Context, Result};
use farpace_transfer::{ExcludePatterns, MinFree, Timeouts};
use farpace_units::{ByteCount, Rate};
use std::path::PathBuf;
use std::time::Duration;

/// Options of whoever sends.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SendingOptions {
    /// Send at this rate at most, e.g. 50mbit or "1 Gbit/s"
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub limit: Option<Rate>,
    /// Report at the end what limited the transfer, with the measurements
    #[arg(long)]
    pub explain: bool,
    /// Print the result as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Set by the command: nothing is sent
    #[arg(skip)]
    pub dry_run: bool,
}

/// What is left out.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ExcludeArgs {
    /// Exclude matching names, as rsync does: *.o, cache/, /target, doc/*.pdf; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
}

impl ExcludeArgs {
    /// The patterns.
    ///
    /// # Errors
    /// One of them is none.
    pub fn patterns(&self) -> Result<ExcludePatterns> {
        ExcludePatterns::new(&self.exclude).context("--exclude")
    }
}

/// The secret that both sides share.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Token {
    /// With --insecure: secret that both sides give; others see it in the list of processes: better in
    /// FARPACE_TOKEN or a file
    #[arg(long, value_name = "SECRET", conflicts_with = "token_file")]
    token: Option<String>,
    /// With --insecure: read the secret from the first line of a file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Token {
    /// For where there are tickets: a token there would be believed to protect something.
    ///
    /// # Errors
    /// One was given on the command line.
    pub fn refuse(&self) -> Result<()> {
        anyhow::ensure!(
            self.token.is_none() && self.token_file.is_none(),
            "a token goes with --insecure alone: tickets, which are encrypted, take its place"
        );
        Ok(())
    }
    /// The secret; empty if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or the secret that was given is empty: that would be as good as none.
    pub fn get(&self) -> Result<Vec<u8>> {
        if let Some(path) = &self.token_file {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read the token from {}", path.display()))?;
            let line = text.lines().next().unwrap_or_default().trim();
            anyhow::ensure!(
                !line.is_empty(),
                "the first line of {} is empty: write the token there",
                path.display()
            );
            return Ok(line.as_bytes().to_vec());
        }
        let (given, by) = match (&self.token, std::env::var_os("FARPACE_TOKEN")) {
            (Some(token), _) => (token.as_bytes().to_vec(), "--token"),
            (None, Some(token)) => (token.into_encoded_bytes(), "FARPACE_TOKEN"),
            (None, None) => return Ok(Vec::new()),
        };
        anyhow::ensure!(!given.is_empty(), "{by} is empty: give a token, or do not set it");
        Ok(given)
    }
}

/// Seconds: a whole number from 1 on.
pub fn seconds(text: &str) -> Result<u64, String> {
    // More than a century would overflow clocks.
    let seconds = text.parse().ok().filter(|seconds| (1..=u64::from(u32::MAX)).contains(seconds));
    seconds.ok_or_else(|| format!("`{text}` is not a time: a whole number of seconds from 1 on"))
}

/// A size as people write it: `500`, `10MB`, `1.5 GB`.
pub fn bytes(text: &str) -> Result<ByteCount, String> {
    let text = text.trim();
    if let Ok(bytes) = text.parse() {
        return Ok(ByteCount::new(bytes));
    }
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    format!("{} {unit}", number.trim()).parse().map_err(|error| format!("{error}"))
}

/// A size, or a share in percent.
pub fn min_free(text: &str) -> Result<MinFree, String> {
    match text.trim().strip_suffix('%') {
        Some(percent) => {
            let percent = percent.trim().parse().ok().filter(|percent| *percent <= 100);
            let percent = percent.ok_or_else(|| format!("`{text}` is not a share from 0% to 100%"))?;
            Ok(MinFree::Percent(percent))
        }
        None => bytes(text).map(MinFree::Bytes),
    }
}

/// A rate as people write it: `50mbit`, `50 Mbit/s`, `1gbit`.
pub fn rate(text: &str) -> Result<Rate, String> {
    let short = text.trim().to_ascii_lowercase();
    let units = [("kbit", "kbit/s"), ("mbit", "Mbit/s"), ("gbit", "Gbit/s")];
    let full = units.iter().find_map(|(unit, full)| {
        let number = short.trim_end_matches("/s").strip_suffix(unit)?;
        Some(format!("{} {full}", number.trim()))
    });
    let rate: Rate = full.as_deref().unwrap_or(text).parse().map_err(|error| format!("{error}"))?;
    if rate.bits_per_sec() == 0 { Err("nothing can be sent at 0 bit/s".to_owned()) } else { Ok(rate) }
}

/// Patience with a peer that is silent for `seconds`.
pub fn timeouts(seconds: u64) -> Timeouts {
    Timeouts { idle: Duration::from_secs(seconds), ..Timeouts::default() }
}

/// Says it on standard error, unless `quiet`.
pub fn say(quiet: bool, line: &str) {
    if !quiet {
        terminal::note(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: rates as people write them are refused or misread.
    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, bits) in [
            ("50mbit", 50_000_000),
            ("50 Mbit/s", 50_000_000),
            ("1gbit", 1_000_000_000),
            ("1.5 Gbit/s", 1_500_000_000),
            ("800 bit/s", 800),
            ("64kbit/s", 64_000),
        ] {
            assert_eq!(rate(text).map(Rate::bits_per_sec), Ok(bits), "{text}");
        }
        for text in ["", "50", "0mbit", "-1mbit", "fast", "mbit"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    /// Breaks: limits as people write them are refused or misread; a negative one means something.
    #[test]
    fn limits_are_read_as_people_write_them() {
        for (text, n) in
            [("500", 500), ("10MB", 10_000_000), ("1.5 GB", 1_500_000_000), ("4 KiB", 4_096), ("0", 0)]
        {
            assert_eq!(bytes(text), Ok(ByteCount::new(n)), "{text}");
        }
        assert_eq!(min_free("5%"), Ok(MinFree::Percent(5)));
        assert_eq!(min_free("1GB"), Ok(MinFree::Bytes(ByteCount::new(1_000_000_000))));
        assert_eq!(seconds("60"), Ok(60));
        for text in ["", "-5", "101%", "-5%", "MB", "5 %5", "much"] {
            assert!(min_free(text).is_err() && seconds(text).is_err(), "{text}");
        }
        for text in ["0", "1.5", "99999999999"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
