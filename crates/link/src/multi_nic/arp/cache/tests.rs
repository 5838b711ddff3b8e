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
fn list(owner: u32, generation: u16, cards: &[u8]) -> Extension {
    let cards: Vec<_> = cards.iter().map(|n| (mac(*n), G)).collect();
    Extension::new(ip(owner), &cards, NicFlags::ANSWERS_PROBES, generation)
}

/// A cache, and its changes as text: `11+12` are NICs, `-11` is an ordinary neighbour.
#[derive(Default)]
struct Bench(Cache);

impl Bench {
    /// An announcement of a list.
    fn tell(&mut self, now: Instant, list: Extension) -> String {
        let from = (list.owner, list.senders[0].0);
        self.0.hear(now, from, false, Ok(Some(list)), &ours());
        self.learned()
    }
    /// A message without a list.
    fn plain(&mut self, now: Instant, address: u32, card: u8) -> String {
        self.0.hear(now, (ip(address), mac(card)), false, Ok(None), &ours());
        self.learned()
    }
    fn learned(&mut self) -> String {
        let mut words = Vec::new();
        while let Some(learned) = self.0.poll() {
            words.push(match learned {
                Learned::Ordinary { first } => format!("-{:x}", first.0[5]),
                Learned::Extended { first, replaces, cards, .. } => {
                    assert_eq!(first, cards[0].0);
                    let cards: Vec<_> = cards.iter().map(|(mac, _)| format!("{:x}", mac.0[5])).collect();
                    let was = replaces.map_or(String::new(), |mac| format!(" for {:x}", mac.0[5]));
                    cards.join("+") + &was
                }
            });
        }
        self.check();
        words.join(", ")
    }
    /// Checks the invariants.
    fn check(&self) {
        let cache = &self.0;
        assert!(cache.addresses.len() <= MAX_NEIGHBOURS && cache.asked.len() <= MAX_NEIGHBOURS);
        assert!(cache.set_aside.len() <= MAX_SET_ASIDE);
        let cards: usize = cache.machines.values().map(|machine| machine.cards.len()).sum();
        assert_eq!(cards, cache.owners.len(), "no card is two machines'");
        for (id, machine) in &cache.machines {
            assert!(cache.has_address(*id));
            for (mac, _) in &machine.cards {
                assert_eq!(cache.owners.get(mac), Some(id));
                assert!(!ours().contains(mac));
            }
        }
        assert!(
            cache.addresses.values().all(|k| k.machine.is_none_or(|id| cache.machines.contains_key(&id)))
        );
        assert!(cache.addresses.is_empty() || cache.sweep_at.is_some());
    }
    fn refused(&self, why: ArpRefusal) -> u64 {
        self.0.stats().refused(why)
    }
}

/// A bench whose cache has 10.0.0.5 with the NICs 11 and 12, in generation 100.
fn knowing() -> Bench {
    let mut bench = Bench::default();
    bench.0.ask(at(0), ip(5));
    assert_eq!(bench.tell(at(1), list(5, 100, &[0x11, 0x12])), "11+12");
    bench
}

/// Breaks: lists are accepted from known and requested neighbours, and from no other.
#[test]
fn who_is_believed() {
    let mut bench = Bench::default();
    assert_eq!(bench.tell(at(0), list(5, 1, &[0x11, 0x12])), "", "nobody asked");
    assert_eq!(bench.refused(ArpRefusal::Unsolicited), 1);
    bench.0.ask(at(0), ip(5));
    assert_eq!(bench.tell(at(4), list(5, 1, &[0x11, 0x12])), "", "long after the question");
    bench.0.ask(at(4), ip(5));
    assert_eq!(bench.tell(at(5), list(6, 1, &[0x11, 0x12])), "", "another one answers");
    assert_eq!(bench.tell(at(5), list(5, 1, &[0x11, 0x12])), "11+12");
    assert_eq!(bench.tell(at(500), list(5, 1, &[0x11, 0x12])), "", "nothing new");
    assert_eq!(bench.tell(at(500), list(5, 2, &[0x11])), "11", "it is known, and need not be asked");
    assert_eq!(bench.refused(ArpRefusal::Unsolicited), 3);

    // An ordinary answer makes a neighbour known too.
    bench.0.ask(at(500), ip(7));
    assert_eq!(bench.plain(at(500), 7, 0x31), "");
    assert_eq!(bench.plain(at(500), 8, 0x41), "", "that one was not asked");
    assert_eq!(bench.tell(at(900), list(7, 1, &[0x31, 0x32])), "31+32");
    assert_eq!(bench.tell(at(900), list(8, 1, &[0x41, 0x42])), "");
}

