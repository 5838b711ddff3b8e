//! `farpace show`: captures as text and as JSON.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use bytes::Bytes;
use common::{LOSSY, farpace, run, run_if_installed, with_scenario};
use farpace::trace::PcapngWriter;
use farpace::units::{Instant, Seq, Span};
use farpace::wire::tcp::{AckControl, AckDelay, CdlCapability, Tarr};
use farpace::wire::{
    AddressPair, Arp, Below, Icmp, MacAddr, Packet, SackBlock, TcpFlags, TcpHeader, TcpOptions, Timestamps,
    UdpHeader,
};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const ACK: TcpFlags = TcpFlags::ACK;
const SYN: TcpFlags = TcpFlags::SYN;
const CDL: TcpFlags = TcpFlags::RESERVED_4;
const SENDER: u32 = 18_947_299;
const RECEIVER: u32 = 3_052_158_394;

fn there() -> Below {
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64)
}

/// A segment of the sender, numbers as they are on the wire.
fn data(flags: TcpFlags, seq: u32, ack: u32, options: TcpOptions, len: usize) -> Packet {
    let (seq, ack) = (Seq::new(seq), Seq::new(ack));
    let header =
        TcpHeader { src_port: 1027, dst_port: 1060, seq, ack, flags, window: 8760, options, urgent: 0 };
    there().tcp(1, &header, Bytes::from(vec![7; len]))
}

/// One of the receiver.
fn reply(flags: TcpFlags, seq: u32, ack: u32, options: TcpOptions) -> Packet {
    let (seq, ack) = (Seq::new(seq), Seq::new(ack));
    let header =
        TcpHeader { src_port: 1060, dst_port: 1027, seq, ack, flags, window: 8760, options, urgent: 0 };
    there().reversed().tcp(1, &header, Bytes::new())
}

fn stamped(value: u32, echo: u32) -> TcpOptions {
    TcpOptions { timestamps: Some(Timestamps { value, echo }), ..TcpOptions::default() }
}

fn control(ack_control: AckControl) -> TcpOptions {
    TcpOptions { ack_control, ..TcpOptions::default() }
}

/// A directory with `a.pcapng`: packets of which `snaplen` bytes are kept, at 13:37:26 and so many
/// microseconds.
fn capture(snaplen: Option<u32>, packets: &[(u64, Packet, Option<&str>)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("a.pcapng")).unwrap();
    let mut capture = PcapngWriter::new(file, "test").unwrap().with_epoch(Span::from_secs(49_046));
    let tap = capture.add_interface("wire.a", "", snaplen).unwrap();
    for (micros, packet, comment) in packets {
        capture.packet(tap, Instant::from_nanos(micros * 1000), packet, *comment).unwrap();
    }
    capture.finish().unwrap();
    dir
}

/// The packets a millisecond apart.
fn in_turn(packets: impl IntoIterator<Item = Packet>) -> tempfile::TempDir {
    let packets: Vec<_> = packets.into_iter().enumerate().map(|(n, p)| (n as u64 * 1000, p, None)).collect();
    capture(None, &packets)
}

fn show(dir: &Path, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = run(dir, &[&["show", "a.pcapng"], arguments].concat());
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    stdout
}

/// What `show` prints after the time and the addresses.
fn tails(dir: &Path, arguments: &[&str]) -> Vec<String> {
    let tail = |line: &str| line.split_once(": ").unwrap().1.to_owned();
    show(dir, arguments).lines().map(tail).collect()
}

