#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use farpace_wire::NicKind;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const G: NicKind = NicKind(3);

const fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n])
}
fn ours() -> BTreeSet<MacAddr> {
    BTreeSet::from([mac(1), mac(2)])
}
fn ip(n: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0000 + n).into()
}
fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}
fn list(owner: u32, generation: u16, nics: &[u8]) -> Extension {
    let nics: Vec<_> = nics.iter().map(|n| (mac(*n), G)).collect();
    Extension::new(ip(owner), &nics, NicFlags::ANSWERS_PROBES, generation)
}

/// A cache, and its changes as text: `11+12` are NICs, `-11` is an ordinary neighbour.
#[derive(Default)]
struct CacheHarness(Cache);

impl CacheHarness {
    /// An announcement of a list.
    fn receive_list(&mut self, now: Instant, list: Extension) -> String {
        let from = (list.owner, list.senders[0].0);
        self.0.on_message(now, from, false, Ok(Some(list)), &ours());
        self.learned()
    }
    /// A message without a list.
    fn receive_ordinary(&mut self, now: Instant, address: u32, nic: u8) -> String {
        self.0.on_message(now, (ip(address), mac(nic)), false, Ok(None), &ours());
        self.learned()
    }
    fn learned(&mut self) -> String {
        let mut words = Vec::new();
        while let Some(learned) = self.0.poll() {
            words.push(match learned {
                Learned::Ordinary { first } => format!("-{:x}", first.0[5]),
                Learned::Extended { first, replaces, nics, .. } => {
                    assert_eq!(first, nics[0].0);
                    let nics: Vec<_> = nics.iter().map(|(mac, _)| format!("{:x}", mac.0[5])).collect();
                    let was = replaces.map_or(String::new(), |mac| format!(" for {:x}", mac.0[5]));
                    nics.join("+") + &was
                }
            });
        }
        self.check();
        words.join(", ")
    }
    /// Checks the invariants.
    fn check(&self) {
        let cache = &self.0;
        assert!(cache.addresses.len() <= MAX_NEIGHBOURS && cache.requested.len() <= MAX_NEIGHBOURS);
        assert!(cache.pending_lists.len() <= MAX_PENDING_LISTS);
        let nics: usize = cache.hosts.values().map(|host| host.nics.len()).sum();
        assert_eq!(nics, cache.owners.len(), "each NIC has one owner");
        for (id, host) in &cache.hosts {
            assert!(cache.has_address(*id));
            for (mac, _) in &host.nics {
                assert_eq!(cache.owners.get(mac), Some(id));
                assert!(!ours().contains(mac));
            }
        }
        assert!(cache.addresses.values().all(|k| k.host.is_none_or(|id| cache.hosts.contains_key(&id))));
        assert!(cache.addresses.is_empty() || cache.sweep_at.is_some());
    }
    fn refused(&self, why: ArpRefusal) -> u64 {
        self.0.stats().refused(why)
    }
}

/// A bench whose cache has 10.0.0.5 with the NICs 11 and 12, in generation 100.
fn harness_with_host() -> CacheHarness {
    let mut harness = CacheHarness::default();
    harness.0.on_request(at(0), ip(5));
    assert_eq!(harness.receive_list(at(1), list(5, 100, &[0x11, 0x12])), "11+12");
    harness
}

/// Breaks: lists are accepted from known and requested neighbours, and from no other.
#[test]
fn lists_need_a_request_or_a_known_neighbour() {
    let mut harness = CacheHarness::default();
    assert_eq!(harness.receive_list(at(0), list(5, 1, &[0x11, 0x12])), "", "not requested");
    assert_eq!(harness.refused(ArpRefusal::Unsolicited), 1);
    harness.0.on_request(at(0), ip(5));
    assert_eq!(harness.receive_list(at(4), list(5, 1, &[0x11, 0x12])), "", "long after the request");
    harness.0.on_request(at(4), ip(5));
    assert_eq!(harness.receive_list(at(5), list(6, 1, &[0x11, 0x12])), "", "another address answers");
    assert_eq!(harness.receive_list(at(5), list(5, 1, &[0x11, 0x12])), "11+12");
    assert_eq!(harness.receive_list(at(500), list(5, 1, &[0x11, 0x12])), "", "nothing new");
    assert_eq!(
        harness.receive_list(at(500), list(5, 2, &[0x11])),
        "11",
        "a known neighbour needs no request"
    );
    assert_eq!(harness.refused(ArpRefusal::Unsolicited), 3);

    // An ordinary answer makes a neighbour known too.
    harness.0.on_request(at(500), ip(7));
    assert_eq!(harness.receive_ordinary(at(500), 7, 0x31), "");
    assert_eq!(harness.receive_ordinary(at(500), 8, 0x41), "", "not requested");
    assert_eq!(harness.receive_list(at(900), list(7, 1, &[0x31, 0x32])), "31+32");
    assert_eq!(harness.receive_list(at(900), list(8, 1, &[0x41, 0x42])), "");
}

