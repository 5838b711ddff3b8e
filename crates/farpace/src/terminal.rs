//! What commands say to the person at the terminal, and how the process ends.

use farpace_report::Table;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Everything went well.
pub const OK: u8 = 0;
/// A flow did not complete, bytes differ, or a claim does not hold.
pub const FAILED: u8 = 1;
/// Wrong usage, a bad scenario, or a file that cannot be read or written.
pub const USAGE: u8 = 2;
/// Interrupted by Ctrl-C or a termination signal.
pub const INTERRUPTED: u8 = farpace_process::interrupt::EXIT_CODE;

/// Prints an error with its causes to standard error. Scenario errors bring their own `error:`.
pub fn complain(error: &anyhow::Error) {
    let text = with_causes(error);
    let prefix = if text.starts_with("error: ") { "" } else { "error: " };
    note(&format!("{prefix}{text}"));
}

/// The exit code of a run whose result is out, after what ended it early.
pub fn ended(ran: anyhow::Result<()>) -> ExitCode {
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// An error and its causes in one line. A cause whose words stand at the end of what it caused is not said
/// again.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Prints a line to standard error. If nobody can read it there, nothing can be done.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Shows a line on a terminal over the one before; elsewhere nothing.
pub fn show_over(line: &str) {
    let mut out = io::stderr().lock();
    if out.is_terminal() {
        // The rest of the line is erased.
        let _ = write!(out, "\r{line}\x1b[K");
    }
}

/// Columns of the terminal that standard output is; none if it is none, as for tests.
pub fn width() -> Option<usize> {
    let out = io::stdout();
    if cfg!(test) || !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// A table as text, no wider than the terminal that standard output is.
pub fn table(table: &Table) -> String {
    table.to_text_for(width())
}

/// Running text in lines of at most `max_width` columns, and no wider than the terminal, broken at spaces.
pub fn fill(text: &str, max_width: usize) -> String {
    let width = width().map_or(max_width, |width| width.min(max_width));
    farpace_report::fill(text, width)
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

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    /// An error that has the words of its cause in its own, and the cause as well.
    #[derive(Debug)]
    struct SourceError(io::Error);

    impl std::fmt::Display for SourceError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "cannot read at byte 0: {}", self.0)
        }
    }

    impl std::error::Error for SourceError {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    /// Breaks: sentences on a terminal break in the middle of words, or not at all.
    #[test]
    fn sentences_are_wrapped_at_spaces() {
        let text = fill(&"star-robust ".repeat(60), 96);
        assert!(text.lines().all(|l| l.chars().count() <= 96 && l.ends_with("star-robust")));
        assert_eq!(text.split_whitespace().count(), 60);
    }

    /// Breaks: what the system says stands twice in a line, or a cause is not said.
    #[test]
    fn causes_are_said_once() {
        let told = || SourceError(io::Error::other("no such thing (os error 2)"));
        let error = Err::<(), _>(told()).context("cannot open `x`").unwrap_err();
        assert_eq!(with_causes(&error), "cannot open `x`: cannot read at byte 0: no such thing (os error 2)");
        let error = anyhow::Error::new(told().0).context("a").context("b");
        assert_eq!(with_causes(&error), "b: a: no such thing (os error 2)");
    }
}
