//! What commands say to the person at the terminal, and how the process ends.

use std::io::{self, Write};
use std::path::Path;

/// Everything went well.
pub const OK: u8 = 0;
/// A flow did not complete, bytes differ, or a claim does not hold.
pub const FAILED: u8 = 1;
/// Wrong usage, a bad scenario, or a file that cannot be read or written.
pub const USAGE: u8 = 2;
/// Interrupted by Ctrl-C or a termination signal.
pub const INTERRUPTED: u8 = 130;

/// Prints an error with its causes to standard error. Scenario errors bring their own `error:`.
pub fn complain(error: &anyhow::Error) {
    let text = format!("{error:#}");
    let prefix = if text.starts_with("error: ") { "" } else { "error: " };
    note(&format!("{prefix}{text}"));
}

/// Prints a line to standard error. If nobody can read it there, nothing can be done.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints to standard output. A reader who has gone away (`| head`) is no error.
///
/// # Errors
/// Standard output cannot be written, for instance a full disk.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Says where a report is: after tables on standard output, beside JSON on standard error.
///
/// # Errors
/// As [`print()`].
pub fn say_where(report: &Path, json: bool) -> anyhow::Result<()> {
    let line = format!("Report: {}", report.display());
    if json {
        note(&line);
        return Ok(());
    }
    print(&format!("\n{line}\n"))
}

/// Prints a JSON value to standard output, over several lines.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}
