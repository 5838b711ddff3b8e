use super::*;
use farpace_wire::EtherType;
use proptest::collection::vec;
use proptest::prelude::*;

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn ip(n: u16) -> IpAddr {
    let [a, b] = n.to_be_bytes();
    [10, 1, a, b].into()
}

/// A packet that can be told from others.
fn packet(n: usize) -> Packet {
    Packet::from_link(A, MacAddr::default(), EtherType(0x1234), vec![0; n].into())
}

/// What is to be done, in words.
fn todo(cache: &mut Neighbours) -> Vec<String> {
    let mut list = Vec::new();
    while let Some(action) = cache.poll() {
        list.push(match action {
            NeighbourAction::Ask { target, to: None } => format!("ask all for {target}"),
            NeighbourAction::Ask { target, to: Some(to) } => format!("ask {to} for {target}"),
            NeighbourAction::Send { packet, to } => format!("send {} to {to}", packet.payload().len()),
            NeighbourAction::Failed { target, packet } => {
                format!("fail {} to {target}", packet.payload().len())
            }
        });
    }
    list
}

fn answered() -> NeighbourFact {
    NeighbourFact::Answered { solicited: true, overrides: true }
}

/// Breaks: a first packet is lost, or overtaken by later ones, while its neighbour is asked for.
#[test]
fn packets_wait_for_the_answer() {
    let mut cache = Neighbours::default();
    assert!(matches!(cache.resolve(at(0), ip(1), packet(1)), Resolved::Waits));
    assert!(matches!(cache.resolve(at(1), ip(1), packet(2)), Resolved::Waits));
    assert_eq!((cache.held(), cache.lookup(at(1), ip(1))), (2, None));
    assert_eq!(todo(&mut cache), ["ask all for 10.1.0.1"]);
    cache.on_heard(at(5), ip(1), B, answered());
    assert_eq!(cache.held(), 2, "until they are polled");
    assert_eq!(todo(&mut cache), ["send 1 to 02:00:00:00:00:02", "send 2 to 02:00:00:00:00:02"]);
    assert_eq!((cache.held(), cache.deadline()), (0, None));
    assert!(matches!(cache.resolve(at(6), ip(1), packet(3)), Resolved::Known(B, _)));
    assert_eq!(cache.state(ip(1)), Some(NeighbourState::Reachable));
}

/// Breaks: a silent neighbour is asked for ever, or packets for it stay in memory; or one that comes up later
/// is never found.
#[test]
fn three_questions_then_it_fails() {
    let mut cache = Neighbours::default();
    cache.resolve(at(0), ip(1), packet(1));
    assert_eq!(todo(&mut cache), ["ask all for 10.1.0.1"]);
    for second in 1..=2 {
        assert_eq!(cache.deadline(), Some(at(second * 1000)));
        cache.on_deadline(at(second * 1000));
        assert_eq!(todo(&mut cache), ["ask all for 10.1.0.1"]);
    }
    cache.on_deadline(at(3000));
    assert_eq!(todo(&mut cache), ["fail 1 to 10.1.0.1"]);
    assert_eq!((cache.held(), cache.deadline()), (0, None));
    assert!(matches!(cache.resolve(at(5999), ip(1), packet(2)), Resolved::Failed(_)));
    assert!(matches!(cache.resolve(at(6000), ip(1), packet(3)), Resolved::Waits));
    assert_eq!(todo(&mut cache), ["ask all for 10.1.0.1"]);
    cache.on_heard(at(6001), ip(1), B, answered());
    assert_eq!(todo(&mut cache), ["send 3 to 02:00:00:00:00:02"]);
}

