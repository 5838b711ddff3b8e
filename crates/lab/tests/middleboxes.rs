//! Transfers through firewalls and ACK thinning: whole runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::{Scenario, explain};
use farpace_lab::{Inputs, Run, RunOutcome};
use farpace_path::DropReason;
use farpace_units::Rate;
use proptest::prelude::*;

/// A link of 20 Mbit/s and 2 times 10 ms with middleboxes in both directions.
fn line(forward: &str, backward: &str, ends: &str, size: &str) -> String {
    format!(
        "title = \"t\"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n\
         rate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nforward = {{ {forward} }}\nbackward = {{ {backward} }}\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsize = \"{size}\"\n\
         sender = {{ {ends} }}\nreceiver = {{ {ends} }}\n"
    )
}

fn run(text: &str, seed: u64) -> RunOutcome {
    let scenario = Scenario::parse(text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(&scenario, Inputs { seed: Some(seed), ..Inputs::default() }).unwrap();
    while !run.advance(None).unwrap().finished {}
    run.finish().unwrap()
}

fn drops(outcome: &RunOutcome, element: &str, reason: DropReason) -> u64 {
    let those = outcome.drops.iter().filter(|d| d.place == element && d.reason == reason);
    those.map(|d| d.packets).sum()
}

/// Goodput of the only flow in bit/s.
fn goodput(outcome: &RunOutcome) -> u64 {
    let flow = &outcome.flows[0];
    assert!(flow.is_intact(), "{:?}", flow.verified);
    Rate::of(flow.size, flow.completed.unwrap().since(farpace_units::Instant::ZERO)).bits_per_sec()
}

/// Breaks: middleboxes are not in the chain, work in the wrong direction, or drop under another name.
#[test]
fn middleboxes_work_in_their_direction() {
    let thin = "ack_thinning = { every = 4 }";
    let there = run(&line(thin, "", "", "1 MB"), 1);
    assert_eq!(
        drops(&there, "l.forward.ack-thinning", DropReason::AckThinned),
        0,
        "no pure ACKs that advance"
    );
    let back = run(&line("", thin, "", "1 MB"), 1);
    // 690 segments, 345 ACKs: three of four are dropped.
    let thinned = drops(&back, "l.backward.ack-thinning", DropReason::AckThinned);
    assert!((200..=280).contains(&thinned), "{thinned}");
    assert!(goodput(&there) > 10_000_000 && goodput(&back) > 10_000_000);
    let wall = "middlebox = { drop_without_ack = true }";
    let both = run(&line(wall, wall, "", "1 MB"), 1);
    assert!(goodput(&both) > 10_000_000 && both.drops.is_empty(), "an ordinary connection loses nothing");
}

/// Breaks: stripping has no effect on the ends, or explain and efficiency do not follow what the ends agree
/// on.
#[test]
fn stripped_options_are_not_agreed_on() {
    let strip = |kind: u8, on: &str| {
        line(
            &format!("middlebox = {{ strip_options = [{kind}], strip_options_on = \"{on}\" }}"),
            "",
            "",
            "4 MB",
        )
        .replace("10 ms", "50 ms")
    };
    // 65,535 bytes in 101 ms.
    for (on, limited) in [("syn", true), ("all", true), ("data", false)] {
        let text = strip(3, on);
        assert_eq!(goodput(&run(&text, 1)) < 5_300_000, limited, "{on}");
        let words = explain(&Scenario::parse(&text, "t").unwrap());
        assert_eq!(words.contains("a window field without scaling"), limited, "{words}");
    }
    for (kind, on, payload) in [(8, "syn", 1_460), (8, "data", 1_448), (254, "all", 1_448)] {
        let s = Scenario::parse(&strip(kind, on), "t").unwrap();
        assert_eq!(s.segment(&s.flows[0]).payload.get(), payload, "{kind} on {on}");
    }
}

/// Breaks: the explanation of middleboxes.
#[test]
fn middleboxes_are_explained() {
    let forward = "middlebox = { strip_options = \"unknown\", clear_reserved = true, clear_ae = true }";
    let backward = "middlebox = { strip_options = [254, 30], strip_options_on = \"data\", drop_without_ack \
                    = true }, ack_thinning = { every = 4, hold = \"3 ms\" }";
    let words = explain(&Scenario::parse(&line(forward, backward, "", "1 MB"), "t").unwrap());
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "it strips all options but MSS, window scale, SACK and timestamps from all segments; it clears the \
         reserved bits and AE.",
        "it strips options of kinds 30, 254 from segments without SYN; it drops segments without ACK, SYN \
         and RST.",
        "of 4 pure ACKs of a connection that come within 3 ms the newest goes on",
    ] {
        assert!(words.contains(part), "`{part}` is not in:\n{words}");
    }
}

/// A middlebox that strips options so that the ends do not agree on them.
fn middlebox() -> impl Strategy<Value = String> {
    let options = prop::sample::select(vec![
        "\"unknown\"",
        "[2]",
        "[4]",
        "[5]",
        "[4, 5]",
        "[253, 254]",
        "[30, 172, 174, 254]",
    ]);
    let on = prop::sample::select(vec!["syn", "data", "all"]);
    (options, on, any::<[bool; 3]>()).prop_map(|(options, on, [reserved, ae, drop])| {
        format!(
            "middlebox = {{ strip_options = {options}, strip_options_on = \"{on}\", clear_reserved = \
             {reserved}, clear_ae = {ae}, drop_without_ack = {drop} }}"
        )
    })
}

fn middleboxes() -> impl Strategy<Value = String> {
    let thinning = (2u32..20, 1u64..40, any::<bool>()).prop_map(|(every, ms, on)| match on {
        true => format!(", ack_thinning = {{ every = {every}, hold = \"{ms} ms\" }}"),
        false => String::new(),
    });
    (middlebox(), thinning, prop::sample::select(vec![0.0, 0.01, 0.05])).prop_map(
        |(middlebox, thinning, p)| {
            format!("{middlebox}{thinning}, loss = {p}, corrupt = {p}, duplicate = {p}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Breaks: a middlebox that changes or delays segments lets damaged bytes pass, or a transfer through it
    /// does not end.
    #[test]
    fn every_byte_arrives(
        forward in middleboxes(), backward in middleboxes(), seed in 0u64..1_000,
        ecn in prop::sample::select(vec!["off", "on", "accurate"]),
    ) {
        let text = line(&forward, &backward, &format!("ecn = \"{ecn}\""), "200 kB");
        let outcome = run(&text, seed);
        prop_assert!(outcome.flows[0].is_intact(), "{:?}\n{text}", outcome.flows[0].verified);
    }
}
