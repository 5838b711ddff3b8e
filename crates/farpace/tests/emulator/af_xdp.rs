//! A line between two interfaces that are taken before the kernel sees their packets.

use crate::harness::*;
use farpace::live::Namespace;
use farpace::live::system::{Offload, offload};

const WORDS: [&str; 6] = ["emulate", "ea", "eb", "--json", "--mode", "af-xdp"];
/// What it says on a veth, which has no zero copy.
const SAYS: &str = "ea: AF_XDP, copy mode: the driver has no zero copy\n\
                    eb: AF_XDP, copy mode: the driver has no zero copy\nBetween";

/// Whether the machine between cuts super-segments at its interfaces, rather than the emulator having
/// switched that off.
fn super_segments(between: &Namespace) -> Vec<bool> {
    let both = ["ea", "eb"].into_iter().flat_map(|name| [(name, Offload::Tso), (name, Offload::Gso)]);
    between.within(|| both.map(|(name, what)| offload(name, what).unwrap()).collect()).unwrap()
}

/// Breaks: with AF_XDP the line has another delay, changes bytes of the kernel's TCP in one of the
/// directions, does not count them, or leaves the interfaces other than they were.
#[test]
fn a_line_by_af_xdp_carries_both_ways() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let harness = Harness::new();
    let before = super_segments(&harness.between);
    assert!(before.contains(&true), "a veth that has no super-segments shows nothing here");
    let flags = ["--rate", "200mbit", "--delay", "2ms", "--queue", "50ms"];
    let emulator = running(&harness.between, &[&WORDS[..], &flags].concat(), SAYS);
    assert_eq!(super_segments(&harness.between), [false; 4]);
    let rtt = round_trip(&harness.a, &harness.b).as_secs_f64();
    assert!((0.004..0.0065).contains(&rtt), "a round trip of {rtt} s");
    let bytes = 10_000_000;
    transfer(&harness.a, &harness.b, B, bytes);
    transfer(&harness.b, &harness.a, A, bytes);
    let summary = summary(emulator);
    for direction in summary["directions"].as_array().unwrap() {
        assert!(direction["bytes_out"].as_u64().unwrap() > bytes as u64, "{summary}");
        // Each is a frame of its own: no more than 1448 B of payload.
        assert!(direction["packets_out"].as_u64().unwrap() > bytes as u64 / 1_448, "{summary}");
    }
    assert_eq!(super_segments(&harness.between), before);
}

/// Breaks: after `kill -9` the interfaces stay deaf for the kernel or without super-segments, and `farpace
/// doctor --clean` does not mend it, or they cannot be taken again.
#[test]
fn a_killed_emulator_gives_its_interfaces_back() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let harness = Harness::new();
    let before = super_segments(&harness.between);
    let state = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut emulator =
            started(command(&harness.between, &WORDS).env("FARPACE_STATE", state.path()), SAYS);
        transfer(&harness.a, &harness.b, B, 1_000_000);
        emulator.kill().unwrap();
        emulator.wait().unwrap();
        assert_eq!(super_segments(&harness.between), [false; 4]);
        // From outside the namespace: what is written down says where it was.
        let mut doctor = std::process::Command::new(env!("CARGO_BIN_EXE_farpace"));
        let told = doctor.args(["doctor", "--clean"]).env("FARPACE_STATE", state.path()).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(told.contains("taken away: emulate of process"), "{told}");
        assert_eq!(super_segments(&harness.between), before);
    }
    // The kernel hears the interface again.
    let line = "addr add 10.1.0.3/24 dev ea\n";
    harness.between.configure(line).unwrap();
    let address = std::net::Ipv4Addr::new(10, 1, 0, 3);
    transfer(&harness.a, &harness.between, address, 1_000_000);
}
