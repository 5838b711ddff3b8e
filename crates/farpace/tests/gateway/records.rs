//! Records of connections: as Parquet on demand, and as lines of a log.

use crate::common;
use crate::harness::*;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const UP: usize = 700_000;
const DOWN: usize = 300_000;

/// Moves bytes both ways, and closes.
fn carry(net: &Net, listener: &std::net::TcpListener) {
    let (near, far) = net.connect(listener);
    let (up, down) =
        (send(near.try_clone().unwrap(), 0, UP, true), send(far.try_clone().unwrap(), 0, DOWN, true));
    let read = std::thread::spawn(move || receive(&mut { near }, 0, DOWN));
    receive(&mut { far }, 0, UP);
    read.join().unwrap();
    up.join().unwrap();
    down.join().unwrap();
}

fn lines(path: &Path) -> Vec<Value> {
    // After a rename it is not there until the gateway opens it.
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until the log has so many lines; it is written once a second.
fn wait_for_lines(path: &Path, count: usize) -> Vec<Value> {
    let since = std::time::Instant::now();
    loop {
        let all = lines(path);
        if all.len() >= count {
            return all;
        }
        assert!(since.elapsed().as_secs() < 30, "{} of {count} lines", all.len());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Breaks: connections that have ended leave no trace, or a wrong one: in the log, in the log after logrotate
/// has renamed it, or in the table that pandas reads; or a table is half a file where it cannot be written.
#[test]
fn connections_that_have_ended_are_recorded() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let folder = tempfile::tempdir().unwrap();
    let [log, old, table] = ["log.jsonl", "log.1", "c.parquet"].map(|name| folder.path().join(name));
    let gateway = net.gateway(&["--threads", "2", "--log", log.to_str().unwrap()]);
    let (v4, v6) = (net.listen(SERVER), net.listen(SERVER6));
    (0..3).for_each(|_| carry(&net, &v4));
    carry(&net, &v6);
    let all = wait_for_lines(&log, 4);
    assert_eq!(all.len(), 4);
    for line in &all {
        assert_eq!(line["payload_bytes"], serde_json::json!({ "up": UP, "down": DOWN }), "{line}");
        assert_eq!((&line["end"], &line["opened_by"]), (&"finished".into(), &"lan".into()));
        assert!(line["wan_leg"]["limited_s"]["congestion_window"].is_number(), "{line}");
        let [began, ended] = ["began_s", "ended_s"].map(|key| line[key].as_f64().unwrap());
        let took = ended - began - line["age_s"].as_f64().unwrap();
        assert!(took.abs() < 1e-3 && began > 1.7e9, "{line}");
    }
    std::fs::rename(&log, &old).unwrap();
    gateway.signal(nix::sys::signal::Signal::SIGHUP);
    // One that lives.
    let open = net.connect(&v4);
    exchange(&open.0, &open.1, 0, 10_000);
    carry(&net, &v4);
    assert_eq!(wait_for_lines(&log, 1).len(), 1);
    assert_eq!(lines(&old).len(), 4);
    let records = |file: &Path| net.farpace(&["gateway", "status", "--records", file.to_str().unwrap()]);
    let written = records(&table);
    assert!(written.status.success(), "{written:?}");
    assert!(String::from_utf8_lossy(&written.stdout).starts_with("6 connections written to "), "{written:?}");
    let refused = records(&folder.path().join("none/c.parquet"));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot write"), "{refused:?}");
    let script = "import sys, pyarrow.parquet as p
t = p.read_table(sys.argv[1]).to_pylist()
living = sum(r['end'] is None for r in t)
print(len(t), sum(r['up_bytes'] for r in t), living, t[0]['began'].year > 2020, t[0]['wan_address'])";
    let mut read = Command::new("python3");
    read.args(["-c", script]).arg(&table);
    if let Some(read) = common::run_if_installed(&mut read, "pyarrow") {
        let text = String::from_utf8_lossy(&read.stdout).into_owned();
        if read.status.success() {
            assert_eq!(text.trim(), format!("6 {} 1 True {SERVER}", 5 * UP + 10_000), "{read:?}");
        }
    }
    drop(open);
    gateway.end();
    net.assert_clean();
}
