//! Cost of pacing a packet, enqueue and dequeue together with the gap frames before it, by number of classes:
//! all of them with packets, or one in a hundred.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::{LINE, MTU, PacingLoad};
use farpace_link::pacing::{Edf, Gaps};
use farpace_units::Span;
use std::time::Duration;

fn pacing(c: &mut Criterion) {
    let mut group = c.benchmark_group("pacing");
    group.sample_size(10).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(1));
    for (classes, one_in, says) in [
        (10, 1, "all with packets"),
        (1_000, 1, "all with packets"),
        (100_000, 1, "all with packets"),
        (1_000_000, 1, "all with packets"),
        (1_000, 100, "1 % with packets"),
        (100_000, 100, "1 % with packets"),
        (1_000_000, 100, "1 % with packets"),
    ] {
        let edf = Edf::new(LINE, MTU, Gaps::Frames, Span::ZERO);
        let Ok(mut load) = edf.and_then(|edf| PacingLoad::new(edf, classes, one_in)) else { continue };
        let (mut packets, gaps) = (0u64, load.gaps);
        group.bench_function(format!("edf, {classes} classes, {says}"), |b| {
            b.iter(|| {
                packets += 1;
                load.step();
            });
        });
        println!("    {:.3} gap frames per packet", (load.gaps - gaps) as f64 / packets as f64);
    }
    group.finish();
}

criterion_group!(benches, pacing);
criterion_main!(benches);
