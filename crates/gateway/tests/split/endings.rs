//! How connections end.

use crate::harness::*;
use farpace_tcp::CloseReason;
use farpace_units::Span;

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