/// Breaks: a neighbour that moved to other hardware or went away is sent to for ever; or one that is in use
/// is asked although TCP shows that it is there.
#[test]
fn a_stale_neighbour_is_used_and_checked() {
    let mut cache = Neighbours::default();
    cache.on_heard(at(0), ip(1), B, NeighbourFact::AskedUs);
    assert_eq!((cache.state(ip(1)), cache.deadline()), (Some(NeighbourState::Stale), None));
    assert_eq!(cache.lookup(at(0), ip(1)), Some(B));
    assert_eq!((cache.state(ip(1)), cache.deadline()), (Some(NeighbourState::Delay), Some(at(5000))));
    cache.confirm(at(4000), ip(1));
    assert_eq!((cache.state(ip(1)), cache.deadline()), (Some(NeighbourState::Reachable), None));
    assert_eq!(cache.lookup(at(33_999), ip(1)), Some(B));
    assert_eq!(cache.deadline(), None);
    assert_eq!(cache.lookup(at(34_000), ip(1)), Some(B));
    assert_eq!(cache.deadline(), Some(at(39_000)));
    for second in [39, 40, 41] {
        cache.on_deadline(at(second * 1000));
        assert_eq!(todo(&mut cache), ["ask 02:00:00:00:00:02 for 10.1.0.1"]);
        assert_eq!(cache.lookup(at(second * 1000), ip(1)), Some(B), "used until it is given up");
    }
    cache.on_deadline(at(42_000));
    assert_eq!((cache.state(ip(1)), cache.deadline(), cache.held()), (None, None, 0));

    // One that answers stays.
    cache.on_heard(at(50_000), ip(1), B, NeighbourFact::AskedUs);
    cache.lookup(at(50_000), ip(1));
    cache.on_deadline(at(55_000));
    cache.on_heard(at(55_001), ip(1), B, answered());
    assert_eq!((cache.state(ip(1)), cache.deadline()), (Some(NeighbourState::Reachable), None));
}

/// Breaks: RFC 4861 §7.2.5 and RFC 826: who may change what. Above all that nobody fills the cache with
/// answers to questions that were never asked.
#[test]
fn what_is_believed() {
    let told = |solicited, overrides| NeighbourFact::Answered { solicited, overrides };
    let known = || {
        let mut cache = Neighbours::default();
        cache.resolve(at(0), ip(1), packet(1));
        cache.on_heard(at(0), ip(1), A, answered());
        todo(&mut cache);
        cache
    };
    // (heard, from a MAC address that is another one) -> (address, state)
    for (heard, mac, expected) in [
        (told(false, false), A, (A, NeighbourState::Reachable)),
        (told(false, false), B, (A, NeighbourState::Stale)),
        (told(true, false), B, (A, NeighbourState::Stale)),
        (told(false, true), A, (A, NeighbourState::Reachable)),
        (told(false, true), B, (B, NeighbourState::Stale)),
        (told(true, true), B, (B, NeighbourState::Stale)), // It was not asked.
        (NeighbourFact::AskedUs, A, (A, NeighbourState::Reachable)),
        (NeighbourFact::AskedUs, B, (B, NeighbourState::Stale)),
    ] {
        let mut cache = known();
        cache.on_heard(at(1), ip(1), mac, heard);
        assert_eq!(cache.state(ip(1)), Some(expected.1), "{heard:?} {mac}");
        assert_eq!(cache.lookup(at(1), ip(1)), Some(expected.0), "{heard:?} {mac}");
    }
    let mut cache = Neighbours::default();
    for heard in [told(false, false), told(false, true), told(true, true)] {
        cache.on_heard(at(0), ip(2), B, heard);
    }
    for mac in [MacAddr::BROADCAST, MacAddr::default(), MacAddr([1, 0, 0x5e, 0, 0, 1])] {
        cache.on_heard(at(0), ip(2), mac, NeighbourFact::AskedUs);
    }
    cache.on_heard(at(0), [255; 4].into(), B, NeighbourFact::AskedUs);
    cache.on_heard(at(0), [224, 0, 0, 1].into(), B, NeighbourFact::AskedUs);
    assert!(cache.is_empty());
    // Entered by hand, never changed.
    cache.resolve(at(0), ip(3), packet(7));
    cache.insert_static(at(0), ip(3), A);
    cache.on_heard(at(1), ip(3), B, answered());
    cache.on_heard(at(1), ip(3), B, NeighbourFact::AskedUs);
    assert_eq!((cache.lookup(at(1), ip(3)), cache.deadline()), (Some(A), None));
    assert_eq!(todo(&mut cache), ["ask all for 10.1.0.3", "send 7 to 02:00:00:00:00:01"]);
}