/// Breaks: a server, which answers and does not ask, learns the NICs of its clients.
#[test]
fn whoever_asks_and_is_answered_becomes_known() {
    let request_and_receive = |harness: &mut CacheHarness, now, list: Extension| {
        let from = (list.owner, list.senders[0].0);
        harness.0.on_message(now, from, true, Ok(Some(list)), &ours());
        harness.learned()
    };
    let mut harness = CacheHarness::default();
    // The first request is for another host, the second for this one: the stack answers.
    assert_eq!(request_and_receive(&mut harness, at(0), list(5, 1, &[0x11, 0x12])), "");
    assert_eq!(request_and_receive(&mut harness, at(0), list(6, 1, &[0x21, 0x22])), "");
    harness.0.on_answer(at(0), ip(6), mac(0x21), &ours());
    assert_eq!(harness.learned(), "21+22");
    assert!(harness.0.host(ip(5)).is_none());
    assert_eq!(harness.refused(ArpRefusal::Unsolicited), 0, "requests for others are no error");
    // A list waits for the answer for a limited time, and the number of waiting lists is limited.
    harness.0.on_answer(at(4), ip(5), mac(0x11), &ours());
    assert_eq!(harness.learned(), "");
    for n in 0..MAX_PENDING_LISTS as u8 + 1 {
        request_and_receive(&mut harness, at(5), list(100 + u32::from(n), 1, &[0x80 + n]));
    }
    harness.0.on_answer(at(5), ip(100), mac(0x80), &ours());
    harness.0.on_answer(at(5), ip(101), mac(0x81), &ours());
    assert_eq!(harness.learned(), "81");
    // A waiting list is judged like any other.
    request_and_receive(&mut harness, at(6), list(200, 1, &[0x71, 0x21]));
    harness.0.on_answer(at(6), ip(200), mac(0x71), &ours());
    assert_eq!((harness.learned().as_str(), harness.refused(ArpRefusal::NicOfOther)), ("", 1));
}

/// Breaks: a false list does not divert frames, neither to NICs of others nor to those of this host.
#[test]
fn hostile_lists_change_nothing() {
    let malformed = |why| ArpRefusal::Malformed(why);
    let spoofs: [(&str, Result<Extension, ExtensionError>, ArpRefusal); 9] = [
        ("our first NIC", Ok(list(5, 101, &[0x11, 1])), ArpRefusal::OwnNic),
        ("our other NIC", Ok(list(5, 101, &[0x11, 0x12, 2])), ArpRefusal::OwnNic),
        ("another neighbour's NIC", Ok(list(5, 101, &[0x11, 0x22])), ArpRefusal::NicOfOther),
        ("an ordinary neighbour's NIC", Ok(list(5, 101, &[0x11, 0x31])), ArpRefusal::NicOfOther),
        ("the same generation, another list", Ok(list(5, 100, &[0x11, 0x13])), ArpRefusal::SameGeneration),
        ("an older generation", Ok(list(5, 99, &[0x11])), ArpRefusal::OlderGeneration),
        ("half of the number space", Ok(list(5, 100 + 0x8000, &[0x11])), ArpRefusal::OlderGeneration),
        ("wrong CRC", Err(ExtensionError::Checksum), malformed(ExtensionError::Checksum)),
        ("200 NICs", Err(ExtensionError::TooManyNics), malformed(ExtensionError::TooManyNics)),
    ];
    for (what, list, refusal) in spoofs {
        let mut harness = harness_with_host();
        for address in [6, 7] {
            harness.0.on_request(at(1), ip(address));
        }
        harness.receive_list(at(1), self::list(6, 1, &[0x21, 0x22]));
        harness.receive_ordinary(at(1), 7, 0x31);
        harness.0.on_message(at(2), (ip(5), mac(0x11)), false, list.map(Some), &ours());
        assert_eq!(harness.learned(), "", "{what}");
        assert_eq!(harness.refused(refusal), 1, "{what}");
        assert_eq!(harness.0.stats().refused.len(), 1, "{what}");
        assert_eq!(harness.0.host(ip(5)).unwrap().nics, self::list(5, 100, &[0x11, 0x12]).senders, "{what}");
    }
}

