//! Counts of the same capture by tshark and tcptrace: equal, or within what is explained here.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use farpace_explain::flow::Side;
use farpace_explain::input;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// A transfer over a lossy path, or one that reorders, with whole packets so that tcptrace reads them.
fn capture(directory: &Path, impairment: &str) {
    let text = format!(
        r#"
title = "counts"
[hosts.a]
[hosts.b]
[[links]]
name = "path"
between = ["a", "b"]
rate = "20 Mbit/s"
delay = "15 ms"
queue = "60 kB"
[links.forward]
{impairment}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "3 MB"
[flows.sender]
profile = "linux"
[flows.receiver]
profile = "linux"
[trace]
taps = ["a", "b"]
snaplen = "2000 B"
"#
    );
    let scenario = Scenario::parse(&text, "counts.toml").unwrap();
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    run.capture_into(directory).unwrap();
    while !run.advance(None).unwrap().finished {}
    run.finish().unwrap();
}

fn tool(name: &str) -> bool {
    let there = Command::new(name).arg("-v").output().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "{name} is not installed");
    if !there {
        println!("{name} is not installed: not compared");
    }
    there
}

/// Frames that match a display filter.
fn tshark(file: &Path, filter: &str) -> u64 {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-Y", filter, "-T", "fields", "-e", "frame.number"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().count() as u64
}

/// Breaks: the counts under every verdict. tshark judges each segment by rules of its own.
#[test]
fn retransmissions_and_late_segments_are_those_of_tshark() {
    if !tool("tshark") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (impairment, late) in
        [("loss = 0.01", false), ("reorder = { chance = 0.02, extra = \"4 ms\" }", true)]
    {
        capture(directory.path(), impairment);
        for place in ["a", "b"] {
            let file = directory.path().join(format!("{place}.pcapng"));
            let capture = input::read(File::open(&file).unwrap()).unwrap();
            let counts = capture.flows[0].half(Side::Client).counts;
            let again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || \
                         tcp.analysis.spurious_retransmission";
            let (resent, order) = (tshark(&file, again), tshark(&file, "tcp.analysis.out_of_order"));
            let data = tshark(&file, "ip.src == 10.0.0.1 && tcp.len > 0");
            assert_eq!(counts.data_segments, data, "{place}");
            // tshark tells late segments from retransmissions by a time of 3 ms, or the round trip of the
            // handshake, after the last ACK; we have timestamps. The sum is the same.
            let ours = counts.retransmissions + counts.reordered;
            assert_eq!(ours, resent + order, "{impairment} at {place}: {counts:?}");
            if !late {
                assert_eq!(counts.retransmissions, resent + order, "{impairment} at {place}");
                assert_eq!(counts.reordered, 0, "{impairment} at {place}");
            }
        }
    }
}

/// Breaks: round trips, and what is counted as sent again. tcptrace follows the same rules (Karn) at the
/// sender.
#[test]
fn round_trips_and_retransmissions_are_those_of_tcptrace() {
    if !tool("tcptrace") || !tool("tshark") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    capture(directory.path(), "loss = 0.01");
    let file = directory.path().join("a.pcapng");
    // tcptrace reads classic captures with microseconds.
    let classic = directory.path().join("a.pcap");
    let made = Command::new("tshark")
        .arg("-r")
        .arg(&file)
        .args(["-F", "pcap", "-w"])
        .arg(&classic)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let output = Command::new("tcptrace").args(["-l", "-r", "-n"]).arg(&classic).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Lines have the value of each direction: `     rexmt data pkts:            31           rexmt data pkts:
    // 0`.
    let value = |name: &str| -> f64 {
        let line =
            text.lines().find(|l| l.contains(name)).unwrap_or_else(|| panic!("no `{name}` in\n{text}"));
        let after = line.split(name).nth(1).unwrap();
        after.split_whitespace().next().unwrap().parse().unwrap()
    };
    let capture = input::read(File::open(&classic).unwrap()).unwrap();
    let half = capture.flows[0].half(Side::Client);
    assert_eq!(half.counts.retransmissions as f64, value("rexmt data pkts:"));
    assert_eq!(half.counts.retransmitted_bytes as f64, value("rexmt data bytes:"));
    assert_eq!(half.counts.data_segments as f64, value("actual data pkts:"));
    let least = half.trips.far.min.as_secs_f64() * 1e3;
    // tcptrace takes the handshake's round trip for a sample, which is shorter by the time of a segment on
    // the line.
    assert!((least - value("RTT min:")).abs() < 1.0, "{least} ms against {}", value("RTT min:"));
}
