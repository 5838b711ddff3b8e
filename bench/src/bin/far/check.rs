//! `--check`: what the default profiles must reach.

use crate::cell::Outcome;
use crate::plan::{Args, Cell};
use farpace_units::ByteCount;

/// What a profile must reach in percent of the ceiling, up to a loss.
const AIMS: [(&str, f64, f64); 2] = [("farpace", 1e-4, 80.0), ("modern", 0.0, 70.0)];
/// Most that both ends hold, as a multiple of what the path holds. Behind a hole the sender keeps what it
/// sends in two round trips, and the receiver what comes in one. The tenth is for a hole that is filled at
/// the second attempt, and for what the application has written ahead.
const MAX_MEMORY: f64 = 3.1;
/// Shorter paths take what buffers begin with.
const LONG: ByteCount = ByteCount::new(4_000_000);

/// What each cell misses, in words.
pub fn misses(args: &Args, done: &[(Cell, Outcome)]) -> Vec<String> {
    done.iter().flat_map(|(cell, outcome)| missed(args, cell, outcome)).collect()
}

fn missed(args: &Args, cell: &Cell, outcome: &Outcome) -> Vec<String> {
    let mut missed = Vec::new();
    let Some((.., least)) =
        AIMS.iter().find(|(name, loss, _)| cell.sender.name == *name && cell.loss <= *loss)
    else {
        return missed;
    };
    if args.size.is_none() && outcome.reached < *least {
        missed.push(format!("{cell}: {:.1} % of the ceiling, not {least:.0} %", outcome.reached));
    }
    // CUBIC fills the queue. `farpace` keeps it short.
    let queue = if cell.sender.name == "modern" { cell.queue_bytes() } else { ByteCount::ZERO };
    let holds = cell.bdp() + queue;
    let times = outcome.memory as f64 / holds.get() as f64;
    if cell.bdp() >= LONG && times > MAX_MEMORY {
        missed.push(format!("{cell}: both ends held {times:.2} times what the path does, not {MAX_MEMORY}"));
    }
    missed
}
