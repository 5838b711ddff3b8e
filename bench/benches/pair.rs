//! TCP alone: full-size segments sent, received, read and acknowledged per second, without a lab around it;
//! beside it smoltcp's loop-back, which makes and parses IP packets as well.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::{Pair, SMOL_SEGMENT, Smol};
use farpace_tcp::config::{AckControlMode, Profile, RequestRule};
use std::time::Duration;

/// Segments of one measured step.
const SEGMENTS: u64 = 10_000;

fn pair(c: &mut Criterion) {
    let mut group = c.benchmark_group("back to back");
    group.sample_size(10).measurement_time(Duration::from_secs(5)).throughput(Throughput::Elements(SEGMENTS));
    let plain = [Profile::Modern, Profile::NewReno, Profile::AistFix];
    let plain = plain.map(|p| (p.name(), Pair::new(p, 256)));
    let asking =
        [("modern, asks auto", RequestRule::Auto), ("modern, asks everything", RequestRule::Everything)];
    let asking =
        asking.map(|(name, when)| (name, Pair::asking(Profile::Modern, 256, AckControlMode::Safe, when)));
    for (name, mut pair) in plain.into_iter().chain(asking) {
        group.bench_function(name, |b| {
            b.iter(|| {
                let until = pair.delivered + SEGMENTS;
                while pair.delivered < until {
                    pair.turn();
                }
            });
        });
    }
    let mut smol = Smol::new();
    group.bench_function("smoltcp (loop-back, 1460 bytes a segment)", |b| {
        b.iter(|| {
            let mut left = SEGMENTS as usize * SMOL_SEGMENT;
            while left > 0 {
                left = left.saturating_sub(smol.turn());
            }
        });
    });
    group.finish();
}

criterion_group!(benches, pair);
criterion_main!(benches);
