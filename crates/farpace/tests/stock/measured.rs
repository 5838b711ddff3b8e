//! iperf3, one of its ends on farpace's TCP.

use crate::harness::*;
use serde_json::Value;
use std::path::Path;

/// Bytes that the receiver of a test has counted.
fn received(report: &str) -> u64 {
    let report: Value = serde_json::from_str(report).unwrap();
    assert!(report["error"].is_null(), "{}", report["error"]);
    report["end"]["sum_received"]["bytes"].as_u64().unwrap()
}

/// In a second even a busy machine moves this much, and nothing that goes by timeouts does.
const BYTES: u64 = 50_000_000;

/// Breaks: the first thing that people measure with, as a client and as a server, in both directions.
#[test]
fn iperf3_sends_and_receives() {
    if !has(&["iperf3"]) {
        return;
    }
    let Some(machine) = machine("perf") else { return };
    let client = |to| ["iperf3", "-J", "-t", "1", "-c", to];
    let here = Path::new("/");
    for reverse in [None, Some("-R")] {
        let _server = Running::saying(&machine, &["iperf3", "-s", "-1", "--forceflush"], here, "listening");
        let measured = [&client("10.77.0.1")[..], reverse.as_slice()].concat();
        let report = good(run(&machine, &exec(&["--tun", "st0"], &measured), here));
        assert!(received(&report) >= BYTES, "{report}");
    }
    for reverse in [None, Some("-R")] {
        let server = exec(&["--tun", "st0"], &["iperf3", "-s", "-1", "--forceflush"]);
        let server = Running::saying(&machine, &server, here, "listening");
        let report = good(run(&machine, &[&client("10.77.0.2")[..], reverse.as_slice()].concat(), here));
        assert!(received(&report) >= BYTES, "{report}");
        assert_eq!(server.ends(), Some(0));
    }
}

/// Breaks: UDP of programs that know nothing of farpace.
#[test]
fn iperf3_sends_datagrams() {
    if !has(&["iperf3"]) {
        return;
    }
    let Some(machine) = machine("udp") else { return };
    let here = Path::new("/");
    let _server = Running::saying(&machine, &["iperf3", "-s", "-1", "--forceflush"], here, "listening");
    let client = ["iperf3", "-J", "-u", "-b", "20M", "-t", "1", "-c", "10.77.0.1"];
    let report = good(run(&machine, &exec(&["--tun", "st0"], &client), here));
    assert!(received(&report) > 1_000_000, "{report}");
    // The server has a socket for each stream, all at one port and at `::`, which hears IPv4 as well.
    for reverse in [None, Some("-R")] {
        let server = exec(&["--tun", "st0"], &["iperf3", "-s", "-1", "--forceflush"]);
        let server = Running::saying(&machine, &server, here, "listening");
        let client = ["iperf3", "-J", "-u", "-b", "20M", "-t", "1", "-P", "2", "-c", "10.77.0.2"];
        let report = good(run(&machine, &[&client[..], reverse.as_slice()].concat(), here));
        let report: Value = serde_json::from_str(&report).unwrap();
        assert!(report["end"]["sum"]["bytes"].as_u64() > Some(2_000_000), "{report}");
        assert_eq!(report["end"]["streams"].as_array().unwrap().len(), 2, "{report}");
        assert_eq!(server.ends(), Some(0));
    }
}