/// Breaks: a server, which answers and does not ask, learns the NICs of its clients.
#[test]
fn whoever_asks_and_is_answered_becomes_known() {
    let ask = |bench: &mut Bench, now, list: Extension| {
        let from = (list.owner, list.senders[0].0);
        bench.0.hear(now, from, true, Ok(Some(list)), &ours());
        bench.learned()
    };
    let mut bench = Bench::default();
    // The first asks somebody else, the second us: our stack answers.
    assert_eq!(ask(&mut bench, at(0), list(5, 1, &[0x11, 0x12])), "");
    assert_eq!(ask(&mut bench, at(0), list(6, 1, &[0x21, 0x22])), "");
    bench.0.answer(at(0), ip(6), mac(0x21), &ours());
    assert_eq!(bench.learned(), "21+22");
    assert!(bench.0.machine(ip(5)).is_none());
    assert_eq!(bench.refused(ArpRefusal::Unsolicited), 0, "asking others is no offence");
    // It waits for the answer for a while only, and for a few only.
    bench.0.answer(at(4), ip(5), mac(0x11), &ours());
    assert_eq!(bench.learned(), "");
    for n in 0..MAX_SET_ASIDE as u8 + 1 {
        ask(&mut bench, at(5), list(100 + u32::from(n), 1, &[0x80 + n]));
    }
    bench.0.answer(at(5), ip(100), mac(0x80), &ours());
    bench.0.answer(at(5), ip(101), mac(0x81), &ours());
    assert_eq!(bench.learned(), "81");
    // What is set aside is judged as any other.
    ask(&mut bench, at(6), list(200, 1, &[0x71, 0x21]));
    bench.0.answer(at(6), ip(200), mac(0x71), &ours());
    assert_eq!((bench.learned().as_str(), bench.refused(ArpRefusal::TakenCard)), ("", 1));
}

/// Breaks: a false list does not divert frames, neither to NICs of others nor to those of this host.
#[test]
fn hostile_lists_change_nothing() {
    let malformed = |why| ArpRefusal::Malformed(why);
    let spoofs: [(&str, Result<Extension, ExtensionError>, ArpRefusal); 9] = [
        ("our first card", Ok(list(5, 101, &[0x11, 1])), ArpRefusal::OurCard),
        ("our other card", Ok(list(5, 101, &[0x11, 0x12, 2])), ArpRefusal::OurCard),
        ("another neighbour's card", Ok(list(5, 101, &[0x11, 0x22])), ArpRefusal::TakenCard),
        ("an ordinary neighbour's card", Ok(list(5, 101, &[0x11, 0x31])), ArpRefusal::TakenCard),
        ("a generation again, otherwise", Ok(list(5, 100, &[0x11, 0x13])), ArpRefusal::SameGeneration),
        ("an older generation", Ok(list(5, 99, &[0x11])), ArpRefusal::OlderGeneration),
        ("half around", Ok(list(5, 100 + 0x8000, &[0x11])), ArpRefusal::OlderGeneration),
        ("wrong CRC", Err(ExtensionError::Checksum), malformed(ExtensionError::Checksum)),
        ("200 cards", Err(ExtensionError::TooManyCards), malformed(ExtensionError::TooManyCards)),
    ];
    for (what, list, refusal) in spoofs {
        let mut bench = knowing();
        for address in [6, 7] {
            bench.0.ask(at(1), ip(address));
        }
        bench.tell(at(1), self::list(6, 1, &[0x21, 0x22]));
        bench.plain(at(1), 7, 0x31);
        bench.0.hear(at(2), (ip(5), mac(0x11)), false, list.map(Some), &ours());
        assert_eq!(bench.learned(), "", "{what}");
        assert_eq!(bench.refused(refusal), 1, "{what}");
        assert_eq!(bench.0.stats().refused.len(), 1, "{what}");
        assert_eq!(
            bench.0.machine(ip(5)).unwrap().cards,
            self::list(5, 100, &[0x11, 0x12]).senders,
            "{what}"
        );
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
        let mut bench = Bench::default();
        bench.0.ask(at(0), ip(5));
        bench.tell(at(0), list(5, known, &[0x11, 0x12]));
        let learned = bench.tell(at(1), list(5, new, &[0x11]));
        assert_eq!(learned, if is_newer { "11" } else { "" }, "{known} then {new}");
        assert_eq!(bench.refused(ArpRefusal::OlderGeneration), u64::from(!is_newer));
    }
}

