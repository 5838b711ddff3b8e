//! What the commands that move files have in common.

use crate::terminal;
use anyhow::{Context, Result};
use farpace_transfer::Patience;
use farpace_units::Rate;
use std::path::PathBuf;
use std::time::Duration;

/// Options of whoever sends.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sending {
    /// Send at this rate at most, e.g. 50mbit or "1 Gbit/s"
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub limit: Option<Rate>,
    /// Say at the end what limited the transfer, with the numbers
    #[arg(long)]
    pub explain: bool,
    /// Print the result as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// The secret that both sides share.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Token {
    /// Secret that both sides give; others see it in the list of processes: better in FARPACE_TOKEN or a file
    #[arg(long, value_name = "SECRET", conflicts_with = "token_file")]
    token: Option<String>,
    /// Read the secret from the first line of a file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Token {
    /// The secret; empty if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
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
        let given = self.token.clone().or_else(|| std::env::var("FARPACE_TOKEN").ok());
        Ok(given.unwrap_or_default().into_bytes())
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
pub fn patience(seconds: u64) -> Patience {
    Patience { idle: Duration::from_secs(seconds.max(1)), ..Patience::default() }
}

/// Bytes in the unit that suits them, with four digits at most.
pub fn size(bytes: u64) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = units.iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or(format!("{bytes} B"), |(unit, name)| {
        format!("{} {name}", farpace_report::number(bytes as f64 / *unit as f64))
    })
}

/// A rate in the unit that suits it.
pub fn speed(bytes: u64, time: Duration) -> String {
    let bits = bytes as f64 * 8.0 / time.as_secs_f64().max(1e-9);
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let unit = units.iter().find(|(unit, _)| bits >= *unit);
    unit.map_or(format!("{bits:.0} bit/s"), |(unit, name)| {
        format!("{} {name}", farpace_report::number(bits / unit))
    })
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

    /// Breaks: sizes and rates in wrong units.
    #[test]
    fn sizes_have_units() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(2_500_000), "2.50 MB");
        assert_eq!(speed(12_500_000, Duration::from_secs(1)), "100 Mbit/s");
    }
}
