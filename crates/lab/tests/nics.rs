//! Whole runs of hosts with several NICs, and the networks that they may have.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::{Scenario, TapPlace, explain};
use farpace_lab::{Inputs, Run, RunOutcome};
use farpace_link::multi_nic::OrderKind;
use farpace_path::Switch;
use farpace_trace::CaptureReader;
use farpace_units::{Rate, Span};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;

const PAPER: &str = include_str!("../../../scenarios/papers/nics.toml");
const BONDING: &str = include_str!("../../../scenarios/gallery/bonding.toml");

/// A link of a scenario.
fn link(name: &str, between: [&str; 2], more: &str) -> String {
    let [a, b] = between;
    format!("[[links]]\nname = \"{name}\"\nbetween = [\"{a}\", \"{b}\"]\n{more}\n")
}

const GIGABIT: &str = "rate = \"1 Gbit/s\"\ndelay = \"1 us\"";
const FAST: &str = "rate = \"100 Mbit/s\"\ndelay = \"1 us\"";

/// The tables `top`, `links`, and a flow from a to b.
fn network(top: &str, links: &[String]) -> String {
    let flow = "[[flows]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"3 MB\"\n";
    format!("title = \"t\"\nduration = \"20 s\"\n{top}\n{}{flow}", links.concat())
}

/// Round robin, so that all paths are used whatever their rates.
const TURNS: &str = "multi_nic = { order = \"round-robin\", probe = false }";

fn two_hosts() -> String {
    format!("[hosts.a]\n{TURNS}\n[hosts.b]\n{TURNS}")
}

/// Two NICs each, to one switch.
fn lan(top: &str) -> String {
    let links = [
        link("a0", ["a", "sw"], GIGABIT),
        link("b0", ["b", "sw"], GIGABIT),
        link("a1", ["a", "sw"], FAST),
        link("b1", ["sw", "b"], FAST),
    ];
    network(&format!("{top}\n[switches.sw]"), &links)
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "t.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn set(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    let owned: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Scenario::parse_with(text, "t.toml", &owned).unwrap_or_else(|e| panic!("{e}"))
}

