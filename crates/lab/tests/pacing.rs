//! Whole runs with paced NICs: the spacing at the far end, and where gap frames end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_host::Host;
use farpace_lab::scenario::{Scenario, explain};
use farpace_lab::{Inputs, Run, RunOutcome};
use farpace_link::pacing::{Burstiness, GapFrameKind, layer_2, wire_len};
use farpace_path::{PortFrames, Router, Switch};
use farpace_trace::CaptureReader;
use farpace_units::{ByteCount, Instant};
use farpace_wire::Packet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// From a over x to b, paced with `keys` from a to x. A third host, c, is connected to x.
fn scenario(x: &str, keys: &str) -> String {
    format!(
        r#"
title = "t"
duration = "10 s"
{x}
[hosts.a]
[hosts.b]
[hosts.c]
[[links]]
name = "nic"
between = ["a", "x"]
rate = "1 Gbit/s"
delay = "10 us"
[links.forward.pacing]
default = "bulk"
{keys}
[[links.forward.pacing.classes]]
name = "bulk"
rate = "100 Mbit/s"
limit = "10 MB"
[[links]]
name = "out"
between = ["x", "b"]
rate = "1 Gbit/s"
[[links]]
name = "side"
between = ["x", "c"]
rate = "1 Gbit/s"
queue = "100 MB"
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "2 MB"
receiver = {{ window = "64 packets" }}
[trace]
taps = ["nic"]
"#
    )
}

const ROUTER: &str = "[routers.x]";
const SWITCH: &str = "[switches.x]";
const HUB: &str = "[switches.x]\nkind = \"hub\"";

