//! Whole runs of the scenarios in the gallery, with smaller transfers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_events::{Cause, Record};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Payload, Run, RunOutcome};
use farpace_path::DropReason;
use std::io::Write;
use std::path::{Path, PathBuf};

fn scenario(file: &str, set: &[(&str, &str)]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Scenario::parse_with(&text, file, &set).unwrap_or_else(|e| panic!("{e}"))
}

fn run(scenario: &Scenario, inputs: Inputs) -> (RunOutcome, Vec<Record>) {
    let mut run = Run::new(scenario, inputs).unwrap();
    let mut records: Vec<Record> = Vec::new();
    while !run.advance(Some(&mut records)).unwrap().finished {}
    (run.finish().unwrap(), records)
}

/// Breaks: a scenario of the gallery does not do what its file says: every byte arrives, and its impairments
/// have their effect.
#[test]
fn the_gallery_arrives_intact() {
    let cases: [(&str, &[DropReason]); 10] = [
        ("gallery/lossy.toml", &[DropReason::Loss]),
        ("gallery/impaired.toml", &[DropReason::BadChecksum]),
        ("gallery/small-queue.toml", &[DropReason::QueueFull]),
        ("gallery/shared.toml", &[DropReason::QueueFull]),
        ("gallery/satellite.toml", &[DropReason::BitErrors]),
        ("gallery/leo.toml", &[]),
        ("gallery/aqm.toml", &[]),
        ("gallery/thinned-acks.toml", &[DropReason::AckThinned]),
        ("gallery/interrupts.toml", &[]),
        ("gallery/firewall.toml", &[]),
    ];
    for (file, expected) in cases {
        let (outcome, _) = run(&scenario(file, &[("flows.*.size", "8 MB")]), Inputs::default());
        for flow in &outcome.flows {
            assert!(flow.is_intact(), "{file}, {}: {:?}", flow.name, flow.verified);
            assert!(
                flow.efficiency().is_some_and(|e| e > 0.0 && e <= 1.0),
                "{file}: {:?}",
                flow.efficiency()
            );
        }
        for reason in expected {
            assert!(outcome.drops.iter().any(|d| d.reason == *reason), "{file}: no {}", reason.name());
        }
    }
}

/// Breaks: the law of determinism, or random numbers do not depend on the seed.
#[test]
fn the_same_seed_gives_the_same_records() {
    let s = scenario("gallery/impaired.toml", &[("flows.*.size", "2 MB")]);
    let seeded = |seed| run(&s, Inputs { records: true, seed: Some(seed), ..Inputs::default() }).1;
    let first = seeded(7);
    assert!(first.len() > 1_000);
    assert!(first == seeded(7), "two runs of one seed differ");
    assert!(first != seeded(8), "another seed changes nothing");
}

