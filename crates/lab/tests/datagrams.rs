//! Streams of UDP datagrams beside transfers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunOutcome};

const BESIDE: &str = r#"
title = "A stream beside a transfer"
duration = "4 s"

[hosts.a]
[hosts.b]

[[links]]
name = "line"
between = ["a", "b"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = "50 packets"

[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "100 MB"

[[datagrams]]
name = "video"
from = "b"
to = "a"
rate = "8 Mbit/s"
payload = "1 kB"
start = "500 ms"
lasts = "2 s"

[[datagrams]]
name = "load"
from = "a"
to = "b"
rate = "16 Mbit/s"
payload = "4 kB"
"#;

fn run(text: &str) -> RunOutcome {
    let scenario = Scenario::parse(text, "beside.toml").unwrap();
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    run.finish().unwrap()
}

/// Breaks: UDP flows: their rate, their counts, and their effect on transfers beside them.
#[test]
fn a_stream_keeps_its_rate_and_its_account() {
    let outcome = run(BESIDE);
    let [video, load] = &outcome.datagrams[..] else { panic!("{:?}", outcome.datagrams) };
    // No other traffic.
    assert_eq!((video.sent, video.received, video.late), (2_000, 2_000, 0));
    assert_eq!(video.bytes.get(), 2_000_000);
    // In four seconds 2000, and one at their end; it meets the transfer in the queue, and a lost fragment is
    // a lost datagram.
    assert_eq!(load.sent, 2_001);
    assert!(load.received < load.sent && load.received > 1_000, "{load:?}");
    let alone = run(&BESIDE.replace("16 Mbit/s", "16 kbit/s"));
    let (with, without) = (outcome.flows[0].delivered, alone.flows[0].delivered);
    assert!(with.get() * 2 < without.get(), "{with} beside the load, {without} without");
}

/// Breaks: a Poisson stream: its rate, its variance (as large as the mean), and that seeds differ.
#[test]
fn a_poisson_stream_keeps_its_rate() {
    let text = BESIDE.replacen("lasts = \"2 s\"", "lasts = \"2 s\"\nspacing = \"poisson\"", 1);
    let sent: Vec<f64> =
        (1..=8).map(|seed| run(&format!("seed = {seed}\n{text}")).datagrams[0].sent as f64).collect();
    let mean = sent.iter().sum::<f64>() / 8.0;
    assert!((mean - 2_000.0).abs() < 60.0, "{sent:?}");
    let variance = sent.iter().map(|n| (n - mean) * (n - mean)).sum::<f64>() / 7.0;
    assert!((300.0..8_000.0).contains(&variance), "{sent:?}");
}

/// Breaks: mistakes in these tables are reported late, or at another place.
#[test]
fn mistakes_are_found_where_they_are() {
    for (right, wrong, place, says) in [
        ("payload = \"4 kB\"", "payload = \"4 B\"", "35:11", "cannot carry"),
        ("rate = \"16 Mbit/s\"", "rate = \"0 Mbit/s\"", "34:8", "rate"),
        ("name = \"load\"", "name = \"bulk\"", "31:8", "another flow"),
        ("name = \"load\"\nfrom = \"a\"", "name = \"load\"\nfrom = \"c\"", "32:8", "no host"),
        ("lasts = \"2 s\"", "lasts = \"0 s\"", "28:9", "sends nothing"),
        ("start = \"500 ms\"", "start = \"5 s\"", "27:9", "before this flow"),
    ] {
        assert!(BESIDE.contains(right), "{right}");
        let error = Scenario::parse(&BESIDE.replacen(right, wrong, 1), "t.toml").unwrap_err().to_string();
        assert!(error.contains(&format!("t.toml:{place}")) && error.contains(says), "{wrong}: {error}");
    }
}
