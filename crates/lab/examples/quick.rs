//! throwaway
use farpace_lab::{Inputs, Run, scenario::Scenario};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let set: Vec<(String, String)> =
        args[2..].iter().map(|a| a.split_once('=').map(|(a, b)| (a.into(), b.into())).unwrap()).collect();
    let s = Scenario::parse_with(&text, &args[1], &set).unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(&s, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    let o = run.finish().unwrap();
    for f in &o.flows {
        println!(
            "{} {} goodput {:.1} eff {:.3} rtos {} rtx {} silence {:?} intact {} events {}",
            f.name, f.elapsed, f.goodput().as_mbit_f64(), f.efficiency().unwrap(), f.timeouts,
            f.retransmissions(), f.silence.longest(), f.is_intact(), o.events
        );
        for (c, n) in f.sent() { println!("   {} {n}", c.name()); }
    }
    for d in &o.drops { println!("   drop {} {} {}", d.place, d.reason.name(), d.packets); }
}
