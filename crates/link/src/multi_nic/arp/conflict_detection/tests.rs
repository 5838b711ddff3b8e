#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use proptest::prelude::*;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Two NICs of this host, and one of another.
const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const OUR_SECOND: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x11]);

fn after(start: Instant, ms: u64) -> Instant {
    start + Span::from_millis(ms)
}
fn is_ours(mac: MacAddr) -> bool {
    mac == OURS || mac == OUR_SECOND
}
fn detection(seed: u64) -> ConflictDetection {
    ConflictDetection::new(Instant::ZERO, ADDRESS, OURS, RandomStream::new(seed, "claim"))
}
/// All pending actions as text.
fn actions(detection: &mut ConflictDetection) -> String {
    let word = |action| match action {
        ConflictAction::Usable(ADDRESS) => "usable".to_owned(),
        ConflictAction::Abandoned(ADDRESS) => "abandoned".to_owned(),
        ConflictAction::Conflict { address: ADDRESS, mac } => format!("conflict {:x}", mac.0[5]),
        ConflictAction::Send(packet) => {
            let arp = packet.arp().unwrap();
            assert_eq!(packet.macs(), (OURS, MacAddr::BROADCAST));
            assert_eq!((arp.operation, arp.target_mac), (ArpOperation::Request, MacAddr::default()));
            assert_eq!((arp.sender_mac, arp.target), (OURS, ADDRESS));
            match arp.sender {
                Ipv4Addr::UNSPECIFIED => "probe".to_owned(),
                sender => {
                    assert_eq!(sender, ADDRESS);
                    "announce".to_owned()
                }
            }
        }
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(|| detection.poll()).map(word).collect::<Vec<_>>().join(", ")
}
/// Runs until `until`. Returns the actions with their times.
fn run(detection: &mut ConflictDetection, until: Instant) -> Vec<(Instant, String)> {
    let mut done = Vec::new();
    while let Some(at) = detection.deadline().filter(|at| *at <= until) {
        detection.on_deadline(at);
        assert!(detection.deadline().is_none_or(|next| next > at), "the deadline does not advance");
        done.push((at, actions(detection)));
    }
    done
}
/// A reply from a host that has `ADDRESS`.
fn reply_of_other(mac: MacAddr) -> Arp {
    Arp::request(OTHER_MAC, OTHER, ADDRESS).reply(mac)
}
const OTHER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x33]);
/// A detection whose address is in use and announced, and the time of the last announcement.
fn in_use(seed: u64) -> (ConflictDetection, Instant) {
    let mut detection = detection(seed);
    let done = run(&mut detection, Instant::ZERO + Span::from_secs(30));
    (detection, done.last().unwrap().0)
}

proptest! {
    /// Breaks: the times of RFC 5227 §2.1 and §2.3 hold for all seeds.
    #[test]
    fn an_address_without_conflict_becomes_usable(seed: u64) {
        let mut detection = detection(seed);
        prop_assert!(!detection.is_usable());
        let done = run(&mut detection, Instant::ZERO + Span::from_secs(3600));
        let words: Vec<_> = done.iter().map(|(_, words)| words.as_str()).collect();
        prop_assert_eq!(words, ["probe", "probe", "probe", "usable, announce", "announce"]);
        let waits: Vec<_> = done.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
        prop_assert!(done[0].0 <= Instant::ZERO + PROBE_WAIT);
        prop_assert!(waits[..2].iter().all(|wait| (PROBE_MIN..=PROBE_MAX).contains(wait)));
        prop_assert_eq!(&waits[2..], [ANNOUNCE_WAIT, ANNOUNCE_INTERVAL]);
        prop_assert!(detection.is_usable() && detection.deadline().is_none());
        // The table of RFC 5227 §1.1.
        prop_assert_eq!((PROBE_WAIT, PROBE_MIN, PROBE_MAX), (Span::from_secs(1), Span::from_secs(1), Span::from_secs(2)));
        prop_assert_eq!((ANNOUNCE_WAIT, ANNOUNCE_INTERVAL), (Span::from_secs(2), Span::from_secs(2)));
    }

    /// Breaks: hosts that start at the same time, as after a power failure, send their probes at different
    /// times.
    #[test]
    fn probe_times_depend_on_the_seed(a: u64, b: u64) {
        prop_assume!(a != b);
        prop_assert_ne!(detection(a).deadline(), detection(b).deadline());
    }
}

