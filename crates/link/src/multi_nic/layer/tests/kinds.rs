//! Ordinary hosts beside others, and address conflict detection.

use super::bench::{Net, mac, ms};
use crate::multi_nic::MultiNicConfig;
use farpace_units::Span;
use farpace_wire::{Arp, MacAddr};

/// Breaks: traffic between an ordinary host and one with several NICs loses nothing, and uses one NIC.
#[test]
fn ordinary_hosts_and_others_talk_on_one_lan() {
    let mut net = Net::new(&[2, 3, 1], &MultiNicConfig::default());
    let pairs = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];
    for (n, (from, to)) in pairs.iter().enumerate() {
        net.request(ms(1 + n as u64), *from, *to);
    }
    let count = net.load((0, 2), 0, [ms(20), ms(60)], Span::from_micros(50));
    net.run(ms(70));
    assert_eq!(
        net.hosts[0].last_sent.keys().copied().collect::<Vec<_>>(),
        [0],
        "one NIC for an ordinary host"
    );
    for (from, to) in pairs {
        net.load((from, to), count, [ms(70), ms(120)], Span::from_micros(50));
    }
    net.run(ms(300));
    for (from, to) in pairs {
        let numbers = net.numbers(from, to);
        let first = if (from, to) == (0, 2) { 0 } else { count };
        let all: Vec<u32> = (first..count + 1_000).collect();
        assert_eq!(numbers.keys().copied().collect::<Vec<_>>(), all, "{from} to {to}");
        assert!(numbers.values().all(|times| *times == 1), "{from} to {to}: duplicates");
    }
    assert_eq!(net.paths(0).len(), 2);
    assert!(net.hosts.iter().all(|host| host.dropped.is_empty()));
}

/// Breaks: transfers to two neighbours with several NICs do not disturb each other.
#[test]
fn two_neighbours_at_once_get_all_frames() {
    let mut net = Net::new(&[3, 2, 2], &MultiNicConfig::default());
    for (from, to) in [(0, 1), (0, 2), (1, 2)] {
        net.request(ms(1 + from as u64 + to as u64), from, to);
    }
    let every = Span::from_micros(12);
    let count = net.load((0, 1), 0, [ms(50), ms(150)], every);
    net.load((0, 2), 0, [ms(50), ms(150)], every);
    net.load((2, 1), 0, [ms(50), ms(150)], every * 4);
    net.run(ms(400));
    assert_eq!((net.numbers(0, 1).len(), net.numbers(0, 2).len()), (count as usize, count as usize));
    assert_eq!(net.numbers(2, 1).len(), count.div_ceil(4) as usize);
    assert_eq!(net.hosts[0].last_sent.len(), 3, "all NICs are used");
}

/// Breaks: no frame leaves from an address before conflict detection has finished, and a conflict is
/// detected.
#[test]
fn nothing_leaves_from_an_address_that_is_not_usable() {
    let config = MultiNicConfig { conflict_detection: true, ..MultiNicConfig::default() };
    let mut net = Net::new(&[2, 2], &config);
    net.load((0, 1), 0, [ms(0), ms(2_000)], Span::from_millis(10));
    net.run(ms(2_000));
    assert!(net.hosts[0].last_sent.is_empty(), "left at {:?}", net.hosts[0].last_sent);
    assert!(net.layer(0).stats().from_unusable_addresses >= 200);
    // At most 1 s + 2 x 2 s + 2 s, RFC 5227.
    net.run(ms(7_500));
    net.request(ms(7_500), 0, 1);
    net.load((0, 1), 1_000, [ms(7_600), ms(7_700)], Span::from_millis(1));
    net.run(ms(8_000));
    assert_eq!(net.numbers(0, 1).len(), 100);
    // Another host uses the address, and announces it during the probes.
    let mut net = Net::new(&[2, 2], &config);
    let other = Arp::request(mac(7, 0), super::bench::ip(0), super::bench::ip(0)).packet(MacAddr::BROADCAST);
    for at in [1_200, 1_800] {
        net.inject(ms(at), (0, 0), other.clone());
    }
    net.load((0, 1), 0, [ms(0), ms(8_000)], Span::from_millis(100));
    net.run(ms(8_000));
    assert!(net.hosts[0].last_sent.is_empty(), "in spite of the conflict");
    assert!(net.layer(0).stats().conflicts >= 1);
}
