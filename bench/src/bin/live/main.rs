//! One TCP connection between the kernel and something in user space, in both directions, in one run on one
//! machine: what of it holds elsewhere are the ratios.
//!
//! `cargo run --release -p farpace-bench --bin live -- [--seconds N] [--only NAME] [--way out|in] [--json]`.
//! Needs root. Each contender has network namespaces of its own, which go with its threads.

#![allow(clippy::disallowed_methods, reason = "a stopwatch for the real world")]

mod ends;
mod engine;
mod gvisor;
mod kernel;
mod meter;
mod smol;
mod table;

use farpace_live::Wait;
use meter::{Measure, Way};
use std::process::ExitCode;

/// Somebody who carries a stream.
struct Contender {
    name: &'static str,
    what: &'static str,
    run: fn(Way, f64) -> anyhow::Result<Measure>,
}

const CONTENDERS: [Contender; 12] = [
    Contender { name: "kernel", what: "kernel to kernel, veth, with offloads", run: kernel::with_offloads },
    Contender { name: "kernel-plain", what: "kernel to kernel, veth, 1500-byte packets", run: kernel::plain },
    Contender { name: "farpace", what: "farpace on TUN, super-segments, sleeping", run: engine::sleeping },
    Contender {
        name: "farpace-spin",
        what: "farpace on TUN, super-segments, spinning",
        run: engine::spinning,
    },
    Contender { name: "farpace-plain", what: "farpace on TUN, 1500-byte packets", run: engine::plain },
    Contender {
        name: "farpace-packet",
        what: "farpace on veth, AF_PACKET with super-segments",
        run: engine::packet,
    },
    Contender {
        name: "farpace-packet-plain",
        what: "farpace on veth, AF_PACKET, 1500-byte packets",
        run: engine::packet_plain,
    },
    Contender { name: "farpace-xdp", what: "farpace on veth, AF_XDP, 1500-byte packets", run: engine::xdp },
    Contender { name: "smoltcp", what: "smoltcp on TUN, 1500-byte packets", run: smol::plain },
    Contender { name: "smoltcp-64k", what: "smoltcp on TUN, MTU 65535", run: smol::large },
    Contender { name: "gvisor", what: "gVisor on TUN, 1500-byte packets", run: gvisor::tun },
    Contender {
        name: "gvisor-gso",
        what: "gVisor on veth, AF_PACKET with super-segments",
        run: gvisor::packet,
    },
];

/// Of a byte each.
const QUESTIONS: usize = 20_000;
type Ask = fn(usize) -> anyhow::Result<Vec<f64>>;
const LATENCIES: [(&str, &str, Ask); 3] = [
    ("kernel", "kernel to kernel, veth", kernel::latency),
    ("farpace", "farpace on TUN, sleeping", |n| engine::latency(n, Wait::Sleep)),
    ("farpace-spin", "farpace on TUN, spinning", |n| engine::latency(n, Wait::Spin)),
];

struct Args {
    seconds: f64,
    only: Option<String>,
    /// This way alone, and no questions.
    way: Option<Way>,
    json: bool,
    rounds: usize,
}

fn main() -> ExitCode {
    let args = match args() {
        Ok(args) => args,
        Err(why) => {
            eprintln!("live: {why}");
            return ExitCode::from(2);
        }
    };
    let mut rows = Vec::new();
    for contender in CONTENDERS.iter().filter(|c| args.only.as_deref().is_none_or(|only| c.name == only)) {
        for way in [Way::Out, Way::In].into_iter().filter(|way| args.way.is_none_or(|only| *way == only)) {
            // The median of the rounds: other work of the machine disturbs some.
            let mut rounds = Vec::new();
            for _ in 0..args.rounds {
                eprintln!("{}, {} ...", contender.what, way.name());
                match std::thread::scope(|s| s.spawn(|| (contender.run)(way, args.seconds)).join()) {
                    Ok(Ok(measure)) => rounds.push(measure),
                    // One that stalls is told of and left out; the others are worth something without it.
                    Ok(Err(error)) => eprintln!("live: {}, {}: {error:#}", contender.name, way.name()),
                    Err(_) => return ExitCode::FAILURE,
                }
            }
            if rounds.is_empty() {
                continue;
            }
            rounds.sort_by(|a, b| a.gbits().total_cmp(&b.gbits()));
            rows.push((contender.name, contender.what, way, rounds.swap_remove(rounds.len() / 2)));
        }
    }
    let mut latencies = Vec::new();
    for (name, what, ask) in LATENCIES
        .iter()
        .filter(|(name, ..)| args.way.is_none() && args.only.as_deref().is_none_or(|o| *name == o))
    {
        eprintln!("{what}, questions and answers ...");
        match std::thread::scope(|s| s.spawn(|| ask(QUESTIONS)).join()) {
            Ok(Ok(times)) => latencies.push((*name, *what, times)),
            Ok(Err(error)) => {
                eprintln!("live: {name}: {error:#}");
                return ExitCode::FAILURE;
            }
            Err(_) => return ExitCode::FAILURE,
        }
    }
    if args.json {
        table::json(&rows, &latencies)
    } else {
        table::text(&rows, &latencies)
    }
    ExitCode::SUCCESS
}

fn args() -> Result<Args, String> {
    let mut args = Args { seconds: 3.0, only: None, way: None, json: false, rounds: 3 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--seconds" => args.seconds = value()?.parse().map_err(|_| "--seconds: a number")?,
            "--rounds" => args.rounds = value()?.parse().map_err(|_| "--rounds: a number")?,
            "--only" => args.only = Some(value()?),
            "--way" => {
                let name = value()?;
                let way = [Way::Out, Way::In].into_iter().find(|way| way.name() == name);
                args.way = Some(way.ok_or("--way: out or in")?);
            }
            "--json" => args.json = true,
            _ => {
                return Err(format!(
                    "`{word}`: expected --seconds N, --rounds N, --only NAME, --way WAY or --json"
                ));
            }
        }
    }
    let known = args.only.as_deref().is_none_or(|only| CONTENDERS.iter().any(|c| c.name == only));
    if !known || args.rounds == 0 || !(0.1..=600.0).contains(&args.seconds) {
        let names: Vec<_> = CONTENDERS.iter().map(|c| c.name).collect();
        return Err(format!("--only one of {}, --rounds at least 1, --seconds from 0.1", names.join(", ")));
    }
    Ok(args)
}
