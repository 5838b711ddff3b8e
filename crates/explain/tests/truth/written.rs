//! Scenarios that were found on the kernel's TCP, each with the cause that is right at the three places.

use crate::diagnosed;
use farpace_explain::cause::Cause::{
    self, Congestion, Connect, Outage, Policer, SenderApplication, SenderProcessor, SmallQueue, SynLoss,
};
use farpace_explain::flow::{Flow, Side};
use farpace_explain::input::{Capture, open, read, read_with};
use farpace_explain::pair::{PacketsSeen, Pair, align};
use farpace_explain::{Diagnosis, diagnose};
use farpace_lab::scenario::Scenario;
use farpace_units::ByteCount;
use tempfile::TempDir;

/// Two lines with a router between them; the captures are taken at the ends and behind the router.
struct Written<'a> {
    near: &'a str,
    far: &'a str,
    congestion: &'a str,
    timestamps: bool,
    size: &'a str,
}

impl Written<'_> {
    fn verdicts(&self) -> [Cause; 3] {
        self.verdicts_with("linux")
    }

    /// With a receiver that acknowledges in this way.
    fn verdicts_with(&self, delayed_ack: &str) -> [Cause; 3] {
        let Written { near, far, congestion, timestamps, size } = self;
        let toml = format!(
            r#"
title = "written"
seed = 7
[hosts.a]
[hosts.b]
[routers.r]
[[links]]
name = "near"
between = ["a", "r"]
{near}
[[links]]
name = "far"
between = ["r", "b"]
{far}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "{size}"
[flows.sender]
profile = "linux"
congestion = "{congestion}"
timestamps = {timestamps}
[flows.receiver]
profile = "linux"
delayed_ack = "{delayed_ack}"
timestamps = {timestamps}
[trace]
taps = ["a", "far", "b"]
snaplen = "128 B"
"#
        );
        let scenario = Scenario::parse(&toml, "written.toml").unwrap_or_else(|e| panic!("{e}\n{toml}"));
        let directory = tempfile::tempdir().unwrap();
        let mut run = farpace_lab::Run::new(&scenario, farpace_lab::Inputs::default()).unwrap();
        run.capture_into(directory.path()).unwrap();
        while !run.advance(None).unwrap().finished {}
        run.finish().unwrap();
        ["a", "far.r", "b"].map(|place| diagnosed(&directory.path().join(format!("{place}.pcapng"))))
    }
}

/// Breaks: what slow start has lost in a queue hides the bucket that takes all later losses. Buckets of a
/// second are common: nftables' `limit rate over` has one.
#[test]
fn a_deep_bucket_behind_a_queue_that_overflowed_is_a_policer() {
    let written = Written {
        near: "rate = \"60 Mbit/s\"\ndelay = \"4600 us\"\nqueue = \"450 kB\"",
        far: "delay = \"3500 us\"\n[links.forward]\npolicer = { rate = \"13 Mbit/s\", burst = \"1600 kB\" }",
        congestion: "reno",
        timestamps: true,
        size: "15 MB",
    };
    assert_eq!(written.verdicts(), [Policer; 3]);
}

/// Breaks: where queues are not seen, the losses of a full one pass for a small queue or for chance. A rate
/// that the sender reaches again and again, and never exceeds, is the path's.
#[test]
fn a_path_that_is_full_is_told_without_timestamps() {
    let written = Written {
        near: "rate = \"50 Mbit/s\"\ndelay = \"12 ms\"\nqueue = \"1000 packets\"\naqm = { codel = {} }",
        far: "delay = \"3 ms\"",
        congestion: "reno",
        timestamps: false,
        size: "50 MB",
    };
    assert_eq!(written.verdicts(), [Congestion; 3]);
}

/// Breaks: behind the path a silence of seconds passes for a burst of losses where slow start has lost such.
#[test]
fn a_silence_in_which_timers_fired_is_an_outage() {
    let written = Written {
        near: "rate = \"13 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"25 packets\"",
        far: "delay = \"4 ms\"\n[links.forward]\noutages = [{ at = \"1 s\", lasts = \"3 s\" }]",
        congestion: "cubic",
        timestamps: false,
        size: "1500 kB",
    };
    assert_eq!(written.verdicts(), [Outage; 3]);
}

