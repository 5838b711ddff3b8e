//! What a run tells of the places of its network.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_events::Record;
use farpace_lab::scenario::Scenario;
use farpace_lab::{DroppedSegment, Inputs, Run, RunOutcome};
use farpace_path::{DropReason, QueueReading};
use farpace_units::{ByteCount, Instant, Span};

/// A queue of 20 packets (2.4 ms at 100 Mbit/s) that two flows fill, with random loss behind it.
const SCENARIO: &str = r#"
title = "t"
duration = "20 s"
hosts = { a = {}, b = {} }
[[links]]
name = "wan"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "10 ms"
queue = "20 packets"
forward = { loss = 0.001 }
[[flows]]
name = "one"
from = "a"
to = "b"
size = "4 MB"
[[flows]]
name = "two"
from = "a"
to = "b"
size = "4 MB"
"#;

struct Watched {
    outcome: RunOutcome,
    records: Vec<Record>,
    names: Vec<String>,
    readings: Vec<Vec<QueueReading>>,
    dropped: Vec<(Option<usize>, DroppedSegment)>,
    counted: Vec<(String, DropReason, u64)>,
}

fn watched(text: &str, watches: bool) -> Watched {
    let scenario = Scenario::parse(text, "t").unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(&scenario, Inputs { records: true, ..Inputs::default() }).unwrap();
    if watches {
        run.watch_places().unwrap();
    }
    let names: Vec<String> = run.queue_names().map(str::to_owned).collect();
    let (mut records, mut readings, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let finished = run.advance(Some(&mut records)).unwrap().finished;
        readings.push(run.queue_readings());
        dropped.extend(run.take_dropped());
        if finished {
            break;
        }
    }
    let count = |m: &farpace_lab::DropMeter| {
        (run.place_name(m.element).to_owned(), m.reason, m.meter.total().packets)
    };
    let counted = run.drop_meters().iter().map(count).collect();
    Watched { outcome: run.finish().unwrap(), records, names, readings, dropped, counted }
}

/// Breaks: a queue has the name of the other direction, exceeds its limit, or its delay is not that of what
/// waits in it; or a peak within a bin is hidden.
#[test]
fn queues_have_their_names_peaks_and_delays() {
    let run = watched(SCENARIO, true);
    assert_eq!(run.names, ["wan, a to b", "wan, b to a"]);
    let most = |queue: usize| run.readings.iter().map(|r| r[queue].packets).max().unwrap();
    assert_eq!(most(0), 20, "it overflowed");
    let longest = run.readings.iter().filter_map(|r| r[0].wait).max().unwrap();
    // 19 frames of 1,538 B on the wire.
    let full = Span::from_nanos(19 * 1_538 * 80);
    assert!(longest <= full && longest > full - Span::from_micros(200), "{longest}");
    let back = run.readings.iter().filter_map(|r| r[1].wait).max().unwrap();
    assert!(back < Span::from_millis(1), "ACKs hardly wait: {back}");
}

/// Breaks: a drop is not counted, has a wrong cause, place or flow, or its sequence number is none that was
/// sent.
#[test]
fn drops_have_place_cause_and_flow() {
    let run = watched(SCENARIO, true);
    let mut expected: Vec<(String, DropReason, u64)> =
        run.outcome.drops.iter().map(|d| (d.place.clone(), d.reason, d.packets)).collect();
    let mut counted = run.counted.clone();
    expected.sort();
    counted.sort();
    assert_eq!(counted, expected);
    assert!(counted.iter().any(|c| c.1 == DropReason::QueueFull && c.0 == "wan"));
    assert!(counted.iter().any(|c| c.1 == DropReason::Loss && c.0 == "wan.forward.loss"));
    for flow in [0u32, 1] {
        let dropped: Vec<&DroppedSegment> =
            run.dropped.iter().filter(|d| d.0 == Some(flow as usize)).map(|d| &d.1).collect();
        assert!(!dropped.is_empty());
        for d in dropped {
            let sent =
                |r: &&Record| r.connection == flow && r.seq == d.seq && r.len == d.len && r.time <= d.time;
            assert!(run.records.iter().find(sent).is_some(), "{d:?}");
        }
    }
}

/// Breaks: whoever looks on changes the run.
#[test]
fn watching_changes_nothing() {
    let (with, without) = (watched(SCENARIO, true), watched(SCENARIO, false));
    assert_eq!(with.records, without.records);
    assert_eq!(with.outcome.events, without.outcome.events);
    assert!(without.names.is_empty() && without.dropped.is_empty() && without.counted.is_empty());
}

/// Breaks: the readings of a managed queue, whose rate is not known in advance.
#[test]
fn managed_queues_are_read_too() {
    let managed = SCENARIO.replace("queue = \"20 packets\"", "queue = \"200 packets\"\naqm = { codel = {} }");
    let run = watched(&managed, true);
    let most = run.readings.iter().map(|r| r[0]).max_by_key(|r| r.packets).unwrap();
    assert!(most.packets > 20 && most.wait > Some(Span::from_millis(2)), "{most:?}");
    assert!(run.counted.iter().any(|c| c.1 == DropReason::CoDel), "{:?}", run.counted);
}

/// Breaks: the shares of NICs: what they sent over time is not what the outcome says.
#[test]
fn nics_sent_what_the_outcome_says() {
    let text = include_str!("../../../scenarios/gallery/bonding.toml");
    let set = [("flows.*.size".to_owned(), "4 MB".to_owned())];
    let scenario = Scenario::parse_with(text, "bonding.toml", &set).unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    run.watch_places().unwrap();
    while !run.advance(None).unwrap().finished {}
    let rates = run.nic_rates().unwrap();
    let now = run.now();
    let outcome = run.finish().unwrap();
    let nics: Vec<_> =
        outcome.nics.iter().flat_map(|host| host.nics.iter().map(|nic| (host.host.clone(), nic))).collect();
    assert!(nics.len() >= 4 && rates.len() == nics.len());
    for ((host, nic), rate) in nics.iter().zip(&rates) {
        assert_eq!((host, &nic.name, &nic.link), (&rate.host, &rate.name, &rate.link));
        assert_eq!((nic.sent_bytes, nic.sent), (rate.sent.total().bytes, rate.sent.total().packets));
        let end = Instant::ZERO + rate.sent.width() * rate.sent.bins().len() as u64;
        assert!(end <= now + rate.sent.width());
    }
    assert!(rates.iter().filter(|r| r.sent.total().bytes > ByteCount::new(100_000)).count() >= 2);
}
