//! Hosts that take segments which come together as one, in whole runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunOutcome};

/// 200 Mbit/s over 20 ms to a NIC that interrupts 200 us after the first frame.
fn outcome(profile: &str, more: &str) -> RunOutcome {
    let text = format!(
        r#"
title = "t"
duration = "60 s"
[hosts.a]
[hosts.b]
[[links]]
name = "line"
between = ["a", "b"]
rate = "200 Mbit/s"
delay = "10 ms"
queue = "500 kB"
forward = {{ interrupts = {{ delay = "200 us"{more} }} }}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "20 MB"
sender = {{ profile = "{profile}" }}
receiver = {{ profile = "{profile}" }}
"#
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    run.finish().unwrap()
}

/// Breaks: bytes, or the ACKs of a host that takes several segments as one: they become fewer, and the
/// transfer takes as long all the same.
#[test]
fn segments_taken_as_one_are_acknowledged_as_one() {
    for profile in ["rfc6675", "modern", "linux", "farpace"] {
        let [alone, joined] = ["", ", gro = true"].map(|more| outcome(profile, more));
        let [(acks, took), (fewer, took_joined)] = [&alone, &joined].map(|outcome| {
            let flow = &outcome.flows[0];
            assert!(flow.is_intact(), "{profile}: {:?}", flow.verified);
            (flow.receiver.sent.iter().sum::<u64>(), flow.elapsed.as_secs_f64())
        });
        assert!(fewer * 4 < acks * 3, "{profile}: {fewer} ACKs of {acks}");
        assert!((took_joined / took - 1.0).abs() < 0.1, "{profile}: {took_joined} s, {took} s alone");
    }
}

/// Breaks: behind a device that takes the first flights as one, their sender learns no rate from the ACKs,
/// and doubles its window for two or three round trips more.
#[test]
fn segments_taken_as_one_do_not_delay_the_start() {
    let took = |gro: bool| {
        let text = format!(
            r#"
title = "t"
duration = "60 s"
[hosts.a]
[hosts.b]
[[links]]
name = "line"
between = ["a", "b"]
rate = "200 Mbit/s"
delay = "100 ms"
queue = "2.5 MB"
forward = {{ interrupts = {{ delay = "2 ms", gro = {gro} }} }}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "10 MB"
sender = {{ profile = "farpace" }}
receiver = {{ profile = "farpace" }}
"#
        );
        let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
        let mut run = Run::new(&scenario, Inputs::default()).unwrap();
        while !run.advance(None).unwrap().finished {}
        run.finish().unwrap().flows[0].elapsed.as_secs_f64()
    };
    let (alone, joined) = (took(false), took(true));
    assert!(joined < alone + 0.1, "{joined} s, {alone} s alone");
}
