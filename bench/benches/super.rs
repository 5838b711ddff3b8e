//! Bulk data between two hosts: super-segments of 44 times 1460 bytes, and plain segments. Bytes a second of
//! both ends together, of the sender alone, and of the receiver alone; and the checksum, which a device may
//! or may not take over.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::Supers;
use farpace_wire::checksum::checksum;
use std::hint::black_box;
use std::time::{Duration, Instant};

const BYTES: u64 = 64 << 20;

fn hosts(c: &mut Criterion) {
    let mut group = c.benchmark_group("super");
    group.sample_size(10).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_millis(500));
    group.throughput(Throughput::Bytes(BYTES));
    for (name, most) in [("plain", 0), ("super", 44 * 1460)] {
        let mut supers = Supers::new(most);
        for (side, sends, receives) in
            [("both", true, true), ("sender", true, false), ("receiver", false, true)]
        {
            group.bench_function(format!("{name}, {side}"), |b| {
                b.iter_custom(|times| {
                    let mut spent = Duration::ZERO;
                    let until = supers.delivered + times * BYTES;
                    while supers.delivered < until {
                        let start = Instant::now();
                        supers.send();
                        let middle = Instant::now();
                        supers.receive();
                        spent += if sends { middle - start } else { Duration::ZERO };
                        spent += if receives { middle.elapsed() } else { Duration::ZERO };
                    }
                    spent
                });
            });
        }
    }
    group.finish();
}

fn checksums(c: &mut Criterion) {
    let mut group = c.benchmark_group("checksum");
    group.sample_size(20).measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300));
    for len in [64, 1_460, 64_240] {
        let bytes = vec![0x5a; len];
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(format!("{len} B"), |b| b.iter(|| checksum(black_box(&bytes))));
    }
    group.finish();
}

criterion_group!(benches, hosts, checksums);
criterion_main!(benches);
