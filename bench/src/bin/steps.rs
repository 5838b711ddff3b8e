//! What the benchmarks measure, a number of times and nothing else: for profilers and instruction counters.
//! `steps` lists what there is; `steps NAME COUNT` does it.

use farpace_bench::{
    Flight, LINE, MTU, NicsLoad, PacingLoad, Pair, Recording, SMOL_SEGMENT, Server, Smol, Supers, transfer,
};
use farpace_link::multi_nic::OrderKind;
use farpace_link::pacing::{Edf, Gaps};
use farpace_tcp::config::{AckControlMode, Profile, Recovery, RequestRule};
use farpace_tcp::recovery::SackRecovery;
use farpace_units::Span;
use std::process::ExitCode;

type Work = fn(u64) -> Result<(), String>;

const WORKS: [(&str, &str, Work); 19] = [
    ("smoltcp", "a segment of 1460 bytes through smoltcp's loop-back", smoltcp),
    ("tcp", "a segment between two connections back to back", |n| pair(n, None)),
    ("tcp-newreno", "the same, profile newreno", |n| {
        segments(&mut Pair::new(Profile::NewReno, 256), n);
        Ok(())
    }),
    ("tcp-asks-auto", "the same, the sender asks for ACKs where it needs them", |n| {
        pair(n, Some(RequestRule::Auto))
    }),
    ("tcp-asks-everything", "the same, it asks for every ACK", |n| pair(n, Some(RequestRule::Everything))),
    ("flight-100", "a segment recovered with 100 in flight, 1 % lost", |n| flight(n, 100)),
    ("flight-100000", "the same with 100,000 in flight", |n| flight(n, 100_000)),
    ("lab", "a data packet through the lab, profile aist-fix", |n| lab(n, "aist-fix", Recording::Off)),
    ("lab-linux-2.6.17", "the same, profile linux-2.6.17", |n| lab(n, "linux-2.6.17", Recording::Off)),
    ("lab-parquet", "the same as lab, recorded as Parquet", |n| lab(n, "aist-fix", Recording::Parquet)),
    ("pacing-1000", "a packet of one of 1,000 paced classes", |n| pacing(n, 1_000)),
    ("pacing-100000", "the same with 100,000 classes", |n| pacing(n, 100_000)),
    ("nics-1", "a packet of one of 10,000 connections by one NIC", |n| nics(n, 1, false)),
    ("nics-4", "the same by one of four NICs", |n| nics(n, 4, false)),
    ("nics-4-repair", "the same, copies kept", |n| nics(n, 4, true)),
    ("host-100", "a segment for one of 100 connections", |n| host(n, 100)),
    ("host-10000", "the same with 10,000 connections", |n| host(n, 10_000)),
    ("connections", "a connection from handshake to TIME-WAIT, 10,000 waiting there", connections),
    ("super", "a kilobyte between two hosts in super-segments", supers),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map(String::as_str);
    let Some(name) = name else {
        WORKS.iter().for_each(|(name, what, _)| println!("{name:20} {what}"));
        return ExitCode::SUCCESS;
    };
    let work = WORKS.iter().find(|work| work.0 == name);
    let count = args.get(1).and_then(|text| text.parse().ok());
    let (Some((.., work)), Some(count)) = (work, count) else {
        eprintln!("steps: expected NAME COUNT; `steps` alone lists the names");
        return ExitCode::from(2);
    };
    match work(count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steps: {error}");
            ExitCode::FAILURE
        }
    }
}

fn smoltcp(n: u64) -> Result<(), String> {
    let mut smol = Smol::new();
    let mut left = n * SMOL_SEGMENT as u64;
    while left > 0 {
        left = left.saturating_sub(smol.turn() as u64);
    }
    Ok(())
}

fn segments(pair: &mut Pair, n: u64) {
    let until = pair.delivered + n;
    while pair.delivered < until {
        pair.turn();
    }
}

fn pair(n: u64, ask: Option<RequestRule>) -> Result<(), String> {
    let profile = Profile::Modern;
    let mut pair = match ask {
        None => Pair::new(profile, 256),
        Some(when) => Pair::asking(profile, 256, AckControlMode::Safe, when),
    };
    segments(&mut pair, n);
    Ok(())
}

fn flight(n: u64, in_flight: u32) -> Result<(), String> {
    let Recovery::Modern(switches) = Profile::Modern.config().recovery else {
        return Err("the profile `modern` has another recovery".into());
    };
    let mut flight = Flight::new(Box::new(SackRecovery::new(switches)), in_flight, 0.01);
    (0..n).for_each(|_| flight.step());
    Ok(())
}

fn lab(n: u64, profile: &str, recording: Recording) -> Result<(), String> {
    let size = format!("{} kB", n * 1448 / 1000);
    match transfer(profile, &size, recording).packets {
        0 => Err(format!("{size} are no packet")),
        _ => Ok(()),
    }
}

fn pacing(n: u64, classes: u32) -> Result<(), String> {
    let edf = Edf::new(LINE, MTU, Gaps::Frames, Span::ZERO);
    let mut load = edf.and_then(|edf| PacingLoad::new(edf, classes, 1)).map_err(|error| error.to_string())?;
    (0..n).for_each(|_| load.step());
    Ok(())
}

fn nics(n: u64, nics: usize, repairs: bool) -> Result<(), String> {
    let mut load = NicsLoad::new(OrderKind::Earliest, nics, 10_000, repairs);
    (0..n).for_each(|_| {
        load.step();
    });
    Ok(())
}

fn host(n: u64, clients: usize) -> Result<(), String> {
    let mut server = Server::new(clients);
    (0..n).for_each(|_| server.segment());
    Ok(())
}

fn connections(n: u64) -> Result<(), String> {
    let mut server = Server::new(1);
    (0..n).for_each(|_| server.connection());
    Ok(())
}

fn supers(n: u64) -> Result<(), String> {
    let mut supers = Supers::new(44 * 1460);
    while supers.delivered < n * 1000 {
        supers.send();
        supers.receive();
    }
    Ok(())
}
