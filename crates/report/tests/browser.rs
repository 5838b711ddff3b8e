//! Pages in a real browser: Debian's Chromium, driven by Playwright. `browser/check.py` looks at the gallery
//! page.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit code of the script if there is no Playwright or no Chromium.
const MISSING: i32 = 77;

fn python() -> PathBuf {
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if local.exists() { local } else { PathBuf::from("python3") }
}

/// The page of the example, which Cargo builds beside the tests.
fn gallery(directory: &Path) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let example = program.parent().unwrap().parent().unwrap().join("examples/gallery");
    let made = Command::new(&example).arg(directory).output().unwrap();
    assert!(made.status.success(), "{} fails", example.display());
    directory.join("index.html")
}

/// Runs one group of checks of the script.
fn check(group: &str) {
    let directory = std::env::temp_dir().join(format!("farpace-browser-{}-{group}", std::process::id()));
    let page = gallery(&directory);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/check.py");
    let Ok(output) = Command::new(python()).arg(script).arg(group).arg(&page).arg(&directory).output() else {
        assert!(std::env::var_os("CI").is_none(), "there is no Python");
        eprintln!("skipped: there is no Python");
        return;
    };
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(MISSING) {
        assert!(std::env::var_os("CI").is_none(), "{said}");
        eprintln!("skipped: {said}");
    } else {
        assert!(output.status.success(), "{said}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Breaks: the script of a page: zoom, pan, values under the pointer, linked axes, series on and off, buttons
/// of events, keys, and no error on the console.
#[test]
fn figures_can_be_explored() {
    check("explore");
}

/// Breaks: a page for readers without scripts and on paper: the drawings are there, and nothing else.
#[test]
fn drawings_stay_without_scripts_and_in_print() {
    check("static");
}

/// Breaks: pages on a phone (no sideways scrolling) and for everybody: contrast, names, structure, by
/// axe-core, by day and by night.
#[test]
fn pages_fit_and_are_accessible() {
    check("access");
}

/// Breaks: how pages look. The pictures are small, so that fonts do not matter. FARPACE_BLESS=1 stores new
/// ones: look at them.
#[test]
fn pages_look_as_they_did() {
    check("pictures");
}
