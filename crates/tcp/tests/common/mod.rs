//! What several test files need: seeds that can be replayed, and polling under the connection's contract.

#![allow(dead_code, reason = "each test file uses its part")]

use farpace_tcp::{Connection, OutgoingSegment, Reason, Transmit};
use farpace_units::Instant;

/// More segments than any one call may give.
const STORM: usize = 100_000;

/// Runs `test` for the seeds `0..n`, or only for the one in the environment variable FARPACE_SEED;
/// FARPACE_SEEDS sets `n`. A failure prints the line that replays it.
pub fn for_seeds(file: &str, name: &str, n: u64, test: impl Fn(u64)) {
    struct Replay(String);
    impl Drop for Replay {
        fn drop(&mut self) {
            if std::thread::panicking() {
                println!("replay: {}", self.0);
            }
        }
    }
    let number = |key: &str| std::env::var(key).ok().and_then(|v| v.parse::<u64>().ok());
    let range = match number("FARPACE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FARPACE_SEEDS").unwrap_or(n),
    };
    for seed in range {
        let line = format!("FARPACE_SEED={seed} cargo test -p farpace-tcp --test {file} {name}");
        let _replay = Replay(line);
        test(seed);
    }
}

/// Drains `poll_transmit`, a few segments at a time, and checks what it promises.
pub fn drain(c: &mut Connection, now: Instant, budget: usize) -> Vec<OutgoingSegment> {
    let mut out = Vec::new();
    loop {
        let before = out.len();
        match c.poll_transmit(now, &mut out, budget) {
            Transmit::Sent(n) => {
                assert_eq!(out.len() - before, n, "it says how many it appended");
                assert!((1..=budget).contains(&n), "at least one, not more than the budget {budget}: {n}");
            }
            Transmit::Blocked(_) | Transmit::Idle => {
                assert_eq!(out.len(), before);
                return out;
            }
        }
        assert!(out.len() < STORM, "poll_transmit does not end");
    }
}

/// Calls `on_deadline` at its time, drains, and checks the deadline law.
pub fn expire(c: &mut Connection, now: Instant, budget: usize) -> Vec<OutgoingSegment> {
    c.on_deadline(now);
    let out = drain(c, now, budget);
    let next: Option<(Instant, Reason)> = c.deadline();
    assert!(next.is_none_or(|(at, _)| at > now), "deadline law: {next:?} at {now:?} in {:?}", c.state());
    out
}
