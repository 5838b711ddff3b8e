//! Many connections under random faults: every byte is compared.

use crate::harness::*;
use farpace_gateway::{GatewayConfig, Policy, PolicyTable};
use farpace_units::{ByteCount, RandomStream, Rate, Span};
use proptest::prelude::*;

fn config(buffer: u64, memory: u64) -> GatewayConfig {
    let policy = Policy { buffer: ByteCount::new(buffer), min_rtt: Span::ZERO, ..policy() };
    let mut config = GatewayConfig::new(PolicyTable::new(vec![], policy));
    (config.memory, config.super_segment) = (ByteCount::new(memory), 65_000);
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    // Breaks: under loss, duplicates, reordering, damage, pressure, drains and restarts a byte is lost,
    // changed or repeated, a connection never ends, or memory is not given back.
    #[test]
    fn every_byte_arrives_under_random_faults(
        seed in any::<u64>(),
        buffer in prop_oneof![Just(65_536u64), Just(1 << 20), Just(64 << 20)],
        memory in prop_oneof![Just(1u64 << 20), Just(64 << 20)],
        mbit in 1u64..200,
        delay in 1u64..400,
        faults in (0.0f64..0.03, 0.0f64..0.02, 0.0f64..0.05, 0.0f64..0.01),
    ) {
        let mut rng = RandomStream::new(seed, "faults");
        let plan = Plan {
            config: config(buffer, memory),
            loss: faults.0,
            faults: Some(Faults { duplicate: faults.1, reorder: faults.2, corrupt: faults.3 }),
            rate: Rate::from_mbit(mbit),
            delay: Span::from_millis(delay),
            seed,
            ..Plan::new()
        };
        let mut net = Net::new(plan);
        let down = 1 + rng.below(150_000) as usize;
        let servers = serve_each(&mut net, linux(), down);
        let mut clients = Vec::new();
        for _ in 0..12 {
            let up = rng.below(150_000) as usize;
            clients.push((call(&mut net, linux(), up), up));
            net.run_for(Span::from_millis(rng.below(1_500)));
            if rng.below(4) == 0 {
                // Stopped in order, and started again.
                net.drain();
                let mut waited = 0;
                while net.totals().connections > 0 {
                    net.run_for(Span::from_millis(200));
                    waited += 1;
                    prop_assert!(waited < 3_000, "connections are not handed over");
                }
                net.restart(config(buffer, memory));
            }
        }
        net.run_for(Span::from_secs(3_000));
        for (client, _) in &clients {
            assert_done(client, down);
        }
        let servers = servers.borrow();
        prop_assert_eq!(servers.len(), clients.len());
        let mut sizes: Vec<_> = servers.iter().map(|record| record.borrow().received).collect();
        let mut sent: Vec<_> = clients.iter().map(|(_, up)| *up).collect();
        sizes.sort_unstable();
        sent.sort_unstable();
        prop_assert_eq!(sizes, sent);
        prop_assert!(servers.iter().all(|record| record.borrow().wrong.is_none()));
        let totals = net.totals();
        prop_assert_eq!((totals.connections, totals.half_open, totals.memory), (0, 0, ByteCount::ZERO));
    }
}
