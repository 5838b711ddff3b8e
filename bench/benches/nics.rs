//! Cost of sending a packet by one of several cards: whose it is, which card, in which order, for 10,000 connections. With
//! it comes what the event loop around it costs: one wake-up per frame, and a queue of packets that have left.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::NicsLoad;
use farpace_link::multi_nic::OrderKind;
use std::time::Duration;

const CONNECTIONS: u32 = 10_000;

fn nics(c: &mut Criterion) {
    let mut group = c.benchmark_group("nics");
    group.sample_size(10).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(1));
    for (order, cards) in [
        (OrderKind::Earliest, 1),
        (OrderKind::Earliest, 2),
        (OrderKind::Earliest, 4),
        (OrderKind::Skip, 4),
        (OrderKind::RoundRobin, 4),
        (OrderKind::FlowHash, 4),
        (OrderKind::Ecf, 4),
    ] {
        let mut load = NicsLoad::new(order, cards, CONNECTIONS);
        let (mut steps, mut left) = (0_u64, 0);
        group.bench_function(format!("{}, {cards} cards", order.name()), |b| {
            b.iter(|| {
                steps += 1;
                left += load.step();
            });
        });
        println!("    {:.3} packets per wake-up", left as f64 / steps as f64);
    }
    group.finish();
}

criterion_group!(benches, nics);
criterion_main!(benches);