/// Breaks: bounded memory. A scan through an empty network fills it, or throws out neighbours that are in
/// use.
#[test]
fn a_scan_forgets_only_itself() {
    let mut cache = Neighbours::default();
    for n in 0..10 {
        cache.on_heard(at(0), ip(n), A, NeighbourFact::AskedUs);
    }
    cache.insert_static(at(0), ip(10), A);
    let mut failed = 0;
    for n in 0..3000 {
        assert!(matches!(cache.resolve(at(1), ip(1000 + n), packet(1)), Resolved::Waits));
        failed += todo(&mut cache).iter().filter(|action| action.starts_with("fail")).count();
    }
    assert_eq!(cache.len(), MAX_NEIGHBOURS);
    assert_eq!((failed as u64, failed), (cache.forgotten(), 3000 + 11 - MAX_NEIGHBOURS));
    assert!((0..=10).all(|n| cache.lookup(at(2), ip(n)) == Some(A)));
    // Those that failed go first.
    cache.on_deadline(at(1001));
    cache.on_deadline(at(2001));
    cache.on_deadline(at(3001));
    assert!(todo(&mut cache).iter().any(|action| action.starts_with("fail")));
    cache.resolve(at(3001), ip(1), packet(1));
    cache.resolve(at(3001), ip(9999), packet(1));
    cache.resolve(at(3002), ip(9998), packet(1));
    assert_eq!(cache.state(ip(9999)), Some(NeighbourState::Incomplete), "younger than the failed ones");
    // One neighbour keeps the latest packets.
    let mut cache = Neighbours::default();
    for n in 0..MAX_WAITING {
        assert!(matches!(cache.resolve(at(0), ip(1), packet(n)), Resolved::Waits));
    }
    let Resolved::Dropped(oldest) = cache.resolve(at(0), ip(1), packet(99)) else { panic!("dropped") };
    assert_eq!((oldest.payload().len(), cache.held()), (0, MAX_WAITING as u64));
    assert!(matches!(cache.resolve(at(0), [255; 4].into(), packet(1)), Resolved::Dropped(_)));
}

#[derive(Clone, Debug)]
enum Step {
    Resolve(u16),
    Heard(u16, bool, NeighbourFact),
    Confirm(u16),
    Lookup(u16),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let heard = prop_oneof![
        Just(NeighbourFact::AskedUs),
        any::<(bool, bool)>()
            .prop_map(|(solicited, overrides)| NeighbourFact::Answered { solicited, overrides }),
    ];
    prop_oneof![
        3 => (0u16..4).prop_map(Step::Resolve),
        2 => (0u16..4, any::<bool>(), heard).prop_map(|(n, mac, heard)| Step::Heard(n, mac, heard)),
        1 => (0u16..4).prop_map(Step::Confirm),
        1 => (0u16..4).prop_map(Step::Lookup),
        3 => (0u64..8000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Breaks: a packet is lost without a trace or kept for ever, the cache wakes its host in vain for ever,
    /// or it has a timer where nothing is to be done.
    #[test]
    fn every_packet_ends_and_deadlines_pass(steps in vec(step(), 0..60)) {
        let mut cache = Neighbours::default();
        let (mut now, mut in_, mut out) = (at(0), 0u64, 0u64);
        for step in steps.into_iter().chain([Step::Wait(60_000)]) {
            match step {
                Step::Resolve(n) => {
                    in_ += 1;
                    match cache.resolve(now, ip(n), packet(1)) {
                        Resolved::Known(mac, _) => {
                            prop_assert!(mac == A || mac == B);
                            out += 1;
                        }
                        Resolved::Waits => prop_assert_eq!(cache.state(ip(n)), Some(NeighbourState::Incomplete)),
                        Resolved::Dropped(_) | Resolved::Failed(_) => out += 1,
                    }
                }
                Step::Heard(n, mac, heard) => cache.on_heard(now, ip(n), if mac { A } else { B }, heard),
                Step::Confirm(n) => cache.confirm(now, ip(n)),
                Step::Lookup(n) => { cache.lookup(now, ip(n)); }
                Step::Wait(millis) => {
                    let until = now + Span::from_millis(millis);
                    while let Some(deadline) = cache.deadline().filter(|d| *d <= until) {
                        prop_assert!(deadline > now, "a deadline of the past");
                        now = deadline;
                        cache.on_deadline(now);
                        prop_assert!(cache.deadline().is_none_or(|next| next > now));
                        while let Some(action) = cache.poll() {
                            out += u64::from(!matches!(action, NeighbourAction::Ask { .. }));
                        }
                    }
                    now = until;
                }
            }
            while let Some(action) = cache.poll() {
                out += u64::from(!matches!(action, NeighbourAction::Ask { .. }));
            }
            prop_assert_eq!(in_, out + cache.held());
            let timed = |n| matches!(cache.state(ip(n)), Some(NeighbourState::Incomplete | NeighbourState::Delay | NeighbourState::Probe));
            prop_assert_eq!(cache.deadline().is_some(), (0..4).any(timed));
        }
        prop_assert_eq!((cache.held(), cache.deadline()), (0, None), "after a minute of silence");
    }
}
