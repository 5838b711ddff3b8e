//! How large the command is.

use crate::workspace::{root, sources};

/// Lines of `crates/farpace/src` at most, tests included. The command holds arguments, dispatch, exit codes
/// and output; what computes, measures or serves belongs to a library. This number only gets smaller.
const MAX_COMMAND_LINES: usize = 12_600;
/// Lines that may be left below it before it is to be lowered.
const SLACK: usize = 400;

/// Breaks: the command as a thin layer. A command that computes can be used only by starting a process.
#[test]
fn the_command_only_gets_smaller() {
    let files = sources(&root().join("crates/farpace/src"));
    let lines: usize = files.values().map(|text| text.lines().count()).sum();
    assert!(
        lines <= MAX_COMMAND_LINES,
        "crates/farpace/src has {lines} lines, at most {MAX_COMMAND_LINES}: move what is no argument and no \
         output to a library"
    );
    assert!(lines + SLACK > MAX_COMMAND_LINES, "lower MAX_COMMAND_LINES: there are only {lines} lines");
}
