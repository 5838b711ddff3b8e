//! `farpace papers NAME --search` from outside: what is refused, and the form of the JSON.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn search(paper: &str, out: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_farpace"))
        .args(["papers", paper, "--quick", "--out"])
        .arg(out)
        .args(more)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const TINY: [&str; 2] = ["--set", "flows.bulk.size=1 MB"];

/// Breaks: a mistake in a search is found out only after some of its runs, or gets no answer.
#[test]
fn mistakes_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (args, says) in [
        (vec!["--search", "nonsense"], "sender-host.processor.receive_ack"),
        (vec!["--search", "links.wan.delay"], "links.wan.delay=FROM..TO"),
        (vec!["--search", "paper.window=1500..1500"], "is empty"),
        (vec!["--search", "paper.window=1500.5,2000"], "whole number"),
        (vec!["--search", "receiver.delayed_ack=none,never"], "rfc5681"),
        (vec!["--search", "sender-host.procesor=1,2"], "processor"),
        (vec!["--search", "paper.window", "--search", "paper.window=1500,1600"], "twice"),
        (vec!["--search", "paper.window=1e1..2e1", "--sampling", "grid"], "how many values"),
        (vec!["--search", "paper.window", "--sampling", "grid", "--points", "3"], "all combinations"),
        (vec!["--search", "paper.window", "--sampling", "lhs", "--budget", "1 s"], "--points"),
        (vec!["--points", "3"], "--search"),
    ] {
        let done = search("stops", &dir.path().join("out"), &args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", text(&done.stdout));
        assert!(text(&done.stderr).contains(says), "{args:?}: {}", text(&done.stderr));
    }
    assert!(!dir.path().join("out").exists());
}

/// Breaks: a search of a year begins without a word, or nobody learns how long it would take.
#[test]
fn too_many_points_are_refused_with_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let many = ["--search", "links.wan.backward.loss", "--points", "5000"];
    let done = search("stops", dir.path(), &[&TINY[..], &many].concat());
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(said.contains("points take about") && said.contains("at most 4096"), "{said}");
    let wrong = ["--search", "paper.window", "--fit", "table9"];
    let done = search("stops", dir.path(), &[&TINY[..], &wrong].concat());
    assert!(text(&done.stderr).contains("table2/window/aist-fix/goodput"), "{}", text(&done.stderr));
}

/// Breaks: programs that read the JSON (docs/json.md), or what people read of the same.
#[test]
fn a_search_says_what_the_numbers_imply() {
    let dir = tempfile::tempdir().unwrap();
    let keys = ["--search", "paper.window", "--search", "receiver.delayed_ack=none,linux-2.6"];
    let args = [&TINY[..], &keys, &["--points", "4"]].concat();
    let done = search("stops", dir.path(), &[&args[..], &["--json"]].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    let keys = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let top = ["format", "keys", "paper", "planned", "points", "sampling", "trade_offs", "world"];
    let mut found = keys(&json);
    found.sort();
    assert_eq!((found, &json["format"]), (top.map(str::to_owned).into(), &"farpace-paper-search/1".into()));
    assert_eq!(json["points"].as_array().unwrap().len(), 4);
    let all = &json["trade_offs"];
    let mut found = keys(all);
    found.sort();
    let parts = [
        "checks",
        "claims",
        "effects",
        "exclusions",
        "most_numbers_at_once",
        "numbers",
        "pareto",
        "reference",
        "scores",
    ];
    assert_eq!(found, parts);
    assert_eq!(all["scores"].as_array().unwrap().len(), 4);
    assert!(all["numbers"].as_array().unwrap().iter().any(|n| n["fitted"] == false));
    let done = search("stops", dir.path(), &args);
    let shown = text(&done.stdout);
    for part in ["Chosen by the numbers", "Printed numbers", "What each key changes", "used for"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // A short time begins no point.
    let none = [&TINY[..], &["--search", "paper.window", "--budget", "1 ns"]].concat();
    let done = search("stops", dir.path(), &none);
    assert!(done.status.success(), "{}", text(&done.stderr));
}

/// Breaks: nobody learns which keys there are.
#[test]
fn what_papers_leave_open_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    for paper in ["stops", "satellite", "ack", "pacing", "nics"] {
        let done = search(paper, dir.path(), &["--search", "list", "--json"]);
        let json: Value = serde_json::from_slice(&done.stdout).unwrap();
        let keys = json["keys"].as_array().unwrap();
        assert!(keys.len() > 3 && keys.iter().all(|key| key["reason"].as_str().unwrap().len() > 10));
    }
}
