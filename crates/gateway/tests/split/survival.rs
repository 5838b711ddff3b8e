//! Connections outlive the gateway.

use crate::harness::*;
use farpace_gateway::{Gateway, GatewayConfig, GatewayTotals, PolicyTable};
use farpace_tcp::CloseReason;
use farpace_units::Span;

fn config() -> GatewayConfig {
    GatewayConfig::new(PolicyTable::new(vec![], policy()))
}

// Breaks: connections in which nothing is undelivered end with a crash of the gateway, or when a gateway
// whose peer is down lets everything pass; or the timers of a connection that is gone stay.
#[test]
fn quiet_connections_outlive_a_crash() {
    outlive(|net| net.restart(config()));
    let totals = outlive(Net::abandon);
    assert_eq!((totals.handed_over, totals.connections, totals.ended_by_error), (1, 0, 0));
}

fn outlive(end: impl FnOnce(&mut Net)) -> GatewayTotals {
    let mut net = Net::new(Plan::new());
    let kept = record();
    let made = kept.clone();
    net.listen(linux(), move || Program { closes: false, ..Program::new(5_000, [2, 1], &made) });
    let client = record();
    net.connect(linux(), Program { closes: false, ..Program::new(5_000, [1, 2], &client) });
    net.run_for(Span::from_secs(5));
    assert_eq!((client.borrow().received, kept.borrow().received), (5_000, 5_000));
    end(&mut net);
    let split = net.totals().split;
    let (a, b) = (net.client, net.server);
    for (host, own) in [(a, &client), (b, &kept)] {
        net.with(host, own, |program, connection| {
            (program.sends, program.closes) = (300_000, true);
            program.write(connection);
        });
    }
    net.run_for(Span::from_secs(60));
    assert_done(&client, 300_000);
    assert_done(&kept, 300_000);
    assert_eq!(net.totals().split, split);
    net.totals()
}

// Breaks: a gateway that is stopped in order loses bytes, or never ends.
#[test]
fn draining_hands_connections_over_in_the_middle_of_a_transfer() {
    for (up, down, loss) in [(20_000_000, 0, 0.0), (0, 20_000_000, 0.0), (5_000_000, 5_000_000, 0.002)] {
        let mut net = Net::new(Plan { loss, ..Plan::new() });
        let server = serve(&mut net, linux(), down);
        let client = call(&mut net, linux(), up);
        net.run_for(Span::from_millis(2_900));
        assert!(!server.borrow().peer_closed || !client.borrow().peer_closed);
        assert_eq!(net.totals().connections, 1);
        net.drain();
        let mut waited = 0;
        while net.totals().connections > 0 {
            net.run_for(Span::from_millis(100));
            waited += 100;
            assert!(waited < 60_000, "not handed over");
        }
        assert_eq!(net.totals().handed_over, 1);
        net.restart(config());
        net.run_for(Span::from_secs(900));
        assert_done(&client, down);
        assert_done(&server, up);
        assert_eq!(net.totals().split, 0);
    }
}

// Breaks: new connections are split by a gateway that is about to end.
#[test]
fn new_connections_pass_while_it_drains() {
    let mut net = Net::new(Plan::new());
    net.drain();
    let server = serve(&mut net, linux(), 10_000);
    let client = call(&mut net, linux(), 10_000);
    net.run_for(Span::from_secs(20));
    assert_done(&client, 10_000);
    assert_done(&server, 10_000);
    assert_eq!((net.totals().split, net.totals().passed_draining), (0, 1));
}

/// Breaks: a host on the LAN side waits for its timeout, after a gateway whose peer is down has given up a
/// connection with undelivered bytes.
#[test]
fn a_connection_that_is_abandoned_in_the_middle_is_reset_at_the_lan() {
    for (up, down) in [(20_000_000, 0), (0, 20_000_000)] {
        let mut net = Net::new(Plan::new());
        let server = serve(&mut net, linux(), down);
        let client = record();
        // What comes down stays at the gateway, as the client does not read it.
        net.connect(linux(), Program { reads_nothing: true, ..Program::new(up, [1, 2], &client) });
        net.run_for(Span::from_millis(2_900));
        assert!(!server.borrow().peer_closed || !client.borrow().peer_closed);
        assert_eq!((net.totals().connections, client.borrow().ended), (1, None));
        net.abandon();
        net.run_for(Span::from_millis(100));
        assert_eq!((net.totals().connections, net.totals().ended_by_error), (0, 1));
        assert_eq!(client.borrow().ended, Some(CloseReason::Reset), "{up} B up, {down} B down");
    }
}

/// Breaks: hosts of a connection that is left when the gateway ends wait for each other for good.
#[test]
fn what_is_left_at_the_end_is_reset_at_both_hosts() {
    let mut net = Net::new(Plan { config: GatewayConfig { keep_ended: true, ..config() }, ..Plan::new() });
    let server = record();
    let made = server.clone();
    net.listen(linux(), move || Program { reads_nothing: true, ..Program::new(0, [2, 1], &made) });
    let client = call(&mut net, linux(), 20_000_000);
    let quiet = record();
    net.connect(linux(), Program { closes: false, ..Program::new(0, [1, 2], &quiet) });
    net.run_for(Span::from_secs(20));
    net.drain();
    net.run_for(Span::from_secs(30));
    assert_eq!((net.totals().connections, net.totals().handed_over), (1, 1));
    net.cut();
    net.run_for(Span::from_secs(2));
    let totals = net.totals();
    assert_eq!((totals.connections, totals.cut), (0, 1));
    assert_eq!(client.borrow().ended, Some(CloseReason::Reset));
    assert_eq!(quiet.borrow().ended, None);
    let act = |gateway: &mut Gateway, _: &mut farpace_path::Cx<'_>| gateway.take_ended();
    let (ended, _) = net.world.call(net.gateway, &mut net.tap, act).unwrap();
    let ends: Vec<_> = ended.iter().map(|flow| flow.end.name()).collect();
    assert_eq!(ends, ["handed_over", "cut"]);
}
