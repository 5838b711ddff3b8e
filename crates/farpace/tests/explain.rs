//! `farpace explain` as people call it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn farpace(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_farpace")).current_dir(directory).args(arguments).output().unwrap()
}

fn good(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A transfer whose receive window is far too small for the path, captured at both ends.
fn made() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let scenario = r#"
title = "A small window"
[hosts.a]
[hosts.b]
[[links]]
name = "path"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "20 ms"
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "2 MB"
[flows.receiver]
window = "30 kB"
[trace]
taps = ["a", "b"]
"#;
    fs::write(directory.path().join("window.toml"), scenario).unwrap();
    good(farpace(
        directory.path(),
        &["run", "window.toml", "--out", "made", "--trace", "parquet", "--no-report"],
    ));
    directory
}

fn first(json: &str) -> Value {
    serde_json::from_str::<Value>(json).unwrap()["captures"][0]["flows"][0].clone()
}

/// Breaks: the command: its verdict, times that add up, packets and filters, what a cure would bring, and its
/// files.
#[test]
fn a_capture_gets_a_verdict_and_a_cure() {
    let directory = made();
    let json =
        good(farpace(directory.path(), &["explain", "made/a.pcapng", "--json", "--cure", "--out", "why"]));
    let flow = first(&json);
    assert_eq!(flow["dominant"], "receive_window");
    assert_eq!((&flow["healthy"], &flow["captured_at"]), (&Value::Bool(false), &Value::from("sender")));
    let sum: f64 = flow["times"].as_array().unwrap().iter().map(|t| t["time_s"].as_f64().unwrap()).sum();
    assert!((sum - flow["duration_s"].as_f64().unwrap()).abs() < 1e-6);
    let finding = &flow["findings"][0];
    assert!(!finding["packets"].as_array().unwrap().is_empty());
    assert!(finding["wireshark"].as_str().unwrap().starts_with("frame.number"));
    let cure = &flow["cure"];
    let (was, with) = (cure["as_captured_s"].as_f64().unwrap(), cure["cured_s"].as_f64().unwrap());
    assert!(cure["reproduces"].as_bool().unwrap() && with * 2.0 < was, "{cure}");
    // The scenarios run by themselves.
    let cured = directory.path().join("why").join(cure["scenarios"][1].as_str().unwrap());
    good(farpace(directory.path(), &["scenario", "check", cured.to_str().unwrap()]));
    let page = fs::read_to_string(directory.path().join("why/report.html")).unwrap();
    assert!(page.contains("receive window") && page.contains("frame.number"));
    let text = good(farpace(directory.path(), &["explain", "made/a.pcapng"]));
    assert!(text.contains("where the time went") && text.contains("What helps"), "{text}");
}

/// Breaks: two captures of one connection, a trace of farpace, and a log of ss.
#[test]
fn pairs_traces_and_logs_are_read() {
    let directory = made();
    let json = good(farpace(directory.path(), &["explain", "made/a.pcapng", "made/b.pcapng", "--json"]));
    let both = serde_json::from_str::<Value>(&json).unwrap()["both"].clone();
    assert_eq!(both["first_to_second"]["lost"], 0);
    assert!(both["clock_offset_s"].as_f64().unwrap().abs() < 1e-3, "{both}");
    assert!((both["round_trip_s"].as_f64().unwrap() - 0.04).abs() < 1e-3, "{both}");
    let trace = fs::read_dir(directory.path().join("made")).unwrap();
    let trace =
        trace.map(|e| e.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "parquet")).unwrap();
    let flow = first(&good(farpace(directory.path(), &["explain", trace.to_str().unwrap(), "--json"])));
    assert_eq!(flow["dominant"], "receive_window");
    let log = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic rtt:40/1 cwnd:9 minrtt:40 busy:100ms \
               sndbuf_limited:90ms(90%)\n";
    fs::write(directory.path().join("ss.log"), log).unwrap();
    let flow = first(&good(farpace(directory.path(), &["explain", "ss.log", "--json"])));
    assert_eq!(flow["dominant"], "send_buffer");
}

/// Breaks: words for files that are none, and filters that match nothing.
#[test]
fn wrong_files_and_filters_are_told() {
    let directory = made();
    fs::write(directory.path().join("text"), "not a capture").unwrap();
    let output = farpace(directory.path(), &["explain", "text"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a capture"));
    assert_eq!(farpace(directory.path(), &["explain"]).status.code(), Some(2));
    let text = good(farpace(directory.path(), &["explain", "made/a.pcapng", "--flow", "9"]));
    assert!(text.contains("1 connection,") && text.contains("Nothing to explain"), "{text}");
    let none = good(farpace(directory.path(), &["explain", "made/a.pcapng", "--flow", "9", "--json"]));
    assert_eq!(
        serde_json::from_str::<Value>(&none).unwrap()["captures"][0]["flows"],
        Value::Array(Vec::new())
    );
}
