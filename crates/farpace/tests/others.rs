//! `farpace scenario` and `farpace profiles`, and help.

mod common;

use common::{LOSSY, run, with_scenario};
use serde_json::Value;

/// Breaks: `scenario check` on many files: one bad file hides the others, or passes.
#[test]
fn check_tells_of_every_file() {
    let dir = with_scenario(LOSSY);
    let files = ["scenario", "check", "scenario.toml", "missing.toml", "scenario.toml"];
    let (code, stdout, stderr) = run(dir.path(), &files);
    assert_eq!(code, 2);
    assert_eq!(stdout.lines().filter(|l| l.contains("scenario.toml: ok")).count(), 2, "{stdout}");
    assert!(stderr.contains("missing.toml"), "{stderr}");
    assert_eq!(run(dir.path(), &["scenario", "check", "scenario.toml"]).0, 0);
}

/// Breaks: editors that complete scenario files, and readers of `explain`.
#[test]
fn scenarios_are_explained_and_have_a_schema() {
    let dir = with_scenario(LOSSY);
    let (code, stdout, _) = run(dir.path(), &["scenario", "schema"]);
    let schema: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, schema["title"].as_str()), (0, Some("Scenario")));
    let explain = ["scenario", "explain", "scenario.toml", "--set", "links.wire.delay=77 ms"];
    let (code, stdout, _) = run(dir.path(), &explain);
    assert!(code == 0 && stdout.contains("77 ms"), "{stdout}");
}

/// Breaks: programs that ask which profiles there are.
#[test]
fn profiles_are_listed() {
    let dir = with_scenario(LOSSY);
    let (_, text, _) = run(dir.path(), &["profiles"]);
    let (_, json, _) = run(dir.path(), &["profiles", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let profiles = json["profiles"].as_array().unwrap();
    assert!(profiles.len() >= 7);
    for p in profiles {
        let line =
            text.lines().find(|l| l.trim_start().starts_with(&format!("{} ", p["name"].as_str().unwrap())));
        assert!(line.is_some_and(|l| l.ends_with(p["description"].as_str().unwrap())), "{p}: {text}");
    }
}

/// Breaks: users who ask for help: examples, exit codes, and the version.
#[test]
fn help_has_examples() {
    let dir = with_scenario(LOSSY);
    for command in [
        &[][..],
        &["run"],
        &["scenario"],
        &["scenario", "check"],
        &["scenario", "explain"],
        &["profiles"],
        &["show"],
    ] {
        let arguments: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let (code, stdout, _) = run(dir.path(), &arguments);
        assert!(
            code == 0 && stdout.contains("Example") && stdout.contains("  farpace "),
            "{command:?}: {stdout}"
        );
    }
    assert!(run(dir.path(), &["run", "--help"]).1.contains("130"));
    assert_eq!(run(dir.path(), &["-V"]).1, format!("farpace {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(dir.path(), &[]).0, 2, "no command is wrong usage");
}