/// Breaks: a delayed list does not replace a newer one, and newer ones are accepted when the number wraps
/// around.
#[test]
fn generations_are_serial_numbers() {
    for (known, new, is_newer) in [
        (0, 1, true),
        (100, 0x7fff + 100, true),
        (100, 0x8000 + 100, false),
        (0xffff, 0, true),
        (0, 0xffff, false),
        (0x8000, 0, false),
        (1, 0, false),
    ] {
        let mut harness = CacheHarness::default();
        harness.0.on_request(at(0), ip(5));
        harness.receive_list(at(0), list(5, known, &[0x11, 0x12]));
        let learned = harness.receive_list(at(1), list(5, new, &[0x11]));
        assert_eq!(learned, if is_newer { "11" } else { "" }, "{known} then {new}");
        assert_eq!(harness.refused(ArpRefusal::OlderGeneration), u64::from(!is_newer));
    }
}

/// Breaks: a list is removed when the host is replaced or restarts without it, so that no frames go to absent
/// NICs.
#[test]
fn lists_are_evicted() {
    // A message without a list from the first NIC, from the second, and from another host.
    for nic in [0x11, 0x12, 0x41] {
        let mut harness = harness_with_host();
        assert_eq!(harness.receive_ordinary(at(2), 5, nic), "-11");
        assert_eq!(harness.0.stats().evicted, 1);
        assert_eq!(harness.receive_ordinary(at(2), 5, nic), "", "reported once");
        // Then any generation is accepted.
        assert_eq!(harness.receive_list(at(3), list(5, 7, &[0x11, 0x12])), "11+12");
    }
    // Another host with a list, and one with a list that is refused.
    let mut harness = harness_with_host();
    assert_eq!(harness.receive_list(at(2), list(5, 7, &[0x41, 0x42])), "-11, 41+42");
    let mut harness = harness_with_host();
    assert_eq!(harness.receive_list(at(2), list(5, 7, &[0x41, 2])), "-11");
    let mut harness = harness_with_host();
    harness.0.on_message(at(2), (ip(5), mac(0x41)), false, Err(ExtensionError::Checksum), &ours());
    assert_eq!(harness.learned(), "-11");
    // A message for another address has no effect.
    let mut harness = harness_with_host();
    assert_eq!(harness.receive_ordinary(at(2), 6, 0x11), "");
    assert_eq!(harness.receive_ordinary(at(2), 6, 0x41), "");
}

/// Breaks: a neighbour whose first NIC fails or returns keeps its other paths and its identity.
#[test]
fn the_first_nic_may_change() {
    let mut harness = harness_with_host();
    harness.0.on_request(at(1), ip(6));
    assert_eq!(harness.receive_list(at(1), list(6, 100, &[0x11, 0x12])), "", "its other address: no change");
    assert_eq!(harness.receive_list(at(2), list(5, 101, &[0x12])), "12 for 11");
    assert_eq!(harness.0.host(ip(6)), harness.0.host(ip(5)), "one host");
    assert_eq!(harness.receive_list(at(2), list(6, 101, &[0x12])), "");
    assert_eq!(harness.receive_list(at(3), list(5, 102, &[0x11, 0x12])), "11+12 for 12");
    assert_eq!(harness.receive_list(at(3), list(6, 102, &[0x11, 0x12])), "");
    // One of its addresses moves to another host.
    assert_eq!(harness.receive_ordinary(at(4), 6, 0x41), "");
    assert_eq!(harness.receive_ordinary(at(5), 5, 0x41), "-11");
    assert_eq!(harness.0.stats().refused, BTreeMap::new());
}