/// Breaks: an address of another host is not used, and unrelated packets do not prevent the use of a free
/// one.
#[test]
fn conflicts_while_probing() {
    let probe = |mac, target| Arp::request(mac, Ipv4Addr::UNSPECIFIED, target);
    let table = [
        ("its owner answers", reply_of_other(THEIRS), true),
        ("its owner requests another address", Arp::request(THEIRS, ADDRESS, OTHER), true),
        ("its owner announces it", Arp::request(THEIRS, ADDRESS, ADDRESS), true),
        ("another host probes for it too", probe(THEIRS, ADDRESS), true),
        ("another host probes for another", probe(THEIRS, OTHER), false),
        ("another host requests it", Arp::request(THEIRS, OTHER, ADDRESS), false),
        (
            "a reply to the unspecified address",
            Arp { sender: Ipv4Addr::UNSPECIFIED, ..reply_of_other(THEIRS) },
            false,
        ),
        ("our own probe by the other NIC", probe(OURS, ADDRESS), false),
        ("our own, sent by the other NIC", probe(OUR_SECOND, ADDRESS), false),
        ("our own announcement", Arp::request(OUR_SECOND, ADDRESS, ADDRESS), false),
    ];
    for (what, arp, is_conflict) in table {
        // Before the first probe, between probes, and up to two seconds after the last.
        for ms in [0, 1500, 3500, 5000] {
            let mut detection = detection(7);
            let now = after(Instant::ZERO, ms);
            run(&mut detection, now);
            assert!(!detection.is_usable(), "with this seed, probing takes longer");
            detection.on_arp(now, &arp, is_ours);
            assert_eq!(
                actions(&mut detection),
                if is_conflict { "conflict 11" } else { "" },
                "{what} at {ms}"
            );
            let done = run(&mut detection, now + Span::from_secs(9));
            let used = done.iter().any(|(_, words)| words.contains("usable"));
            assert_eq!((used, detection.is_usable()), (!is_conflict, !is_conflict), "{what} at {ms}");
        }
    }
}

/// Breaks: an address that has become free is used, and two hosts that insist do not flood the LAN (RFC 5227
/// §2.1.1).
#[test]
fn an_address_in_conflict_is_tried_again() {
    let mut detection = detection(1);
    let mut now = Instant::ZERO;
    let mut waits = Vec::new();
    for _ in 0..13 {
        let done = run(&mut detection, now + Span::from_secs(1));
        assert!(done.len() <= 2, "{done:?}");
        let next = detection.deadline().unwrap();
        detection.on_arp(next, &reply_of_other(THEIRS), is_ours);
        detection.on_arp(next, &reply_of_other(THEIRS), is_ours);
        assert_eq!(actions(&mut detection), "conflict 11", "a conflict counts once");
        now = detection.deadline().unwrap();
        waits.push(now.since(next));
        detection.on_deadline(now);
    }
    assert_eq!(waits[..9], [DEFEND_INTERVAL; 9]);
    assert_eq!(waits[9..], [RATE_LIMIT_INTERVAL; 4]);
    let done = run(&mut detection, now + Span::from_secs(20));
    assert_eq!(done[3].1, "usable, announce", "the address is free now");
}

/// Breaks: an address is defended at most once in ten seconds, and one conflict does not end its use (RFC
/// 5227 §2.4 b).
#[test]
fn an_address_in_use_is_defended_once_in_ten_seconds() {
    let (mut detection, start) = in_use(3);
    // (milliseconds, actions)
    for (ms, expected) in [
        (0, "conflict 11, announce"),
        (10_001, "conflict 11, announce"),
        (30_000, "conflict 11, announce"),
        (40_000, "conflict 11, abandoned"),
        (40_001, ""),
    ] {
        detection.on_arp(after(start, ms), &Arp::request(OURS, ADDRESS, ADDRESS), is_ours);
        detection.on_arp(after(start, ms), &Arp::request(OUR_SECOND, ADDRESS, OTHER), is_ours);
        detection.on_arp(after(start, ms), &Arp::request(THEIRS, Ipv4Addr::UNSPECIFIED, ADDRESS), is_ours);
        assert_eq!(actions(&mut detection), "", "own packets, and probes, which the stack answers");
        detection.on_arp(after(start, ms), &reply_of_other(THEIRS), is_ours);
        assert_eq!(actions(&mut detection), expected, "at {ms} ms");
        assert_eq!(detection.is_usable(), ms < 40_000);
    }
    assert_eq!(detection.deadline(), Some(after(start, 40_000) + RATE_LIMIT_INTERVAL));
    let done = run(&mut detection, after(start, 40_000) + RATE_LIMIT_INTERVAL + Span::from_secs(20));
    let words: Vec<_> = done.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(words, ["", "probe", "probe", "probe", "usable, announce", "announce"]);
    // An earlier defence is forgotten.
    detection.on_arp(after(start, 200_000), &reply_of_other(THEIRS), is_ours);
    assert_eq!(actions(&mut detection), "conflict 11, announce");
}

/// Breaks: after a lost carrier, the host probes before it uses an address that another may have taken.
#[test]
fn it_probes_again_after_a_lost_carrier() {
    let (mut detection, start) = in_use(3);
    detection.restart(after(start, 60_000));
    assert!(!detection.is_usable());
    let done = run(&mut detection, after(start, 120_000));
    assert_eq!(done.iter().filter(|(_, words)| words == "probe").count(), 3);
    assert!(detection.is_usable());
}
