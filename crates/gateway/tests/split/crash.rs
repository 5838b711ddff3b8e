//! What is left of connections when a gateway has died.

use crate::harness::*;
use farpace_gateway::{FlowLedger, Gateway, LedgerEntry};
use farpace_path::Cx;
use farpace_units::Span;
use farpace_wire::tcp::TcpFlags;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A ledger in memory, which counts what is written.
#[derive(Clone, Default)]
struct TestLedger(Rc<RefCell<(BTreeMap<usize, LedgerEntry>, usize)>>);

impl FlowLedger for TestLedger {
    fn set(&mut self, slot: usize, entry: Option<LedgerEntry>) {
        let (entries, count) = &mut *self.0.borrow_mut();
        *count += 1;
        match entry {
            Some(entry) => drop(entries.insert(slot, entry)),
            None => assert!(entries.remove(&slot).is_some(), "nothing was there"),
        }
    }
}

fn kept(net: &mut Net) -> TestLedger {
    let ledger = TestLedger::default();
    let own = Box::new(ledger.clone());
    let act = |gateway: &mut Gateway, _: &mut Cx<'_>| gateway.set_ledger(own);
    net.world.call(net.gateway, &mut net.tap, act).unwrap();
    ledger
}

/// Breaks: hosts whose connection lost bytes with the gateway are not in the ledger, or with numbers that
/// they do not expect; or one whose bytes are delivered is, and is reset without need.
#[test]
fn undelivered_connections_are_in_the_ledger() {
    let mut net = Net::new(Plan::new());
    let ledger = kept(&mut net);
    let _server = serve(&mut net, linux(), 0);
    let _client = call(&mut net, linux(), 20_000_000);
    net.run_for(Span::from_millis(400));
    assert!(ledger.0.borrow().0.is_empty(), "nothing was acknowledged yet");
    net.run_for(Span::from_millis(1_600));
    let entry = *ledger.0.borrow().0.values().next().expect("bytes are under way");
    let view = net.gateway().flows(net.world.now()).next().unwrap();
    assert_eq!(entry.hosts, [view.opener, view.acceptor]);
    // What the next packets of the hosts acknowledge is what they expect.
    net.tap.on = true;
    net.run_for(Span::from_secs(1));
    for (from, leg) in [FROM_CLIENT, FROM_SERVER].into_iter().zip(entry.legs) {
        assert!(leg.unacknowledged.before_eq(leg.next));
        let first = net.tap.seen[from].first().and_then(|packet| Some(packet.tcp().ok()?.header()));
        let Some(first) = first else { continue };
        assert!(first.ack.after_eq(leg.unacknowledged) && first.ack.before_eq(leg.next), "{leg:?}");
    }
    net.run_for(Span::from_secs(60));
    assert!(ledger.0.borrow().0.is_empty(), "all is delivered");
}

/// Breaks: a connection that nothing is undelivered of costs writes with each packet.
#[test]
fn whole_connections_are_not_written() {
    let mut net = Net::new(Plan::new());
    let ledger = kept(&mut net);
    let _server = serve(&mut net, linux(), 0);
    let client = record();
    net.connect(linux(), Program { closes: false, ..Program::new(0, [1, 2], &client) });
    net.run_for(Span::from_secs(3));
    assert!(client.borrow().connected);
    // The server closes: a FIN that was acknowledged and not passed on is something undelivered.
    let (entries, count) = &*ledger.0.borrow();
    assert!(entries.is_empty() && *count <= 4, "{count}");
}

/// Breaks: a host behind the peer is not asked whether its connection lives when the peer is back, is asked
/// so that data of its connection are harmed, or thousands are asked at once.
#[test]
fn hosts_behind_the_peer_are_asked_when_it_is_back() {
    for abandoned in [true, false] {
        let mut net = Net::new(Plan::new());
        let servers = serve_each(&mut net, linux(), 0);
        let clients: Vec<_> = (0..100)
            .map(|_| {
                let client = record();
                net.connect(linux(), Program { closes: false, ..Program::new(1_000, [1, 2], &client) });
                client
            })
            .collect();
        servers.borrow().iter().for_each(|server| server.borrow_mut().peer_closed = false);
        net.run_for(Span::from_secs(5));
        if abandoned {
            // It was back just before it went away again.
            let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| gateway.peer_is_back(cx);
            net.world.call(net.gateway, &mut net.tap, act).unwrap();
            net.run_for(Span::from_secs(1));
            net.abandon();
            net.run_for(Span::from_secs(10));
        }
        net.tap.on = true;
        let asks = |net: &Net| {
            let pure = |packet: &&farpace_wire::Packet| {
                packet.payload().is_empty()
                    && packet.tcp().is_ok_and(|tcp| tcp.header().flags == TcpFlags::ACK)
            };
            net.tap.seen[TO_SERVER].iter().filter(pure).count()
        };
        let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| gateway.peer_is_back(cx);
        net.world.call(net.gateway, &mut net.tap, act).unwrap();
        net.run_for(Span::from_millis(5));
        assert!((1..=40).contains(&asks(&net)), "{}", asks(&net));
        net.run_for(Span::from_secs(1));
        assert_eq!(asks(&net), 100, "abandoned: {abandoned}");
        // The first answers may have found no way: they are asked two times more.
        net.run_for(Span::from_secs(20));
        assert_eq!(asks(&net), 300, "abandoned: {abandoned}");
        assert!(clients.iter().all(|client| client.borrow().ended.is_none()));
    }
}