fn drive(scenario: &Scenario) -> Run {
    let mut run = Run::new(scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    run
}

fn intact(scenario: &Scenario) -> RunOutcome {
    let outcome = drive(scenario).finish().unwrap();
    for flow in &outcome.flows {
        assert!(flow.is_intact(), "{}: {:?} of {}", flow.name, flow.verified, flow.size);
    }
    outcome
}

/// Breaks: bytes are lost or mixed up between NICs; an allowed network carries nothing; a path is not used.
#[test]
fn every_byte_arrives_over_all_paths() {
    let wires = |more: [&str; 3]| {
        let links: Vec<_> =
            more.iter().enumerate().map(|(n, more)| link(&format!("w{n}"), ["a", "b"], more)).collect();
        network(&two_hosts(), &links)
    };
    let far = "rate = \"80 Mbit/s\"\ndelay = \"5 ms\"\nforward = { loss = 0.001, jitter = \"1 ms\" }";
    let narrow_back = "rate = \"30 Mbit/s\"\ndelay = \"9 ms\"\nbackward = { rate = \"5 Mbit/s\" }";
    let switches = [
        link("a0", ["a", "s"], GIGABIT),
        link("a1", ["a", "t"], GIGABIT),
        link("b0", ["s", "b"], GIGABIT),
        link("b1", ["t", "b"], GIGABIT),
    ];
    let trunk = [
        link("a0", ["a", "s"], GIGABIT),
        link("a1", ["a", "s"], GIGABIT),
        link("trunk", ["s", "t"], GIGABIT),
        link("b0", ["t", "b"], GIGABIT),
        link("b1", ["t", "b"], FAST),
        link("b2", ["t", "b"], FAST),
    ];
    let two = "[switches.s]\n[switches.t]";
    let six = "[hosts.a]\naddress = \"2001:db8::1\"\n";
    let six = format!("{six}{TURNS}\n[hosts.b]\naddress = \"2001:db8::2\"\n{TURNS}");
    for (what, text) in [
        ("a switch", lan(&two_hosts())),
        ("a switch, IPv6", lan(&six)),
        ("wires", wires([far, narrow_back, GIGABIT])),
        ("a switch for each NIC", network(&format!("{}\n{two}", two_hosts()), &switches)),
        ("two switches in a row", network(&format!("{}\n{two}", two_hosts()), &trunk)),
    ] {
        // Long enough for the second announcement, after 40 ms: the first may be lost.
        let outcome = intact(&set(&text, &[("flows.bulk.size", "3 MB")]));
        assert_eq!(outcome.nics.len(), 2, "{what}");
        for nic in &outcome.nics[0].nics {
            assert!(nic.sent > 10, "{what}: {} carries nothing: {:?}", nic.name, outcome.nics);
            assert!(nic.sent_bytes.get() > nic.sent * 60, "{what}: {nic:?}");
        }
        let arrived: u64 = outcome.nics[1].nics.iter().map(|nic| nic.received_bytes.get()).sum();
        assert!(arrived > 3_000_000, "{what}: {:?}", outcome.nics[1]);
    }
}

/// Breaks: over IPv6 a receiver does not count frames, so that all count as lost and the paths are throttled.
#[test]
fn a_lan_of_ipv6_is_as_fast_as_one_of_ipv4() {
    for line in ["{}", "{ resequence = {} }"] {
        let host = |n| format!("address = \"2001:db8::{n}\"\nmulti_nic = {line}\n");
        let text = lan(&format!("[hosts.a]\n{}[hosts.b]\n{}", host(1), host(2)));
        let window = ("flows.bulk.receiver.window", "1400 packets");
        let outcome = intact(&set(&text, &[("flows.bulk.size", "20 MB"), window]));
        let goodput = outcome.flows[0].goodput();
        assert!(goodput > Rate::from_mbit(800), "{line}: {goodput}");
        assert!(outcome.nics[0].nics.iter().all(|nic| nic.sent > 100), "{:?}", outcome.nics[0]);
    }
}

/// Breaks: hosts with one NIC, or with several that they do not announce, cannot talk to a host with several.
#[test]
fn ordinary_hosts_can_talk_to_them() {
    let silent = "multi_nic = { extended_arp = false }";
    for (top, first) in [
        (format!("[hosts.a]\n{TURNS}\n[hosts.b]\n{silent}"), ["a0", "b0"]),
        (format!("[hosts.a]\n{silent}\n[hosts.b]\n{TURNS}"), ["a0", "b0"]),
    ] {
        let s = scenario(&lan(&top));
        let names: Vec<_> = s.path(&s.flows[0]).iter().map(|hop| s.links[hop.link].name.as_str()).collect();
        assert_eq!((names, s.paths(&s.flows[0]).len()), (first.to_vec(), 1));
        let sent: Vec<_> = intact(&s).nics[0].nics.iter().map(|nic| nic.sent > 100).collect();
        assert_eq!(sent, [true, false], "only the first NIC");
    }
    let links = [
        link("a0", ["a", "sw"], GIGABIT),
        link("a1", ["a", "sw"], FAST),
        link("b0", ["b", "sw"], GIGABIT),
        link("c0", ["c", "sw"], GIGABIT),
    ];
    let top = format!("[hosts.a]\n{TURNS}\n[hosts.b]\n[hosts.c]\n[switches.sw]");
    let text = network(&top, &links);
    let more = ["b a", "b c", "c b"].iter().enumerate().map(|(n, ends)| {
        let (from, to) = ends.split_once(' ').unwrap();
        format!("[[flows]]\nname = \"f{n}\"\nfrom = \"{from}\"\nto = \"{to}\"\nsize = \"1 MB\"\n")
    });
    intact(&scenario(&(text + &more.collect::<String>())));
}

/// Breaks: the switch knows hosts before they have sent, where NICs have to be learned; or it never learns.
#[test]
fn switches_learn_where_nics_are() {
    let s = scenario(&lan(&two_hosts()));
    let at_first = Run::new(&s, Inputs::default()).unwrap();
    let stations = |run: &Run| {
        let id = run.world().find("sw").unwrap();
        let readings = farpace_path::Element::inspect(run.world().element::<Switch>(id).unwrap());
        readings.iter().find(|(name, _)| *name == "stations").unwrap().1.clone()
    };
    assert_eq!(stations(&at_first), "0");
    assert_eq!(stations(&drive(&s)), "4", "two NICs of two hosts");
}

/// Breaks: the model of the paper's hosts: plain TCP over Gigabit Ethernet reached 689 Mbit/s there.
#[test]
fn the_processor_of_the_paper_has_its_goodput() {
    let alone = [("hosts.a.multi_nic.extended_arp", "false"), ("duration", "1 s")];
    let goodput = |more: &[(&str, &str)]| {
        let run = drive(&set(PAPER, &[&alone[..], more].concat()));
        run.finish().unwrap().flows[0].goodput().bits_per_sec() / 1_000_000
    };
    let paper = goodput(&[]);
    assert!((684..=694).contains(&paper), "{paper} Mbit/s");
    let free = goodput(&[("hosts.a.processor.send", "0 s"), ("hosts.a.processor.receive_ack", "0 s")]);
    assert!((930..=942).contains(&free), "without a processor the link limits: {free} Mbit/s");
    // UDP has no ACKs.
    let load = "[[datagrams]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Gbit/s\"\npayload = \
                \"1472 B\"\n";
    let udp =
        set(&(PAPER.to_owned() + load), &[alone[0], ("duration", "1 s"), ("flows.bulk.start", "999 ms")]);
    let got = drive(&udp).finish().unwrap().datagrams[0].bytes.bits() / 1_000_000;
    assert!((905..=915).contains(&got), "{got} Mbit/s of UDP");
}

/// Breaks: an interrupt reorders, loses or does not delay frames.
#[test]
fn interrupts_delay_and_keep_the_order() {
    // Bursts must fit into the queue of the link.
    let window = ("flows.bulk.receiver.window", "400 packets");
    let plain = network("[hosts.a]\n[hosts.b]", &[link("l", ["a", "b"], GIGABIT)]);
    let late =
        [("links.l.forward.interrupts", "{ delay = \"300 us\", jitter = \"200 us\", frames = 64 }"), window];
    let (plain, late) = (set(&plain, &[window]), set(&plain, &late));
    assert_eq!(late.base_rtt(&late.flows[0]), plain.base_rtt(&plain.flows[0]) + Span::from_micros(300));
    let (plain, late) = (intact(&plain), intact(&late));
    assert_eq!((late.flows[0].retransmissions(), late.drops.len()), (0, 0));
    assert!(late.flows[0].elapsed > plain.flows[0].elapsed + Span::from_millis(1));
    assert!(
        explain(&set(BONDING, &[("links.dsl.forward.interrupts", "{ delay = \"30 us\" }")]))
            .contains("30 us after")
    );
}

/// Breaks: a run with several NICs cannot be repeated, or a seed changes nothing.
#[test]
fn the_same_seed_gives_the_same_run() {
    let jitter = ("links.a1.forward.interrupts", "{ delay = \"10 us\", jitter = \"50 us\" }");
    let loss = ("links.b1.forward.loss", "0.01");
    let outcome = |seed: &str| {
        let outcome = intact(&set(&lan(&two_hosts()), &[("seed", seed), jitter, loss]));
        (outcome.events, outcome.ended, outcome.nics, format!("{:?}", outcome.flows))
    };
    let first = outcome("1");
    assert_eq!(first, outcome("1"));
    assert_ne!(first, outcome("2"));
}

/// Breaks: the bandwidth of a receiver in reports is that of only one of its NICs.
#[test]
fn a_receiver_is_metered_over_all_nics() {
    let run = drive(&scenario(&lan(&two_hosts())));
    let metered: Vec<_> = run
        .meters()
        .map(|(host, meter)| (host.to_owned(), meter.bins().iter().map(|bin| bin.bytes.get()).sum::<u64>()))
        .collect();
    assert!(metered.len() == 1 && metered[0].0 == "b" && metered[0].1 > 3_000_000, "{metered:?}");
    let outcome = run.finish().unwrap();
    let max = outcome.nics[1].nics.iter().map(|nic| nic.received_bytes.get()).max().unwrap();
    assert!(metered[0].1 <= max + outcome.nics[1].nics[1].received_bytes.get());
}

/// Breaks: a capture of a NIC contains frames of another, or the one above all NICs lacks some.
#[test]
fn nics_are_captured_one_by_one_and_together() {
    let s = set(&lan(&two_hosts()), &[("trace", "{ taps = [\"a\", \"b1\"] }")]);
    let names: Vec<_> = s.taps().into_iter().map(|tap| tap.name).collect();
    assert_eq!(names, ["a", "a.nic0", "a.nic1", "b1.sw", "b.nic1"]);
    assert_eq!(s.taps()[0].place, TapPlace::Stack { host: "a".into() });
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::new(&s, Inputs::default()).unwrap();
    run.capture_into(directory.path()).unwrap();
    while !run.advance(None).unwrap().finished {}
    let outcome = run.finish().unwrap();
    let stations = |name: &str| {
        let file = File::open(directory.path().join(format!("{name}.pcapng"))).unwrap();
        let mut reader = CaptureReader::new(BufReader::new(file)).unwrap();
        let (mut own, mut sent) = (BTreeSet::new(), 0);
        while let Some(captured) = reader.next_packet().unwrap() {
            let from = &captured.data[6..12];
            if from[2..] == [10, 0, 0, 1] {
                own.insert(from.to_vec());
                sent += 1;
            }
        }
        (own, sent)
    };
    let [all, nic0, nic1] = ["a", "a.nic0", "a.nic1"].map(stations);
    // Flooded frames come back to the other NIC, so only frames that left are compared.
    let nics = &outcome.nics[0].nics;
    assert!(nic0.1 >= nics[0].sent && nic1.1 >= nics[1].sent);
    assert_eq!(all.0.len(), 1, "the stack has one address");
    assert!(nic0.0.union(&nic1.0).count() == 2);
    let waited = 100;
    assert!(all.1 <= nics[0].sent + nics[1].sent + waited && all.1 + waited >= nics[0].sent + nics[1].sent);
}

/// Breaks: figures of flows over several paths: the efficiency in reports, and the text of `explain`.
#[test]
fn paths_together_are_the_bottleneck() {
    let s = scenario(BONDING);
    let flow = &s.flows[0];
    let b = s.bottleneck(flow).unwrap();
    assert_eq!((b.rate, b.paths, s.paths(flow).len()), (Rate::from_mbit(410), 3, 3));
    assert_eq!(s.bottleneck_links(flow), ["dsl", "starlink", "mobile"]);
    assert_eq!(s.links[s.path(flow)[0].link].name, "starlink", "the widest");
    assert!(s.base_rtt(flow) > Span::from_millis(90));
    let words = explain(&s);
    for expected in
        ["dsl and starlink and mobile together, 410 Mbit/s", "3 NICs as one", "as the round trips"]
    {
        assert!(words.replace("\n", " ").replace("    ", " ").contains(expected), "{expected}: {words}");
    }
    // A link that all paths share limits them together.
    let links = [
        link("a0", ["a", "s"], GIGABIT),
        link("a1", ["a", "s"], FAST),
        link("trunk", ["s", "t"], "rate = \"300 Mbit/s\""),
        link("b0", ["t", "b"], GIGABIT),
        link("b1", ["t", "b"], FAST),
    ];
    let s = scenario(&network(&format!("{}\n[switches.s]\n[switches.t]", two_hosts()), &links));
    assert_eq!(s.bottleneck(&s.flows[0]).unwrap().rate, Rate::from_mbit(300));
    // A policer of one path counts for that path.
    let policer = "{ policer = { rate = \"50 Mbit/s\", burst = \"100 kB\" } }";
    let s = set(&lan(&two_hosts()), &[("links.b1.forward", policer)]);
    assert_eq!(s.bottleneck(&s.flows[0]).unwrap().rate, Rate::from_mbit(1_050));
}

/// Breaks: networks that cannot work are accepted, or refused without a useful message.
#[test]
fn impossible_shapes_are_refused() {
    let wire = |name: &str, a: &str, b: &str| link(name, [a, b], GIGABIT);
    let both = two_hosts();
    let only_a = format!("[hosts.a]\n{TURNS}\n[hosts.b]");
    let cases: Vec<(String, &str, &str)> = vec![
        (
            network("[hosts.a]\n[hosts.b]", &[wire("x", "a", "b"), wire("y", "a", "b")]),
            "closes a loop: a - b - a",
            "[hosts.a.multi_nic]",
        ),
        (
            network(&only_a, &[wire("x", "a", "b"), wire("y", "a", "b")]),
            "host `b` has more than one link",
            "[hosts.b.multi_nic]",
        ),
        (
            network(
                &format!("{both}\n[switches.s]\n[switches.t]"),
                &[wire("x", "a", "s"), wire("y", "s", "t"), wire("z", "t", "s"), wire("w", "t", "b")],
            ),
            "link `z` closes a loop: t - s - t",
            "y, z",
        ),
        (
            network(&format!("{both}\n[routers.r]"), &[wire("x", "a", "r"), wire("y", "r", "b")]),
            "router `r` is on the same Ethernet as `a`",
            "their own links and switches",
        ),
        (
            network(
                &format!("{only_a}\n[routers.r]\n[switches.s]"),
                &[wire("x", "a", "s"), wire("y", "r", "s"), wire("z", "r", "b")],
            ),
            "router `r` is on the same Ethernet as `a`",
            "their own links and switches",
        ),
        (
            network(
                &format!("{both}\n[hosts.c]\n[switches.s]"),
                &[wire("x", "a", "b"), wire("y", "a", "s"), wire("z", "c", "s")],
            ),
            "`c` shares a link or a switch with `a`, but not with its first NIC",
            "here z and x",
        ),
        (
            network(&both, &[wire("x", "a", "b"), link("y", ["b", "a"], "")]),
            "link `y` has no rate, and `a` has a NIC on it",
            "give the link a `rate`",
        ),
        (
            network(&both, &(0..17).map(|n| wire(&format!("l{n}"), "a", "b")).collect::<Vec<_>>()),
            "`a` has 17 links; a host has at most 16 NICs",
            "",
        ),
        (network(&both, &[]), "links", ""),
    ];
    for (text, message, hint) in cases {
        let error = Scenario::parse(&text, "t.toml").expect_err(&text);
        let first = &error.problems[0];
        assert!(first.message.contains(message), "{error}\n{text}");
        assert!(first.hint.as_deref().unwrap_or_default().contains(hint), "{error}");
    }
}

/// Breaks: impossible values of hosts are accepted.
#[test]
fn impossible_values_are_refused() {
    let good = lan(&two_hosts());
    for (key, value, message) in [
        ("hosts.a.multi_nic.ratio", "\"90/10/1\"", "3 shares for 2 NICs"),
        ("hosts.a.multi_nic.ratio", "\"90\"", "1 shares for 2 NICs"),
        ("hosts.a.multi_nic.ratio", "\"a/b\"", "is not a ratio"),
        ("hosts.a.multi_nic.order", "\"fastest\"", "unknown word \"fastest\""),
        ("hosts.a.multi_nic.queue", "\"0 packets\"", "holds nothing"),
        ("hosts.a.multi_nic.hold", "\"0 s\"", "0 s is not possible"),
        ("hosts.a.multi_nic.probe_interval", "\"2 s\"", "2 s is not possible"),
        ("hosts.a.multi_nic.hops", "0", "at least one link"),
        ("hosts.a.multi_nic.resequence", "{ time = \"0 s\" }", "0 s is not possible"),
        ("hosts.a.multi_nic.resequence", "{ bytes = \"0 B\" }", "0 B puts nothing in order"),
        ("hosts.a.processor", "{ send = \"2 s\" }", "no frame takes a processor 2 s"),
        ("hosts.a.processor", "{ queue = \"100 B\" }", "never holds a full-size frame"),
        ("hosts.a.processor", "{ speed = 1 }", "unknown key `speed`"),
        ("links.a0.forward.interrupts", "{ frames = 0 }", "at least one frame"),
        ("links.a0.forward.interrupts", "{ delay = \"1 min\" }", "no interrupt takes"),
    ] {
        let set = [(key.to_owned(), value.to_owned())];
        let error = Scenario::parse_with(&good, "t.toml", &set).expect_err(key);
        assert!(error.problems[0].message.contains(message), "{key} = {value}: {error}");
    }
}

/// One NIC at each end, the switch or link between them, and its impairments.
#[derive(Clone, Debug)]
struct DrawnPath {
    mbit: u64,
    back: u64,
    delay: u64,
    queue: u32,
    loss: u32,
    jitter: u64,
    interrupts: (u64, u64, u32),
    outage: Option<(u64, u64)>,
}

fn drawn_path() -> impl Strategy<Value = DrawnPath> {
    let rates = (prop::sample::select(vec![2, 10, 33, 100, 250, 1_000]), 1_u64..=4);
    let interrupts = (0_u64..200, 0_u64..100, 1_u32..20);
    let outage = prop::option::weighted(0.2, (0_u64..2_000, 1_u64..3_000));
    (rates, 0_u64..40_000, 30_u32..300, 0_u32..30, 0_u64..2_000, interrupts, outage).prop_map(
        |((mbit, narrower), delay, queue, loss, jitter, interrupts, outage)| {
            let back = (mbit / narrower).max(1);
            DrawnPath { mbit, back, delay, queue, loss, jitter, interrupts, outage }
        },
    )
}

impl DrawnPath {
    /// As keys of a link.
    fn text(&self, wire: bool) -> String {
        let DrawnPath { mbit, back, delay, queue, loss, jitter, interrupts: (wait, late, frames), outage } =
            self;
        let chance = f64::from(*loss) / 10_000.0;
        let outage = outage.filter(|_| wire).map_or(String::new(), |(at, lasts)| {
            format!("outages = [{{ at = \"{at} ms\", lasts = \"{lasts} ms\" }}]\n")
        });
        format!(
            "rate = \"{mbit} Mbit/s\"\ndelay = \"{delay} us\"\nqueue = \"{queue} packets\"\nbackward = {{ \
             rate = \"{back} Mbit/s\" }}\n[links.forward]\nloss = {chance}\njitter = \"{jitter} \
             us\"\ninterrupts = {{ delay = \"{wait} us\", jitter = \"{late} us\", frames = {frames} \
             }}\n{outage}"
        )
    }
}

/// How the NICs of two hosts are connected.
#[derive(Clone, Copy, Debug)]
enum Shape {
    OneSwitch,
    SwitchEach,
    Wires,
}

fn drawn_network(
    shape: Shape,
    paths: &[DrawnPath],
    orders: [OrderKind; 2],
    resequence: bool,
    processor: bool,
) -> String {
    let host = |name: &str, order: OrderKind| {
        let resequence = if resequence { "resequence = { time = \"20 ms\" }\n" } else { "" };
        let processor = if processor {
            format!("[hosts.{name}.processor]\nsend = \"9 us\"\nreceive = \"11 us\"\n")
        } else {
            String::new()
        };
        format!("{processor}[hosts.{name}.multi_nic]\norder = \"{}\"\n{resequence}", order.name())
    };
    let mut top = host("a", orders[0]) + &host("b", orders[1]);
    let mut links = Vec::new();
    for (n, path) in paths.iter().enumerate() {
        let (near, far) = (format!("x{n}"), format!("y{n}"));
        let (name, new) = match shape {
            Shape::Wires => (String::new(), false),
            Shape::OneSwitch => ("s".to_owned(), n == 0),
            Shape::SwitchEach => (format!("s{n}"), true),
        };
        if name.is_empty() {
            links.push(link(&near, ["a", "b"], &path.text(true)));
            continue;
        }
        if new {
            top += &format!("[switches.{name}]\n");
        }
        links.push(link(&near, ["a", &name], &path.text(false)));
        links.push(link(&far, [&name, "b"], &format!("rate = \"{} Mbit/s\"", path.mbit)));
    }
    let back =
        "[[flows]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nsize = \"200 kB\"\nstart = \"300 ms\"\n";
    set_duration(&(network(&top, &links) + back))
}

fn set_duration(text: &str) -> String {
    text.replace("duration = \"20 s\"", "duration = \"900 s\"")
        .replace("size = \"3 MB\"", "size = \"400 kB\"")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Breaks: some network of NICs with impairments loses, mixes up or stalls a transfer, or cannot be
    /// repeated.
    #[test]
    fn transfers_are_intact_over_any_nics(
        shape in prop::sample::select(vec![Shape::OneSwitch, Shape::SwitchEach, Shape::Wires]),
        paths in prop::collection::vec(drawn_path(), 1..5),
        orders in [
            prop::sample::select(OrderKind::ALL.to_vec()),
            prop::sample::select(OrderKind::ALL.to_vec()),
        ],
        resequence: bool,
        processor: bool,
    ) {
        let s = scenario(&drawn_network(shape, &paths, orders, resequence, processor));
        let first = intact(&s);
        let again = intact(&s);
        prop_assert_eq!((first.events, first.ended, &first.nics), (again.events, again.ended, &again.nics));
        prop_assert_eq!(Scenario::parse(&s.to_toml().unwrap(), "again"), Ok(s));
    }
}

/// Breaks: a paced NIC among several counts with the rate of its link; its frames wait in its queue while
/// other NICs are idle.
#[test]
fn paced_nics_carry_their_sum_together() {
    let paced = |mbit: u32| {
        format!(
            "rate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n[links.forward.pacing]\ndefault = \"all\"\n\
             classes = [{{ name = \"all\", rate = \"{mbit} Mbit/s\", limit = \"8 MB\" }}]"
        )
    };
    let top = "[hosts.a]\nmulti_nic = { hops = 1 }\n[hosts.b]\nmulti_nic = { hops = 1, resequence = {} }";
    let links = [link("wide", ["a", "b"], &paced(24)), link("narrow", ["a", "b"], &paced(8))];
    let text = network(top, &links).replace("3 MB", "20 MB");
    let outcome = intact(&scenario(&text));
    let goodput = outcome.flows[0].goodput().bits_per_sec();
    // 1448 of 1518 bytes of layer 2.
    let ceiling = 32_000_000_u64 * 1448 / 1518;
    assert!(goodput * 100 >= ceiling * 93, "{goodput} of {ceiling} bit/s");
}

/// Breaks: a receiver waits for less than the paths differ, so that TCP retransmits what is only late, unless
/// the user has computed the time.
#[test]
fn the_time_of_resequencing_follows_the_paths() {
    let line = |mbit: u32, ms: u32| {
        format!("rate = \"{mbit} Mbit/s\"\ndelay = \"{ms} ms\"\nforward = {{ loss = 0.0005 }}")
    };
    let run = |resequence: &str| {
        let ordered = format!("multi_nic = {{ hops = 1, resequence = {resequence} }}");
        let top = format!("[hosts.a]\nmulti_nic = {{ hops = 1 }}\n[hosts.b]\n{ordered}");
        let links = [link("near", ["a", "b"], &line(20, 10)), link("far", ["a", "b"], &line(30, 120))];
        let text = network(&top, &links).replace("3 MB", "60 MB").replace("20 s", "60 s");
        let flow = &intact(&scenario(&text)).flows[0];
        (flow.goodput().bits_per_sec() as f64, flow.retransmissions())
    };
    let (computed, again) = run("{}");
    let (short, more) = run("{ time = \"10 ms\" }");
    assert!(again == 0 && more > 5 && computed > 1.5 * short, "{computed} {again}, {short} {more}");
}