/// Breaks: observing a run changes it.
#[test]
fn records_and_captures_change_nothing() {
    let s = scenario("gallery/lossy.toml", &[("flows.*.size", "2 MB"), ("trace.taps", r#"["a"]"#)]);
    let plain = run(&s, Inputs::default()).0;
    let directory = tempfile::tempdir().unwrap();
    let mut watched = Run::new(&s, Inputs { records: true, ..Inputs::default() }).unwrap();
    let files = watched.capture_into(directory.path()).unwrap();
    while !watched.advance(None).unwrap().finished {}
    let watched = watched.finish().unwrap();
    assert!(files.iter().all(|f| f.metadata().unwrap().len() > 1_000), "{files:?}");
    assert_eq!((plain.events, plain.ended), (watched.events, watched.ended));
    assert_eq!(plain.flows[0].counters, watched.flows[0].counters);
}

/// Breaks: a real file arrives changed, or is not written.
#[test]
fn a_file_is_sent_and_received() {
    let directory = tempfile::tempdir().unwrap();
    let (sent, received): (PathBuf, PathBuf) =
        (directory.path().join("sent"), directory.path().join("received"));
    let bytes: Vec<u8> =
        (0..1_234_567u32).flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()).collect();
    std::fs::File::create(&sent).unwrap().write_all(&bytes).unwrap();
    let inputs = Inputs {
        payload: Some(Payload::file(&sent).unwrap()),
        received: Some(received.clone()),
        ..Inputs::default()
    };
    let (outcome, _) = run(&scenario("gallery/lossy.toml", &[]), inputs);
    assert!(outcome.flows[0].is_intact());
    assert!(std::fs::read(&received).unwrap() == bytes, "the received file differs");
}

/// Breaks: a run that cannot finish reports that it did.
#[test]
fn out_of_time_is_not_complete() {
    let s = scenario("gallery/lossy.toml", &[("duration", "300 ms")]);
    let (outcome, _) = run(&s, Inputs::default());
    let flow = &outcome.flows[0];
    assert!(!flow.is_intact() && flow.completed.is_none());
    assert!(flow.verified.is_err());
}

/// Breaks: the counts on the paper's path: each drop is repaired by exactly one retransmission.
#[test]
fn every_policed_packet_is_retransmitted_once() {
    let set = [("flows.bulk.size", "60 MB"), ("flows.bulk.sender.profile", "aist-fix")];
    let (outcome, records) =
        run(&scenario("papers/stops.toml", &set), Inputs { records: true, ..Inputs::default() });
    let flow = &outcome.flows[0];
    let policed: u64 =
        outcome.drops.iter().filter(|d| d.reason == DropReason::Policed).map(|d| d.packets).sum();
    assert!(policed > 0 && flow.is_intact());
    assert_eq!(flow.retransmissions(), policed);
    assert_eq!(flow.timeouts, 0);
    let recorded = records.iter().filter(|r| r.cause.is_some_and(Cause::is_retransmission)).count() as u64;
    assert_eq!(recorded, policed, "records tell the same");
}

/// Breaks: the queueing delay of a run, on plain and on managed links. A sender with more in flight than the
/// path holds keeps the rest in the queue, so that the queueing delay is the round trip minus the shortest
/// one.
#[test]
fn the_queueing_delay_is_that_of_the_queue() {
    let set = [
        ("links.wan.forward.loss", "0.0"),
        ("links.wan.queue", "5000 packets"),
        ("flows.bulk.receiver.window", "1000 packets"),
        ("flows.bulk.sender.hystart", "false"),
    ];
    // A step that changes nothing makes it a managed link.
    let managed = ("links.wan.schedule.steps", "[{ at = \"0 s\", rate = \"100 Mbit/s\" }]");
    for set in [set.to_vec(), [&set[..], &[managed]].concat()] {
        let scenario = scenario("gallery/lossy.toml", &set);
        let mut run = Run::new(&scenario, Inputs::default()).unwrap();
        assert!(run.queueing_delay(0).is_zero() && run.queueing_delay(7).is_zero());
        while run.advance(None).unwrap().now.as_secs_f64() < 0.7 {}
        let sender = run.samples()[0].sender;
        let beyond = sender.srtt.as_secs_f64() - scenario.base_rtt(&scenario.flows[0]).as_secs_f64();
        let waits = run.queueing_delay(0).as_secs_f64();
        assert!(
            beyond > 0.05 && (waits - beyond).abs() < 0.01,
            "{waits} s wait, {beyond} s in the round trip"
        );
    }
}

/// Breaks: programs that take their time. A transfer would end as soon as the path allows, whatever its
/// programs do.
#[test]
fn programs_write_and_read_in_portions() {
    let elapsed = |keys: &str| {
        let text = format!(
            r#"
title = "portions"
[hosts.a]
[hosts.b]
[[links]]
name = "path"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "5 ms"
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "1 MB"
{keys}
[flows.receiver]
receive_buffer = "100 kB"
"#
        );
        let scenario = farpace_lab::scenario::Scenario::parse(&text, "portions.toml").unwrap();
        let mut run = farpace_lab::Run::new(&scenario, farpace_lab::Inputs::default()).unwrap();
        while !run.advance(None).unwrap().finished {}
        let outcome = run.finish().unwrap();
        assert!(outcome.flows[0].is_intact(), "{keys}");
        outcome.flows[0].elapsed.as_secs_f64()
    };
    assert!(elapsed("") < 0.3);
    // Ten portions, the first at once: nine pauses of 100 ms.
    let written = elapsed("writes = { size = \"100 kB\", every = \"100 ms\" }");
    assert!((0.9..1.0).contains(&written), "{written}");
    let read = elapsed("reads = { size = \"50 kB\", every = \"50 ms\" }");
    assert!((0.95..1.1).contains(&read), "{read}");
    // Ten requests; the last needs no answer. Each takes two ways of 5 ms and the times of both programs.
    let exchange = "{ request = \"100 kB\", answer = \"300 B\", work = \"20 ms\", think = \"60 ms\" }";
    let asked = elapsed(&format!("exchanges = [{exchange}]"));
    assert!((0.84..1.6).contains(&asked), "{asked}");
}
