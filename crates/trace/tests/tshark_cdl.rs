//! ACK control, shown by tshark: without and with the Wireshark script.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use bytes::Bytes;
use farpace_trace::PcapngWriter;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{AckControl, AckDelay, CdlCapability, Tarr};
use farpace_wire::{AddressPair, Below, Icmp, MacAddr, Packet, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/farpace-cdl.lua");
const NONE: AckControl =
    AckControl { cdl_allow: false, capability: None, request: false, confirmation: None, tarr: None };
const NAMES: [&str; 9] = [
    "cdl.flag",
    "cdl.only",
    "cdl.ack",
    "cdl.allow",
    "cdl.request",
    "cdl.confirm",
    "cdl.delay_us",
    "cdl.version",
    "cdl.capabilities",
];

/// One segment of each kind, with the expected fields of [`NAMES`].
fn segments() -> Vec<(Packet, [&'static str; 9])> {
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let forward = Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64);
    let segment = |flags: TcpFlags, control: AckControl, len: usize| {
        let options = TcpOptions {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ack_control: control,
            ..TcpOptions::default()
        };
        let (seq, ack) = (Seq::new(5), Seq::new(9));
        let header = TcpHeader {
            src_port: 40_000,
            dst_port: 41_000,
            seq,
            ack,
            flags,
            options,
            ..TcpHeader::default()
        };
        forward.tcp(1, &header, Bytes::from(vec![0; len]))
    };
    let (syn, ack, cdl) = (TcpFlags::SYN, TcpFlags::ACK, TcpFlags::RESERVED_4);
    let confirm = |delay| AckControl { confirmation: Some(delay), ..NONE };
    let request = AckControl { request: true, ..NONE };
    let capability = Some(CdlCapability::from_bits(0x0b));
    let mut quoted = Vec::new();
    segment(cdl, NONE, 9).write_frame(&mut quoted);
    vec![
        (segment(syn, AckControl { cdl_allow: true, ..NONE }, 0), ["", "", "", "1", "", "", "", "", ""]),
        (segment(syn | ack, AckControl { capability, ..NONE }, 0), ["", "", "", "", "", "", "", "1", "0x0b"]),
        (segment(cdl, NONE, 10), ["1", "1", "", "", "1", "", "", "", ""]),
        (segment(cdl | ack, NONE, 0), ["1", "", "1", "", "", "1", "", "", ""]),
        (segment(cdl | ack, NONE, 10), ["1", "", "", "", "1", "", "", "", ""]),
        (segment(ack, request, 10), ["", "", "", "", "1", "", "", "", ""]),
        (
            segment(ack, confirm(AckDelay::of(Span::from_micros(1_200))), 0),
            ["", "", "", "", "", "1", "1200", "", ""],
        ),
        (segment(ack, confirm(AckDelay::UNKNOWN), 0), ["", "", "", "", "", "1", "", "", ""]),
        (segment(syn | cdl, AckControl { tarr: Some(Tarr::Capable), ..NONE }, 0), [""; 9]),
        (segment(ack, AckControl { tarr: Some(Tarr::Rate(0)), ..NONE }, 10), [""; 9]),
        (segment(ack, AckControl { tarr: Some(Tarr::Rate(2)), ..NONE }, 10), [""; 9]),
        (segment(ack, NONE, 10), [""; 9]),
        // A quoted packet is not decoded.
        (forward.icmp(1, &Icmp::TimeExceeded { code: 0, quoted: &quoted[14..] }).unwrap(), [""; 9]),
    ]
}

fn write(path: &Path, packets: impl IntoIterator<Item = Packet>) {
    let mut capture = PcapngWriter::new(std::fs::File::create(path).unwrap(), "test").unwrap();
    let tap = capture.add_interface("a", "", None).unwrap();
    for packet in packets {
        capture.packet(tap, Instant::ZERO, &packet, None).unwrap();
    }
    capture.finish().unwrap();
}

/// The fields of each packet; none if tshark is not installed.
fn fields(path: &Path, options: &[&str], names: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.env("LC_ALL", "C.UTF-8").args(options).arg("-n").arg("-r").arg(path);
    command.args(["-T", "fields", "-E", "separator=|"]).args(names.iter().flat_map(|name| ["-e", name]));
    let output = common::run_if_installed(&mut command, "tshark")?;
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_error = |line: &str| !line.contains("Running as user") && !line.trim().is_empty();
    assert!(output.status.success() && !messages.lines().any(is_error), "{messages}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

/// Some versions write true as 1, others as True.
fn plain(value: &str) -> &str {
    if value == "True" { "1" } else { value }
}

/// Breaks: the script shows CDL in Wireshark, and only where it is present.
#[test]
fn the_script_shows_cdl() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    let segments = segments();
    write(&path, segments.iter().map(|(packet, _)| packet.clone()));
    let script = format!("lua_script:{SCRIPT}");
    let names = [&NAMES[..], &["_ws.col.Info"]].concat();
    let Some(rows) = fields(&path, &["-X", &script], &names) else { return };
    assert_eq!(rows.len(), segments.len());
    for (n, (row, (_, expected))) in rows.iter().zip(&segments).enumerate() {
        let values: Vec<_> = row[..9].iter().map(|value| plain(value)).collect();
        assert_eq!(values, expected, "packet {n}");
        assert_eq!(row[9].ends_with(" [CDL]"), expected.iter().any(|value| !value.is_empty()), "{}", row[9]);
    }
    // As a filter, and with another flag bit: then only options are found.
    let requests = |options: &[&str]| {
        let options = [&["-X", &script, "-Y", "cdl.request"], options].concat();
        fields(&path, &options, &["frame.number"]).map(|rows| rows.concat())
    };
    assert_eq!(requests(&[]).unwrap(), ["3", "5", "6"]);
    assert_eq!(requests(&["-o", "cdl.bit:6"]).unwrap(), ["6"]);
}

/// Breaks: TARR for other implementations: tshark decodes it as in the draft.
#[test]
fn tshark_decodes_tarr() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    write(&path, segments().into_iter().map(|(packet, _)| packet));
    let names = ["tcp.options.experimental.exid", "tcp.options.tarr.rate"];
    let Some(rows) = fields(&path, &[], &names) else { return };
    let rows: Vec<_> = rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(rows[8..11], ["0x00ac ", "0x00ac 0", "0x00ac 2"]);
    assert_eq!(rows[5], "0xcd1a ");
}

/// Breaks: the script handles malformed and unknown options without a Lua error.
#[test]
fn the_script_handles_any_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    let (packet, _) = segments().swap_remove(6);
    let damaged = (0..packet.headers().len() as u64 * 8).map(|bit| {
        let mut packet = packet.clone();
        packet.flip_bit(bit);
        packet
    });
    write(&path, damaged);
    let script = format!("lua_script:{SCRIPT}");
    let names = ["frame.number", "cdl.confirm", "_ws.lua.error"];
    let Some(rows) = fields(&path, &["-X", &script], &names) else { return };
    assert_eq!(rows.len(), packet.headers().len() * 8);
    assert!(rows.iter().all(|row| row[2].is_empty()), "a Lua error");
    // Damage to other bytes does not hide the option.
    assert!(rows.iter().filter(|row| plain(&row[1]) == "1").count() > 200);
}
