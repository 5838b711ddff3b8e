//! The system's tools `ip` and `tc`.
//!
//! Their error messages are known to administrators, and their commands can be repeated by hand. A netlink
//! library would save about a millisecond per command, which does not matter here.

use super::SystemError;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Directories of the tools outside of the search path of ordinary users.
const FOLDERS: [&str; 3] = ["", "/usr/sbin/", "/sbin/"];

/// Runs a tool and returns its output.
pub(super) fn run(arguments: &[String]) -> Result<String, SystemError> {
    feed(arguments, "")
}

/// Runs a tool that reads `input`.
pub(super) fn feed(arguments: &[String], input: &str) -> Result<String, SystemError> {
    let Some((program, rest)) = arguments.split_first() else { return Ok(String::new()) };
    for folder in FOLDERS {
        let mut command = Command::new(format!("{folder}{program}"));
        command
            .args(rest)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C must not reach the tools, so that the reversal of changes completes.
        command.process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(SystemError::System { what: format!("run `{program}`"), error }),
        };
        if let Some(mut stdin) = child.stdin.take() {
            // The tool may exit before it has read all. Then its error says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let waited = child.wait_with_output();
        let output =
            waited.map_err(|error| SystemError::System { what: format!("wait for `{program}`"), error })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.trim().trim_start_matches("RTNETLINK answers: ").trim_start_matches("Error: ");
        return Err(SystemError::Tool { command: arguments.join(" "), message: message.replace('\n', "; ") });
    }
    Err(SystemError::NoTool(program.clone()))
}

/// Runs `program`, which is `ip` with options, once for all these lines. It ends at the first line that
/// fails, or goes on behind it.
pub(super) fn batch(program: &[String], lines: &[String], go_on: bool) -> Result<(), SystemError> {
    let go_on = if go_on { " -force" } else { "" };
    let arguments = [program, &words(&format!("{go_on} -batch -"))].concat();
    feed(&arguments, &(lines.join("\n") + "\n")).map(drop)
}

/// Splits a line into arguments.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The arguments of `ip` or `tc` for this line, in a namespace.
pub(super) fn line(program: &str, namespace: Option<&str>, line: &str) -> Vec<String> {
    let mut arguments = vec![program.to_owned()];
    if let Some(namespace) = namespace {
        arguments.extend(["-n".to_owned(), namespace.to_owned()]);
    }
    arguments.extend(words(line));
    arguments
}
