//! Whole runs over links with bit errors, schedules, managed queues and one-way outages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::{Scenario, explain};
use farpace_lab::{Inputs, Run, RunOutcome};
use farpace_path::DropReason;
use farpace_units::{ByteCount, Instant, Span};

/// A link of 10 Mbit/s and 2 times 20 ms with `keys`, and a transfer of 2 MB.
fn line(keys: &str) -> String {
    format!(
        "title = \"t\"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n\
         rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n{keys}\n[[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
         size = \"2 MB\"\nsender = {{ ecn = \"on\" }}\nreceiver = {{ ecn = \"on\" }}\n"
    )
}

fn run(text: &str) -> RunOutcome {
    let scenario = Scenario::parse(text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    let outcome = run.finish().unwrap();
    for flow in &outcome.flows {
        assert!(flow.is_intact(), "{}: {:?}", flow.name, flow.verified);
    }
    outcome
}

fn drops(outcome: &RunOutcome, element: &str, reason: DropReason) -> u64 {
    let those = outcome.drops.iter().filter(|d| d.place == element && d.reason == reason);
    those.map(|d| d.packets).sum()
}

fn all_drops(outcome: &RunOutcome) -> u64 {
    outcome.drops.iter().map(|d| d.packets).sum()
}

fn took(outcome: &RunOutcome) -> Span {
    outcome.flows[0].completed.unwrap().since(Instant::ZERO)
}

/// Breaks: packets pass a host that stands still or are lost at it, a stall works in one direction only, or
/// the host's timers stop with it.
#[test]
fn a_host_that_stands_still_holds_packets() {
    let stalled = |host: &str, lasts| {
        let stalls = format!("[hosts.{host}]\nstalls = [{{ at = \"500 ms\", lasts = \"{lasts}\" }}]");
        run(&line("").replace(&format!("[hosts.{host}]"), &stalls))
    };
    let plain = took(&run(&line("")));
    for host in ["a", "b"] {
        let outcome = stalled(host, "150 ms");
        assert_eq!((all_drops(&outcome), outcome.flows[0].retransmissions()), (0, 0), "{host}");
        // The link sends on what was in the queue, and rests for the remainder.
        let later = took(&outcome) - plain;
        assert!((Span::from_millis(50)..=Span::from_millis(150)).contains(&later), "{host}: {later}");
    }
    let long = stalled("b", "1500 ms");
    assert!(all_drops(&long) == 0 && long.flows[0].retransmissions() > 0, "the sender's timer has run");
    let text = line("").replace("[hosts.b]", "[hosts.b]\nstalls = [{ at = \"1 s\", lasts = \"20 ms\" }]");
    let words = explain(&Scenario::parse(&text, "t.toml").unwrap()).to_string();
    assert!(words.contains("b stands still once, 20.00 ms in all: packets wait."), "{words}");
}

/// Breaks: bit errors work in the wrong direction, or before the link instead of after it, where the frame
/// has already taken its time.
#[test]
fn bit_errors_follow_the_link() {
    let outcome = run(&line("forward = { bit_errors = 1e-6 }"));
    let lost = drops(&outcome, "l.forward.bit-errors", DropReason::BitErrors);
    // About 1400 packets, 1.2 % of them: 16.8, with a tolerance of four times 4.1.
    assert!((1..=34).contains(&lost), "{lost}");
    assert_eq!(all_drops(&outcome), lost);
    let back = run(&line("backward = { bit_errors = 1e-4 }"));
    assert!(drops(&back, "l.backward.bit-errors", DropReason::BitErrors) > 0);
    assert_eq!(back.flows[0].retransmissions(), 0, "no data is lost");
    // 12 Mbit/s arrive, a third of them with errors. The rest alone would fit into the link.
    let text = line("queue = \"20 packets\"\nforward = { bit_errors = 5e-5 }");
    let text = text.replace("from = \"a\"\nto = \"b\"", "from = \"b\"\nto = \"a\"");
    let video =
        "[[datagrams]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nrate = \"12 Mbit/s\"\nlasts = \"3 s\"\n";
    assert!(drops(&run(&(text + video)), "l", DropReason::QueueFull) > 100);
}

/// Breaks: burst loss and clock jumps have no key, or no effect.
#[test]
fn bursts_and_clocks_have_keys() {
    let outcome = run(&line("forward = { burst_loss = { begin = 0.005, end = 0.5 } }"));
    assert!(drops(&outcome, "l.forward.burst-loss", DropReason::BurstLoss) > 0);
    // A large jump back makes all later timestamps look old: RFC 7323 §5 drops these segments to the end. A
    // jump forward does no harm.
    for (direction, ticks, arrives) in [
        ("backward", 1_000_000, true),
        ("backward", -1_000_000_000, false),
        ("forward", -1_000_000_000, false),
    ] {
        let keys = format!("{direction} = {{ clock_jumps = [{{ at = \"500 ms\", ticks = {ticks} }}] }}");
        let text = line(&keys).replace("title", "duration = \"30 s\"\ntitle");
        let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
        let mut run = Run::new(&scenario, Inputs::default()).unwrap();
        while !run.advance(None).unwrap().finished {}
        assert_eq!(run.finish().unwrap().flows[0].is_intact(), arrives, "{keys}");
    }
}

/// Breaks: an outage of one direction drops packets of the other, or packets before or after its time.
#[test]
fn an_outage_can_affect_acks_alone() {
    let plain = run(&line(""));
    let dark = run(&line("backward = { outages = [{ at = \"1 s\", lasts = \"300 ms\" }] }"));
    let lost = drops(&dark, "l.backward.outage", DropReason::Outage);
    assert!(lost > 10, "{lost} ACKs");
    assert_eq!(all_drops(&dark) - lost, all_drops(&plain), "data comes through");
    assert!(took(&dark) < took(&plain) + Span::from_millis(700), "{} and {}", took(&dark), took(&plain));
}

/// Breaks: steps of rate and delay do not reach the link, or reach the wrong direction.
#[test]
fn a_schedule_changes_the_link() {
    let constant = took(&run(&line("")));
    // Half of the time 10, half 2.5 Mbit/s: a mean of 6.25.
    let steps = "steps = [{ at = \"250 ms\", rate = \"2500 kbit/s\" }]";
    let slow = took(&run(&line(&format!("forward = {{ schedule = {{ period = \"500 ms\", {steps} }} }}"))));
    let ratio = slow.as_secs_f64() / constant.as_secs_f64();
    assert!((1.4..1.8).contains(&ratio), "{ratio}: {slow} and {constant}");
    let back = took(&run(&line(&format!("backward = {{ schedule = {{ period = \"500 ms\", {steps} }} }}"))));
    assert!(back < constant + Span::from_millis(100), "ACKs need little: {back} and {constant}");

    // A second of delay from 1 s on. Packets in flight arrive before, all others later.
    let late = "schedule = { steps = [{ at = \"1 s\", delay = \"1 s\" }] }";
    assert!(took(&run(&line(late))) > constant + Span::from_secs(1));
}

/// Breaks: a shorter delay loses or reorders packets although links are first in, first out.
#[test]
fn a_step_of_delay_causes_no_retransmission() {
    let steps = "steps = [{ at = \"0 s\", delay = \"40 ms\" }, { at = \"700 ms\", delay = \"5 ms\" }]";
    let keys = |more: &str| line(&format!("queue = \"10 MB\"\nschedule = {{ {more}{steps} }}"));
    assert_eq!(run(&keys("")).flows[0].retransmissions(), 0);
    let text = keys("reorders = true, ");
    assert!(explain(&Scenario::parse(&text, "t").unwrap()).contains("Packets may overtake others"));
    assert_eq!(all_drops(&run(&text)), 0);
}

/// Breaks: a schedule cannot come from a file, or errors of the file are not reported at the key that names
/// it.
#[test]
fn steps_come_from_a_file() {
    let text = line("schedule = { period = \"500 ms\", file = \"pass.csv\" }");
    let read = |csv: &'static str| {
        Scenario::parse_beside(&text, "t.toml", &[], &|name| match name {
            "pass.csv" => Ok(csv.to_owned()),
            _ => Err("it is not there".to_owned()),
        })
    };
    let from_file = read("at,rate,delay\n0 s,10 Mbit/s,20 ms\n250 ms,2500 kbit/s,\n").unwrap();
    let inline = line(
        "schedule = { period = \"500 ms\", steps = [{ at = \"0 s\", rate = \"10 Mbit/s\", delay = \"20 \
         ms\" }, { at = \"250 ms\", rate = \"2500 kbit/s\" }] }",
    );
    assert_eq!(Ok(from_file), Scenario::parse(&inline, "t.toml"));
    let error = read("at,rate,delay\n0 s,10 Mbit,20 ms\n").unwrap_err();
    assert_eq!(error.problems[0].position(), Some((9, 40)), "{error}");
    assert!(error.to_string().contains("pass.csv: line 2: unknown unit `Mbit`"), "{error}");
}

