//! `farpace pacing report` on captures of many origins.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{LOSSY, names, run, run_if_installed, with_scenario};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A full UDP frame from port `port`, of which the first 60 bytes are kept.
fn datagram(port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0x05, 0xdc, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0x05, 0xc8, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// A classic capture of these times and frames, which were 1,514 bytes long.
fn pcap(big_endian: bool, unit_ns: u64, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let n = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
    let magic = if unit_ns == 1 { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file =
        [n(magic), n(if big_endian { 2 << 16 | 4 } else { 4 << 16 | 2 }), n(0), n(0), n(60), n(1)].concat();
    for (time, frame) in frames {
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000 / unit_ns);
        file.extend([n(seconds as u32), n(rest as u32), n(frame.len() as u32), n(1_514)].concat());
        file.extend(frame);
    }
    file
}

fn block(block_type: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&block_type.to_le_bytes(), &length[..], body, &length].concat()
}

/// A pcapng file with an interface for each of `resolutions`, and frames with interface and ticks.
fn pcapng(resolutions: &[u8], frames: &[(u32, u64, Vec<u8>)]) -> Vec<u8> {
    let section = [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat();
    let mut file = block(0x0a0d_0d0a, &section);
    for resolution in resolutions {
        file.extend(block(1, &[1, 0, 0, 0, 60, 0, 0, 0, 9, 0, 1, 0, *resolution, 0, 0, 0]));
    }
    for (interface, ticks, frame) in frames {
        let words = [*interface, (ticks >> 32) as u32, *ticks as u32, frame.len() as u32, 1_514];
        file.extend(block(6, &[words.map(u32::to_le_bytes).concat(), frame.clone()].concat()));
    }
    file
}

/// 100 Mbit/s of layer 2: a frame every 121,440 ns.
fn even(n: u64) -> Vec<(u64, Vec<u8>)> {
    (0..n).map(|i| (1_700_000_000_000_000_000 + i * 121_440, datagram(7))).collect()
}

fn report(dir: &Path, arguments: &[&str]) -> (i32, Value) {
    let all = [&["pacing", "report", "--json", "--no-report"], arguments].concat();
    let (code, stdout, stderr) = run(dir, &all);
    assert!(code != 2, "{stderr}");
    (code, serde_json::from_str(&stdout).unwrap())
}

/// Breaks: captures of other programs: byte orders, units of time, several interfaces with clocks of their
/// own.
#[test]
fn captures_of_any_origin_give_the_same_numbers() {
    let dir = tempfile::tempdir().unwrap();
    for big_endian in [false, true] {
        for (unit, name) in [(1, "ns"), (1_000, "us")] {
            fs::write(
                dir.path().join(format!("{name}-{big_endian}.pcap")),
                pcap(big_endian, unit, &even(300)),
            )
            .unwrap();
        }
    }
    // The same flow at a clock of nanoseconds, the paper's of 2^-24 s, and one of milliseconds.
    let mut frames = Vec::new();
    for (time, frame) in even(300) {
        for (interface, per_second) in [(0, 1_000_000_000u128), (1, 1 << 24), (2, 1_000)] {
            let ticks = u128::from(time) * per_second / 1_000_000_000;
            frames.push((interface, ticks as u64, frame.clone()));
        }
    }
    fs::write(dir.path().join("three.pcapng"), pcapng(&[9, 0x80 | 24, 3], &frames)).unwrap();
    let (code, value) = report(dir.path(), &["."]);
    assert_eq!(code, 0);
    let captures = value["captures"].as_array().unwrap();
    assert_eq!(captures.len(), 5);
    let seen: Vec<_> = captures
        .iter()
        .flat_map(|capture| capture["flows"].as_array().unwrap())
        .map(|flow| {
            let mean = flow["mean_bit_s"].as_u64().unwrap();
            assert!(mean.abs_diff(100_000_000) < 2_500_000, "{mean}");
            let error = flow["clock"]["queue_error_bytes"].as_u64().unwrap();
            (
                flow["packets"].as_u64().unwrap(),
                flow["clock"]["tick_ns"].as_u64().unwrap(),
                error,
                flow["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    let micros = (300, 1_000, 26, "precise");
    // In the order of the files' names; flows of the last one with equal bytes in the order of their
    // interfaces. In a tick of 1 ms, the 299 x 1,518 B of 36 ms carry 12,608 B: twice that.
    let (one, nic) = ((300, 1, 2, "precise"), (300, 60, 2, "precise"));
    let coarse = (300, 1_000_000, 25_216, "cannot_tell");
    assert_eq!(seen, [one, one, one, nic, coarse, micros, micros]);
}

/// Breaks: what is wrong with a file is not said, or it panics; a capture that was cut is thrown away whole,
/// or passes for a whole one.
#[test]
fn bad_files_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    let whole = pcap(false, 1, &even(300));
    write("garbage", &common::bytes(5_000));
    write("empty", b"");
    write("lie.pcap", &[&whole[..24], &[0xff; 40]].concat());
    write("cut.pcap", &whole[..whole.len() - 7]);
    fs::create_dir(dir.path().join("folder")).unwrap();
    for (file, expected) in [
        ("garbage", "not a capture"),
        ("empty", "not a capture"),
        ("lie.pcap", "the maximum is 1048576"),
        ("missing", "`missing`"),
        ("folder", "no capture"),
        ("-", "standard input cannot be"),
        ("/dev/null", "is no file"),
    ] {
        let (code, stdout, stderr) = run(dir.path(), &["pacing", "report", file]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{file}: {stderr}");
        assert!(stderr.contains(expected) && !stderr.contains("panicked"), "{file}: {stderr}");
    }
    assert!(!dir.path().join("out/pacing").exists(), "nothing is left");
    let (code, value) = report(dir.path(), &["cut.pcap"]);
    let capture = &value["captures"][0];
    assert_eq!(
        (code, &capture["packets"], &capture["flows"][0]["verdict"]),
        (0, &299.into(), &"precise".into())
    );
    assert!(capture["cut"].as_str().unwrap().contains("is truncated within the block at byte"), "{capture}");
    for arguments in [&["--flow", "nobody"][..], &["--rate", "5"], &["--require", "speed"]] {
        let (code, _, stderr) = run(dir.path(), &[&["pacing", "report", "cut.pcap"], arguments].concat());
        assert_eq!(code, 2, "{stderr}");
    }
}

/// Breaks: scripts that ask for precise pacing get the wrong exit code; times and filters are not obeyed.
#[test]
fn what_is_required_decides_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let mut frames = even(400);
    // Ten at once, in the middle, of another flow that is even otherwise.
    let start = frames[0].0;
    frames.extend(
        (0..400).map(|i| (start + if (200..210).contains(&i) { 200 } else { i } * 121_440 + 50, datagram(8))),
    );
    frames.sort_by_key(|frame| frame.0);
    fs::write(dir.path().join("two.pcap"), pcap(false, 1, &frames)).unwrap();
    for (arguments, expected) in [
        (&[][..], 0),
        (&["--require", "precise"], 1),
        (&["--require", "precise", "--flow", "7"], 0),
        (&["--require", "precise", "--flow", "src 10.0.0.1:8"], 1),
        (&["--require", "precise", "--flow", "dst 10.0.0.1"], 1),
        (&["--require", "precise", "--flow", "8", "--until", "20 ms"], 0),
        (&["--require", "precise", "--flow", "8", "--from", "30 ms"], 0),
        (&["--require", "precise", "--flow", "7", "--rate", "90 Mbit/s"], 1),
        (&["--require", "precise", "--flow", "7", "--until", "5 ms"], 1),
    ] {
        let (code, value) = report(dir.path(), &[&["two.pcap"], arguments].concat());
        assert_eq!(code, expected, "{arguments:?}: {}", value["verdict"]);
    }
    let (_, value) = report(dir.path(), &["two.pcap", "--flow", "8"]);
    let burst = &value["captures"][0]["flows"][0]["burstiness"];
    // Packet 201 of this flow is number 402 of the capture; nine more come with it.
    assert_eq!(
        (burst["packet"].as_u64(), burst["at_s"].as_f64().map(|s| (s * 1e6) as u64)),
        (Some(411), Some(24_288))
    );
    assert!(burst["frames"].as_f64().unwrap() > 9.0, "{burst}");
}

/// Breaks: the page, its figures, the table, or a second report into the same place.
#[test]
fn the_report_is_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("even.pcap"), pcap(true, 1, &even(300))).unwrap();
    for _ in 0..2 {
        let (code, stdout, stderr) = run(dir.path(), &["pace", "report", "even.pcap", "--out", "proof"]);
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(stdout.starts_with("1 flow: 1 precise.\n"), "{stdout}");
        assert!(stdout.contains("UDP 10.0.0.1:7 > 10.0.0.2:9"), "{stdout}");
    }
    let at = dir.path().join("proof");
    assert_eq!(names(&at), ["figures", "report.html", "report.json"]);
    assert_eq!(names(&at.join("figures")), ["0-0-intervals.svg", "0-0-queue.svg", "0-0-rate.svg"]);
    let page = fs::read_to_string(at.join("report.html")).unwrap();
    let (words, _) = page.split_once("<script>").unwrap();
    assert!(words.contains("1 full frames of 1,518 B") && !words.contains("NaN"), "the peak is told");
    let value: Value = serde_json::from_slice(&fs::read(at.join("report.json")).unwrap()).unwrap();
    assert_eq!(value["format"], "farpace-pacing-report/1");
    // The row of its flow in the documentation has every key.
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md")).unwrap();
    let capture = &value["captures"][0];
    for object in [&value, capture, &capture["interfaces"][0], &capture["flows"][0]] {
        for key in object.as_object().unwrap().keys() {
            assert!(docs.contains(&format!("`{key}`")), "docs/json.md does not know `{key}`");
        }
    }
}

/// Breaks: totals of flows that differ from what everybody else counts, in a capture of a run of our own.
#[test]
fn tshark_counts_the_same_packets_and_bytes() {
    let dir = with_scenario(LOSSY);
    let (code, _, stderr) = run(dir.path(), &["run", "scenario.toml", "--out", "out", "--no-report"]);
    assert_eq!(code, 0, "{stderr}");
    let (_, value) = report(dir.path(), &["out"]);
    let captures = value["captures"].as_array().unwrap();
    let files: Vec<_> = captures.iter().map(|c| c["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["out/a.pcapng", "out/b.pcapng"], "drops were on no wire");
    for capture in captures {
        let file = capture["file"].as_str().unwrap();
        for flow in capture["flows"].as_array().unwrap() {
            let (ends, protocol) = (flow["flow"].as_str().unwrap(), flow["protocol"].as_str().unwrap());
            assert_eq!(protocol, "TCP");
            let (src, dst) = ends.strip_prefix("TCP ").unwrap().split_once(" > ").unwrap();
            let port = |end: &str| end.rsplit_once(':').unwrap().1.to_owned();
            let filter = format!("tcp.srcport == {} && tcp.dstport == {}", port(src), port(dst));
            let mut command = Command::new("tshark");
            command.env("LC_ALL", "C.UTF-8").args(["-n", "-r", file, "-Y", &filter, "-T", "fields"]);
            command.args(["-e", "frame.len", "-e", "ip.len"]).current_dir(dir.path()).stderr(Stdio::null());
            let Some(output) = run_if_installed(&mut command, "tshark") else { return };
            let text = String::from_utf8(output.stdout).unwrap();
            let rows: Vec<[u64; 2]> = text
                .lines()
                .map(|line| {
                    line.split_once('\t').map(|(a, b)| [a.parse().unwrap(), b.parse().unwrap()]).unwrap()
                })
                .collect();
            let layer_2: u64 = rows.iter().map(|row| (row[0] + 4).max(64)).sum();
            assert_eq!(flow["packets"], rows.len(), "{file} {ends}");
            assert_eq!(flow["bytes"], layer_2, "{file} {ends}");
            assert_eq!(flow["network_bytes"], rows.iter().map(|row| row[1]).sum::<u64>(), "{file} {ends}");
        }
    }
}

/// Breaks: a mistake in --flow passes for a capture without a fault, or rates of `pacing up` are not those of
/// `pacing report`.
#[test]
fn filters_that_leave_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("even.pcap"), pcap(false, 1, &even(300))).unwrap();
    let words = ["pacing", "report", "even.pcap", "--no-report", "--rate", "100mbit", "--line", "1gbit"];
    assert_eq!(run(dir.path(), &words).0, 0);
    let filtered = [&words[..], &["--flow", "10.0.0.9"]].concat();
    let (code, out, error) = run(dir.path(), &filtered);
    assert_eq!((code, out.as_str()), (2, ""), "{error}");
    assert!(error.contains("no flow of the captures is `10.0.0.9`"), "{error}");
}
