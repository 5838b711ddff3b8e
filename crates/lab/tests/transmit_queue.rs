//! Hosts whose TCP asks the queue of their NIC for room, in whole runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_events::Cause;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunOutcome};

/// Two flows from a NIC of 20 Mbit/s whose queue holds 25 packets, over 40 ms.
fn outcome(profile: &str, host: &str, nic: &str) -> RunOutcome {
    let text = format!(
        r#"
title = "t"
duration = "60 s"
[hosts.a]
{host}
[hosts.b]
[[links]]
name = "nic"
between = ["a", "b"]
rate = "20 Mbit/s"
delay = "20 ms"
forward = {{ {nic} }}
[[flows]]
name = "one"
from = "a"
to = "b"
size = "8 MB"
sender = {{ profile = "{profile}" }}
[[flows]]
name = "two"
from = "a"
to = "b"
size = "8 MB"
sender = {{ profile = "{profile}" }}
"#
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    run.finish().unwrap()
}

const ASKED: &str = "transmit_queue = true";
const FIFO: &str = r#"queue = "25 packets""#;
/// It holds one frame.
const ONE_FRAME: &str = r#"queue = "1514 B""#;
const SMALL_FIFO: &str = r#"queue = "40 kB""#;
const PACED: &str = concat!(
    r#"pacing = { scheduler = "edf", limit = "25 packets", default = "all", "#,
    r#"classes = [{ name = "all", rate = "10 Mbit/s" }] }"#
);

/// Breaks: packets that find the own host's queue full are lost and sent again, with some recovery, or
/// with some kind of queue; or the window does not come down, or the transfer does.
#[test]
fn nothing_is_lost_in_the_own_host() {
    for profile in ["newreno", "rfc6675", "linux-2.6.17", "linux-2.6.24", "modern", "linux", "farpace"] {
        for nic in [FIFO, SMALL_FIFO, PACED] {
            let asked = outcome(profile, ASKED, nic);
            assert_eq!(asked.drops, [], "{profile}, {nic}");
            let full: u64 = asked.flows.iter().map(|flow| flow.transmit_queue_full).sum();
            for flow in &asked.flows {
                assert!(flow.is_intact(), "{profile}, {nic}: {:?}", flow.verified);
                assert_eq!(flow.retransmissions(), 0, "{profile}, {nic}");
            }
            let lost: u64 = outcome(profile, "", nic).drops.iter().map(|drop| drop.packets).sum();
            if lost > 0 {
                assert!(full > 0, "{profile}, {nic}: {lost} lost where nobody asks");
            }
        }
    }
}

/// Breaks: a queue that a full frame just fits never takes one, and transfers stand still.
#[test]
fn a_queue_of_one_frame_is_used() {
    for profile in ["newreno", "modern", "linux"] {
        let asked = outcome(profile, ASKED, ONE_FRAME);
        let delivered: u64 = asked.flows.iter().map(|flow| flow.delivered.get()).sum();
        assert!(delivered > 100_000, "{profile}: {delivered}");
    }
}

/// Breaks: a full queue brings no window down, so that it is asked for ever.
#[test]
fn a_full_queue_brings_the_window_down() {
    let asked = outcome("linux-2.6.24", ASKED, FIFO);
    let cuts: u64 =
        asked.flows.iter().map(|flow| flow.counters.window_changes.of(Cause::CutTransmitQueue)).sum();
    let full: u64 = asked.flows.iter().map(|flow| flow.transmit_queue_full).sum();
    assert!(cuts > 0 && cuts <= full, "{cuts} cuts, {full} times full");
}

/// Breaks: a scenario whose hosts could not ask is run as if they did.
#[test]
fn what_cannot_be_asked_is_refused() {
    for (host, nic, says) in [
        ("transmit_queue = true\nprocessor = { send = \"1 us\" }", FIFO, "processor"),
        ("transmit_queue = true\nstalls = [{ at = \"1 s\", lasts = \"1 ms\" }]", FIFO, "end of a stall"),
        (ASKED, "aqm = { codel = {} }", "managed"),
        (
            ASKED,
            concat!(
                r#"pacing = { default = "x", classes = [{ name = "x", rate = "1 Mbit/s" }, "#,
                r#"{ name = "y", rate = "1 Mbit/s" }] }"#
            ),
            "queue for each class",
        ),
    ] {
        let text = format!(
            r#"title = "t"
[hosts.a]
{host}
[hosts.b]
[[links]]
name = "nic"
between = ["a", "b"]
rate = "20 Mbit/s"
forward = {{ {nic} }}
[[flows]]
name = "f"
from = "a"
to = "b"
size = "1 kB"
"#
        );
        let error = Scenario::parse(&text, "t.toml").map(drop).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("transmit_queue"), "{error}");
    }
}
