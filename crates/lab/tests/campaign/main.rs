//! The fault campaign: random networks, random programs, every profile. Whatever a network does, every byte
//! arrives in order and once. When the network heals, every transfer ends within a bound.
//!
//! `FARPACE_SEED=n` runs one trial, `FARPACE_SEEDS=n` this number of them, from `FARPACE_FROM` on;
//! `FARPACE_MINUTES=n` runs for this time; `FARPACE_TRACE=1` prints the packets of the smallest trial. A
//! trial that fails prints its knobs, the command that repeats it, and the smallest trial that still fails.

#![allow(clippy::panic, reason = "this is how a law fails")]

mod host;
mod knobs;
mod middlebox;
mod network;
mod paced;
mod program;
mod scenario;
mod shrink;
mod trial;

use knobs::Knobs;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use trial::Report;

/// Default number of trials.
const TRIALS: u64 = 1_500;
/// Trials that broke a law in a way that few others do: delayed ACKs with data in both directions; copies of
/// segments that waited behind each other for a NIC, so that each round trip was longer than the last; a
/// probe after a timeout that had not left yet.
const ONCE_BROKEN: [u64; 4] = [2_611_275_011, 2_611_283_178, 2_611_298_709, 2_611_275_322];

fn number(key: &str) -> Option<u64> {
    std::env::var(key).ok().and_then(|v| v.parse().ok())
}

/// Real time, only for the summary.
#[expect(clippy::disallowed_methods, reason = "how fast the campaign is")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// Laws that were broken, by the place of their definition, with the seeds.
type Broken = BTreeMap<String, Vec<u64>>;

/// The trial of one seed. The first that breaks a law is shrunk and printed.
fn try_seed(seed: u64, broken: &Mutex<Broken>) -> Report {
    let knobs = Knobs::draw(seed);
    let failure = match shrink::attempt(&knobs) {
        Ok(report) => return report,
        Err(failure) => failure,
    };
    let mut all = broken.lock().unwrap_or_else(PoisonError::into_inner);
    let seeds = all.entry(failure.place.clone()).or_default();
    seeds.push(seed);
    if seeds.len() > 1 {
        return Report::default();
    }
    eprintln!("\nseed {seed} breaks a law at {}: {}\n{knobs}", failure.place, failure.text);
    eprintln!("replay: FARPACE_SEED={seed} cargo test -p farpace-lab --test campaign");
    let (small, why) = shrink::shrink(&knobs, &failure);
    if std::env::var_os("FARPACE_TRACE").is_some() {
        _ = std::panic::catch_unwind(AssertUnwindSafe(|| trial::run(&small, true)));
    }
    eprintln!("\nshrunken, at {}: {}\n{small}", why.place, why.text);
    eprintln!("as a scenario:\n{}", scenario::text(&small));
    Report::default()
}

/// Breaks: the engine on some network. Every byte arrives in order and once whatever the network does; when
/// it heals, every transfer ends within its bound; the world comes to rest; accounts balance; each call keeps
/// its contract.
#[test]
fn everything_survives() {
    if let Some(seed) = number("FARPACE_SEED") {
        let broken = Mutex::default();
        println!("{:#?}", try_seed(seed, &broken));
        assert!(broken.lock().is_ok_and(|b| b.is_empty()), "seed {seed} breaks a law: see above");
        return;
    }
    let from = number("FARPACE_FROM").unwrap_or(0);
    let minutes = number("FARPACE_MINUTES").map(|m| Duration::from_secs(m * 60));
    let trials = number("FARPACE_SEEDS").unwrap_or(if minutes.is_some() { u64::MAX } else { TRIALS });
    let (start, next, total) = (clock(), AtomicU64::new(0), Mutex::new(Report::default()));
    let broken = Mutex::default();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(16);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while minutes.is_none_or(|m| start.elapsed() < m) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= trials {
                        break;
                    }
                    let report = try_seed(from.wrapping_add(n), &broken);
                    if let Ok(mut total) = total.lock() {
                        total.add(report);
                    }
                }
            });
        }
    });
    if trials == TRIALS {
        for seed in ONCE_BROKEN {
            try_seed(seed, &broken);
        }
    }
    let total = total.into_inner().expect("no worker failed");
    let (wall, trials) = (start.elapsed().as_secs_f64() / 60.0, next.into_inner().min(trials));
    println!(
        "campaign: {trials} trials, {} connections ({} excused), {:.1} virtual hours, {} events in {:.1} s; \
         per minute of wall time: {:.0} connections, {:.0} virtual hours",
        total.connections,
        total.excused,
        total.virtual_time.as_secs_f64() / 3600.0,
        total.events,
        wall * 60.0,
        total.connections as f64 / wall,
        total.virtual_time.as_secs_f64() / 3600.0 / wall,
    );
    println!("paced: {} frames measured, {} gap frames", total.paced[0], total.paced[1]);
    println!("causes seen: {:?}\nends seen: {:?}", total.causes, total.ends);
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(broken.is_empty(), "broken laws, by place, with the seeds that break them: {broken:?}");
    // The campaign must contain impaired networks.
    if trials >= TRIALS {
        assert!(total.causes.len() >= 14 && total.ends.len() == 4, "{:?} {:?}", total.causes, total.ends);
        assert!(total.paced[0] > TRIALS * 10, "few frames are paced: {:?}", total.paced);
        assert!(total.excused * 4 < total.connections, "{} of {}", total.excused, total.connections);
    }
}
