//! Two connections back to back, for profilers and instruction counters: `pair [PROFILE [SEGMENTS [auto|everything]]]`. The
//! last word: the sender asks for ACKs, in the safe form.

use farpace_bench::Pair;
use farpace_tcp::config::{AckControl, AskFor, Profile};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("modern", String::as_str);
    let segments: u64 = args.get(1).and_then(|s| s.parse().ok()).unwrap_or(3_000_000);
    let Some(profile) = Profile::ALL.into_iter().find(|p| p.name() == name) else {
        eprintln!("pair: no profile `{name}`; `farpace profiles` lists them");
        std::process::exit(2);
    };
    let mut pair = match args.get(2).map(String::as_str) {
        None => Pair::new(profile, 256),
        Some("auto") => Pair::asking(profile, 256, AckControl::Safe, AskFor::Auto),
        Some("everything") => Pair::asking(profile, 256, AckControl::Safe, AskFor::Everything),
        Some(other) => {
            eprintln!("pair: `{other}`: expected auto or everything");
            std::process::exit(2);
        }
    };
    let until = pair.delivered + segments;
    while pair.delivered < until {
        pair.turn();
    }
    println!("{name}: {} segments, {} acknowledgments", pair.delivered, pair.acks);
}
