//! What one connection gets over several separate paths, beside the best of them alone and their sum.
//!
//! `cargo run --release -p farpace-bench --bin multipath -- [--seed 1] [--sets 20] [--controls
//! modern,farpace,bbr3] [--receivers order,stock] [--seconds 8] [--house] [--each]`
//!
//! Each set has two to four paths, drawn from its seed: 5 to 300 Mbit/s, round trips of 1 to 300 ms, every
//! second path with losses of up to 1 %, every second with jitter of up to 8 ms, queues of 0.3 to 3 products
//! of rate and round trip, every second a narrow link behind a wider NIC. The best single path is that of the
//! same control.

#[path = "../../../crates/lab/tests/shared/unequal_paths.rs"]
mod unequal_paths;

use anyhow::{Result, anyhow};
use clap::Parser;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_units::RandomStream;
use rayon::prelude::*;
use unequal_paths::{UnequalPath, scenario};

#[derive(Parser)]
struct Args {
    /// The first set
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of sets
    #[arg(long, default_value_t = 20)]
    sets: u64,
    /// Senders, separated by commas: profiles, or congestion controls of the profile `modern`
    #[arg(long, value_delimiter = ',', default_value = "modern,farpace,bbr3")]
    controls: Vec<String>,
    /// Receivers: `order` puts frames in order and asks for missing ones, `stock` does neither
    #[arg(long, value_delimiter = ',', default_value = "order,stock")]
    receivers: Vec<String>,
    /// How long the connection sends
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// The three links of a house in place of random sets: plain, with jitter, with loss
    #[arg(long)]
    house: bool,
    /// Print each set
    #[arg(long)]
    each: bool,
}

fn random_path(rng: &mut RandomStream) -> UnequalPath {
    let mut between = |low: f64, high: f64| low * libm::pow(high / low, rng.unit());
    let (mbit, rtt_ms, loss) = (between(5.0, 300.0), between(1.0, 300.0), between(0.000_1, 0.01));
    let bdp = mbit * 1e6 / 8.0 * rtt_ms / 1e3 / 1_538.0;
    let queue = (between(0.3, 3.0) * bdp).max(20.0) as u64;
    let jitter_ms = rng.unit() * 8.0;
    let [lossy, jitters, behind] = [rng.chance(0.5), rng.chance(0.5), rng.chance(0.5)];
    UnequalPath {
        kbit: (mbit * 1e3) as u64,
        delay_us: (rtt_ms * 500.0) as u64,
        jitter_us: if jitters { (jitter_ms * 1e3) as u64 } else { 0 },
        loss: if lossy { loss } else { 0.0 },
        queue,
        behind,
    }
}

/// Payload in Mbit/s: 1448 of each 1538 B.
fn payload(path: &UnequalPath) -> f64 {
    path.kbit as f64 / 1e3 * 1_448.0 / 1_538.0
}

fn summary(path: &UnequalPath) -> String {
    let UnequalPath { kbit, delay_us, jitter_us, loss, queue, behind } = path;
    let behind = if *behind { ", behind a wider NIC" } else { "" };
    format!(
        "{:.1} Mbit/s, {:.1} ms, jitter {:.1} ms, loss {:.2} %, {queue} packets{behind}",
        *kbit as f64 / 1e3,
        *delay_us as f64 / 500.0,
        *jitter_us as f64 / 1e3,
        loss * 100.0,
    )
}

/// What a run brought.
struct Goodput {
    mbit: f64,
    retransmitted: f64,
    timeouts: u64,
    /// Frames by NIC, and what the receiver's layer says.
    more: String,
}

