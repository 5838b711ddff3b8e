//! Pacing of many classes, for profilers: `pacing [CLASSES [ONE_IN [PACKETS]]]`. Every ONE_INth class has packets.

use farpace_bench::{LINE, MTU, PacingLoad};
use farpace_link::pacing::{Edf, Gaps};
use farpace_units::Span;

fn main() {
    let number = |at: usize, default: u32| {
        std::env::args().nth(at).map_or(Ok(default), |text| text.parse()).unwrap_or_else(|_| {
            eprintln!("pacing: expected numbers: [CLASSES [ONE_IN [PACKETS]]]");
            std::process::exit(2);
        })
    };
    let (classes, one_in, packets) = (number(1, 100_000), number(2, 1).max(1), number(3, 10_000_000));
    let edf = Edf::new(LINE, MTU, Gaps::Frames, Span::ZERO);
    let load = edf.and_then(|edf| PacingLoad::new(edf, classes, one_in));
    let mut load = load.unwrap_or_else(|error| {
        eprintln!("pacing: {error}");
        std::process::exit(2);
    });
    for _ in 0..packets {
        load.step();
    }
    println!("{packets} packets of {classes} classes, {} gap frames, {} of the line", load.gaps, load.line);
}