/// Breaks: a list is removed when the host is replaced or restarts without it, so that no frames go to absent
/// NICs.
#[test]
fn what_evicts_a_list() {
    // The same card without a list, the other card, and another machine's.
    for card in [0x11, 0x12, 0x41] {
        let mut bench = knowing();
        assert_eq!(bench.plain(at(2), 5, card), "-11");
        assert_eq!(bench.0.stats().evicted, 1);
        assert_eq!(bench.plain(at(2), 5, card), "", "once is enough");
        // Then any generation will do.
        assert_eq!(bench.tell(at(3), list(5, 7, &[0x11, 0x12])), "11+12");
    }
    // Another host with a list, and one with a list that is refused.
    let mut bench = knowing();
    assert_eq!(bench.tell(at(2), list(5, 7, &[0x41, 0x42])), "-11, 41+42");
    let mut bench = knowing();
    assert_eq!(bench.tell(at(2), list(5, 7, &[0x41, 2])), "-11");
    let mut bench = knowing();
    bench.0.hear(at(2), (ip(5), mac(0x41)), false, Err(ExtensionError::Checksum), &ours());
    assert_eq!(bench.learned(), "-11");
    // What somebody says of another address does not.
    let mut bench = knowing();
    assert_eq!(bench.plain(at(2), 6, 0x11), "");
    assert_eq!(bench.plain(at(2), 6, 0x41), "");
}

/// Breaks: a neighbour whose first NIC fails or returns keeps its other paths and its identity.
#[test]
fn the_first_card_may_change() {
    let mut bench = knowing();
    bench.0.ask(at(1), ip(6));
    assert_eq!(bench.tell(at(1), list(6, 100, &[0x11, 0x12])), "", "its other address: nothing new");
    assert_eq!(bench.tell(at(2), list(5, 101, &[0x12])), "12 for 11");
    assert_eq!(bench.0.machine(ip(6)), bench.0.machine(ip(5)), "one machine");
    assert_eq!(bench.tell(at(2), list(6, 101, &[0x12])), "");
    assert_eq!(bench.tell(at(3), list(5, 102, &[0x11, 0x12])), "11+12 for 12");
    assert_eq!(bench.tell(at(3), list(6, 102, &[0x11, 0x12])), "");
    // One of its addresses moves to another machine.
    assert_eq!(bench.plain(at(4), 6, 0x41), "");
    assert_eq!(bench.plain(at(5), 5, 0x41), "-11");
    assert_eq!(bench.0.stats().refused, BTreeMap::new());
}

