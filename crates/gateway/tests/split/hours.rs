//! Hours of a gateway's life in virtual time, under random faults, with kills, drains and resets. Every byte
//! is compared.
//!
//! `FARPACE_HOURS` is the virtual time (default: 1), `FARPACE_FROM` the first seed. An episode takes an hour.

use crate::harness::*;
use crate::shards::ShardNet;
use farpace_gateway::{Action, Gateway, GatewayConfig, Policy, PolicyTable};
use farpace_host::Host;
use farpace_path::Cx;
use farpace_units::{ByteCount, RandomStream, Rate, Span};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Connections are opened, and things happen to the gateway, in the first part of an episode. In the rest
/// everything comes to its end.
const BUSY: Span = Span::from_secs(1_200);
const REST: Span = Span::from_secs(2_400);

struct Client {
    record: Rc<RefCell<Record>>,
    /// What it sends; each client of an episode another number.
    up: usize,
    /// It was reset, or the gateway was killed under it: then TCP promises less.
    is_disturbed: bool,
}

/// What the server has got of clients that are done in both directions.
fn whole(servers: &Records) -> BTreeSet<usize> {
    let servers = servers.borrow();
    let whole = servers.iter().map(|server| server.borrow()).filter(|record| record.peer_closed);
    whole.map(|record| record.received).collect()
}

impl Client {
    /// Something happens that TCP does not hide from what is under way.
    fn disturb(&mut self, down: usize, whole: &BTreeSet<usize>) {
        let record = self.record.borrow();
        let is_done = record.peer_closed && record.received == down && whole.contains(&self.up);
        self.is_disturbed |= !is_done;
    }
}

/// What an episode has had.
#[derive(Debug, Default)]
struct Counts {
    connections: usize,
    disturbed: usize,
    kills: usize,
    drains: usize,
    compared: usize,
}

fn config(random: &mut RandomStream) -> GatewayConfig {
    let pick = |random: &mut RandomStream, from: &[u64]| from[random.below(from.len() as u64) as usize];
    let policy = Policy {
        buffer: ByteCount::new(pick(random, &[65_536, 1 << 20, 64 << 20])),
        min_rtt: Span::from_millis(pick(random, &[0, 5, 100])),
        action: if random.below(2) == 0 { Action::Auto } else { Action::Split },
        ..policy()
    };
    let mut config = GatewayConfig::new(PolicyTable::new(vec![], policy));
    config.memory = ByteCount::new(pick(random, &[1 << 20, 8 << 20, 64 << 20]));
    config.super_segment = pick(random, &[0, 65_000]) as u32;
    config.control_group = [0.0, 0.3][random.below(2) as usize];
    config
}

fn episode(seed: u64) -> Counts {
    let mut random = RandomStream::new(seed, "hours");
    let rng = &mut random;
    let share = |rng: &mut RandomStream, most: f64| match rng.below(2) {
        0 => 0.0,
        _ => rng.below(1_000) as f64 / 1_000.0 * most,
    };
    let config = config(rng);
    let mbit = 1 + rng.below(100);
    let mut plan = Plan {
        config: config.clone(),
        loss: share(rng, 0.03),
        rate: Rate::from_mbit(mbit),
        delay: Span::from_millis(1 + rng.below(300)),
        seed,
        faults: Some(Faults {
            duplicate: share(rng, 0.02),
            reorder: share(rng, 0.05),
            corrupt: share(rng, 0.01),
        }),
        ..Plan::new()
    };
    if rng.below(3) == 0 {
        plan.addresses = ["fd00::1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    }
    let mut net = ShardNet::new(1 + rng.below(3) as u16, plan);
    // Each connection takes two seconds of the link at most.
    let largest = (mbit * 250_000).min(2_000_000);
    let down = rng.below(largest) as usize;
    let servers = serve_each(&mut net.net, linux(), down);
    let mut clients: Vec<Client> = Vec::new();
    let mut counts = Counts::default();
    let end = net.net.world.now() + BUSY;
    while net.net.world.now() < end {
        net.run_for(Span::from_millis(rng.below(30_000)));
        match rng.below(20) {
            0 => {
                net.restart(&config);
                counts.kills += 1;
                let whole = whole(&servers);
                clients.iter_mut().for_each(|client| client.disturb(down, &whole));
            }
            1 => {
                net.on_each(Gateway::drain);
                let mut waited = 0;
                while net.totals().connections > 0 {
                    net.run_for(Span::from_millis(500));
                    waited += 1;
                    assert!(waited < 4_000, "seed {seed}: connections are not handed over");
                }
                counts.compared += net.totals().passed_control as usize;
                net.restart(&config);
                counts.drains += 1;
            }
            2 if !clients.is_empty() => {
                let at = rng.below(clients.len() as u64) as usize;
                let client = &mut clients[at];
                client.disturb(down, &whole(&servers));
                let id = client.record.borrow().id;
                let host = net.net.client;
                let abort = |host: &mut Host, cx: &mut Cx<'_>| {
                    id.map(|id| host.with_connection(id, cx, |connection| connection.abort()).is_some())
                };
                net.net.world.call(host, &mut net.net.tap, abort).unwrap();
            }
            _ => {
                for _ in 0..1 + rng.below(6) {
                    let up = clients.len() + 100 * rng.below(largest / 100) as usize / 1_000 * 1_000;
                    let record = call(&mut net.net, linux(), up);
                    clients.push(Client { record, up, is_disturbed: false });
                }
            }
        }
    }
    net.run_for(REST);
    for client in &clients {
        let record = client.record.borrow();
        assert_eq!(record.wrong, None, "seed {seed}: a byte differs");
        let complete = record.peer_closed && record.received == down;
        // A stream that ends as if it were whole is whole, whatever has happened.
        assert!(
            complete || !record.peer_closed,
            "seed {seed}: {} of {down} bytes, and a FIN",
            record.received
        );
        assert!(complete || client.is_disturbed, "seed {seed}: {} of {down} bytes", record.received);
    }
    let sizes: BTreeSet<usize> = clients.iter().map(|client| client.up).collect();
    assert_eq!(sizes.len(), clients.len(), "a test of the test");
    let mut arrived = BTreeSet::new();
    for server in servers.borrow().iter() {
        let record = server.borrow();
        assert_eq!(record.wrong, None, "seed {seed}: a byte differs");
        if record.peer_closed {
            let is_known = sizes.contains(&record.received) && arrived.insert(record.received);
            assert!(is_known, "seed {seed}: a stream ends after {} bytes, or comes twice", record.received);
        }
    }
    for client in clients.iter().filter(|client| !client.is_disturbed) {
        assert!(arrived.contains(&client.up), "seed {seed}: {} bytes have not arrived", client.up);
    }
    let totals = net.totals();
    assert_eq!((totals.connections, totals.half_open, totals.memory), (0, 0, ByteCount::ZERO), "seed {seed}");
    counts.connections = clients.len();
    counts.disturbed = clients.iter().filter(|client| client.is_disturbed).count();
    counts.compared += totals.passed_control as usize;
    counts
}

/// Breaks: a gateway that runs for long, is killed, drained or spread over threads loses, changes or repeats
/// a byte, ends a stream too early as if it were whole, or keeps connections or memory.
#[test]
fn every_byte_of_virtual_hours_is_right() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (hours, from) = (number("FARPACE_HOURS").unwrap_or(1), number("FARPACE_FROM").unwrap_or(1));
    for seed in from..from + hours {
        let counts = episode(seed);
        println!("hour {seed}: {counts:?}");
        assert!(counts.connections > 50, "{counts:?}");
    }
}