fn started(text: &str) -> Run {
    let scenario = Scenario::parse(text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
    Run::new(&scenario, Inputs::default()).unwrap()
}

/// Until the transfer is done, and no packet is in flight.
fn drive(run: &mut Run) {
    while !run.advance(None).unwrap().finished {}
    for _ in 0..3 {
        run.advance(None).unwrap();
    }
}

fn ended(run: Run) -> RunOutcome {
    let outcome = run.finish().unwrap();
    for flow in &outcome.flows {
        assert!(flow.is_intact(), "{}: {:?}", flow.name, flow.verified);
    }
    assert_eq!(outcome.drops, [], "nothing has a reason to be dropped");
    outcome
}

/// The packets of a capture from `a`, with times and lengths.
fn captured(file: &Path, a: [u8; 6]) -> Vec<(Instant, Packet, ByteCount)> {
    let mut reader = CaptureReader::new(BufReader::new(File::open(file).unwrap())).unwrap();
    let mut packets = Vec::new();
    while let Some(captured) = reader.next_packet().unwrap() {
        // The capture is cut: it does not contain the bytes beyond the headers.
        let mut frame = captured.data.to_vec();
        frame.resize(captured.original_len.as_len(), 0);
        let packet = Packet::from_frame(&frame).unwrap();
        if packet.macs().0.0 == a {
            packets.push((captured.time, packet, captured.original_len));
        }
    }
    packets
}

const A: [u8; 6] = [2, 0, 10, 0, 0, 1];

/// Breaks: the promise of precise pacing, measured at the far end: full frames of 100 Mbit/s on a link of 1
/// Gbit/s have a distance of exactly 15,180 bytes on the link, and gap frames fill the time between them.
#[test]
fn packets_arrive_with_the_spacing_of_their_class() {
    let dir = tempfile::tempdir().unwrap();
    for kind in [GapFrameKind::Pause, GapFrameKind::Experimental, GapFrameKind::ToSelf] {
        let mut run = started(&scenario(ROUTER, &format!("gap_frame = \"{}\"", kind.name())));
        run.capture_into(dir.path()).unwrap();
        drive(&mut run);
        let outcome = ended(run);
        let seen = captured(&dir.path().join("nic.x.pcapng"), A);
        let (gaps, data): (Vec<_>, Vec<_>) = seen.iter().partition(|(_, p, _)| GapFrameKind::of(p).is_some());
        assert!(gaps.iter().all(|(_, p, _)| GapFrameKind::of(p) == Some(kind)));
        let nic = outcome.pacing[0].nic;
        assert_eq!((gaps.len() as u64, data.len() as u64), (nic.gap_frames, nic.packets));
        let gap_bytes: ByteCount = gaps.iter().map(|(.., len)| wire_len(*len)).sum();
        assert_eq!(gap_bytes, nic.gap_bytes);

        let mut exact = 0;
        let mut pairs = 0;
        for pair in data.windows(2) {
            let apart = pair[1].0.since(pair[0].0).as_nanos();
            if pair[0].2 == pair[1].2 && pair[0].2 == ByteCount::new(1_514) {
                assert!(apart >= 15_180 * 8, "{apart} ns apart");
                (pairs, exact) = (pairs + 1, exact + u64::from(apart == 15_180 * 8));
            }
        }
        assert!(pairs > 1_300 && exact * 100 > pairs * 97, "{exact} of {pairs}");
        let mut burstiness = Burstiness::new(ByteCount::new(1_518), 15_180 * 8);
        data.iter().for_each(|(at, _, len)| burstiness.arrive(at.as_nanos(), layer_2(*len)));
        assert!(burstiness.peak() <= ByteCount::new(2 * 1_518), "{}", burstiness.peak());
        // The link is never idle between two frames of a busy class.
        let idle = seen.windows(2).filter(|pair| {
            let line = wire_len(pair[1].2).bits();
            pair[1].0.since(pair[0].0).as_nanos() > line
        });
        assert!(idle.count() < 100);
    }
}

/// Breaks: gap frames pass the other end of their link, or are not counted there.
#[test]
fn gap_frames_end_at_the_far_port() {
    for kind in ["pause", "experimental", "self"] {
        for x in [ROUTER, SWITCH] {
            let mut run = started(&scenario(x, &format!("gap_frame = \"{kind}\"")));
            drive(&mut run);
            let (mut counted, mut to_c) = (PortFrames::default(), None);
            {
                let world = run.world();
                let id = world.find("x").unwrap();
                if let Some(router) = world.element::<Router>(id) {
                    counted = *router.port_frames();
                }
                if let Some(switch) = world.element::<Switch>(id) {
                    counted = *switch.port_frames();
                    assert_eq!(switch.flooded(), 0, "it knows all hosts");
                }
                to_c.replace(world.ledger(world.find("side").unwrap()).unwrap().received);
            }
            let outcome = ended(run);
            let gaps = outcome.pacing[0].nic.gap_frames;
            assert!(gaps > 10_000, "{gaps}");
            let (pauses, others) = if kind == "pause" { (gaps, 0) } else { (0, gaps) };
            assert_eq!(counted, PortFrames { pauses, pauses_with_time: 0, others }, "{x} {kind}");
            assert_eq!(to_c, Some(0), "{x} {kind}");
        }
    }
}

/// Breaks: the reason why gap frames must end at ports: a hub repeats them, and they fill the link of an
/// uninvolved neighbour. (A negative test.)
#[test]
fn behind_a_hub_gap_frames_fill_a_neighbours_link() {
    let mut run = started(&scenario(HUB, ""));
    drive(&mut run);
    let world = run.world();
    let side = world.ledger(world.find("side").unwrap()).unwrap().received;
    let c = world.element::<Host>(world.find("c").unwrap()).unwrap();
    let (pauses, passed_over) = (c.port_frames().pauses, c.passed_over());
    let outcome = ended(run);
    let nic = outcome.pacing[0].nic;
    assert_eq!(pauses, nic.gap_frames, "all of them");
    assert_eq!(passed_over + pauses, side, "and everything else that a and b say");
    let busy = (nic.gap_bytes + nic.line_bytes).get() as f64 * 8.0 / outcome.flows[0].elapsed.as_secs_f64();
    assert!(busy > 0.9e9, "{busy} bit/s on a link without packets for c");
}

/// Breaks: a host at the other end of a paced link counts gap frames as received data.
#[test]
fn meters_do_not_count_gap_frames() {
    let text = scenario("", "").replace("\"x\"", "\"b\"");
    // a - b directly, without the other links.
    let (head, rest) = text.split_once("[[links]]\nname = \"out\"").unwrap();
    let (_, flows) = rest.split_once("[[flows]]").unwrap();
    let text = format!("{head}[[flows]]{flows}").replace("[hosts.c]\n", "");
    let mut run = started(&text);
    drive(&mut run);
    let metered: ByteCount = run.meters().map(|(_, meter)| meter.total().bytes).sum();
    let outcome = ended(run);
    let sent: ByteCount = outcome.pacing[0].classes.iter().map(|class| class.stats.bytes).sum();
    assert_eq!(metered, sent);
    assert!(outcome.pacing[0].nic.gap_frames > 10_000);
}

/// Breaks: `trace.clock`: captures have a finer resolution than the device they stand for.
#[test]
fn captures_may_have_a_coarse_clock() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = started(&scenario(SWITCH, "").replace("taps", "clock = \"gtrcnet\"\ntaps"));
    run.capture_into(dir.path()).unwrap();
    drive(&mut run);
    ended(run);
    let seen = captured(&dir.path().join("nic.x.pcapng"), A);
    assert!(seen.len() > 1_000);
    for (at, ..) in seen {
        let tick = (u128::from(at.as_nanos()) << 24).div_ceil(1_000_000_000);
        assert_eq!(u128::from(at.as_nanos()), (tick * 1_000_000_000) >> 24);
    }
}

