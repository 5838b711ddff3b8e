//! A capture, read by tshark.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use bytes::Bytes;
use farpace_trace::PcapngWriter;
use farpace_units::{Instant, Seq};
use farpace_wire::{AddressPair, Below, MacAddr, SackBlock, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

const MSS: u32 = 1448;

/// A connection with a lost segment and its retransmission, captured at the sender and, truncated to 96
/// bytes, behind the policer. Times are odd nanoseconds.
fn write_capture(path: &Path) {
    let macs = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let forward = Below::new(macs.0, macs.1, addresses, 64);
    let reverse = forward.reversed();
    let syn = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..TcpOptions::default()
    };
    let timestamps =
        TcpOptions { timestamps: Some(Timestamps { value: 2, echo: 1 }), ..TcpOptions::default() };
    let header = |flags, seq: u32, ack: u32, options: &TcpOptions| TcpHeader {
        src_port: 40_000,
        dst_port: 80,
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window: 2000,
        options: options.clone(),
        ..TcpHeader::default()
    };
    let reply = |flags, seq, ack, options: &TcpOptions| TcpHeader {
        src_port: 80,
        dst_port: 40_000,
        ..header(flags, seq, ack, options)
    };
    // Odd bytes and an odd length at the end, so that the last byte of the checksum matters.
    let payload = |n: u32, len: u32| Bytes::from_iter((0..len).map(|i| (i * 7 + n) as u8));
    let data = |n: u32, len| {
        forward.tcp(10 + n as u16, &header(TcpFlags::ACK, 101 + n * MSS, 501, &timestamps), payload(n, len))
    };
    let sacked = TcpOptions {
        sack: [SackBlock { start: Seq::new(101 + 2 * MSS), end: Seq::new(101 + 3 * MSS) }]
            .into_iter()
            .collect(),
        ..timestamps.clone()
    };

    let file = BufWriter::new(std::fs::File::create(path).unwrap());
    let mut capture = PcapngWriter::new(file, "scenario: lost segment, seed: 1").unwrap();
    let sender = capture.add_interface("sender:eth0", "the NIC of the sender", None).unwrap();
    let policer = capture.add_interface("policer:out", "behind the policer", Some(96)).unwrap();
    let ack = TcpFlags::ACK;
    let packets = [
        (sender, 1, forward.tcp(1, &header(TcpFlags::SYN, 100, 0, &syn), Bytes::new()), None),
        (
            sender,
            10_000_001,
            reverse.tcp(1, &reply(TcpFlags::SYN.with(ack), 500, 101, &syn), Bytes::new()),
            None,
        ),
        (sender, 10_000_003, forward.tcp(2, &header(ack, 101, 501, &timestamps), Bytes::new()), None),
        (sender, 10_000_005, data(0, MSS), None),
        (policer, 10_500_007, data(0, MSS), None),
        (sender, 10_600_001, data(1, MSS), Some("dropped at policer: policed, \u{3bc}")),
        (sender, 10_700_009, data(2, MSS), None),
        (sender, 20_000_011, reverse.tcp(2, &reply(ack, 501, 101 + MSS, &sacked), Bytes::new()), None),
        (sender, 330_000_013, data(1, MSS), None),
        (sender, 340_000_017, data(3, 333), None),
    ];
    for (tap, nanos, packet, comment) in &packets {
        capture.packet(*tap, Instant::from_nanos(*nanos), packet, *comment).unwrap();
    }
    capture.finish().unwrap();
}

/// Output of tshark for `path`: one row per packet with the given fields. None if tshark is not installed.
fn fields(path: &Path, options: &[&str], names: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    // Messages in English, independent of the locale.
    command.env("LC_ALL", "C.UTF-8").arg("-n").arg("-r").arg(path);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]).args(options);
    command.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    command.args(["-T", "fields", "-E", "separator=|"]);
    command.args(names.iter().flat_map(|name| ["-e", name]));
    let output = common::run_if_installed(&mut command, "tshark")?;
    let errors: Vec<_> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| !line.contains("Running as user") && !line.trim().is_empty())
        .map(str::to_owned)
        .collect();
    assert!(output.status.success() && errors.is_empty(), "{errors:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

/// Breaks: Wireshark opens captures without errors: valid checksums, well-formed headers and options, names
/// of taps, nanoseconds, comments, truncated lengths, and the analysis of retransmissions.
#[test]
fn tshark_reads_captures_without_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.pcapng");
    write_capture(&path);
    let names = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.interface_description",
        "frame.len",
        "frame.cap_len",
        "frame.comment",
        "ip.checksum.status",
        "tcp.checksum.status",
        "tcp.analysis.retransmission",
        "tcp.options.sack_le",
    ];
    let Some(rows) = fields(&path, &[], &names) else { return };
    assert_eq!(rows.len(), 10);
    let column = |n: usize| rows.iter().map(|row| row[n].as_str()).collect::<Vec<_>>();
    let times = column(0);
    // The format depends on the version: 1970-01-01T00:00:00.000000001Z or 0.000000001.
    let endings = [
        "0.000000001",
        "0.010000001",
        "0.010000003",
        "0.010000005",
        "0.010500007",
        "0.010600001",
        "0.010700009",
        "0.020000011",
        "0.330000013",
        "0.340000017",
    ];
    for (time, ending) in times.iter().zip(endings) {
        assert!(time.trim_end_matches('Z').ends_with(ending), "{time} {ending}");
    }
    for (n, row) in rows.iter().enumerate() {
        let behind = n == 4;
        assert_eq!(row[1], if behind { "policer:out" } else { "sender:eth0" });
        assert_eq!(row[2], if behind { "behind the policer" } else { "the NIC of the sender" });
        assert_eq!(row[6], "1", "IPv4 checksum of packet {n}");
        // The checksum of a truncated packet cannot be verified.
        assert_eq!(row[7], if behind { "2" } else { "1" }, "TCP checksum of packet {n}");
        assert_eq!(row[4], if behind { "96" } else { row[3].as_str() });
        assert_eq!(row[5], if n == 5 { "dropped at policer: policed, \u{3bc}" } else { "" });
        // tshark does not distinguish taps, so a segment at its second tap is a retransmission.
        assert_eq!(!row[8].is_empty(), n == 8 || behind, "retransmission: packet {n}");
    }
    assert_eq!(rows[4][3], "1514");
    assert_eq!(rows[7][9], (101 + 2 * MSS).to_string());

    let errors = "_ws.malformed || _ws.expert.severity == \"Error\" || tcp.checksum.status == 0 || \
                  ip.checksum.status == 0";
    assert_eq!(fields(&path, &["-Y", errors], &["frame.number"]), Some(vec![]));
}

/// Breaks: tshark verifies checksums, so that the test above can fail.
#[test]
fn tshark_reports_a_wrong_checksum() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.pcapng");
    write_capture(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 40; // in the payload of the last packet
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let Some(rows) = fields(&path, &["-Y", "tcp.checksum.status == 0"], &["frame.number"]) else { return };
    assert_eq!(rows, [["10"]]);
}