/// Breaks: a queue of a tenth of the round trip counts as a full path, although the path is idle for a third
/// of the time because the sender halves its window.
#[test]
fn a_queue_that_leaves_the_path_idle_is_small() {
    let written = Written {
        near: "delay = \"20 ms\"",
        far: "rate = \"58 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"27 packets\"",
        congestion: "reno",
        timestamps: true,
        size: "120 MB",
    };
    assert_eq!(written.verdicts()[..2], [SmallQueue; 2]);
    // Behind the path its losses pass for chance if the receiver compresses SACKs.
    assert_eq!(written.verdicts_with("linux-4.17"), [SmallQueue; 3]);
}

/// Breaks: a path whose rate falls to a quarter is no longer full by its best rate, and its longer queue
/// makes earlier losses look like those of a bucket, a burst or chance.
#[test]
fn a_path_whose_rate_falls_is_full() {
    for (congestion, to) in [("cubic", "6 Mbit/s"), ("reno", "10 Mbit/s")] {
        let far = format!(
            "rate = \"36 Mbit/s\"\ndelay = \"12 ms\"\nqueue = \"230 kB\"\n\
             schedule = {{ steps = [{{ at = \"3 s\", rate = \"{to}\" }}] }}"
        );
        let written =
            Written { near: "delay = \"3 ms\"", far: &far, congestion, timestamps: true, size: "15 MB" };
        assert_eq!(written.verdicts(), [Congestion; 3], "{congestion} {to}");
    }
}

/// Breaks: what a program sends evenly, in full segments, counts for the full path that there was at first.
#[test]
fn a_program_that_paces_after_the_path_was_full_is_a_program() {
    let line = "rate = \"3 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"200 kB\"\n\
                schedule = { steps = [{ at = \"1 s\", rate = \"20 Mbit/s\" }] }";
    let run = captured(line, "size = \"4 MB\"\nwrites = { size = \"1448 B\", every = \"2500 us\" }");
    for place in ["a", "b"] {
        let verdict = at(&run, place);
        assert!(!verdict.time_of(Congestion).is_zero(), "{place}");
        assert_eq!(verdict.dominant, SenderApplication, "{place}");
    }
}

/// One line between two hosts, with captures at both. The rest of the scenario is `line`, `flow` and `hosts`.
fn captured(line: &str, flow: &str) -> TempDir {
    let toml = format!(
        r#"
title = "written"
seed = 7
[hosts.a]
[hosts.b]
[[links]]
name = "line"
between = ["a", "b"]
{line}
[[flows]]
name = "bulk"
from = "a"
to = "b"
{flow}
[trace]
taps = ["a", "b"]
snaplen = "128 B"
"#
    );
    let scenario = Scenario::parse(&toml, "written.toml").unwrap_or_else(|e| panic!("{e}\n{toml}"));
    let directory = tempfile::tempdir().unwrap();
    let mut run = farpace_lab::Run::new(&scenario, farpace_lab::Inputs::default()).unwrap();
    run.capture_into(directory.path()).unwrap();
    while !run.advance(None).unwrap().finished {}
    for _ in 0..20 {
        run.advance(None).unwrap();
    }
    run.finish().unwrap();
    directory
}

fn whole(directory: &TempDir, place: &str) -> Capture {
    let file = std::fs::File::open(directory.path().join(format!("{place}.pcapng"))).unwrap();
    read(open(file).unwrap().0).unwrap()
}

fn at(directory: &TempDir, place: &str) -> Diagnosis {
    diagnose(&whole(directory, place).flows[0], Side::Client)
}

const LINE: &str = "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"";

/// Breaks: a FIN, which takes a number, counts as a byte of payload.
#[test]
fn a_fin_is_no_payload() {
    let run = captured(LINE, "size = \"1 MB\"");
    for place in ["a", "b"] {
        let capture = whole(&run, place);
        assert!(capture.flows[0].half(Side::Client).fin.is_some());
        assert_eq!(at(&run, place).bytes, ByteCount::new(1_000_000), "{place}");
    }
}

