//! Records of connections that have ended.

use crate::harness::*;
use crate::limits::numbered_syn;
use farpace_gateway::{EndedFlow, FlowEnd, FlowView, Gateway, GatewaySide, LegLimit, MAX_ENDED};
use farpace_path::Cx;
use farpace_tcp::CloseReason;
use farpace_units::{ByteCount, Rate, Span};

fn take(net: &mut Net) -> (Vec<EndedFlow>, u64) {
    let act = |gateway: &mut Gateway, _: &mut Cx<'_>| gateway.take_ended();
    net.world.call(net.gateway, &mut net.tap, act).unwrap()
}

fn recorded() -> Plan {
    let mut plan = Plan { rate: Rate::from_mbit(10), ..Plan::new() };
    plan.config.keep_ended = true;
    plan
}

/// Breaks: a connection that has ended is told twice or not at all, or its bytes, or its time, are not those
/// that the hosts have seen; or a transfer over a slow link is said to wait for something else.
#[test]
fn what_has_ended_is_told_once() {
    let mut net = Net::new(recorded());
    let server = serve(&mut net, linux(), 20_000);
    let client = call(&mut net, linux(), 5_000_000);
    net.run_for(Span::from_secs(60));
    assert_done(&client, 20_000);
    assert_done(&server, 5_000_000);
    let (ended, lost) = take(&mut net);
    let [flow] = ended.as_slice() else { panic!("{ended:?}") };
    assert_eq!((flow.end, lost), (FlowEnd::Finished, 0));
    assert_eq!(flow.view.moved, [5_000_000, 20_000].map(ByteCount::new));
    assert_eq!(flow.view.undelivered, [ByteCount::ZERO; 2]);
    // 5 MB over 10 Mbit/s take 4 s.
    assert!((4.0..10.0).contains(&flow.view.age.as_secs_f64()), "{flow:?}");
    let wan = flow.view.to_acceptor;
    let sum = wan.limit_times.iter().fold(Span::ZERO, |sum, time| sum + *time);
    assert_eq!(sum, flow.view.age, "the times of a leg add up");
    let time = |limit: LegLimit| wan.limit_times[limit as usize].as_secs_f64();
    let link = time(LegLimit::CongestionWindow) + time(LegLimit::Pacing);
    assert!(link > 2.5, "{:?}", wan.limit_times);
    for (at, limit) in LegLimit::ALL.into_iter().enumerate() {
        assert_eq!(limit as usize, at, "times stand in the order of the limits");
    }
    assert_eq!(take(&mut net), (vec![], 0));
}

/// Breaks: the operator reads that another host has ended a connection than the one that did, or that a
/// refused one was handed over.
#[test]
fn how_it_ended_is_told() {
    let ends = |run: &dyn Fn(&mut Net)| {
        let mut net = Net::new(recorded());
        run(&mut net);
        let (ended, _) = take(&mut net);
        ended.into_iter().map(|flow| flow.end).collect::<Vec<_>>()
    };
    let abort = |net: &mut Net, by_client: bool| {
        let server = serve(net, linux(), 20_000_000);
        let client = call(net, linux(), 20_000_000);
        net.run_for(Span::from_secs(3));
        let (host, record) = if by_client { (net.client, &client) } else { (net.server, &server) };
        net.with(host, record, |_, connection| connection.abort());
        net.run_for(Span::from_secs(10));
    };
    let reset = |side| FlowEnd::Failed(side, CloseReason::Reset);
    assert_eq!(ends(&|net| abort(net, true)), [reset(GatewaySide::Lan)]);
    assert_eq!(ends(&|net| abort(net, false)), [reset(GatewaySide::Wan)]);
    // Nobody listens.
    let refused = |net: &mut Net| {
        call(net, linux(), 1);
        net.run_for(Span::from_secs(3));
    };
    assert_eq!(ends(&refused), [FlowEnd::NotOpened]);
    // The server is silent: the gateway gives it up.
    let silent = |net: &mut Net| {
        net.inject(Gateway::LAN, crate::limits::syn(1));
        net.run_for(Span::from_secs(100));
    };
    assert_eq!(ends(&silent), [FlowEnd::NotOpened]);
    let drained = |net: &mut Net| {
        serve(net, linux(), 0);
        call(net, linux(), 3_000_000);
        net.run_for(Span::from_secs(2));
        net.drain();
        net.run_for(Span::from_secs(20));
    };
    assert_eq!(ends(&drained), [FlowEnd::HandedOver]);
}

/// Breaks: a connection that was found to be short, and is not split, is told as a split one; or records are
/// kept that nobody takes.
#[test]
fn what_was_not_split_has_no_record() {
    for (delay, keep) in [(Span::from_millis(1), true), (Span::from_millis(280), false)] {
        let mut plan = Plan { delay, ..recorded() };
        plan.config.keep_ended = keep;
        let mut net = Net::new(plan);
        let server = serve(&mut net, linux(), 1_000);
        call(&mut net, linux(), 1_000);
        net.run_for(Span::from_secs(10));
        assert_done(&server, 1_000);
        assert_eq!(take(&mut net), (vec![], 0));
    }
}

/// Breaks: a flood of connections fills the memory with records that nobody takes in time, or some are lost
/// without being counted.
#[test]
fn records_that_wait_are_bounded() {
    let mut net = Net::new(recorded());
    // A SYN with another number: the host has given up the connection before.
    for round in 0..8 {
        for n in 0..10_000 {
            net.inject(Gateway::LAN, numbered_syn(n, round));
        }
    }
    let (ended, lost) = take(&mut net);
    assert_eq!((ended.len(), lost), (MAX_ENDED, 70_000 - MAX_ENDED as u64));
    assert!(ended.iter().all(|flow| flow.end == FlowEnd::Replaced));
}

/// Breaks: with more connections than are shown, the busiest one is missing.
#[test]
fn the_busiest_connections_are_shown() {
    let mut net = Net::new(recorded());
    serve(&mut net, linux(), 0);
    let idle: Vec<_> = (0..20).map(|_| record()).collect();
    for own in &idle {
        net.connect(linux(), Program { closes: false, ..Program::new(1_000, [1, 2], own) });
    }
    net.run_for(Span::from_secs(5));
    let busy = record();
    net.connect(linux(), Program { closes: false, ..Program::new(50_000_000, [1, 2], &busy) });
    net.run_for(Span::from_secs(4));
    let (now, gateway) = (net.world.now(), net.gateway());
    let rate = |view: &FlowView| view.rates[0].bits_per_sec();
    let shown = gateway.busiest(now, 1);
    assert_eq!((shown.len(), gateway.flows(now).map(|view| rate(&view)).max()), (1, Some(rate(&shown[0]))));
    assert!(rate(&shown[0]) > 0);
    assert_eq!((gateway.busiest(now, 100).len(), gateway.busiest(now, 0).len()), (21, 0));
    // Of two gateways.
    let mut both = gateway.busiest(now, 100);
    both.reverse();
    FlowView::keep_busiest(&mut both, 1);
    assert_eq!(both, shown);
}
