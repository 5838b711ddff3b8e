//! One transfer, for profilers and instruction counters: `transfer [PROFILE [SIZE]]`.

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let profile = args.first().map_or("aist-fix", String::as_str);
    let size = args.get(1).map_or("1 GB", String::as_str);
    let run = farpace_bench::transfer(profile, size, farpace_bench::Recording::Off);
    println!("{profile}, {size}: {} data packets, {} events", run.packets, run.events);
}
