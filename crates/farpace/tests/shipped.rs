//! What is shipped beside the program's work: manual pages, completions, notices, its version.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use clap::{Command, CommandFactory};
use common::{names, run};
use farpace::cli::Cli;
use std::collections::BTreeSet;
use std::path::Path;

/// Every command with its words, as in `lab up`, and the program itself as the empty one.
fn commands() -> Vec<(String, Command)> {
    fn add(command: &Command, words: &str, all: &mut Vec<(String, Command)>) {
        all.push((words.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|c| c.get_name() != "help") {
            add(below, format!("{words} {}", below.get_name()).trim(), all);
        }
    }
    let mut command = Cli::command();
    command.build();
    let mut all = Vec::new();
    add(&command, "", &mut all);
    assert!(all.len() > 20, "commands were not found");
    all
}

/// Breaks: manual pages: a command without one, or a page without the command's options and examples.
#[test]
fn every_command_has_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, error) = run(dir.path(), &["man", "--out", "pages/man1"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let mut expected = BTreeSet::new();
    for (words, command) in commands() {
        let name = format!("farpace {words}").trim().replace(' ', "-") + ".1";
        let page = std::fs::read_to_string(dir.path().join("pages/man1").join(&name)).unwrap_or_default();
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        for option in command.get_opts().filter(|o| !o.is_hide_set()).filter_map(|o| o.get_long()) {
            assert!(page.contains(&option.replace('-', "\\-")), "{name} does not tell of --{option}");
        }
        assert!(page.contains(".SH \"EXAMPLE"), "{name} has no example");
        expected.insert(name);
    }
    let written: BTreeSet<_> = names(&dir.path().join("pages/man1")).into_iter().collect();
    assert_eq!(written, expected);
    let (code, page, _) = run(dir.path(), &["man", "lab", "up"]);
    assert_eq!(code, 0);
    assert_eq!(page, std::fs::read_to_string(dir.path().join("pages/man1/farpace-lab-up.1")).unwrap());
    assert_eq!(run(dir.path(), &["man", "nonsense"]).0, 2);
}

/// Breaks: help that shows how to use a command: examples everywhere, and exit codes where the program says
/// its own.
#[test]
fn every_help_has_an_example() {
    for (words, command) in commands() {
        let help = command.get_after_help().or(command.get_after_long_help()).map(|h| h.to_string());
        let help = help.unwrap_or_default();
        assert!(help.contains(&format!("farpace {words}")), "farpace {words} --help has no example");
    }
    let help = Cli::command().render_long_help().to_string();
    assert!(
        ["  0 ", "  1 ", "  2 ", "  130 "].iter().all(|code| help.contains(&format!("\n{code}"))),
        "{help}"
    );
}

/// Breaks: completions of a shell: a command that it does not know, or a script with an error.
#[test]
fn completions_name_every_command() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let (code, script, error) = run(dir.path(), &["completions", shell]);
        assert_eq!((code, error.as_str()), (0, ""));
        for (words, _) in commands() {
            for word in words.split(' ') {
                assert!(script.contains(word), "{shell} does not know {words}");
            }
        }
        let file = dir.path().join(shell);
        std::fs::write(&file, script).unwrap();
        match std::process::Command::new(shell).arg(check).arg(&file).status() {
            Ok(status) => assert!(status.success(), "{shell} finds an error in its completions"),
            Err(error) => _ = common::skip::<()>(shell, &error.to_string()),
        }
    }
    assert_eq!(run(dir.path(), &["completions", "nonsense"]).0, 2);
}

/// Breaks: the notices, which must name what the program is made of. `make notices` writes them anew.
#[test]
fn notices_name_every_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args([
        "tree",
        "--locked",
        "--offline",
        "-p",
        "farpace",
        "-e",
        "normal,no-proc-macro",
        "--prefix",
        "none",
    ]);
    cargo.args(["--target", "x86_64-unknown-linux-musl", "--format", "{p}"]).current_dir(root);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let linked: BTreeSet<String> = tree
        .lines()
        .filter(|line| !line.is_empty() && !line.contains("(/"))
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ").replacen(" v", " ", 1))
        .collect();
    assert!(linked.len() > 30, "{linked:?}");
    let dir = tempfile::tempdir().unwrap();
    let (code, text, _) = run(dir.path(), &["notices"]);
    assert_eq!(code, 0);
    let named: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("* "))
        .filter_map(|line| line.split_once(" (").map(|(name, _)| name.to_owned()))
        .filter(|name| {
            name.split_once(' ').is_some_and(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
        })
        .collect();
    assert_eq!(named, linked, "`make notices` writes them anew");
    assert!(text.contains("Permission is hereby granted") && text.contains("musl"));
}

/// Breaks: reports of trouble, which need to say what was running.
#[test]
fn the_version_says_target_and_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text, _) = run(dir.path(), &["--version"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((code, lines.len()), (0, 3), "{text}");
    assert_eq!(lines[0], format!("farpace {}", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].strip_prefix("target ").is_some_and(|t| t.split('-').count() >= 3), "{text}");
    assert!(lines[2].strip_prefix("commit ").is_some_and(|c| !c.is_empty()), "{text}");
}
