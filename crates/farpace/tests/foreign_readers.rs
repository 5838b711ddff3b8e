//! Other people's programs on the files of a real run: tshark on the captures, polars on the trace.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{LOSSY, PACED, python, run, run_if_installed, skip, with_scenario};
use farpace_trace::PcapngWriter;
use farpace_units::Instant;
use farpace_wire::icmp::with_nics;
use farpace_wire::{
    AddressPair, Arp, Below, EtherType, Extension, Icmp, MacAddr, NeighbourDiscovery, NicFlags, NicKind,
    Packet,
};
use serde_json::Value;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;

/// A run with losses, its directory and its summary.
fn lossy_run() -> (tempfile::TempDir, Value) {
    let dir = with_scenario(LOSSY);
    let (code, _, stderr) = run(dir.path(), &["run", "scenario.toml", "--out", "out", "--no-report"]);
    assert_eq!(code, 0, "{stderr}");
    let summary = fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    let summary = serde_json::from_str(&summary).unwrap();
    (dir, summary)
}

/// How many packets of a capture pass tshark's filter; none without tshark.
fn tshark(capture: &Path, filter: &str) -> Option<u64> {
    let mut command = Command::new("tshark");
    command.env("LC_ALL", "C.UTF-8").arg("-n").arg("-r").arg(capture);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    command.args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    let output = run_if_installed(&mut command, "tshark")?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64)
}

/// Breaks: our counts of retransmissions and drops disagree with what everybody else sees on the wire, or our
/// packets are not well formed.
#[test]
fn tshark_counts_what_we_count() {
    let (dir, summary) = lossy_run();
    let file = |name: &str| dir.path().join("out").join(name);
    // tshark guesses from times whether an old sequence number is a retransmission or has been overtaken.
    // Nothing overtakes on the sender's own card: there, both are retransmissions.
    let again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || \
                 tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order";
    let Some(seen) = tshark(&file("a.pcapng"), again) else { return };
    let ours = summary["flows"][0]["retransmissions"].as_u64().unwrap();
    assert!(ours > 0, "the scenario has losses");
    assert_eq!(seen, ours);
    let drops: u64 =
        summary["drops"].as_array().unwrap().iter().map(|d| d["packets"].as_u64().unwrap()).sum();
    assert_eq!(
        tshark(&file("drops.pcapng"), "frame.comment contains \"dropped at wire.forward.loss\""),
        Some(drops)
    );
    assert_eq!(tshark(&file("drops.pcapng"), "frame"), Some(drops));
    let complaints = "_ws.malformed || _ws.expert.severity == \"Error\" || tcp.checksum.status == 0 || \
                      ip.checksum.status == 0";
    for name in ["a.pcapng", "b.pcapng", "drops.pcapng"] {
        assert_eq!(tshark(&file(name), complaints), Some(0), "{name}");
    }
    // Data that left a: what arrived at b, and what was dropped.
    let data = "tcp.len > 0 && ip.src == 10.0.0.1";
    let (left, arrived) = (tshark(&file("a.pcapng"), data), tshark(&file("b.pcapng"), data));
    assert_eq!(left, arrived.map(|n| n + drops));
}

/// Breaks: others do not take our gap frames for PAUSE, or cannot read a coarse clock.
#[test]
fn tshark_sees_gap_frames_as_pause() {
    let dir = with_scenario(PACED);
    let (code, _, stderr) = run(dir.path(), &["run", "scenario.toml", "--out", "out", "--no-report"]);
    assert_eq!(code, 0, "{stderr}");
    let summary = fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let gaps = summary["pacing"][0]["gap_frames"].as_u64().unwrap();
    assert!(gaps > 2_000);
    let far = dir.path().join("out/nic.s.pcapng");
    let Some(seen) = tshark(&far, "macc.opcode == 1 && macc.pause_time == 0") else { return };
    assert_eq!(seen, gaps);
    assert_eq!(tshark(&far, "macc && (_ws.malformed || _ws.expert)"), Some(0));
    assert_eq!(tshark(&dir.path().join("out/b.pcapng"), "macc"), Some(0), "the switch has them");
    assert_eq!(tshark(&far, "frame.time_epoch > 10 || frame.time_delta < 0"), Some(0));
}

/// Breaks: a list of cards makes address resolution malformed to everybody else's eyes.
#[test]
fn tshark_takes_a_list_of_nics_for_a_trailer() {
    let mac = |n| MacAddr([2, 0, 0, 0, 0, n]);
    let nics: Vec<_> = (0x11..0x21).map(|n| (mac(n), NicKind(3))).collect();
    let list = |own: IpAddr, nics| Extension::new(own, nics, NicFlags::ANSWERS_PROBES, 1);
    let (a, b, a6) =
        (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));
    let request = Arp::request(mac(0x11), a, b);
    let asked = NeighbourDiscovery::Solicitation { target: a6, source_link: Some(mac(0x11)) };
    let below = Below::new(
        mac(0x11),
        mac(0x31),
        AddressPair::V6(a6, Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2)),
        255,
    );
    let asked = below.icmp(0, &Icmp::Neighbour(asked)).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cards.pcapng");
    let mut capture = PcapngWriter::new(File::create(&path).unwrap(), "lists of cards").unwrap();
    let tap = capture.add_interface("wire", "", None).unwrap();
    for n in [1, 2, nics.len()] {
        let arp = request.encode_with(&list(a.into(), &nics[..n]));
        let arp = Packet::from_link(mac(0x11), MacAddr::BROADCAST, EtherType::ARP, arp.into());
        let discovery = with_nics(&asked, mac(0x11), Some(&list(a6.into(), &nics[..n]))).unwrap();
        for packet in [arp, discovery] {
            capture.packet(tap, Instant::ZERO, &packet, None).unwrap();
        }
    }
    capture.finish().unwrap();
    let Some(requests) = tshark(&path, "arp.opcode == 1 && arp.dst.proto_ipv4 == 10.0.0.2 && eth.trailer")
    else {
        return;
    };
    assert_eq!(requests, 3);
    let options = "icmpv6.type == 135 && icmpv6.opt.type == 253 && icmpv6.opt.linkaddr == 02:00:00:00:00:11";
    assert_eq!(tshark(&path, options), Some(3));
    assert_eq!(
        tshark(&path, "_ws.malformed || _ws.expert.severity == \"Error\" || icmpv6.checksum.status == 0"),
        Some(0)
    );
}

const SCRIPT: &str = r#"
import sys
try:
    import polars as pl
except ImportError:
    sys.exit(77)
t = pl.read_parquet(sys.argv[1])
assert t["time_ns"].is_sorted()
sent = t.filter(pl.col("direction") == "sent")
again = ["fast_retransmit", "forward_retransmit", "lost_retransmission", "timeout_retransmit", "loss_retransmit"]
print(sent.filter(pl.col("cause").is_in(again)).height, sent.filter(pl.col("cause") == "new_data")["len"].sum())
"#;

/// Breaks: the trace of a real run as polars reads it: rows are missing, or disagree with the summary.
#[test]
fn polars_reads_the_trace_of_a_run() {
    let (dir, summary) = lossy_run();
    let mut command = Command::new(python());
    command.arg("-c").arg(SCRIPT).arg(dir.path().join("out/trace.parquet"));
    let Some(output) = run_if_installed(&mut command, "python") else { return };
    if output.status.code() == Some(77) {
        skip::<()>("polars", "no such module");
        return;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = format!("{} 2000000\n", summary["flows"][0]["retransmissions"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
