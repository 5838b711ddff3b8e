//! Running the command, and foreign programs, from tests.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests, not all of them in every one")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A small transfer with losses, captured at both ends with full frames.
pub const LOSSY: &str = r#"
title = "A small lossy path"
duration = "60 s"
seed = 3
[hosts.a]
[hosts.b]
[[links]]
name = "wire"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "5 ms"
forward = { loss = 0.01 }
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "2 MB"
[trace]
taps = ["wire"]
snaplen = "2 kB"
"#;

/// A paced transfer over a switch, captured at both ends of the paced line and behind the switch, with a
/// coarse clock.
pub const PACED: &str = r#"
title = "Paced"
duration = "10 s"
[hosts.a]
[hosts.b]
[switches.s]
[[links]]
name = "nic"
between = ["a", "s"]
rate = "1 Gbit/s"
[links.forward.pacing]
default = "bulk"
classes = [{ name = "bulk", rate = "100 Mbit/s", limit = "1 MB" }, { name = "none" }]
[[links]]
name = "out"
between = ["s", "b"]
rate = "1 Gbit/s"
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "500 kB"
receiver = { window = "64 packets" }
[trace]
taps = ["nic", "b"]
clock = "gtrcnet"
"#;

/// `farpace` with these arguments, in `dir`.
pub fn farpace(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
    command.current_dir(dir).args(arguments);
    command
}

/// Runs it; its exit code, standard output and standard error.
pub fn run(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = farpace(dir, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A directory with `scenario.toml` in it.
pub fn with_scenario(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("scenario.toml"), text).unwrap();
    dir
}

/// Bytes that do not repeat soon.
pub fn bytes(len: usize) -> Vec<u8> {
    let mut x = 1u32;
    (0..len)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        })
        .collect()
}

/// The names in a directory, sorted, hidden ones left out.
pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// Runs `command` if it can be started. If not, fails where `CI` is set, and elsewhere says that `what` was
/// not there and gives none.
pub fn run_if_installed(command: &mut Command, what: &str) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => skip(what, &error.to_string()),
    }
}

/// What to do when `what` is missing.
pub fn skip<T>(what: &str, why: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "{what} is needed for this test: {why}");
    println!("skipped: {what} not available: {why}");
    None
}

/// `FARPACE_PYTHON`, or the environment of the checkout, or the machine's.
pub fn python() -> PathBuf {
    if let Some(path) = std::env::var_os("FARPACE_PYTHON") {
        return path.into();
    }
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if local.exists() { local } else { "python3".into() }
}

/// Exit code of a script that drives a browser, if there is no Playwright or no Chromium.
const BROWSER_MISSING: i32 = 77;

/// Runs a script that checks a page in a browser. False: there is none.
pub fn browser_checks(script: &mut Command) -> bool {
    let Some(output) = run_if_installed(script, "python") else { return false };
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(BROWSER_MISSING) {
        return skip::<()>("Playwright", &said).is_some();
    }
    assert!(output.status.success(), "{said}");
    true
}
