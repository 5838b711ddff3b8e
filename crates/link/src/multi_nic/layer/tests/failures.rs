//! NICs that fail and return under load.

use super::bench::{Net, ms};
use crate::multi_nic::MultiNicConfig;
use farpace_path::Element;
use farpace_units::Span;

/// Interval between datagrams of a NIC, which takes 12.3 us for one. One NIC less can carry all of them.
const PER_CARD: Span = Span::from_micros(14);

/// Two hosts with `nics` NICs that send to each other from 50 ms on, in bursts of a datagram per NIC, so that
/// all are used.
fn loaded(cards: usize, until: u64) -> (Net, u32) {
    let mut net = Net::new(&[cards, cards], &MultiNicConfig::default());
    net.ask(ms(1), 0, 1);
    let (every, mut count) = (PER_CARD * cards as u64, 0);
    for _ in 0..cards {
        let first = count;
        count = net.load((0, 1), first, [ms(50), ms(until)], every);
        net.load((1, 0), first, [ms(50), ms(until)], every);
    }
    (net, count)
}

/// Number of datagrams of `count` that have not arrived. Checks that none has arrived twice.
fn missing(net: &Net, from: usize, to: usize, count: u32) -> usize {
    let numbers = net.numbers(from, to);
    assert!(numbers.values().all(|times| *times == 1), "some came twice");
    count as usize - numbers.len()
}

fn nothing_waits(net: &Net) {
    for host in 0..2 {
        assert_eq!(net.layer(host).held(), 0, "something waits for ever in {host}");
    }
}

/// Breaks: after a loss of carrier, frames move to other NICs and neighbours stop sending to the NIC; it is
/// used again later.
#[test]
fn traffic_moves_at_once_when_a_carrier_is_lost() {
    for (cards, failed) in [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)] {
        let what = format!("card {failed} of {cards}");
        let (mut net, count) = loaded(cards, 200);
        net.run(ms(80));
        let working = net.lanes(0).len();
        assert_eq!((working, net.lanes(1).len()), (cards, cards), "{what}");
        net.set_carrier(0, failed, false);
        net.run(ms(82));
        assert_eq!(net.lanes(0).len(), cards - 1, "{what}");
        let late = net.vanished.iter().filter(|at| **at > ms(81)).count();
        assert_eq!(late, 0, "{what}: the neighbour was not told");
        net.run(ms(120));
        assert!(net.hosts[0].left[&failed] <= ms(80), "{what}: it still sends");
        assert!(net.vanished.iter().all(|at| *at < ms(81)), "{what}: {:?}", net.vanished.last());
        net.set_carrier(0, failed, true);
        net.run(ms(200));
        for host in 0..2 {
            let back = net.lanes(host).len();
            assert_eq!(back, cards, "{what}: {host} does not use it again");
        }
        assert!(net.hosts[0].left[&failed] > ms(190), "{what}");
        net.run(ms(300));
        let got = net.numbers(0, 1);
        let gone: Vec<u32> = (0..count).filter(|n| !got.contains_key(n)).collect();
        assert!(gone.is_empty(), "{what}: {gone:?} of what we sent, dropped {:?}", &net.hosts[0].dropped);
        let lost = missing(&net, 1, 0, count);
        assert!(lost == net.vanished.len() && lost <= 10, "{what}: {lost} were on their way to it");
        assert!(net.hosts.iter().all(|host| host.dropped.is_empty()), "{what}");
        nothing_waits(&net);
    }
}

/// Breaks: a path that silently loses frames is detected within 100 ms, and used again when it recovers.
#[test]
fn traffic_moves_within_100_ms_when_a_card_falls_silent() {
    for (cards, failed) in [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)] {
        let what = format!("card {failed} of {cards}");
        let (mut net, count) = loaded(cards, 2_500);
        net.run(ms(100));
        net.silent.insert((0, failed));
        net.run(ms(400));
        assert!(!net.vanished.is_empty(), "{what} was not used");
        let last = *net.vanished.iter().max().unwrap();
        assert!(last <= ms(200), "{what}: until {last:?}");
        assert_eq!(net.layer(0).stats().lanes_lost, 1, "{what}");
        net.silent.clear();
        net.run(ms(2_600));
        for host in 0..2 {
            assert_eq!(net.lanes(host).len(), cards, "{what}: {host} does not use it again");
        }
        assert!(net.hosts[0].left[&failed] > ms(2_490), "{what}");
        let lost = missing(&net, 0, 1, count) + missing(&net, 1, 0, count);
        assert_eq!(lost, net.vanished.len(), "{what}: others than what was swallowed are lost");
        nothing_waits(&net);
    }
}

/// Breaks: a host without a working NIC drops frames instead of holding them, and recovers when a NIC
/// returns.
#[test]
fn without_any_card_nothing_waits() {
    let (mut net, count) = loaded(2, 200);
    net.run(ms(80));
    net.set_carrier(0, 0, false);
    net.set_carrier(0, 1, false);
    assert_eq!(net.layer(0).held(), 0);
    net.run(ms(100));
    assert_eq!(net.layer(0).held(), 0);
    assert!(!net.hosts[0].dropped.is_empty());
    net.set_carrier(0, 1, true);
    net.run(ms(300));
    assert!(net.hosts[0].left[&1] > ms(190));
    assert_eq!(
        missing(&net, 0, 1, count),
        net.hosts[0].dropped.len(),
        "only what was sent meanwhile is lost"
    );
    nothing_waits(&net);
}