/// Breaks: two captures in the order receiver, sender give no losses and a round trip of zero.
#[test]
fn two_captures_are_aligned_in_any_order() {
    let run = captured(&format!("{LINE}\n[links.forward]\nloss = 0.01\n"), "size = \"2 MB\"");
    let [a, b] = ["a", "b"].map(|place| whole(&run, place));
    let seen = |place: &str, flow: &Flow| {
        let mut packets = PacketsSeen::default();
        let file = std::fs::File::open(run.path().join(format!("{place}.pcapng"))).unwrap();
        read_with(open(file).unwrap().0, |s| packets.take(s, flow.ends, 1448)).unwrap();
        packets
    };
    let pair = |flow: &Flow, order: [&str; 2]| -> Pair {
        align(flow, &seen(order[0], flow), &seen(order[1], flow)).unwrap()
    };
    let (there, back) = (pair(&a.flows[0], ["a", "b"]), pair(&b.flows[0], ["b", "a"]));
    assert!(there.forward.lost > 5 && there.backward.lost == 0, "{there:?}");
    assert_eq!((back.forward.lost, back.backward.lost), (there.backward.lost, there.forward.lost));
    assert_eq!(back.round, there.round);
    assert!(there.round.as_secs_f64() > 0.039 && (back.offset + there.offset).abs() < 1e-6, "{back:?}");
}

/// Breaks: a queue of one or two packets is taken for a token bucket.
#[test]
fn a_queue_of_a_packet_is_no_policer() {
    for packets in [1, 2] {
        let run = captured(&format!("{LINE}\nqueue = \"{packets} packets\""), "size = \"2 MB\"");
        for place in ["a", "b"] {
            let verdict = at(&run, place);
            assert_ne!(verdict.dominant, Policer, "{packets} seen from {place}");
            assert!(verdict.time_of(Policer).is_zero());
        }
    }
}

/// Breaks: a program that writes small messages is taken for a slow processor, because the largest of them
/// counts as a full segment.
#[test]
fn a_program_of_small_messages_is_a_program() {
    for every in [7, 13, 33] {
        let flow = format!(
            "size = \"30 kB\"\nwrites = {{ size = \"100 B\", every = \"{every} ms\" }}\n[flows.sender]\n\
             nagle = false\n"
        );
        let verdict = at(&captured(LINE, &flow), "a");
        assert_eq!(verdict.dominant, SenderApplication, "every {every} ms: {:?}", verdict.shares);
        assert!(verdict.time_of(SenderProcessor).is_zero());
    }
}

/// Breaks: on paths whose round trip exceeds the initial timeout, the SYN that the timer repeats is taken for
/// one that was lost.
#[test]
fn a_syn_that_a_short_timer_repeats_was_not_lost() {
    let run = captured("rate = \"10 Mbit/s\"\ndelay = \"700 ms\"", "size = \"200 kB\"");
    for place in ["a", "b"] {
        let capture = whole(&run, place);
        assert!(capture.flows[0].hello[0].count > 1, "no SYN was sent again");
        let verdict = at(&run, place);
        assert!(verdict.time_of(SynLoss).is_zero(), "{place}: {:?}", verdict.shares);
    }
    let told = at(&run, "a").findings.into_iter().find(|f| f.cause == Connect).unwrap();
    assert!(told.evidence.contains("below the round trip"), "{}", told.evidence);
}

/// Breaks: a start that quadruples the window, as profile `modern` has it with every control, is taken for
/// control `farpace`.
#[test]
fn a_fast_start_is_no_control() {
    for congestion in ["cubic", "reno"] {
        let flow = format!(
            "size = \"10 MB\"\n[flows.sender]\nprofile = \"modern\"\ncongestion = \"{congestion}\"\n"
        );
        for queue in ["2000 packets", "100 packets"] {
            let run = captured(&format!("{LINE}\nqueue = \"{queue}\""), &flow);
            for place in ["a", "b"] {
                let control = at(&run, place).control;
                assert_ne!(control.name, "farpace", "{congestion}, {queue}, {place}: {}", control.evidence);
            }
        }
    }
}