fn run(paths: &[UnequalPath], control: &str, receiver: Option<&str>, seconds: u64) -> Result<Goodput> {
    let hosts = match receiver {
        None => "[hosts.a]\n[hosts.b]\n",
        Some("stock") => "[hosts.a.multi_nic]\n[hosts.b.multi_nic]\n",
        Some(_) => {
            "[hosts.a.multi_nic]\nresequence = { time = \"400 ms\", bytes = \"128 MB\" }\n\
             [hosts.b.multi_nic]\nresequence = { time = \"400 ms\", bytes = \"128 MB\" }\n"
        }
    };
    let sender = match control {
        "modern" | "farpace" | "linux" => format!("profile = \"{control}\", "),
        control => format!("profile = \"modern\", congestion = \"{control}\", "),
    };
    let text = scenario(paths, seconds, &format!("seed = 7\n{hosts}"), &sender, "128 MB");
    let scenario = Scenario::parse(&text, "multipath.toml").map_err(|e| anyhow!("{e}\n{text}"))?;
    let mut run = Run::new(&scenario, Inputs::default())?;
    while !run.advance(None)?.finished {}
    let outcome = run.finish()?;
    let flow = outcome.flows.get(1).ok_or_else(|| anyhow!("no flow"))?;
    let sent: Vec<u64> =
        outcome.nics.first().map(|nics| nics.nics.iter().map(|nic| nic.sent).collect()).unwrap_or_default();
    let wanted = ["late frames", "resequencing timeouts", "path failures", "retransmitted"];
    let readings = |at: usize| {
        let readings = outcome.nics.get(at).map(|nics| nics.readings.clone()).unwrap_or_default();
        let some = readings.into_iter().filter(|(name, _)| wanted.contains(name));
        some.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    Ok(Goodput {
        mbit: flow.delivered.bits() as f64 / seconds as f64 / 1e6,
        retransmitted: flow.retransmissions() as f64 / flow.counters.data_segments_sent.max(1) as f64,
        timeouts: flow.timeouts,
        more: format!("frames {sent:?}; a: {}; b: {}", readings(0), readings(1)),
    })
}

/// The least and the median.
fn least_and_median(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |n: usize| values.get(n).copied().unwrap_or(f64::NAN);
    (at(0), at(values.len() / 2))
}

fn house() -> Vec<(String, Vec<UnequalPath>)> {
    let path = |mbit: u64, rtt_ms: u64, queue: u64| UnequalPath {
        kbit: mbit * 1_000,
        delay_us: rtt_ms * 500,
        jitter_us: 0,
        loss: 0.0,
        queue,
        behind: false,
    };
    let plain = vec![path(80, 40, 260), path(180, 90, 1_300), path(150, 60, 730)];
    let mut sets = vec![("plain".to_owned(), plain.clone())];
    for n in 0..plain.len() {
        let mut jitters = plain.clone();
        jitters[n].jitter_us = 5_000;
        sets.push((format!("5 ms of jitter on link {n}"), jitters));
        let mut loses = plain.clone();
        loses[n].loss = 0.001;
        sets.push((format!("0.1 % loss on link {n}"), loses));
    }
    sets
}

fn main() -> Result<()> {
    let args = Args::parse();
    let sets: Vec<(String, Vec<UnequalPath>)> = if args.house {
        house()
    } else {
        let set = |seed: u64| {
            let mut rng = RandomStream::new(seed, "multipath");
            let paths = (0..2 + rng.below(3)).map(|_| random_path(&mut rng)).collect();
            (format!("set {seed}"), paths)
        };
        (args.seed..args.seed + args.sets).map(set).collect()
    };
    for control in &args.controls {
        let measured: Vec<(f64, f64, Vec<Goodput>)> = sets
            .par_iter()
            .with_max_len(1)
            .map(|(_, paths)| {
                let alone = paths
                    .iter()
                    .map(|path| Ok(run(std::slice::from_ref(path), control, None, args.seconds)?.mbit))
                    .collect::<Result<Vec<f64>>>()?;
                let best = alone.into_iter().fold(0.0, f64::max);
                let sum = paths.iter().map(payload).sum();
                let together = args.receivers.iter();
                let together = together.map(|receiver| run(paths, control, Some(receiver), args.seconds));
                Ok((best, sum, together.collect::<Result<_>>()?))
            })
            .collect::<Result<_>>()?;
        if args.each {
            for ((name, paths), (best, sum, runs)) in sets.iter().zip(&measured) {
                println!("{name}: best {best:.1}, sum {sum:.1} Mbit/s");
                for path in paths {
                    println!("    {}", summary(path));
                }
                for (receiver, run) in args.receivers.iter().zip(runs) {
                    println!(
                        "  {control} {receiver}: {:.1} Mbit/s, {:.2} of the best, {:.2} of the sum, \
                         retransmitted {:.2} %, timeouts {}; {}",
                        run.mbit,
                        run.mbit / best,
                        run.mbit / sum,
                        run.retransmitted * 100.0,
                        run.timeouts,
                        run.more
                    );
                }
            }
        }
        for (n, receiver) in args.receivers.iter().enumerate() {
            let got = |of: fn(&(f64, f64, Vec<Goodput>)) -> f64| {
                let ratio = measured.iter().filter_map(|m| Some(m.2.get(n)?.mbit / of(m)));
                least_and_median(ratio.collect())
            };
            let (best, sum) = (got(|m| m.0), got(|m| m.1));
            println!(
                "{control:8} {receiver:6}  of the best: least {:.2}, median {:.2}; \
                 of the sum: least {:.2}, median {:.2}",
                best.0, best.1, sum.0, sum.1
            );
        }
    }
    Ok(())
}