/// Breaks: managed queues are not in the link, drop under another name, or do not mark.
#[test]
fn queues_are_managed() {
    let long = "queue = \"10 MB\"\n";
    for (aqm, reason) in [
        ("red = { min = \"20 packets\", max = \"60 packets\" }", DropReason::Red),
        ("codel = {}", DropReason::CoDel),
        ("fq_codel = { ecn = false }", DropReason::CoDel),
    ] {
        let outcome = run(&line(&format!("{long}aqm = {{ {aqm} }}")));
        assert!(drops(&outcome, "l", reason) > 0, "{aqm}: {:?}", outcome.drops);
        assert_eq!(drops(&outcome, "l", reason), all_drops(&outcome), "{aqm}");
    }
    for aqm in ["codel = { ecn = true }", "fq_codel = {}"] {
        let outcome = run(&line(&format!("{long}aqm = {{ {aqm} }}")));
        assert_eq!((all_drops(&outcome), outcome.flows[0].retransmissions()), (0, 0), "{aqm}");
        assert!(took(&outcome) < Span::from_secs(3), "{aqm}: {}", took(&outcome));
    }
    let own = line("aqm = { codel = {} }\nbackward = { aqm = { fq_codel = {} } }");
    let words = explain(&Scenario::parse(&own, "t").unwrap());
    assert!(words.contains("under CoDel") && words.contains("under FQ-CoDel"), "{words}");
    assert!(words.contains("tells the sender early") && !words.contains("there will be loss"), "{words}");
}