fn json(dir: &Path, arguments: &[&str]) -> Vec<Value> {
    let text = show(dir, &[&["--json"], arguments].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The thesis' figure 5.1, with the options in our order.
fn figure() -> tempfile::TempDir {
    let allow = AckControl { cdl_allow: true, ..AckControl::default() };
    let syn = TcpOptions {
        mss: Some(1460),
        window_scale: Some(0),
        ack_control: allow,
        timestamps: Some(Timestamps::default()),
        ..TcpOptions::default()
    };
    let syn_ack = TcpOptions { timestamps: None, ..syn.clone() };
    let third = TcpOptions { ack_control: allow, ..stamped(197, 77_079) };
    let (first, answer) = (SENDER + 1, RECEIVER + 1);
    capture(
        None,
        &[
            (129_717, data(SYN, SENDER, 0, syn, 0), None),
            (184_039, reply(SYN | ACK, RECEIVER, first, syn_ack), None),
            (186_071, data(ACK, first, answer, third, 0), None),
            (189_470, data(CDL, first, answer, stamped(197, 77_079), 1448), None),
            (268_132, reply(CDL | ACK, answer, first + 1448, stamped(77_079, 197)), None),
            (272_692, data(CDL, first + 1448, answer, stamped(197, 77_079), 1448), None),
            (275_237, data(ACK, first + 2896, answer, stamped(197, 77_079), 1448), None),
            (351_237, reply(CDL | ACK, answer, first + 2896, stamped(77_079, 197)), None),
        ],
    )
}

/// Breaks: the thesis' figure 5.1: what asks (D) and what confirms (C) is no longer seen at a glance.
#[test]
fn the_published_figure() {
    let dir = figure();
    let expected = "\
13:37:26.129717 10.0.0.1.1027 > 10.0.0.2.1060: S 18947299:18947299(0) win 8760 <mss 1460,nop,nop,timestamp 0 \
0,nop,wscale 0,cdl-allow>
13:37:26.184039 10.0.0.2.1060 > 10.0.0.1.1027: S 3052158394:3052158394(0) ack 18947300 win 8760 <mss \
1460,nop,wscale 0,cdl-allow>
13:37:26.186071 10.0.0.1.1027 > 10.0.0.2.1060: . ack 1 win 8760 <nop,nop,timestamp 197 77079,cdl-allow>
13:37:26.189470 10.0.0.1.1027 > 10.0.0.2.1060: D 1:1449(1448) ack 1 win 8760 <nop,nop,timestamp 197 77079>
13:37:26.268132 10.0.0.2.1060 > 10.0.0.1.1027: C ack 1449 win 8760 <nop,nop,timestamp 77079 197>
13:37:26.272692 10.0.0.1.1027 > 10.0.0.2.1060: D 1449:2897(1448) ack 1 win 8760 <nop,nop,timestamp 197 77079>
13:37:26.275237 10.0.0.1.1027 > 10.0.0.2.1060: . 2897:4345(1448) ack 1 win 8760 <nop,nop,timestamp 197 77079>
13:37:26.351237 10.0.0.2.1060 > 10.0.0.1.1027: C ack 2897 win 8760 <nop,nop,timestamp 77079 197>
";
    assert_eq!(show(dir.path(), &[]), expected);
    // The first three lines are those of `--count 3`.
    let three: String = expected.split_inclusive('\n').take(3).collect();
    assert_eq!(show(dir.path(), &["--count", "3"]), three);
    // With another bit the flag means nothing, and is shown as what it is. Without ACK nothing is
    // acknowledged.
    let other = tails(dir.path(), &["--cdl-bit", "6"]);
    assert_eq!(other[3], ". 1:1449(1448) win 8760 [0x800] <nop,nop,timestamp 197 77079>");
    assert_eq!(other[4], ". ack 1449 win 8760 [0x800] <nop,nop,timestamp 77079 197>");
}

/// Breaks: requests and confirmations of the other forms of CDL, and of TARR, look like ordinary segments.
#[test]
fn requests_and_confirmations_of_all_forms() {
    let none = AckControl::default();
    let capability = Some(CdlCapability::from_bits(0b1011));
    let request = control(AckControl { request: true, ..none });
    let confirm = |delay| control(AckControl { confirmation: Some(delay), ..none });
    let tarr = |tarr| control(AckControl { tarr: Some(tarr), ..none });
    let psh = TcpFlags::PSH | ACK;
    let dir = in_turn([
        data(SYN, 100, 0, control(AckControl { capability, ..none }), 0),
        reply(
            SYN | ACK,
            500,
            101,
            control(AckControl { capability: Some(CdlCapability::default()), ..none }),
        ),
        data(psh, 101, 501, request.clone(), 10),
        reply(ACK, 501, 111, confirm(AckDelay::of(Span::from_micros(1_200)))),
        reply(ACK, 501, 111, confirm(AckDelay::NONE)),
        reply(ACK, 501, 111, confirm(AckDelay::from_wire(1))),
        reply(ACK, 501, 111, confirm(AckDelay::UNKNOWN)),
        // The flag form: ACK is always there.
        data(ACK | CDL, 111, 501, TcpOptions::default(), 10),
        reply(ACK | CDL, 501, 121, TcpOptions::default()),
        data(ACK, 121, 501, tarr(Tarr::Rate(0)), 10),
        data(ACK, 131, 501, tarr(Tarr::Rate(2)), 10),
        // Nothing that is to be acknowledged.
        data(ACK, 141, 501, request, 0),
        data(SYN | CDL | TcpFlags::ECE | TcpFlags::CWR | TcpFlags::AE, 100, 0, tarr(Tarr::Capable), 0),
    ]);
    let expected = [
        "S 100:100(0) win 8760 <cdl-capable asks+confirms+delay,nop,nop,nop>",
        "S 500:500(0) ack 101 win 8760 <cdl-capable of nothing,nop,nop,nop>",
        "PD 1:11(10) ack 1 win 8760 <cdl-request,nop,nop,nop>",
        "C ack 11 win 8760 <cdl-confirm 1.2ms,nop>",
        "C ack 11 win 8760 <cdl-confirm 0ms,nop>",
        "C ack 11 win 8760 <cdl-confirm 0.008ms,nop>",
        "C ack 11 win 8760 <cdl-confirm unknown,nop>",
        "D 11:21(10) ack 1 win 8760",
        "C ack 21 win 8760",
        "D 21:31(10) ack 1 win 8760 <tarr-request 0,nop,nop,nop>",
        ". 31:41(10) ack 1 win 8760 <tarr-request 2,nop,nop,nop>",
        ". ack 1 win 8760 <cdl-request,nop,nop,nop>",
        "SWEe 100:100(0) win 8760 [0x800] <tarr>",
    ];
    assert_eq!(tails(dir.path(), &[]), expected);
    let json = json(dir.path(), &[]);
    let set = |key: &str| (0..json.len()).filter(|n| json[*n][key] == true).collect::<Vec<_>>();
    assert_eq!((set("asks"), set("confirms")), (vec![2, 7, 9], vec![3, 4, 5, 6, 8]));
}

/// Breaks: data with flag and ACK: a confirmation where the SYN agreed on the thesis' form, else a request.
#[test]
fn the_flag_beside_ack_on_data() {
    let allow = AckControl { cdl_allow: true, ..AckControl::default() };
    for (syn, letter) in [(allow, "C"), (AckControl::default(), "D")] {
        let dir = in_turn([
            data(SYN, 100, 0, control(syn), 0),
            data(ACK | CDL, 101, 501, TcpOptions::default(), 10),
            // In place of ACK it always asks.
            data(CDL, 111, 501, TcpOptions::default(), 10),
        ]);
        let expected = [format!("{letter} 1:11(10) ack 1 win 8760"), "D 11:21(10) ack 1 win 8760".to_owned()];
        assert_eq!(tails(dir.path(), &[])[1..], expected);
    }
}

/// Breaks: the rest of TCP: other flags, numbers without a SYN, SACK blocks, options nobody knows or that are
/// malformed.
#[test]
fn other_segments() {
    let sack = [(311, 321), (341, 351)].map(|(a, b)| SackBlock { start: Seq::new(a), end: Seq::new(b) });
    let sacked = TcpOptions { sack: sack.into_iter().collect(), ..TcpOptions::default() };
    let urgent = TcpHeader {
        src_port: 1027,
        dst_port: 1060,
        seq: Seq::new(311),
        ack: Seq::new(501),
        flags: ACK | TcpFlags::URG,
        urgent: 3,
        ..TcpHeader::default()
    };
    // MSS, then an unknown option, a SACK of half a block, and one that reaches past the end.
    let mut strange =
        data(ACK, 331, 501, TcpOptions { sack: sack.into_iter().collect(), ..TcpOptions::default() }, 0);
    let mut bytes = Vec::new();
    strange.write_frame(&mut bytes);
    let options = [2, 4, 5, 180, 77, 4, 0xab, 0xcd, 5, 6, 1, 2, 3, 4, 78, 2, 8, 40, 0, 0];
    bytes[54..74].copy_from_slice(&options);
    strange = Packet::from_frame(&bytes).unwrap();
    let dir = in_turn([
        data(ACK, 301, 501, TcpOptions::default(), 10),
        reply(ACK, 501, 301, sacked),
        there().tcp(1, &urgent, Bytes::from_static(b"abc")),
        data(ACK, 300, 501, TcpOptions::default(), 1),
        data(ACK | TcpFlags::FIN | TcpFlags::PSH, 314, 501, TcpOptions::default(), 0),
        strange,
        reply(TcpFlags::RST, 501, 0, TcpOptions::default()),
        data(TcpFlags::NONE, 314, 77, TcpOptions::default(), 0),
    ]);
    let expected = [
        ". 1:11(10) ack 1 win 8760",
        ". ack 1 win 8760 <nop,nop,sack {11:21}{41:51}>",
        ". 11:14(3) ack 1 win 0 urg 3",
        ". 0:1(1) ack 1 win 8760",
        "FP 14:14(0) ack 1 win 8760",
        ". ack 1 win 8760 <mss 1460,unknown-77 0xabcd,unknown-5 0x01020304,unknown-78,malformed-8>",
        "R 1:1(0) win 8760",
        ". win 8760",
    ];
    assert_eq!(tails(dir.path(), &[]), expected);
}

/// Breaks: packets that are not TCP, and comments: where in the network a packet was dropped.
#[test]
fn other_packets() {
    let udp = there().udp(1, UdpHeader { src_port: 5, dst_port: 53 }, Bytes::from_static(b"abc")).unwrap();
    let v6 = AddressPair::V6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let v6 = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), v6, 64);
    let header = TcpHeader { src_port: 5001, dst_port: 80, flags: SYN, ..TcpHeader::default() };
    let arp = Arp::request(MacAddr([2; 6]), [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let ping = there().icmp(1, &Icmp::EchoRequest { ident: 3, seq: 4, data: &[0; 20] }).unwrap();
    let mut broken = udp.clone();
    broken.flip_bit(14 * 8);
    let packets = [
        (0, udp, None),
        (1, arp.packet(MacAddr::BROADCAST), None),
        (2, ping, None),
        (3, v6.tcp(1, &header, Bytes::new()), Some("dropped at wan.forward.policer: policed")),
        (4, broken, Some("line\nbreak")),
    ];
    let dir = capture(None, &packets);
    let expected = "\
13:37:26.000000 10.0.0.1:5 > 10.0.0.2:53 UDP len 3
13:37:26.000001 ARP who has 10.0.0.2, tell 10.0.0.1 at 02:02:02:02:02:02
13:37:26.000002 10.0.0.1 > 10.0.0.2 ICMP echo request 3/4 len 28
13:37:26.000003 fd00::1.5001 > fd00::2.80: S 0:0(0) win 0 # dropped at wan.forward.policer: policed
13:37:26.000004 malformed (IPv4 header has version 12) len 45 # line\\nbreak
";
    assert_eq!(show(dir.path(), &[]), expected);
    let json = json(dir.path(), &[]);
    assert_eq!(json[0]["text"], "10.0.0.1:5 > 10.0.0.2:53 UDP len 3");
    assert_eq!(json[4]["comment"], "line\nbreak");
    // Kept in part: what can be said is said, nothing is made up.
    let lines = |snaplen| {
        let dir = capture(Some(snaplen), &packets);
        show(dir.path(), &[]).lines().map(|line| line[16..].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(42),
        [
            "10.0.0.1:5 > 10.0.0.2:53 UDP len 3",
            "ARP who has 10.0.0.2, tell 10.0.0.1 at 02:02:02:02:02:02",
            "10.0.0.1 > 10.0.0.2 ICMP cut short: 42 of 62 B captured",
            "cut short: 42 of 74 B captured # dropped at wan.forward.policer: policed",
            "cut short: 42 of 45 B captured # line\\nbreak",
        ]
    );
    assert_eq!(lines(20)[0], "cut short: 20 of 45 B captured");
}

/// Breaks: JSON for programs: the facts of the text, exact.
#[test]
fn json_has_the_same_facts() {
    let dir = figure();
    let lines = json(dir.path(), &[]);
    assert_eq!(lines.len(), 8);
    let expected = serde_json::json!({
        "number": 4, "time_ns": 49_046_189_470_000u64, "interface": "wire.a", "frame_bytes": 1514,
        "captured_bytes": 1514, "connection": 0, "src": "10.0.0.1", "src_port": 1027, "dst": "10.0.0.2",
        "dst_port": 1060, "flags": "0x800", "asks": true, "confirms": false, "seq": 1, "raw_seq": SENDER + 1,
        "payload_bytes": 1448, "ack": 1, "raw_ack": RECEIVER + 1, "window": 8760, "urgent": null,
        "options": [{"name": "nop"}, {"name": "nop"}, {"name": "timestamp", "value": 197, "echo": 77_079}],
        "comment": null,
    });
    assert_eq!(lines[3], expected);
    let names: Vec<_> = lines[0]["options"].as_array().unwrap().iter().map(|o| o["name"].clone()).collect();
    assert_eq!(names, ["mss", "nop", "nop", "timestamp", "nop", "wscale", "cdl-allow"]);
}

/// Breaks: any capture of a hostile network ends the program: here every byte of three frames is damaged in
/// turn.
#[test]
fn no_frame_is_fatal() {
    let sack = SackBlock { start: Seq::new(3), end: Seq::new(4) };
    let mut options = TcpOptions { sack: [sack].into_iter().collect(), ..stamped(1, 2) };
    options.ack_control =
        AckControl { request: true, confirmation: Some(AckDelay::NONE), ..AckControl::default() };
    let frames = [
        data(ACK, 1, 1, options, 3),
        there().icmp(1, &Icmp::TooBig { mtu: 9, quoted: &[0x45; 40] }).unwrap(),
        Arp::request(MacAddr([2; 6]), [10, 0, 0, 1].into(), [10, 0, 0, 2].into()).packet(MacAddr::BROADCAST),
    ];
    let mut damaged = Vec::new();
    for packet in frames {
        for bit in 0..packet.len().bits() {
            let mut packet = packet.clone();
            packet.flip_bit(bit);
            damaged.push((0, packet, None));
        }
    }
    for snaplen in [None, Some(60), Some(35), Some(1)] {
        let dir = capture(snaplen, &damaged);
        for arguments in [&[][..], &["--json"]] {
            assert_eq!(show(dir.path(), arguments).lines().count(), damaged.len());
        }
    }
}

/// Breaks: captures of tcpdump on any interface (link types), in the classic format, through a pipe.
#[test]
fn captures_of_others() {
    let mut frame = Vec::new();
    data(SYN, 100, 0, TcpOptions::default(), 0).write_frame(&mut frame);
    let ip = &frame[14..];
    let sll = [&[0; 14][..], &[8, 0], ip].concat();
    let sll2 = [&[8, 0][..], &[0; 18], ip].concat();
    let loopback = [&[2, 0, 0, 0][..], ip].concat();
    let expected = "00:00:01.000002 10.0.0.1.1027 > 10.0.0.2.1060: S 100:100(0) win 8760\n";
    let unknown = "00:00:01.000002 link type 105 is not known here, len 54\n";
    for (link_type, bytes, expected) in [
        (1u32, &frame[..], expected),
        (101, ip, expected),
        (113, &sll, expected),
        (276, &sll2, expected),
        (0, &loopback, expected),
        (105, &frame, unknown),
    ] {
        let header = [
            0xa1b2_c3d4,
            2 << 16 | 4,
            0,
            0,
            262_144,
            link_type,
            1,
            2,
            bytes.len() as u32,
            bytes.len() as u32,
        ];
        let file = [&header.map(u32::to_be_bytes).concat(), bytes].concat();
        let mut command = farpace(Path::new("."), &["show", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &file).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stdout).unwrap().as_str()),
            (Some(0), expected)
        );
    }
}

/// Breaks: files that are missing, damaged or of another kind are shown as good, or without their name.
#[test]
fn unusable_captures_are_named() {
    let dir = figure();
    let whole = std::fs::read(dir.path().join("a.pcapng")).unwrap();
    std::fs::write(dir.path().join("cut"), &whole[..whole.len() - 10]).unwrap();
    std::fs::write(dir.path().join("text"), "hello, world").unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    for (arguments, lines, expected) in [
        (&["show", "missing"][..], 0, "`missing`"),
        (&["show", "folder"], 0, "`folder`"),
        (&["show", "text"], 0, "`text`: not a capture"),
        (&["show", "cut"], 7, "`cut`: the capture is truncated within the block at byte"),
        (&["show", "a.pcapng", "--cdl-bit", "7"], 0, "--cdl-bit"),
        (&["show"], 0, "<CAPTURE>"),
    ] {
        let (code, stdout, stderr) = run(dir.path(), arguments);
        assert_eq!((code, stdout.lines().count()), (2, lines), "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert!(run(dir.path(), &["show", "--help"]).1.contains("  farpace show "));
}

/// Breaks: `farpace show big.pcapng | head` ends with an error.
#[test]
fn a_reader_who_goes_away_is_no_error() {
    let packet = data(ACK, 1, 1, TcpOptions::default(), 10);
    let dir = capture(None, &vec![(0, packet, None); 20_000]);
    let mut command = farpace(dir.path(), &["show", "a.pcapng"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

/// Breaks: what is shown of a real run: numbers, lengths, marks of loss. tshark has its own count of relative
/// numbers.
#[test]
fn a_run_as_tshark_sees_it() {
    let dir = with_scenario(LOSSY);
    let (code, _, stderr) = run(dir.path(), &["run", "scenario.toml", "--out", "out", "--no-report"]);
    assert_eq!(code, 0, "{stderr}");
    let path = dir.path().join("out/a.pcapng");
    let shown = run(dir.path(), &["show", "out/a.pcapng", "--json"]).1;
    let names = ["seq", "ack", "payload_bytes", "window"];
    let ours: Vec<String> = shown
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let number = |name: &&str| line[*name].as_u64().unwrap_or(0).to_string();
            names.iter().map(number).collect::<Vec<_>>().join("|")
        })
        .collect();
    assert!(ours.len() > 200);
    let drops = run(dir.path(), &["show", "out/drops.pcapng"]).1;
    assert!(
        drops.lines().count() > 0
            && drops.lines().all(|l| l.ends_with("# dropped at wire.forward.loss: loss")),
        "{drops}"
    );
    let mut command = Command::new("tshark");
    command.env("LC_ALL", "C.UTF-8").arg("-n").arg("-r").arg(path);
    command.args(["-T", "fields", "-E", "separator=|", "-e", "tcp.seq", "-e", "tcp.ack", "-e", "tcp.len"]);
    command.args(["-e", "tcp.window_size_value"]);
    let Some(output) = run_if_installed(&mut command, "tshark") else { return };
    let theirs: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(ours, theirs);
}
