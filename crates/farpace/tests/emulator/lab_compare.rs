//! The lab against reality.

use super::harness::{alone, has_rights};
use serde_json::Value;
use std::process::{Command, Stdio};

/// A queue of 40 ms: what a loaded machine keeps back for some milliseconds changes little.
const PATH: &str = r#"
title = "20 Mbit/s, 40 ms"
[hosts.a]
[hosts.b]
[routers.r]
[[links]]
name = "access"
between = ["a", "r"]
rate = "1 Gbit/s"
queue = "10000 packets"
[[links]]
name = "wan"
between = ["r", "b"]
rate = "20 Mbit/s"
delay = "20 ms"
queue = "100 kB"
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "1 MB"
"#;
/// Runs at most: a machine that stands still for longer than the queue lasts makes reality another one.
const TRIES: usize = 3;

/// Breaks: what the lab says of a path is not what comes of it, with our own engine on devices or with the
/// kernel's cubic.
#[test]
fn lab_and_kernel_agree_in_real_time() {
    if !has_rights() {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("path.toml"), PATH).unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
        command.args(["lab", "compare", "path.toml", "--seconds", "3", "--require", "5", "--json"]);
        command.current_dir(&here).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let namespaces = format!("far-compare-{}", child.id());
        let output = child.wait_with_output().unwrap();
        let left = Command::new("ip").args(["netns", "list"]).output().unwrap();
        assert!(!String::from_utf8_lossy(&left.stdout).contains(&namespaces), "{left:?}");
        output
    };
    let mut output = run();
    for _ in 1..TRIES {
        if output.status.code() == Some(1) {
            output = run();
        }
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let trials = found["trials"].as_array().unwrap();
    assert_eq!(
        trials.iter().map(|trial| trial["way"].as_str().unwrap()).collect::<Vec<_>>(),
        ["lab", "farpace", "kernel"]
    );
    for trial in trials {
        let [rate, rtt, window] =
            ["goodput_mbit_s", "srtt_ms", "cwnd"].map(|key| trial[key].as_f64().unwrap());
        assert!((16.0..20.0).contains(&rate), "{trial}");
        // The path's 40 ms and at most its queue's; what that holds in segments.
        assert!((40.0..90.0).contains(&rtt) && (60.0..180.0).contains(&window), "{trial}");
        assert!(trial["sent_again"].as_u64().unwrap() < trial["sent"].as_u64().unwrap() / 10, "{trial}");
    }
    let page = std::fs::read_to_string(here.path().join("out/reality/report.html")).unwrap();
    assert!(page.contains("Congestion window") && page.contains("kernel"), "no picture");
}

/// Breaks: combinations of cures cannot be run on devices, or one of them carries nothing there.
#[test]
fn cures_meet_on_devices() {
    if !has_rights() {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
    command.args(["together", "--path", "office", "--seeds", "1", "--time", "1 s", "--devices", "--json"]);
    let output = command.current_dir(&here).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let devices = found["paths"][0]["on_devices"].as_array().unwrap();
    assert_eq!(devices.len(), 12 + 4);
    for device in devices {
        assert!(device["run"]["bytes"].as_u64().unwrap() > 100_000, "{device}");
    }
    assert!(here.path().join("out/together/figures/office-devices.svg").exists());
}
