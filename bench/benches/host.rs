//! Cost of a segment in a host with 100, 10,000 and 100,000 connections, and of a forged SYN when the backlog
//! is full. Making the packet is part of it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::Server;
use std::time::Duration;

fn host(c: &mut Criterion) {
    let mut group = c.benchmark_group("host");
    group.sample_size(20).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(1));
    for clients in [100, 10_000, 100_000] {
        let mut server = Server::new(clients);
        group.bench_function(format!("a segment for one of {clients} connections"), |b| {
            b.iter(|| server.segment());
        });
    }
    let mut server = Server::new(0);
    (0..10_000).for_each(|_| server.forged_syn());
    group.bench_function("a forged SYN, answered with a cookie", |b| b.iter(|| server.forged_syn()));
    println!("    {} half open", server.half_open());
    group.finish();
}

criterion_group!(benches, host);
criterion_main!(benches);
