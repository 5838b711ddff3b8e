//! How connections end.

use crate::harness::*;
use farpace_gateway::{FlowView, Gateway};
use farpace_tcp::{CloseReason, ConnectionState};
use farpace_units::Span;
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{Below, Packet};
use std::cell::RefCell;
use std::rc::Rc;

// Breaks: a connection that one host resets stays open at the other.
#[test]
fn a_reset_passes_either_way() {
    for by_client in [true, false] {
        let mut net = Net::new(Plan::new());
        let kept = record();
        let made = kept.clone();
        net.listen(linux(), move || Program { closes: false, ..Program::new(1000, [2, 1], &made) });
        let client = record();
        net.connect(linux(), Program { closes: false, ..Program::new(1000, [1, 2], &client) });
        net.run_for(Span::from_secs(3));
        assert_eq!((client.borrow().received, kept.borrow().received), (1000, 1000));
        let (host, own, other) =
            if by_client { (net.client, &client, &kept) } else { (net.server, &kept, &client) };
        net.with(host, own, |_, connection| connection.abort());
        net.run_for(Span::from_secs(3));
        assert_eq!(other.borrow().ended, Some(CloseReason::Reset), "by the client: {by_client}");
        assert_eq!((net.totals().connections, net.totals().ended_by_error), (0, 1));
    }
}

/// What a client sends in the tests below, and a link on which it takes the gateway much longer to deliver
/// it.
const BYTES: usize = 1_000_000;
fn slow() -> Plan {
    Plan { rate: farpace_units::Rate::from_mbit(10), ..Plan::new() }
}

/// Runs until the gateway has the FIN of the client, and some of its data is not delivered yet.
fn run_to_the_fin(net: &mut Net) -> FlowView {
    loop {
        net.run_for(Span::from_millis(1));
        let flow = net.gateway().flows(net.world.now()).next().expect("the connection has ended");
        let has_all = flow.to_opener.is_some_and(|leg| leg.bytes_received.as_len() == BYTES);
        if has_all {
            net.run_for(Span::from_millis(2));
            let flow = net.gateway().flows(net.world.now()).next().unwrap();
            assert!(flow.undelivered[0].get() > 100_000, "a test of the test: {flow:?}");
            return flow;
        }
    }
}

/// The client sends, and closes, when it has 1,000 bytes and a FIN of the server. Its packets are kept.
fn server_closes_first() -> (Net, Rc<RefCell<Record>>, Rc<RefCell<Record>>) {
    let mut net = Net::new(slow());
    net.tap.on = true;
    let server = serve(&mut net, linux(), 1000);
    let client = record();
    net.connect(linux(), Program { after_fin: true, ..Program::new(BYTES, [1, 2], &client) });
    (net, server, client)
}

/// A segment of the client that follows its FIN.
fn behind_the_fin(net: &Net, flags: TcpFlags) -> Packet {
    let sent = &net.tap.seen[FROM_CLIENT];
    let fin = sent.iter().find(|packet| packet.tcp().unwrap().flags().contains(TcpFlags::FIN)).unwrap();
    let header = fin.tcp().unwrap().header();
    let seq = header.seq + fin.payload().len() as u32 + 1;
    let (src, dst) = fin.macs();
    let below = Below::new(src, dst, fin.ip().unwrap().addresses(), 64);
    let header = TcpHeader { seq, flags, options: Default::default(), ..header };
    below.tcp(1, &header, bytes::Bytes::new())
}

// Breaks: a client that is done, and opens another connection from the same port, loses what the gateway has
// acknowledged to it.
#[test]
fn a_new_connection_waits_for_the_data_of_the_old_one() {
    let (mut net, server, _) = server_closes_first();
    run_to_the_fin(&mut net);
    let syn = behind_the_fin(&net, TcpFlags::SYN);
    net.inject(Gateway::LAN, syn.clone());
    assert_eq!(net.totals().split, 1);
    net.run_for(Span::from_secs(30));
    assert_done(&server, BYTES);
    assert_eq!((net.totals().connections, net.totals().ended_by_error), (0, 0));
    net.inject(Gateway::LAN, syn);
    assert_eq!(net.totals().split, 2);
}

// Breaks: a client that is done, and answers a duplicate ACK with a reset as hosts do, loses what the gateway
// has acknowledged to it.
#[test]
fn a_reset_after_the_end_loses_nothing() {
    let (mut net, server, client) = server_closes_first();
    let flow = run_to_the_fin(&mut net);
    assert_eq!(flow.to_opener.unwrap().state, ConnectionState::TimeWait);
    let reset = behind_the_fin(&net, TcpFlags::RST);
    net.inject(Gateway::LAN, reset);
    net.run_for(Span::from_secs(30));
    assert_done(&client, 1000);
    assert_done(&server, BYTES);
    assert_eq!((net.totals().connections, net.totals().ended_by_error), (0, 0));
}

// Breaks: what a host has sent before its FIN is lost if it then resets the connection; or the other host
// does not learn that nothing reaches the first one any more.
#[test]
fn a_reset_behind_a_fin_comes_after_the_data() {
    let mut net = Net::new(slow());
    let server = serve(&mut net, linux(), 30_000_000);
    let client = call(&mut net, linux(), BYTES);
    run_to_the_fin(&mut net);
    let host = net.client;
    net.with(host, &client, |_, connection| connection.abort());
    net.run_for(Span::from_secs(30));
    let server = server.borrow();
    assert_eq!((server.received, server.wrong), (BYTES, None));
    assert_eq!(server.ended, Some(CloseReason::Reset));
    assert_eq!((net.totals().connections, net.totals().ended_by_error), (0, 1));
}

// Breaks: data that a host sends after the other has closed its direction is lost.
#[test]
fn a_half_closed_connection_goes_on() {
    let mut net = Net::new(Plan { loss: 0.01, ..Plan::new() });
    let kept = record();
    let made = kept.clone();
    net.listen(linux(), move || Program { after_fin: true, ..Program::new(200_000, [2, 1], &made) });
    let client = call(&mut net, linux(), 100_000);
    net.run_for(Span::from_secs(60));
    assert_done(&client, 200_000);
    assert_done(&kept, 100_000);
    assert_eq!((net.totals().connections, net.totals().ended_by_error), (0, 0));
}

// Breaks: a connection whose host has vanished stays for ever.
#[test]
fn a_host_that_vanishes_is_noticed() {
    let mut plan = Plan::new();
    plan.seed = 9;
    let mut net = Net::new(plan);
    let kept = record();
    let made = kept.clone();
    net.listen(linux(), move || Program { closes: false, ..Program::new(10, [2, 1], &made) });
    let client = record();
    net.connect(linux(), Program { closes: false, ..Program::new(10, [1, 2], &client) });
    net.run_for(Span::from_secs(3));
    assert_eq!(client.borrow().received, 10);
    // The server forgets: it answers the first probe with a reset.
    let server = net.server;
    net.with(server, &kept, |_, connection| connection.forget());
    net.run_for(Span::from_secs(1));
    assert_eq!(net.totals().connections, 1);
    net.run_for(Span::from_secs(700));
    assert_eq!(client.borrow().ended, Some(CloseReason::Reset));
    assert_eq!(net.totals().connections, 0);
}
