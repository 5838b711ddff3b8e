//! Every byte once and in order.

use crate::harness::*;
use bytes::Bytes;
use farpace_units::{ByteCount, Rate, Span};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    // Breaks: the bytes that arrive are those that were sent, both ways, on a lossy path.
    #[test]
    fn bytes_arrive_unchanged(
        up in 0usize..400_000,
        down in 0usize..400_000,
        loss in 0.0f64..0.03,
        delay in 1u64..300,
        six in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut plan = Plan { loss, delay: Span::from_millis(delay), seed, ..Plan::new() };
        plan.config.super_segment = 65_000;
        if six {
            plan.addresses = ["fd00::1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        }
        let mut policy = policy();
        policy.min_rtt = Span::ZERO;
        plan.config.policies = farpace_gateway::PolicyTable::new(vec![], policy);
        let mut net = Net::new(plan);
        let server = serve(&mut net, linux(), down);
        let client = call(&mut net, linux(), up);
        net.run_for(Span::from_secs(300));
        assert_done(&client, down);
        assert_done(&server, up);
        prop_assert_eq!(net.totals().split, 1);
        prop_assert_eq!(net.totals().connections, 0);
    }
}

// Breaks: a gateway gains nothing on the path that it is for.
#[test]
fn a_lossy_satellite_link_is_used() {
    const BYTES: usize = 30_000_000;
    let mut seconds = [0.0; 2];
    for (at, split) in [true, false].into_iter().enumerate() {
        let mut plan = Plan { loss: 0.0012, ..Plan::new() };
        if !split {
            plan.config.max_connections = 0;
        }
        let mut net = Net::new(plan);
        let server = serve(&mut net, linux(), 0);
        let _client = call(&mut net, linux(), BYTES);
        while !server.borrow().peer_closed {
            net.run_for(Span::from_millis(100));
            assert!(net.world.now().as_secs_f64() < 600.0);
        }
        assert_done(&server, BYTES);
        seconds[at] = net.world.now().as_secs_f64();
    }
    assert!(seconds[0] * 3.0 < seconds[1], "{seconds:?} s with and without the gateway");
}

// Breaks: a host whose own first flight delays the ACKs of the other's makes the transfer take half as long
// again: these ACKs come at once, and tell of a rate that the window of the receiver never allows.
#[test]
fn hosts_that_both_send_at_once_start_as_fast() {
    let took = |first_flight| {
        let mut net = Net::new(Plan { rate: Rate::from_mbit(10), ..Plan::new() });
        let server = serve(&mut net, linux(), first_flight);
        let _client = call(&mut net, linux(), 5_000_000);
        while server.borrow().received < 5_000_000 {
            net.run_for(Span::from_millis(100));
            assert!(net.world.now().as_secs_f64() < 60.0);
        }
        net.world.now().as_secs_f64()
    };
    let (quiet, both) = (took(0), took(20_000));
    assert!(quiet < 8.0 && both < 1.25 * quiet, "{quiet} s and {both} s");
}

// Breaks: bytes acknowledged but not delivered grow without bound when a host does not read.
#[test]
fn what_is_not_delivered_is_bounded() {
    let mut plan = Plan { rate: Rate::from_mbit(1000), delay: Span::from_millis(20), ..Plan::new() };
    let mut policy = policy();
    policy.buffer = ByteCount::new(1 << 20);
    plan.config.policies = farpace_gateway::PolicyTable::new(vec![], policy);
    let mut net = Net::new(plan);
    let kept = record();
    let made = kept.clone();
    net.listen(linux(), move || Program { reads_nothing: true, ..Program::new(0, [2, 1], &made) });
    let _client = call(&mut net, linux(), 50_000_000);
    let mut most = 0;
    for _ in 0..200 {
        net.run_for(Span::from_millis(100));
        let flow = net.gateway().flows(net.world.now()).next().unwrap();
        most = most.max(flow.undelivered[0].get());
    }
    // A send buffer, and a receive buffer before it.
    assert!(most > 256 << 10 && most <= 2 << 20, "{most} B");
    assert!(net.totals().memory < ByteCount::new(3 << 20));
    // The host reads at last: everything comes.
    let server = net.server;
    net.with(server, &kept, |program, _| program.reads_nothing = false);
    net.with(server, &kept, |program, connection| {
        use farpace_host::Application;
        program.on_event(Default::default(), connection, farpace_tcp::ConnectionEvent::Readable);
    });
    net.run_for(Span::from_secs(60));
    assert_done(&kept, 50_000_000);
}

// Breaks: the urgent pointer is lost between the legs.
#[test]
fn urgent_data_stays_urgent() {
    let mut net = Net::new(Plan::new());
    let kept = record();
    let made = kept.clone();
    net.listen(linux(), move || Program { closes: false, ..Program::new(0, [2, 1], &made) });
    let client = record();
    net.connect(linux(), Program { closes: false, ..Program::new(1000, [1, 2], &client) });
    net.run_for(Span::from_secs(3));
    let host = net.client;
    net.with(host, &client, |_, connection| {
        let more: Vec<u8> = (1000..1010).map(|n| byte_at(1, n)).collect();
        assert_eq!(connection.write_urgent(&mut Bytes::from(more)).get(), 10);
    });
    net.run_for(Span::from_secs(3));
    assert_eq!(kept.borrow().received, 1010);
    assert_eq!(kept.borrow().wrong, None);
    assert_eq!(kept.borrow().urgent_at, Some(1010));
}
