//! 200 virtual seconds of a bulk transfer over the paper's satellite link, 10 Mbit/s and 500 ms, with bit
//! errors of 1e-7: what one run of `farpace papers satellite` costs, by congestion control.

use criterion::{Criterion, criterion_group, criterion_main};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use std::time::Duration;

const PAPER: &str = include_str!("../../scenarios/papers/satellite.toml");

#[allow(clippy::panic, reason = "a benchmark without a valid run must stop")]
fn scenario(profile: &str, congestion: &str) -> Scenario {
    let set = [
        ("flows.bulk.sender.profile", profile),
        ("flows.bulk.sender.congestion", congestion),
        ("flows.bulk.size", "400 MB"),
        ("links.satellite.forward.bit_errors", "1e-7"),
        ("duration", "200 s"),
    ];
    let set: Vec<(String, String)> = set.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    Scenario::parse_with(PAPER, "satellite.toml", &set).unwrap_or_else(|e| panic!("{e}"))
}

#[allow(clippy::panic, reason = "a benchmark without a valid run must stop")]
fn run(scenario: &Scenario) -> u64 {
    let mut run = Run::new(scenario, Inputs::default()).unwrap_or_else(|e| panic!("{e}"));
    while !run.advance(None).unwrap_or_else(|e| panic!("{e}")).finished {}
    let outcome = run.finish().unwrap_or_else(|e| panic!("{e}"));
    assert!(outcome.flows[0].counters.bytes_sent.get() > 0, "nothing was sent");
    outcome.events
}

fn satellite(c: &mut Criterion) {
    let mut group = c.benchmark_group("satellite, 200 s");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    let cases = [
        ("rfc6675", "star"),
        ("rfc6675", "reno"),
        ("modern", "cubic"),
        ("modern", "bbr3"),
        ("farpace", "farpace"),
    ];
    for (profile, congestion) in cases {
        let scenario = scenario(profile, congestion);
        group.bench_function(congestion, |b| b.iter(|| run(&scenario)));
    }
    group.finish();
}

criterion_group!(benches, satellite);
criterion_main!(benches);
