//! The kernel of this machine as a judge: what the policy `linux` claims, and what the control of acknowledgments takes for
//! granted about receivers that know nothing of it.

#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;
mod engine;
mod kernel;
mod peer;
mod script;

use script::{App, FULL, Script};

#[test]
fn explore() {
    let mut k = kernel::Kernel::new().unwrap();
    let scripts: Vec<(&str, Script)> = vec![
        ("start", Script::new(App::Reads).stream(0, 5, 40, FULL)),
        ("idle", Script::new(App::Reads).stream(0, 5, 20, FULL).stream(1100, 1, 1, FULL)),
        ("idle many", Script::new(App::Reads).stream(0, 5, 20, FULL).stream(700, 5, 20, FULL)),
        ("short", Script::new(App::Reads).stream(0, 10, 40, 100)),
        ("short sleeps", Script::new(App::Sleeps).stream(0, 10, 40, 100)),
        ("full sleeps", Script::new(App::Sleeps).stream(0, 5, 40, FULL)),
        ("short push", Script::new(App::Reads).stream(0, 10, 40, 100).push()),
        ("short push sleeps", Script::new(App::Sleeps).stream(0, 10, 40, 100).push()),
        ("bursts", Script { rtt: 50, ..Script::new(App::Reads) }.stream(0, 0, 10, FULL).stream(50, 0, 20, FULL).stream(100, 0, 40, FULL).stream(150, 0, 80, FULL).stream(200, 0, 160, FULL).stream(250, 0, 320, FULL)),
        ("echo", Script::new(App::Answers).stream(0, 100, 6, 100)),
        ("echo fast", Script::new(App::Answers).stream(0, 10, 10, 100)),
        ("reorder", Script::new(App::Reads).stream(0, 5, 21, FULL)
            .segment(120, 22 * 1448, FULL).segment(122, 23*1448, FULL).segment(124, 24*1448, FULL).segment(130, 21*1448, FULL).stream(140, 5, 6, FULL)),
        ("dup", Script::new(App::Reads).stream(0, 5, 21, FULL).segment(200, 0, FULL).segment(210, 20*1448, FULL).stream(215, 5, 20, FULL)),
        ("fin", Script::new(App::Reads).stream(0, 5, 21, FULL).segment(150, 21*1448, 100).with(|s| s.flags = s.flags | farpace_wire::tcp::TcpFlags::FIN)),
        ("fin alone", Script::new(App::Reads).stream(0, 5, 20, FULL).segment(105, 20*1448, 0).with(|s| s.flags = s.flags | farpace_wire::tcp::TcpFlags::FIN)),
        ("far timer", Script { rtt: 300, ..Script::new(App::Reads) }.stream(0, 5, 16, FULL).stream(120, 60, 12, FULL)),
        ("far short", Script { rtt: 300, ..Script::new(App::Sleeps) }.stream(0, 5, 16, FULL).stream(120, 33, 20, 100)),
    ];
    for (name, s) in &scripts {
        let o = k.run(s);
        let window = o.heard.iter().map(|h| h.window).max().unwrap_or(65535);
        println!("windows {:?}", o.heard.iter().map(|h| h.window).collect::<Vec<_>>());
        let ours = engine::run(s, &o.times, window);
        println!("== {name}: sent {} delivered {} kernel {} ours {}", s.steps.len(), o.delivered, o.heard.len(), ours.len());
        let mut same = 0;
        for i in 0..o.heard.len().max(ours.len()) {
            let (a, b) = (o.heard.get(i), ours.get(i));
            let near = matches!((a,b), (Some(a), Some(b)) if a.ack == b.ack && a.len == b.len && a.sack == b.sack && a.at.since(b.at).as_millis() < 12 && b.at.since(a.at).as_millis() < 12);
            if near { same += 1; continue; }
            println!("  {i}: {a:?}   |   {b:?}");
        }
        println!("   same {same}");
    }
}
