//! Captures of both sides of a gateway.

use crate::common;
use crate::harness::*;
use crate::process::GatewayProcess;
use crate::sites::Sites;
use farpace::trace::{CaptureReader, CapturedPacket};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What the server's side sends and receives in a test of contents.
const BYTES: usize = 3_000_000;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn total(folder: &Path) -> u64 {
    // A file may be removed while they are counted.
    files(folder).iter().filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum()
}

/// All packets of a file, and the name of its interface.
fn each_packet(path: &Path, mut take: impl FnMut(&CapturedPacket<'_>)) -> String {
    let mut reader = CaptureReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    while let Some(packet) = reader.next_packet().unwrap() {
        take(&packet);
    }
    assert_eq!(reader.interfaces().len(), 1, "{}", path.display());
    reader.interfaces()[0].name.clone().unwrap()
}

fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Bytes of each direction of each connection; none without tshark. A segment that a busy machine dropped
/// before the gateway comes again; one that the capture left out does not.
///
/// # Panics
/// A byte before the last is not there.
fn whole_streams(path: &Path) -> Option<Vec<u64>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(path).args(["-Y", "tcp.len > 0", "-T", "fields"]);
    tshark.args(["tcp.stream", "tcp.srcport", "tcp.seq", "tcp.len"].iter().flat_map(|field| ["-e", field]));
    let output = common::run_if_installed(&mut tshark, "tshark")?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut segments: Vec<Vec<u64>> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.split('\t').map(|field| field.parse().unwrap()).collect())
        .collect();
    segments.sort_unstable();
    let mut ends = BTreeMap::new();
    for segment in segments {
        // Relative sequence numbers: 0 is the SYN.
        let end = ends.entry((segment[0], segment[1])).or_insert(1);
        assert!(segment[2] <= *end, "{}: bytes from {end} are missing before {segment:?}", path.display());
        *end = (*end).max(segment[2] + segment[3]);
    }
    Some(ends.into_values().map(|end| end - 1).collect())
}

