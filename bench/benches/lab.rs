//! Throughput of the lab: the 1 GB run of the paper's fix, tracing off and on, in data packets per second of
//! wall time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::{Recording, transfer};
use std::time::Duration;

fn lab(c: &mut Criterion) {
    let mut group = c.benchmark_group("lab");
    group.sample_size(10).measurement_time(Duration::from_secs(15));
    let cases = [
        ("aist-fix", "1 GB", Recording::Off),
        ("linux-2.6.17", "1 GB", Recording::Off),
        ("linux-2.6.22", "1 GB", Recording::Off),
        ("newreno", "1 GB", Recording::Off),
        ("aist-fix", "100 MB", Recording::Off),
        ("aist-fix", "100 MB", Recording::Made),
        ("aist-fix", "100 MB", Recording::Parquet),
        ("aist-fix", "100 MB", Recording::Csv),
    ];
    for (profile, size, recording) in cases {
        let packets = transfer(profile, size, recording).packets;
        group.throughput(Throughput::Elements(packets));
        group.bench_function(format!("{profile}, {size}, recording {recording:?}"), |b| {
            b.iter(|| transfer(profile, size, recording));
        });
    }
    group.finish();
}

criterion_group!(benches, lab);
criterion_main!(benches);
