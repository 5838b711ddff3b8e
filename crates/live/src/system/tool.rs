//! The system's own tools: `ip` and `tc`.
//!
//! They say why something cannot be done in words that administrators know, and what they did can be repeated by hand. A
//! library for netlink would be quicker by a millisecond each time, which nobody waits for here.

use super::SystemError;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Where tools are, if not in the search path: ordinary users often do not have these folders in theirs.
const FOLDERS: [&str; 3] = ["", "/usr/sbin/", "/sbin/"];

/// Runs a tool and returns what it has written.
pub(super) fn run(arguments: &[String]) -> Result<String, SystemError> {
    feed(arguments, "")
}

/// The same for a tool that reads `input`.
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
        // Ctrl-C is for us; what takes things away must come to its end.
        command.process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(SystemError::System { what: format!("run `{program}`"), error }),
        };
        if let Some(mut stdin) = child.stdin.take() {
            // It may end before it has read all: then it says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let waited = child.wait_with_output();
        let output =
            waited.map_err(|error| SystemError::System { what: format!("wait for `{program}`"), error })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches("RTNETLINK answers: ").trim_start_matches("Error: ");
        return Err(SystemError::Tool { command: arguments.join(" "), said: said.replace('\n', "; ") });
    }
    Err(SystemError::NoTool(program.clone()))
}

/// Words as arguments.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// `ip` or `tc` with this line, in a namespace.
pub(super) fn line(program: &str, namespace: Option<&str>, line: &str) -> Vec<String> {
    let mut arguments = vec![program.to_owned()];
    if let Some(namespace) = namespace {
        arguments.extend(["-n".to_owned(), namespace.to_owned()]);
    }
    arguments.extend(words(line));
    arguments
}
