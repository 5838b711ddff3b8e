//! Far paths with nothing set: what arrives, and what both ends hold for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_host::Host;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};

/// Payload that a line of 100 Mbit/s carries in 150 ms: 1,448 bytes of each 1,538.
const BDP: f64 = 100e6 / 8.0 * 0.150 * 1_448.0 / 1_538.0;
/// A queue of 200 packets, in the same unit.
const QUEUE: f64 = 200.0 * 1_448.0 / BDP;
/// Seconds that each transfer lasts, and what the line carries of payload in them.
const SECONDS: f64 = 8.0;
const CARRIED: f64 = SECONDS / 0.150;

/// What came of a transfer, in bandwidth-delay products.
#[derive(Debug)]
struct Transfer {
    /// The most that both ends held at once.
    held: f64,
    arrived: f64,
}

/// A transfer from a host that no link slows, through a router, over 100 Mbit/s and 150 ms.
fn transfer(profile: &str, loss: &str) -> Transfer {
    let text = format!(
        "title = \"t\"\nduration = \"{SECONDS} s\"\ntrace = {{ bin = \"10 ms\" \
         }}\n[hosts.a]\n[hosts.b]\n[routers.r]\n\
         [[links]]\nname = \"access\"\nbetween = [\"a\", \"r\"]\n\
         [[links]]\nname = \"line\"\nbetween = [\"r\", \"b\"]\nrate = \"100 Mbit/s\"\ndelay = \"75 ms\"\n\
         forward = {{ loss = {loss}, queue = \"200 packets\" }}\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 GB\"\n\
         sender = {{ profile = \"{profile}\" }}\nreceiver = {{ profile = \"{profile}\" }}\n"
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    let mut held = 0;
    loop {
        let finished = run.advance(None).unwrap().finished;
        let world = run.world();
        let hosts = world.ids().filter_map(|id| world.element::<Host>(id));
        let memory = hosts.flat_map(|host| host.connections().map(|(_, c)| c.memory()));
        let bytes = memory.map(|m| m.send_bytes.get() + m.readable_bytes.get() + m.waiting_bytes.get());
        held = held.max(bytes.sum());
        if finished {
            break;
        }
    }
    let arrived = run.finish().unwrap().flows[0].delivered.get();
    let products = |bytes: u64| bytes as f64 / BDP;
    Transfer { held: products(held), arrived: products(arrived) }
}

/// Breaks: memory. Behind a hole the sender holds what it sends in two round trips and the receiver what
/// comes in one; a send buffer that runs far ahead, a retransmission that waits, or an answer to an old one
/// that is taken for a spurious one add to that. Without losses the sender holds one round trip.
#[test]
fn far_paths_hold_three_bandwidth_delay_products() {
    for (profile, loss, most, least) in [
        ("farpace", "0.0", 1.25, 0.9),
        ("farpace", "1e-4", 3.1, 0.9),
        ("farpace", "1e-3", 3.2, 0.85),
        // CUBIC fills the queue, too.
        ("modern", "0.0", 3.1 * (1.0 + QUEUE), 0.8),
    ] {
        let t = transfer(profile, loss);
        println!("{profile}, loss {loss}: {t:.2?}");
        assert!(t.held <= most, "{profile}, loss {loss}: {t:.2?}, not {most:.2}");
        assert!(t.arrived >= least * CARRIED, "{profile}, loss {loss}: {t:.2?} of {CARRIED:.1}");
    }
}

/// Percent of what two connections bring that the first does, over 10 Mbit/s with a queue of 64 kB.
fn share(profiles: [&str; 2], rtt_ms: u64) -> f64 {
    let flow = |n: usize| {
        let (profile, start) = (profiles[n], n as f64 * 0.5);
        format!(
            "[[flows]]\nname = \"f{n}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 GB\"\nstart = \"{start} s\"\n\
             sender = {{ profile = \"{profile}\" }}\nreceiver = {{ profile = \"{profile}\" }}\n"
        )
    };
    let text = format!(
        "title = \"t\"\nduration = \"30 s\"\n[hosts.a]\n[hosts.b]\n[routers.r]\n\
         [[links]]\nname = \"access\"\nbetween = [\"a\", \"r\"]\n\
         [[links]]\nname = \"line\"\nbetween = [\"r\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"{} us\"\n\
         queue = \"64 kB\"\n{}{}",
        rtt_ms * 500,
        flow(0),
        flow(1)
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    let arrived = run.finish().unwrap().flows.iter().map(|f| f.delivered.get() as f64).collect::<Vec<_>>();
    100.0 * arrived[0] / arrived.iter().sum::<f64>()
}

/// Breaks: neighbours on short paths. Whoever starts first, none of two takes more than 72 percent.
#[test]
fn neighbours_on_short_paths_get_their_share() {
    let mut shares = Vec::new();
    for rtt in [1, 20] {
        for profiles in [
            ["farpace", "linux"],
            ["linux", "farpace"],
            ["farpace", "modern"],
            ["modern", "farpace"],
            ["farpace", "farpace"],
        ] {
            let first = share(profiles, rtt);
            println!("{rtt} ms, {profiles:?}: {first:.1} %");
            shares.push((rtt, profiles, first));
        }
    }
    let unfair: Vec<_> = shares.iter().filter(|(.., first)| !(28.0..=72.0).contains(first)).collect();
    assert!(unfair.is_empty(), "percent of the first: {unfair:.1?}");
}

/// Mbit/s of `farpace` in so many seconds from its SYN on, over 50 Mbit/s and such a delay in ms; `ways`:
/// keys of the link.
fn rate_over(seed: u64, seconds: u64, delay: u64, ways: &str) -> f64 {
    let text = format!(
        r#"
title = "a path"
seed = {seed}
duration = "{seconds} s"
[hosts.a]
[hosts.b]
[[links]]
name = "wan"
between = ["a", "b"]
rate = "50 Mbit/s"
delay = "{delay} ms"
queue = "1 MB"
{ways}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "1 GB"
sender = {{ profile = "farpace" }}
receiver = {{ profile = "farpace" }}
"#
    );
    let scenario = Scenario::parse(&text, "path.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    run.finish().unwrap().flows[0].delivered.bits() as f64 / seconds as f64 / 1e6
}

/// Breaks: the start behind a NIC that interrupts its host once a millisecond, as live hosts do. The ACKs of
/// the first flight come bunched then and tell far too much, the next flight makes a queue of its own, and
/// losses of a hundredth must not pass for more.
#[test]
fn bunched_acks_do_not_end_the_start() {
    // The SYN of seed 1 is lost.
    for seed in 2..=7 {
        let rate = rate_over(
            seed,
            4,
            100,
            r#"forward = { loss = 0.01, interrupts = { delay = "1 ms", frames = 64 } }"#,
        );
        println!("seed {seed}: {rate:.0} Mbit/s");
        assert!(rate > 22.0, "seed {seed}: {rate:.1} of 50 Mbit/s");
    }
}

/// Breaks: random losses that were few for some round trips after a cut are taken for a policer's, and the
/// window falls with each of them for the rest of the connection: with two of these seeds the rate was
/// 12 Mbit/s.
#[test]
fn random_losses_do_not_look_like_a_policer_for_long() {
    for seed in [11, 214, 190] {
        let rate = rate_over(seed, 8, 20, "forward = { loss = 0.01 }");
        println!("seed {seed}: {rate:.0} Mbit/s");
        assert!(rate > 37.5, "seed {seed}: {rate:.1} of 50 Mbit/s");
    }
}

/// Breaks: the start between hosts whose NICs gather frames, which is most of them. The first flight comes as
/// one bunch or two, so its ACKs tell no rate, or half of it. A lost packet in it must not stop the window at
/// ten segments.
#[test]
fn a_start_between_bunches_takes_no_longer_than_slow_start() {
    // Interrupts both ways, loss, and the least Mbit/s in 3 s of 50 over 100 ms. CUBIC has 40 and 37 without
    // a loss.
    for (interrupts, loss, least) in [("200 us", 0.0, 37.0), ("1 ms", 0.0, 35.0), ("1 ms", 0.01, 25.0)] {
        // The SYN of seed 1 is lost.
        for seed in 2..=7 {
            let gathers = format!(r#"interrupts = {{ delay = "{interrupts}", frames = 64 }}"#);
            let ways = format!("forward = {{ loss = {loss}, {gathers} }}\nbackward = {{ {gathers} }}");
            let rate = rate_over(seed, 3, 50, &ways);
            println!("{interrupts}, loss {loss}, seed {seed}: {rate:.0} Mbit/s");
            assert!(rate > least, "{interrupts}, loss {loss}, seed {seed}: {rate:.1} of 50 Mbit/s");
        }
    }
}

/// Breaks: transfers between busy hosts, which take what has come up to some milliseconds late. What is late
/// comes at once: many ACKs are one sample, and their round trip is no queue. If the start takes them for one
/// all the same, the window must not stay below what it took for the limit.
#[test]
fn late_hosts_make_no_queue() {
    // How late the hosts are, loss, and the least Mbit/s in 8 s of 50 over 100 ms.
    for (late, loss, least) in [("5 ms", 0.0, 38.0), ("5 ms", 0.01, 34.0), ("20 ms", 0.01, 28.0)] {
        for seed in 2..=7 {
            let gathers = format!(r#"interrupts = {{ delay = "200 us", jitter = "{late}", frames = 64 }}"#);
            let ways = format!("forward = {{ loss = {loss}, {gathers} }}\nbackward = {{ {gathers} }}");
            let rate = rate_over(seed, 8, 50, &ways);
            println!("{late}, loss {loss}, seed {seed}: {rate:.0} Mbit/s");
            assert!(rate > least, "{late}, loss {loss}, seed {seed}: {rate:.1} of 50 Mbit/s");
        }
    }
}

/// Breaks: over a policer, what is lost again waits for a timeout because new data leaves at the pacing timer
/// before it, or BBRv1 does not keep to the policer's rate. The kernel has 9.66, 9.52 and 9.05 Mbit/s.
#[test]
fn bbr_over_a_policer_has_its_rate() {
    for (delay, least) in [(5, 9.5), (20, 9.3), (50, 8.8)] {
        let text = format!(
            "title = \"t\"\nduration = \"8 s\"\n[hosts.a]\n[hosts.b]\n\
             [[links]]\nname = \"line\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\n\
             delay = \"{delay} ms\"\n\
             forward = {{ policer = {{ rate = \"10 Mbit/s\", burst = \"32 kB\" }}, jitter = \"100 us\" }}\n\
             [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 GB\"\n\
             sender = {{ profile = \"linux\", congestion = \"bbr1\" }}\n\
             receiver = {{ profile = \"linux\" }}\n"
        );
        let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut run = Run::new(&scenario, Inputs::default()).unwrap();
        while !run.advance(None).unwrap().finished {}
        let rate = run.finish().unwrap().flows[0].delivered.get() as f64 * 8e-6 / 8.0;
        println!("{delay} ms: {rate:.2} Mbit/s");
        assert!(rate > least, "{delay} ms: {rate:.2} of 10 Mbit/s");
    }
}
