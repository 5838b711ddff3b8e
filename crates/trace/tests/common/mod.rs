//! Runs external programs.

use std::process::{Command, Output};

/// Runs `command` if it can be started. Otherwise it fails if `CI` is set, or reports that `what` is missing
/// and returns none.
pub fn run_if_installed(command: &mut Command, what: &str) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => skip(what, &error.to_string()),
    }
}

/// Handles a missing program: fails if `CI` is set.
pub fn skip<T>(what: &str, why: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "{what} is needed for this test: {why}");
    println!("skipped: {what} not installed");
    None
}