/// Breaks: unequal rates of the two directions, or a queue in bytes that two senders share.
#[test]
fn two_senders_share_a_satellite_router() {
    let text = r#"
title = "Two senders, one satellite router"
duration = "200 s"
[hosts.a]
[hosts.b]
[hosts.c]
[routers.ground]
[[links]]
name = "left"
between = ["a", "ground"]
rate = "100 Mbit/s"
delay = "1 ms"
[[links]]
name = "right"
between = ["b", "ground"]
rate = "100 Mbit/s"
delay = "5 ms"
[[links]]
name = "space"
between = ["ground", "c"]
rate = "10 Mbit/s"
delay = "50 ms"
queue = "15 kB"
backward = { rate = "100 kbit/s" }
[[flows]]
name = "first"
from = "a"
to = "c"
size = "2 MB"
[[flows]]
name = "second"
from = "b"
to = "c"
size = "2 MB"
"#;
    let outcome = run(text);
    let full = drops(&outcome, "space", DropReason::QueueFull);
    assert!(full > 0 && full == all_drops(&outcome), "{:?}", outcome.drops);
    let s = Scenario::parse(text, "t").unwrap();
    let back = s.links[2].direction(farpace_lab::scenario::Direction::Backward);
    assert_eq!(
        (back.rate.map(|r| r.bits_per_sec()), back.queue.in_bytes(ByteCount::new(1))),
        (Some(100_000), ByteCount::new(15_000))
    );
}

/// Breaks: recorded links: they carry what their opportunities allow, in the direction that has the trace,
/// and again after its last line; the ceiling counts other bytes than the opportunities do; the delay of
/// packets is what they waited for, whatever the rate of the moment.
#[test]
fn recorded_links_carry_their_opportunities() {
    // Two opportunities in each of 50 ms, then nothing for 50 ms: 12 Mbit/s in the mean.
    let trace: String = (1..=50).map(|ms| format!("{ms}\n{ms}\n")).chain(["100\n".to_owned()]).collect();
    let text = line("queue = \"100 packets\"\nforward = { schedule = { mahimahi = \"lte\" } }");
    let beside =
        |name: &str| if name == "lte" { Ok(trace.clone()) } else { Err("it is not there".to_owned()) };
    let scenario = Scenario::parse_beside(&text, "t.toml", &[], &beside).unwrap_or_else(|e| panic!("{e}"));
    let again = Scenario::parse(&scenario.to_toml().unwrap(), "again.toml").unwrap();
    assert_eq!(again, scenario, "a scenario that was written out needs no file");
    // An opportunity carries one packet of 1500 B: frames and overhead take nothing of it.
    let bottleneck = scenario.bottleneck(&scenario.flows[0]).unwrap();
    assert_eq!(bottleneck.goodput.bits_per_sec(), bottleneck.rate.bits_per_sec() * 1_448 / 1_500);
    let words = explain(&scenario);
    assert!(words.contains("Of each 1500 B it counts, 1448 B are payload"), "{words}");
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    let outcome = run.finish().unwrap();
    let flow = &outcome.flows[0];
    let goodput = flow.goodput().as_mbit_f64();
    assert!(flow.is_intact() && (6.0..11.7).contains(&goodput), "{goodput}");
    let (mean, most) = (flow.queued.mean(), flow.queued.longest());
    assert!(mean > Span::from_millis(5) && most <= Span::from_millis(150), "{mean}, {most}");
    let missing = text.replace("\"lte\"", "\"lt\"");
    let error = Scenario::parse_beside(&missing, "t.toml", &[], &beside).unwrap_err().to_string();
    assert!(error.contains("it is not there"), "{error}");
}