/// Breaks: timers instead of gap frames give a less even spacing on a link without other traffic.
#[test]
fn timers_keep_the_same_spacing_without_gap_frames() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = started(&scenario(ROUTER, "gaps = \"timers\""));
    run.capture_into(dir.path()).unwrap();
    drive(&mut run);
    let outcome = ended(run);
    assert_eq!(outcome.pacing[0].nic.gap_frames, 0);
    let seen = captured(&dir.path().join("nic.x.pcapng"), A);
    let full: Vec<_> =
        seen.windows(2).filter(|pair| pair.iter().all(|(.., len)| len.get() == 1_514)).collect();
    let exact = full.iter().filter(|pair| pair[1].0.since(pair[0].0).as_nanos() == 15_180 * 8).count();
    assert!(full.len() > 1_300 && exact * 100 > full.len() * 97, "{exact} of {}", full.len());
}

/// Breaks: impairments of a paced direction work before the NIC, not on what it sends; or gap frames cost
/// tokens of a policer.
#[test]
fn impairments_follow_the_nic() {
    let policer = "policer = { rate = \"105 Mbit/s\", burst = \"20 kB\" }";
    let text = scenario(ROUTER, "")
        .replace("[links.forward.pacing]", &format!("[links.forward]\n{policer}\n[links.forward.pacing]"));
    let mut run = started(&text);
    drive(&mut run);
    let outcome = ended(run); // nothing is dropped: without pacing, bursts of the window exceed the bucket
    assert!(outcome.pacing[0].nic.gap_frames > 10_000);
    let text = text.replace(policer, "loss = 0.01");
    let mut run = started(&text);
    drive(&mut run);
    let outcome = run.finish().unwrap();
    let nic = outcome.pacing[0].nic;
    let lost: u64 = outcome.drops.iter().map(|drop| drop.packets).sum();
    let expected = (nic.packets + nic.gap_frames) / 100;
    assert!(outcome.drops.iter().all(|drop| drop.place == "nic.forward.loss"), "{:?}", outcome.drops);
    assert!(lost.abs_diff(expected) < expected / 4, "{lost} lost, {expected} expected");
}

/// Breaks: an explanation does not mention pacing, or predicts losses that pacing prevents.
#[test]
fn pacing_is_explained() {
    let words = |keys: &str| {
        let text = explain(&Scenario::parse(&scenario(SWITCH, keys), "t").unwrap());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = words("");
    assert!(text.contains("paced, earliest deadline first, with gap frames (pause)"), "{text}");
    assert!(text.contains("bulk at 100 Mbit/s") && text.contains("queue 10 MB"), "{text}");
    assert!(words("scheduler = \"fifo\"").contains("not paced"));
    assert!(words("gaps = \"timers\"").contains("by timers"));
    let gallery = include_str!("../../../scenarios/gallery/paced.toml");
    let paced = explain(&Scenario::parse(gallery, "paced").unwrap());
    assert!(!paced.contains("there will be loss"), "{paced}");
    let fifo = Scenario::parse_with(
        gallery,
        "paced",
        &[("links.nic.forward.pacing.scheduler".to_owned(), "fifo".to_owned())],
    );
    let fifo = explain(&fifo.unwrap());
    assert!(fifo.contains("there will be loss"), "{fifo}");
}