/// Breaks: silent neighbours are removed, and others stay.
#[test]
fn silence_ends_it() {
    let mut bench = knowing();
    bench.0.ask(at(1), ip(6));
    bench.plain(at(1), 6, 0x31);
    let end = at(1) + NEIGHBOUR_TIME;
    assert_eq!(bench.0.deadline(), Some(end));
    bench.tell(at(100), list(5, 100, &[0x11, 0x12]));
    bench.0.on_deadline(end);
    assert_eq!((bench.learned().as_str(), bench.0.stats().expired), ("", 1), "the ordinary one");
    assert_eq!(bench.0.deadline(), Some(at(100) + NEIGHBOUR_TIME));
    bench.0.confirm(at(200), mac(0x12));
    bench.0.on_deadline(at(100) + NEIGHBOUR_TIME);
    assert_eq!(bench.learned(), "");
    bench.0.on_deadline(at(200) + NEIGHBOUR_TIME);
    assert_eq!((bench.learned().as_str(), bench.0.deadline()), ("-11", None));
    assert_eq!(bench.tell(end, list(5, 99, &[0x11, 0x12])), "", "it is a stranger now");
}

/// Breaks: requests from many invented neighbours use bounded memory and evict no neighbour with a list.
#[test]
fn room_is_made() {
    let mut bench = knowing();
    for n in 0..3 * MAX_NEIGHBOURS as u32 {
        bench.0.answer(at(2) + Span::from_millis(n.into()), ip(1000 + n), mac(0x90), &ours());
    }
    bench.check();
    assert!(bench.0.machine(ip(5)).is_some(), "ordinary ones go first");
    assert_eq!(bench.0.neighbours().count(), MAX_NEIGHBOURS);
    assert_eq!(
        bench.0.neighbours().last().map(|(address, ..)| address),
        Some(ip(999 + 3 * MAX_NEIGHBOURS as u32))
    );
    assert_eq!(bench.0.stats().forgotten, 2 * MAX_NEIGHBOURS as u64 + 1);
    // When all have lists, the one not heard of for the longest time.
    for n in 0..MAX_NEIGHBOURS as u32 {
        let card = MacAddr([2, 1, 0, 0, (n >> 8) as u8, n as u8]);
        bench.0.ask(at(100 + u64::from(n)), ip(1 << 20 | n));
        let list = Extension::new(ip(1 << 20 | n), &[(card, G)], NicFlags::default(), 1);
        bench.0.hear(at(100 + u64::from(n)), (list.owner, card), false, Ok(Some(list)), &ours());
    }
    let gone: Vec<_> =
        std::iter::from_fn(|| bench.0.poll()).filter(|l| matches!(l, Learned::Ordinary { .. })).collect();
    assert_eq!(gone, [Learned::Ordinary { first: mac(0x11) }]);
    bench.check();
    // A stack that asks for everybody.
    for n in 0..3 * MAX_NEIGHBOURS as u32 {
        bench.0.ask(at(5000), ip(n));
    }
    bench.check();
}

proptest! {
    /// Breaks: in any order of messages, each NIC has exactly one owner, which is known.
    #[test]
    fn any_messages_keep_the_books(
        messages in proptest::collection::vec((0u8..6, 0u32..6, 0u16..5, proptest::collection::vec(0u8..12, 1..4)), 1..60),
    ) {
        let mut bench = Bench::default();
        for (step, (what, address, generation, mut cards)) in messages.into_iter().enumerate() {
            let now = at(step as u64 * 40);
            let mut seen = Vec::new();
            cards.retain(|card| !seen.contains(card) && { seen.push(*card); true });
            let list = list(address, generation, &cards);
            match what {
                0 => bench.0.ask(now, ip(address)),
                1 => bench.0.answer(now, ip(address), mac(cards[0]), &ours()),
                2 => { bench.plain(now, address, cards[0]); }
                3 => bench.0.on_deadline(now),
                _ => {
                    bench.0.ask(now, ip(address));
                    bench.0.hear(now, (list.owner, mac(cards[0])), what == 4, Ok(Some(list)), &ours());
                }
            }
            bench.learned();
        }
    }
}
