//! Running foreign programs from tests.

use std::process::{Command, Output};

/// Runs `command` if it can be started. If not, fails where `CI` is set, and elsewhere says that `what` was not there
/// and gives none.
pub fn run_if_installed(command: &mut Command, what: &str) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => skip(what, &error.to_string()),
    }
}

/// What to do when `what` is missing.
pub fn skip<T>(what: &str, why: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "{what} is needed for this test: {why}");
    println!("skipped: {what} not installed");
    None
}
