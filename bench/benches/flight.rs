//! Cost of loss recovery per segment, with 100, 2,500 and 100,000 segments in flight and 1 % of them lost:
//! sender's scoreboard, receiver's reassembly and SACK blocks together.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_bench::Flight;
use farpace_tcp::config::{Profile, Recovery};
use farpace_tcp::recovery::{Linux26Recovery, LossRecovery, NewReno, SackRecovery};
use std::time::Duration;

fn flight(c: &mut Criterion) {
    let mut group = c.benchmark_group("flight");
    group.sample_size(10).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(1));
    for profile in [
        Profile::Linux2617,
        Profile::AistFix,
        Profile::Linux2624,
        Profile::NewReno,
        Profile::Rfc6675,
        Profile::Modern,
    ] {
        for in_flight in [100, 2_500, 100_000] {
            let recovery: Box<dyn LossRecovery> = match profile.config().recovery {
                Recovery::Linux26(switches) => Box::new(Linux26Recovery::new(switches)),
                Recovery::Modern(switches) => Box::new(SackRecovery::new(switches)),
                Recovery::Linux(_) | Recovery::NewReno => Box::new(NewReno::default()),
            };
            let mut flight = Flight::new(recovery, in_flight, 0.01);
            group.bench_function(format!("{}, {in_flight} in flight, 1 % lost", profile.name()), |b| {
                b.iter(|| flight.step());
            });
            println!("    {} outstanding, {} timeouts", flight.outstanding(), flight.timeouts());
        }
    }
    // The same number of holes, or as many as fit, in flights of very different size.
    if let Recovery::Modern(switches) = Profile::Modern.config().recovery {
        for (in_flight, loss) in [(1_000, 0.1), (100_000, 0.1), (1_000_000, 0.01)] {
            let mut flight = Flight::new(Box::new(SackRecovery::new(switches)), in_flight, loss);
            group.bench_function(format!("modern, {in_flight} in flight, {loss} lost"), |b| {
                b.iter(|| flight.step());
            });
            println!("    {} outstanding, {} timeouts", flight.outstanding(), flight.timeouts());
        }
    }
    group.finish();
}

criterion_group!(benches, flight);
criterion_main!(benches);
