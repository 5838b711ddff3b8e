//! Cost of sending a packet by one of several NICs: whose it is, which NIC, in which order, for 10,000
//! connections. With it comes what the event loop around it costs: one wake-up per frame, and a queue of
//! packets that have left.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::NicsLoad;
use farpace_link::multi_nic::OrderKind;
use std::time::Duration;

const CONNECTIONS: u32 = 10_000;

fn nics(c: &mut Criterion) {
    let mut group = c.benchmark_group("nics");
    group.sample_size(10).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(1));
    for (order, nics, repairs) in [
        (OrderKind::Earliest, 1, false),
        (OrderKind::Earliest, 2, false),
        (OrderKind::Earliest, 4, false),
        (OrderKind::Earliest, 4, true),
        (OrderKind::Skip, 4, false),
        (OrderKind::RoundRobin, 4, false),
        (OrderKind::FlowHash, 4, false),
        (OrderKind::Ecf, 4, false),
    ] {
        let mut load = NicsLoad::new(order, nics, CONNECTIONS, repairs);
        let (mut steps, mut left) = (0_u64, 0);
        let copies = if repairs { ", copies kept" } else { "" };
        group.bench_function(format!("{}, {nics} NICs{copies}", order.name()), |b| {
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
