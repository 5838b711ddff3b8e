//! `farpace nics`: NICs and paths, the order of frames, and what hosts tell of their NICs.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{run, with_scenario};
use farpace::trace::PcapngWriter;
use farpace::units::Instant;
use farpace::wire::{Arp, Extension, MacAddr, NicFlags, NicKind, Packet};
use serde_json::{Value, json};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

const WIDE: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const NARROW: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const TOLD: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
const FORGED: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);
const ORDINARY: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 3);

fn gallery(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/gallery").join(name)
}

/// Succeeds, with nothing said; standard output.
fn fine(dir: &Path, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = run(dir, &[&["nics"], arguments].concat());
    assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}: {stdout}");
    stdout
}

fn json_of(dir: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&fine(dir, &[arguments, &["--json"]].concat())).unwrap()
}

/// Is refused; what it says.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = run(dir, &[&["nics"], arguments].concat());
    assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
    stderr
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Breaks: NICs of one kind do not find each other, or users read another way or share than frames take.
#[test]
fn pairs_are_by_kind_and_by_turn() {
    let shown = fine(here(), &["pair", "--ours", "1G,100M", "--theirs", "100M,1G"]);
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows,
        [
            ["0:", "1", "Gbit/s", "1:", "1", "Gbit/s", "1", "Gbit/s", "90.91"],
            ["1:", "100", "Mbit/s", "0:", "100", "Mbit/s", "100", "Mbit/s", "9.09"],
        ],
        "{shown}"
    );
    assert!(!shown.contains("Nobody sends"), "{shown}");
    let left = fine(here(), &["pair", "--ours", "1G", "--theirs", "2.5G,100M"]);
    assert!(left.ends_with("Nobody sends to the neighbour's NIC 1 (100 Mbit/s).\n"), "{left}");

    // More of ours: they share the neighbour's, and no way is wider than its narrower NIC.
    let paths = json_of(here(), &["pair", "--ours", "1G,1G,500 Mbit/s", "--theirs", "2.5G"]);
    let expected = [(1_000, 0.4), (1_000, 0.4), (500, 0.2)].iter().enumerate().map(|(nic, (mbit, share))| {
        let rate = mbit * 1_000_000;
        json!({
            "nic": nic, "nic_bit_s": rate, "to": 0, "to_bit_s": 2_500_000_000_u64, "path_bit_s": rate, "share": share,
        })
    });
    assert_eq!(paths["format"], "farpace-nics-pair/2");
    assert_eq!(paths["paths"], Value::Array(expected.collect()));
}

/// Frames by NIC, in the order in which each sends them, counted from 0.
fn by_nic(arguments: &[&str]) -> [Vec<u64>; 2] {
    let sent = json_of(here(), arguments);
    let mut frames: Vec<(u64, u64, usize)> = sent["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| {
            let number = |key: &str| frame[key].as_u64().unwrap();
            (number("leaves_ns"), number("frame"), number("nic") as usize)
        })
        .collect();
    frames.sort_unstable();
    let mut by_nic = [vec![], vec![]];
    for (_, frame, nic) in frames {
        by_nic[nic].push(frame);
    }
    by_nic
}

/// Breaks: the paper's send order: with S = 4 the slots N W W W send 5 1 2 3 first, with S = 2 3 1 2 4 7 5 6
/// 8 (frames counted from 1 there, from 0 here).
#[test]
fn skip_numbers_send_what_the_paper_sends() {
    let order = ["order", "--order", "skip", "--ratio"];
    let skip = |more: &[&str]| by_nic(&[&order, more].concat());
    let [wide, narrow] = skip(&["75/25", "--paths", "1G,100M", "--skip", "4", "--frames", "16"]);
    assert_eq!((&narrow[..1], &wide[..3]), (&[4][..], &[0, 1, 2][..]));
    // The next rounds by the same rules.
    assert_eq!((&narrow[1..3], &wide[3..9]), (&[8, 12][..], &[3, 5, 6, 7, 9, 10][..]));

    let two = [vec![0, 1, 3, 4, 5, 7], vec![2, 6]];
    assert_eq!(skip(&["75/25", "--paths", "1G,100M", "--skip", "2", "--frames", "8"]), two);
    // NICs are numbered as they are written, wherever the narrow one stands.
    let [narrow, wide] = skip(&["25/75", "--paths", "100M,1G", "--skip", "2", "--frames", "8"]);
    assert_eq!([wide, narrow], two);
}