/// Breaks: one side, or one direction of it, is not captured; payload is, although headers were asked for;
/// others can read the files; tshark or `explain` cannot, or takes one leg for retransmissions of the other.
#[test]
fn both_sides_are_captured_without_payload() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let folder = net.state.path().join("../captures-of").join(net.router.name());
    let _ = std::fs::remove_dir_all(&folder);
    let gateway = net.gateway(&["--pcap", arg(&folder)]);
    for address in [SERVER, SERVER6] {
        let listener = net.listen(address);
        let (near, far) = net.connect(&listener);
        exchange(&near, &far, 0, BYTES);
    }
    let ping = || Command::new("ping").args(["-c", "1", "-s", "600", SERVER]).output().unwrap();
    assert!(net.client.within(ping).unwrap().status.success());
    gateway.end();
    net.assert_clean();
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let all = files(&folder);
    let names: Vec<_> = all.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["lan-000001.pcapng", "wan-000001.pcapng"]);
    for (path, side) in all.iter().zip(["lan", "wan"]) {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let (mut whole, mut longest, mut kept) = (0, 0, 0);
        let name = each_packet(path, |packet| {
            whole += packet.original_len.get();
            longest = longest.max(packet.original_len.get());
            kept = kept.max(packet.data.len());
        });
        assert_eq!(name, side);
        // Both ways, of both connections; as on a link.
        assert!(whole > 4 * BYTES as u64, "{side}: {whole}");
        assert!(longest <= 1_514, "{side}: {longest}");
        // Ethernet, IPv6, and TCP with its options.
        assert!(kept <= 14 + 40 + 60, "{side}: {kept}");
        let explained = Command::new(env!("CARGO_BIN_EXE_farpace"))
            .args(["explain", "--json"])
            .arg(path)
            .output()
            .unwrap();
        assert!(explained.status.success(), "{}", String::from_utf8_lossy(&explained.stderr));
        let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
        let flows = explained["captures"][0]["flows"].as_array().unwrap();
        assert!(flows.len() >= 2, "{explained}");
        let Some(ends) = whole_streams(path) else { continue };
        assert_eq!(ends, [BYTES as u64; 4], "{side}");
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(path).args([
            "-Y",
            "tcp.flags.syn == 1",
            "-T",
            "fields",
            "-e",
            "frame.interface_name",
        ]);
        let output = common::run_if_installed(&mut tshark, "tshark").unwrap();
        // SYN and SYN-ACK of both connections; on a busy machine one may come twice.
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.lines().count() >= 4 && text.lines().all(|name| name == side), "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Breaks: the traffic of strangers fills the disk; or a gateway with a full ring stops to capture or to
/// carry traffic.
#[test]
fn captures_are_bounded_under_any_traffic() {
    if !has_rights() {
        return;
    }
    const LIMIT: u64 = 1 << 20;
    let (net, folder) = (Net::new(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let gateway = net.gateway(&["--pcap", arg(folder), "--pcap-limit", "1 MiB", "--snaplen", "65549"]);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    let since_1970 = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut last_round = since_1970();
    for round in 0..10 {
        last_round = since_1970();
        exchange(&near, &far, round * 1_000_000, 1_000_000);
        assert!(total(folder) <= LIMIT, "{}", total(folder));
    }
    let capture = net.status()["capture"].clone();
    assert_eq!((&capture["limit_bytes"], &capture["ended"]), (&LIMIT.into(), &Value::Null), "{capture}");
    let summary = net.farpace(&["gateway", "status"]);
    assert!(String::from_utf8_lossy(&summary.stdout).contains(" of 1048576 B"), "{summary:?}");
    gateway.end();
    assert!(total(folder) <= LIMIT && total(folder) > LIMIT / 2, "{}", total(folder));
    let (mut last, mut packets) = (farpace::units::Instant::ZERO, 0);
    for path in files(folder).iter().filter(|path| path.to_str().unwrap().contains("/wan-")) {
        each_packet(path, |packet| {
            assert!(packet.time >= last);
            assert_eq!(packet.data.len(), packet.original_len.as_len());
            (last, packets) = (packet.time, packets + 1);
        });
    }
    assert!(packets > 100, "{packets}");
    // The newest are kept.
    assert!(u128::from(last.as_nanos()) > last_round.as_nanos());
}

/// Breaks: a full disk ends or stalls the gateway, leaves a file that cannot be read, or is not told.
#[test]
fn a_full_disk_ends_the_capture_alone() {
    if !has_rights() {
        return;
    }
    let (net, folder) = (Net::new(), tempfile::tempdir().unwrap());
    let folder = folder.path().to_str().unwrap();
    let kept = tempfile::tempdir().unwrap();
    // `ip netns exec` has given the process mounts of its own.
    let script = format!(
        "mount -t tmpfs -o size=200k none {folder} && \"$@\"; cp -r {folder}/. {}",
        kept.path().display()
    );
    let up = [env!("CARGO_BIN_EXE_farpace"), "gateway", "up", "--json", "--min-rtt", "0us"];
    let sides = ["--lan", "lan0", "--wan", "wan0", "--pcap", folder];
    let command =
        net.on_router(&[&["sh", "-c", &format!("trap '' TERM; {script}"), "sh"], &up[..], &sides].concat());
    let gateway = GatewayProcess::start(command);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    let since = Instant::now();
    let mut at = 0;
    let ended = loop {
        exchange(&near, &far, at, 1_000_000);
        at += 1_000_000;
        let capture = net.status()["capture"].clone();
        if let Some(ended) = capture["ended"].as_str() {
            break ended.to_owned();
        }
        assert!(since.elapsed() < STEP_TIMEOUT, "{capture}");
    };
    assert!(ended.contains("No space left") && ended.contains(folder), "{ended}");
    exchange(&near, &far, at, 3_000_000);
    let pid = net.status()["pid"].as_i64().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGTERM)
        .unwrap();
    let (_, notes) = gateway.end_with_notes();
    assert!(notes.contains("No space left") && notes.contains("the gateway goes on"), "{notes}");
    net.assert_clean();
    let files = files(kept.path());
    assert!(!files.is_empty());
    files.iter().for_each(|path| drop(each_packet(path, |_| {})));
}

/// Breaks: a capture cannot be switched on and off while connections live; one that is off writes; two write
/// to one directory; or what is wrong with a request is not said.
#[test]
fn a_running_gateway_captures_on_demand() {
    if !has_rights() {
        return;
    }
    let (net, folder) = (Net::new(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let capture = |code: i32, words: &[&str]| {
        let output = net.farpace(&[&["gateway", "capture"], words].concat());
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        said
    };
    assert!(capture(2, &["start", arg(folder)]).contains("no gateway runs"));
    let gateway = net.gateway(&[]);
    assert_eq!(gateway.up["up"]["capture"], Value::Null);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 100_000);
    assert!(capture(2, &["stop"]).contains("no capture runs"));
    assert!(capture(2, &["start", arg(folder), "--snaplen", "5"]).contains("96 to 65549"));
    assert!(capture(2, &["start", "/dev/null/x"]).contains("/dev/null/x"));
    for round in 1..3 {
        capture(0, &["start", arg(folder), "--snaplen", "100"]);
        assert!(capture(2, &["start", arg(folder)]).contains("a capture runs"));
        let other = tempfile::tempdir().unwrap();
        assert!(capture(2, &["start", arg(other.path())]).contains("capture stop"));
        exchange(&near, &far, 0, 300_000);
        let said = capture(0, &["stop", "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["capture"]["packets"].as_u64().unwrap() > 10, "{said}");
        assert_eq!(said["capture"]["dropped_packets"], 0, "{said}");
        assert_eq!(files(folder).len(), 2 * round);
        let before = total(folder);
        exchange(&near, &far, 0, 300_000);
        assert_eq!(total(folder), before);
        assert_eq!(net.status()["capture"], Value::Null);
    }
    gateway.end();
    assert_eq!(files(folder).len(), 4);
}

/// Breaks: the WAN side of a gateway with a peer is not what goes through the tunnel.
#[test]
fn the_inside_of_the_tunnel_is_captured() {
    if !has_rights() {
        return;
    }
    let (sites, folder) = (Sites::new(1, false), tempfile::tempdir().unwrap());
    let [of_b, of_a] = sites.keys("keys");
    let b = sites.gateway(1, &of_a, &[]);
    let a = sites.gateway(0, &of_b, &["--pcap", arg(folder.path())]);
    sites.wait_for_paths(1);
    let listener = sites.listen(crate::sites::SERVER);
    let (near, far) = sites.connect(&listener);
    exchange(&near, &far, 0, 1_000_000);
    a.end();
    b.end();
    let mut whole = 0;
    let name = each_packet(&folder.path().join("wan-000001.pcapng"), |packet| {
        let (from, to) = (&packet.data[26..30], &packet.data[30..34]);
        if packet.data[12..14] == [8, 0] && packet.data[23] == 6 {
            assert!([from, to].contains(&&[10, 2, 0, 2][..]), "{packet:?}");
            whole += packet.original_len.get();
        }
    });
    assert_eq!(name, "wan");
    assert!(whole > 2_000_000, "{whole}");
}