/// Breaks: silent neighbours are removed, and others stay.
#[test]
fn silent_neighbours_expire() {
    let mut harness = harness_with_host();
    harness.0.on_request(at(1), ip(6));
    harness.receive_ordinary(at(1), 6, 0x31);
    let end = at(1) + NEIGHBOUR_TIMEOUT;
    assert_eq!(harness.0.deadline(), Some(end));
    harness.receive_list(at(100), list(5, 100, &[0x11, 0x12]));
    harness.0.on_deadline(end);
    assert_eq!((harness.learned().as_str(), harness.0.stats().expired), ("", 1), "the ordinary one");
    assert_eq!(harness.0.deadline(), Some(at(100) + NEIGHBOUR_TIMEOUT));
    harness.0.confirm(at(200), mac(0x12));
    harness.0.on_deadline(at(100) + NEIGHBOUR_TIMEOUT);
    assert_eq!(harness.learned(), "");
    harness.0.on_deadline(at(200) + NEIGHBOUR_TIMEOUT);
    assert_eq!((harness.learned().as_str(), harness.0.deadline()), ("-11", None));
    assert_eq!(harness.receive_list(end, list(5, 99, &[0x11, 0x12])), "", "it is unknown now");
}

/// Breaks: requests from many invented neighbours use bounded memory and evict no neighbour with a list.
#[test]
fn the_cache_is_bounded() {
    let mut harness = harness_with_host();
    for n in 0..3 * MAX_NEIGHBOURS as u32 {
        harness.0.on_answer(at(2) + Span::from_millis(n.into()), ip(1000 + n), mac(0x90), &ours());
    }
    harness.check();
    assert!(harness.0.host(ip(5)).is_some(), "neighbours without lists are evicted first");
    assert_eq!(harness.0.neighbours().count(), MAX_NEIGHBOURS);
    assert_eq!(
        harness.0.neighbours().last().map(|(address, ..)| address),
        Some(ip(999 + 3 * MAX_NEIGHBOURS as u32))
    );
    assert_eq!(harness.0.stats().replaced, 2 * MAX_NEIGHBOURS as u64 + 1);
    // If all have lists, the one with the oldest message is evicted.
    for n in 0..MAX_NEIGHBOURS as u32 {
        let nic = MacAddr([2, 1, 0, 0, (n >> 8) as u8, n as u8]);
        harness.0.on_request(at(100 + u64::from(n)), ip(1 << 20 | n));
        let list = Extension::new(ip(1 << 20 | n), &[(nic, G)], NicFlags::default(), 1);
        harness.0.on_message(at(100 + u64::from(n)), (list.owner, nic), false, Ok(Some(list)), &ours());
    }
    let evicted: Vec<_> =
        std::iter::from_fn(|| harness.0.poll()).filter(|l| matches!(l, Learned::Ordinary { .. })).collect();
    assert_eq!(evicted, [Learned::Ordinary { first: mac(0x11) }]);
    harness.check();
    // The local stack sends requests for many addresses.
    for n in 0..3 * MAX_NEIGHBOURS as u32 {
        harness.0.on_request(at(5000), ip(n));
    }
    harness.check();
}

proptest! {
    /// Breaks: in any order of messages, each NIC has exactly one owner, which is known.
    #[test]
    fn invariants_hold_for_all_messages(
        messages in proptest::collection::vec((0u8..6, 0u32..6, 0u16..5, proptest::collection::vec(0u8..12, 1..4)), 1..60),
    ) {
        let mut harness = CacheHarness::default();
        for (step, (what, address, generation, mut nics)) in messages.into_iter().enumerate() {
            let now = at(step as u64 * 40);
            let mut seen = Vec::new();
            nics.retain(|nic| !seen.contains(nic) && { seen.push(*nic); true });
            let list = list(address, generation, &nics);
            match what {
                0 => harness.0.on_request(now, ip(address)),
                1 => harness.0.on_answer(now, ip(address), mac(nics[0]), &ours()),
                2 => { harness.receive_ordinary(now, address, nics[0]); }
                3 => harness.0.on_deadline(now),
                _ => {
                    harness.0.on_request(now, ip(address));
                    harness.0.on_message(now, (list.owner, mac(nics[0])), what == 4, Ok(Some(list)), &ours());
                }
            }
            harness.learned();
        }
    }
}