/// Breaks: the order for unequal NICs reorders, or leaves a NIC idle; or the table says otherwise than the
/// JSON.
#[test]
fn earliest_is_never_late_and_fills_both_lines() {
    let paths = ["order", "--paths", "1G,100M", "--frames", "5000"];
    let sent = json_of(here(), &paths);
    assert_eq!(sent["order"], "earliest");
    assert_eq!((&sent["late_by_3_places"], &sent["most_late_places"]), (&json!(0), &json!(0)));
    assert!(sent["lines_carried_bit_s"].as_u64().unwrap() > 1_095_000_000, "{}", sent["lines_carried_bit_s"]);
    let frames = sent["frames"].as_array().unwrap();
    let mut numbers: Vec<u64> = frames.iter().map(|frame| frame["frame"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted(), "frames are shown as they arrive, and arrive in order");
    numbers.dedup();
    assert_eq!(numbers.len(), 5_000);
    let nic = |i: usize| sent["nics"][i]["frames"].as_u64().unwrap();
    assert_eq!(nic(0) + nic(1), 5_000);
    assert!((440..=460).contains(&nic(1)), "{}", nic(1));
    assert_eq!(sent["nics"][0]["skip_number"], Value::Null);
    let last = frames.last().unwrap();
    assert_eq!(last["arrives_ns"], sent["takes_ns"]);

    let text = fine(here(), &paths);
    assert!(text.contains("and 4960 more (--all shows them)\n"), "{text}");
    assert!(text.ends_with("Late by 3 places or more: 0 frames (0.00 %), the latest by 0.\n"), "{text}");
    let all = fine(here(), &["order", "--paths", "1G,100M", "--frames", "50", "--all"]);
    assert!(!all.contains("more (--all"), "{all}");
    let (frames, _) = all.split_once("\nNICs\n").unwrap();
    let rows = frames.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(rows.count(), 50, "{all}");

    // What it is better than.
    let turns = json_of(here(), &["order", "--paths", "1G,100M", "--order", "round-robin"]);
    assert!(turns["late_by_3_places"].as_u64().unwrap() > 50, "{}", turns["late_by_3_places"]);
}

/// Breaks: nonsense is worked with, or nobody says what is wrong with it.
#[test]
fn nics_that_make_no_sense_are_refused() {
    let seventeen = vec!["1G"; 17].join(",");
    let order = |more: &[&str]| refused(here(), &[&["order"], more].concat());
    assert_eq!(order(&["--paths", &seventeen]), "error: a host has at most 16 NICs, not 17\n");
    let ratio = order(&["--paths", "1G,100M", "--order", "skip", "--ratio", "90/5/5"]);
    assert_eq!(ratio, "error: --ratio 90/5/5 has 3 shares for 2 paths\n");
    for (arguments, told) in [
        (["--paths", "1G,fast"], "`fast` is not a NIC: expected a kind like 1G"),
        (["--paths", "1G,100M@20 km"], "in `100M@20 km`"),
        (["--paths", "0 bit/s"], "is not a NIC"),
    ] {
        let error = order(&arguments);
        assert!(error.contains(told), "{error}");
    }
    for (option, value, told) in [
        ("--ratio", "0/0", "`0/0` is not a ratio"),
        ("--packet", "10 B", "from 20 B to 65535 B, not 10 B"),
        ("--frames", "0", "0 is not in 1..=200000"),
        ("--hops", "17", "17 is not in 1..=16"),
        ("--order", "random", "[possible values: earliest, skip"),
    ] {
        let error = order(&["--paths", "1G,100M", option, value]);
        assert!(error.contains(told), "{error}");
    }
    assert!(order(&[]).contains("--paths <PATHS>"));
    assert!(refused(here(), &["pair", "--ours", "1G", "--theirs", &seventeen]).contains("at most 16 NICs"));
    assert!(refused(here(), &["pair", "--ours", "1G", "--theirs", "3G"]).contains("`3G` is not a NIC"));
}

/// Breaks: users cannot see whether two hosts of a scenario have found each other's NICs, and by which paths
/// they send.
#[test]
fn a_scenario_tells_what_hosts_know() {
    let nics = gallery("nics.toml");
    let nics = nics.to_str().unwrap();
    let text = fine(here(), &["show", nics, "--for", "5 ms"]);
    assert!(text.starts_with("After 5 ms:\n"), "{text}");
    let paths: Vec<(&str, &str)> = text
        .lines()
        .filter(|line| line.starts_with("10.0.0."))
        .map(|line| (line.split_once(' ').unwrap().0, line.rsplit_once(' ').unwrap().1))
        .collect();
    let expected = [("10.0.0.2", "90.91"), ("10.0.0.2", "9.09"), ("10.0.0.1", "90.91"), ("10.0.0.1", "9.09")];
    assert_eq!(paths, expected, "{text}");

    let known = json_of(here(), &["show", nics, "--for", "5 ms"]);
    assert_eq!((&known["format"], &known["time_s"]), (&json!("farpace-nics-known/2"), &json!(0.005)));
    let [a, b] = &known["hosts"].as_array().unwrap()[..] else { panic!("{known}") };
    for (one, other, address) in [(a, b, "10.0.0.2"), (b, a, "10.0.0.1")] {
        let neighbour = &one["neighbours"][0];
        assert_eq!(
            (neighbour["address"].as_str(), &neighbour["generation"]),
            (Some(address), &other["generation"])
        );
        assert_eq!(one["refused"], json!([]));
        for (nic, kind) in [(0, "1G"), (1, "100M")] {
            let (own, told, way) = (&other["nics"][nic], &neighbour["nics"][nic], &neighbour["paths"][nic]);
            assert_eq!(
                (&told["mac"], &told["kind"], &own["kind"]),
                (&own["mac"], &json!(kind), &json!(kind))
            );
            assert_eq!(
                (&way["to"], &way["rate_bit_s"], &way["up"]),
                (&own["mac"], &own["rate_bit_s"], &json!(true))
            );
        }
    }

    // A host that tells nobody is an ordinary one to the other, which then has one way.
    let silent = ["show", nics, "--for", "5 ms", "--set", "hosts.b.multi_nic.extended_arp=false"];
    let text = fine(here(), &silent);
    assert!(text.contains("tells nobody of its NICs (extended_arp = false)"), "{text}");
    let known = json_of(here(), &silent);
    let neighbour = &known["hosts"][0]["neighbours"][0];
    assert_eq!((&neighbour["nics"], neighbour["paths"].as_array().unwrap().len()), (&Value::Null, 1));
    assert_eq!(neighbour["paths"][0]["share"], 1.0);
}

/// Breaks: captures of runs do not show which hosts have told of which NICs, and which paths were probed.
#[test]
fn a_capture_of_a_run_shows_hosts_and_paths() {
    let scenario = fs::read_to_string(gallery("nics.toml")).unwrap();
    let scenario = scenario.replace("200 MB", "200 kB");
    let scenario =
        scenario.replace("[trace]", "[trace]\ntaps = [\"a-wide\", \"a-narrow\"]\nsnaplen = \"2 kB\"");
    let dir = with_scenario(&scenario);
    let dir = dir.path();
    let (code, _, stderr) = run(dir, &["run", "scenario.toml", "--no-report", "--quiet", "--out", "out"]);
    assert_eq!(code, 0, "{stderr}");
    let heard = json_of(dir, &["show", "out/a.nic0.pcapng"]);
    assert_eq!((&heard["format"], &heard["left_out"]), (&json!("farpace-nics-heard/2"), &json!(0)));
    let known = json_of(dir, &["show", "scenario.toml", "--for", "5 ms"]);
    for (i, address) in ["10.0.0.1", "10.0.0.2"].into_iter().enumerate() {
        let (there, here) = (&heard["hosts"][i], &known["hosts"][i]);
        assert_eq!((there["address"].as_str(), &there["refused"]), (Some(address), &json!([])));
        assert_eq!(there["list"]["generation"], here["generation"]);
        for nic in 0..2 {
            assert_eq!(there["list"]["nics"][nic]["mac"], here["nics"][nic]["mac"]);
            assert_eq!(there["list"]["nics"][nic]["kind"], here["nics"][nic]["kind"]);
        }
    }
    let heard = json_of(dir, &["show", "out/a.nic1.pcapng"]);
    let paths = heard["paths"].as_array().unwrap();
    assert!(!paths.is_empty() && paths.iter().all(|path| path["probes"].as_u64() > Some(0)), "{heard}");
}

/// Asks for nobody, with these NICs told.
fn tells(mac: MacAddr, address: Ipv4Addr, nics: &[(MacAddr, NicKind)]) -> Vec<u8> {
    let arp = Arp::request(mac, address, address);
    let packet = arp.packet(MacAddr::BROADCAST);
    let list = Extension::new(address.into(), nics, NicFlags::ANSWERS_PROBES, 7);
    [packet.headers(), &arp.encode_with(&list)].concat()
}

/// A directory with `lan.pcapng`: these frames a millisecond apart.
fn capture(frames: &[Vec<u8>]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let file = fs::File::create(dir.path().join("lan.pcapng")).unwrap();
    let mut capture = PcapngWriter::new(file, "test").unwrap();
    let tap = capture.add_interface("lan", "", None).unwrap();
    for (frame, ms) in frames.iter().zip(0u64..) {
        let packet = Packet::from_frame(frame).unwrap();
        capture.packet(tap, Instant::from_nanos(ms * 1_000_000), &packet, None).unwrap();
    }
    capture.finish().unwrap();
    dir
}

/// Breaks: a forged list is believed, hides that the host is there, or is not counted by what is wrong with
/// it.
#[test]
fn forged_lists_are_counted_and_not_believed() {
    let nics = |first, second| [(first, NicKind(3)), (second, NicKind(2))];
    let liar = MacAddr([2, 0, 0, 0, 0, 9]);
    let mut wrong_crc = tells(liar, FORGED, &nics(liar, NARROW));
    *wrong_crc.last_mut().unwrap() ^= 1;
    let twice = tells(liar, FORGED, &nics(liar, liar));
    let ordinary_mac = MacAddr([2, 0, 0, 0, 0, 3]);
    let ordinary = Arp::request(ordinary_mac, ORDINARY, TOLD);
    let ordinary = [ordinary.packet(MacAddr::BROADCAST).headers(), &ordinary.encode()].concat();
    let good = tells(WIDE, TOLD, &nics(WIDE, NARROW));
    let dir = capture(&[good.clone(), wrong_crc.clone(), twice, wrong_crc, ordinary, good]);

    let heard = json_of(dir.path(), &["show", "lan.pcapng"]);
    let [told, forged, ordinary] = &heard["hosts"].as_array().unwrap()[..] else { panic!("{heard}") };
    let list = json!([
        { "mac": WIDE.to_string(), "kind": "1G" },
        { "mac": NARROW.to_string(), "kind": "100M" },
    ]);
    assert_eq!((&told["list"]["nics"], &told["list"]["generation"]), (&list, &json!(7)));
    assert_eq!((&told["messages"], &told["lists"], &told["refused"]), (&json!(2), &json!(2), &json!([])));
    assert_eq!((&told["list_since_ns"], &told["last_ns"]), (&json!(0), &json!(5_000_000)));
    assert_eq!(
        (forged["address"].as_str(), forged["mac"].as_str()),
        (Some("192.168.1.2"), Some("02:00:00:00:00:09"))
    );
    assert_eq!(
        (&forged["list"], &forged["messages"], &forged["lists"]),
        (&Value::Null, &json!(3), &json!(0))
    );
    let mut why = forged["refused"].as_array().unwrap().clone();
    why.sort_by_key(|why| why["lists"].as_u64());
    let (crc, repeated) = ("the CRC is wrong", "a repeated MAC address");
    assert_eq!(why, [json!({ "why": repeated, "lists": 1 }), json!({ "why": crc, "lists": 2 })]);
    assert_eq!((&ordinary["list"], &ordinary["refused"]), (&Value::Null, &json!([])));

    let text = fine(dir.path(), &["show", "lan.pcapng"]);
    assert!(text.contains("02:00:00:00:00:01 (1G), 02:00:00:00:00:02 (100M)"), "{text}");
    assert!(text.contains("\n192.168.1.2: 2 lists are not to be believed: the CRC is wrong\n"), "{text}");
    let row = text.lines().find(|line| line.starts_with("192.168.1.2 ")).unwrap();
    assert!(row.contains(" ordinary ") && !row.contains("02:00:00:00:00:02"), "{row}");
}

/// Breaks: a file that is not there or not for this is taken, or users are not told what to do.
#[test]
fn files_that_show_nothing_are_told() {
    let dir = capture(&[]);
    let show = |arguments: &[&str]| refused(dir.path(), &[&["show"], arguments].concat());
    assert!(show(&["none.pcapng"]).contains("cannot read capture `none.pcapng`: "));
    assert!(show(&["none.toml"]).contains("cannot read scenario `none.toml`: "));
    fs::write(dir.path().join("text.pcapng"), "no capture at all, but some words\n").unwrap();
    assert!(show(&["text.pcapng"]).contains("cannot read capture `text.pcapng`: "));
    for option in [["--for", "5 ms"], ["--set", "seed=2"]] {
        let error = show(&["lan.pcapng", option[0], option[1]]);
        assert_eq!(error, "error: --for and --set are for scenarios, files that end in .toml\n");
    }
    let lossy = gallery("lossy.toml");
    let error = show(&[lossy.to_str().unwrap()]);
    assert!(error.contains("has no host with several NICs: [hosts.NAME.multi_nic]"), "{error}");
    let nics = gallery("nics.toml");
    assert!(show(&[nics.to_str().unwrap(), "--for", "0 s"]).contains("--for must be more than nothing"));

    // A capture in which nobody speaks is no error.
    let silent = fine(dir.path(), &["show", "lan.pcapng"]);
    assert_eq!(silent, "No ARP and no neighbour discovery: no host has said where it is.\n");
}

/// Breaks: users who ask for help.
#[test]
fn help_has_examples() {
    for command in ["pair", "order", "show"] {
        let help = fine(here(), &[command, "--help"]);
        assert!(help.contains("Examples:\n  farpace nics"), "{help}");
    }
}
