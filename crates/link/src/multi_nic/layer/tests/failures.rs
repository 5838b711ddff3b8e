//! NICs that fail and return under load.

use super::bench::{Net, ms};
use crate::multi_nic::MultiNicConfig;
use farpace_path::Element;
use farpace_units::Span;

/// Interval between datagrams of a NIC, which takes 12.3 us for one. One NIC less can carry all of them.
const PER_NIC_INTERVAL: Span = Span::from_micros(14);

/// Two hosts with `nics` NICs that send to each other from 50 ms on, in bursts of a datagram per NIC, so that
/// all are used.
fn net_under_load(nics: usize, until: u64) -> (Net, u32) {
    let mut net = Net::new(&[nics, nics], &MultiNicConfig::default());
    net.request(ms(1), 0, 1);
    let (every, mut count) = (PER_NIC_INTERVAL * nics as u64, 0);
    for _ in 0..nics {
        let first = count;
        count = net.load((0, 1), first, [ms(50), ms(until)], every);
        net.load((1, 0), first, [ms(50), ms(until)], every);
    }
    (net, count)
}

/// Number of datagrams of `count` that have not arrived. Checks that none has arrived twice.
fn missing(net: &Net, from: usize, to: usize, count: u32) -> usize {
    let numbers = net.numbers(from, to);
    assert!(numbers.values().all(|times| *times == 1), "duplicates");
    count as usize - numbers.len()
}

fn assert_no_frame_waits(net: &Net) {
    for host in 0..2 {
        assert_eq!(net.layer(host).held(), 0, "frames are stuck in {host}");
    }
}

/// Breaks: after a loss of carrier, frames move to other NICs and neighbours stop sending to the NIC; it is
/// used again later.
#[test]
fn traffic_moves_at_once_when_a_carrier_is_lost() {
    for (nics, failed) in [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)] {
        let what = format!("NIC {failed} of {nics}");
        let (mut net, count) = net_under_load(nics, 200);
        net.run(ms(80));
        let working = net.paths(0).len();
        assert_eq!((working, net.paths(1).len()), (nics, nics), "{what}");
        net.set_carrier(0, failed, false);
        net.run(ms(82));
        assert_eq!(net.paths(0).len(), nics - 1, "{what}");
        let late = net.lost.iter().filter(|at| **at > ms(81)).count();
        assert_eq!(late, 0, "{what}: the neighbour was not notified");
        net.run(ms(120));
        assert!(net.hosts[0].last_sent[&failed] <= ms(80), "{what}: it still sends");
        assert!(net.lost.iter().all(|at| *at < ms(81)), "{what}: {:?}", net.lost.last());
        net.set_carrier(0, failed, true);
        net.run(ms(200));
        for host in 0..2 {
            let in_use = net.paths(host).len();
            assert_eq!(in_use, nics, "{what}: {host} does not use the NIC again");
        }
        assert!(net.hosts[0].last_sent[&failed] > ms(190), "{what}");
        net.run(ms(300));
        let received = net.numbers(0, 1);
        let not_received: Vec<u32> = (0..count).filter(|n| !received.contains_key(n)).collect();
        assert!(
            not_received.is_empty(),
            "{what}: {not_received:?} of the sent ones, dropped {:?}",
            &net.hosts[0].dropped
        );
        let lost = missing(&net, 1, 0, count);
        assert!(lost == net.lost.len() && lost <= 10, "{what}: {lost} were in flight to the NIC");
        assert!(net.hosts.iter().all(|host| host.dropped.is_empty()), "{what}");
        assert_no_frame_waits(&net);
    }
}

/// Breaks: a path that silently loses frames is detected within 100 ms, and used again when it recovers.
#[test]
fn traffic_moves_within_100_ms_when_a_nic_fails_silently() {
    for (nics, failed) in [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)] {
        let what = format!("NIC {failed} of {nics}");
        let (mut net, count) = net_under_load(nics, 2_500);
        net.run(ms(100));
        net.blackholed.insert((0, failed));
        net.run(ms(400));
        assert!(!net.lost.is_empty(), "{what} was not used");
        let last = *net.lost.iter().max().unwrap();
        assert!(last <= ms(200), "{what}: until {last:?}");
        assert_eq!(net.layer(0).stats().path_failures, 1, "{what}");
        net.blackholed.clear();
        net.run(ms(2_600));
        for host in 0..2 {
            assert_eq!(net.paths(host).len(), nics, "{what}: {host} does not use the NIC again");
        }
        assert!(net.hosts[0].last_sent[&failed] > ms(2_490), "{what}");
        let lost = missing(&net, 0, 1, count) + missing(&net, 1, 0, count);
        assert_eq!(lost, net.lost.len(), "{what}: only frames at the failed NIC are lost");
        assert_no_frame_waits(&net);
    }
}

/// Breaks: a host without a working NIC drops frames instead of holding them, and recovers when a NIC
/// returns.
#[test]
fn without_a_working_nic_no_frame_waits() {
    let (mut net, count) = net_under_load(2, 200);
    net.run(ms(80));
    net.set_carrier(0, 0, false);
    net.set_carrier(0, 1, false);
    assert_eq!(net.layer(0).held(), 0);
    net.run(ms(100));
    assert_eq!(net.layer(0).held(), 0);
    assert!(!net.hosts[0].dropped.is_empty());
    net.set_carrier(0, 1, true);
    net.run(ms(300));
    assert!(net.hosts[0].last_sent[&1] > ms(190));
    assert_eq!(
        missing(&net, 0, 1, count),
        net.hosts[0].dropped.len(),
        "only frames sent during the failure are lost"
    );
    assert_no_frame_waits(&net);
}
