//! Workloads: flows that are drawn from the seed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_host::Host;
use farpace_lab::scenario::{FlowSpec, MAX_DRAWN_FLOWS, Scenario, explain};
use farpace_lab::{Inputs, Run};
use farpace_units::{ByteCount, Instant, Span};
use std::collections::{BTreeMap, BTreeSet};

fn text(flow: &str) -> String {
    format!(
        "title = \"W\"\nduration = \"60 s\"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = \"l\"\n\
         between = [\"a\", \"b\"]\n\
         rate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n[[flows]]\nname = \"web\"\n\
         from = \"a\"\nto = \"b\"\n{flow}\n"
    )
}

fn flows(flow: &str, seed: u64) -> Vec<FlowSpec> {
    Scenario::parse(&text(flow), "w.toml").unwrap_or_else(|e| panic!("{e}")).drawn(seed).flows
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

fn sizes(spec: &str) -> Vec<f64> {
    let flow = format!("count = 10000\nsizes = {{ {spec} }}");
    flows(&flow, 7).iter().map(|flow| flow.size.get() as f64).collect()
}

/// Breaks: distributions of sizes: their means and their tails.
#[test]
fn sizes_follow_their_distribution() {
    let within = |spec: &str, expected: f64, part: f64| {
        let found = mean(sizes(spec).into_iter());
        assert!((found / expected - 1.0).abs() < part, "{spec}: {found} of {expected}");
    };
    within("exponential = \"100 kB\"", 1e5, 0.03);
    within("pareto = { mean = \"100 kB\", shape = 2.5 }", 1e5, 0.06);
    within("log_normal = { mean = \"100 kB\", sigma = 1.0 }", 1e5, 0.05);
    within("named = \"web-search\"", 1.66e6, 0.06);
    within("cdf = [{ size = \"10 kB\", share = 0.5 }, { size = \"30 kB\", share = 1.0 }]", 1.5e4, 0.03);
    let mut mining = sizes("named = \"data-mining\"");
    mining.sort_by(f64::total_cmp);
    assert_eq!((mining[1_000], mining[4_900]), (1_460.0, 1_460.0), "half of them are one packet");
    assert!(mining[9_990] > 1e8 && mining[9_999] <= 666_667.0 * 1_460.0, "{mining:?}");
    let cut = sizes("exponential = \"100 kB\", at_least = \"50 kB\", at_most = \"200 kB\"");
    assert!(cut.iter().all(|size| (50_000.0..=200_000.0).contains(size)));
}

/// Breaks: start times: their number, order and distances.
#[test]
fn starts_follow_their_process() {
    let seconds = |starts: &str| -> Vec<f64> {
        let flow = format!("size = \"1 kB\"\nstart = \"1 s\"\ncount = 1000\nstarts = {{ {starts} }}");
        flows(&flow, 3).iter().map(|flow| flow.start.as_secs_f64()).collect()
    };
    let every = seconds("every = \"20 ms\"");
    assert_eq!((every[0], every[1], every[999]), (1.0, 1.02, 1.0 + 19.98));
    let poisson = seconds("poisson = \"20 ms\"");
    let gaps: Vec<f64> = poisson.windows(2).map(|two| two[1] - two[0]).collect();
    let (average, square) = (mean(gaps.iter().copied()), mean(gaps.iter().map(|gap| gap * gap)));
    assert!((average / 0.02 - 1.0).abs() < 0.1, "{average}");
    assert!(
        (square / (2.0 * average * average) - 1.0).abs() < 0.2,
        "the distances are exponential: {square}"
    );
    let within = seconds("within = \"10 s\"");
    assert!(
        within.iter().all(|at| (1.0..=11.0).contains(at)) && (mean(within.into_iter()) - 6.0).abs() < 0.4
    );
    let at = flows("size = \"1 kB\"\nstarts = { at = [\"1 s\", \"3 s\", \"90 s\"] }", 1);
    let starts: Vec<Span> = at.iter().map(|flow| flow.start).collect();
    assert_eq!(starts, [Span::from_secs(1), Span::from_secs(3)], "what starts after the end is left out");
}

/// Breaks: shares of congestion controls, or a draw that another seed does not change, or that changes by
/// itself.
#[test]
fn shares_are_exact_and_draws_repeat() {
    let flow = "size = \"1 kB\"\ncount = 50\nstarts = { within = \"5 s\" }\n\
                mix = [{ name = \"cubic\", share = 0.7, sender = { \
                congestion = \"cubic\" } }, { name = \"rest\", share = 0.3 }]";
    let all = flows(flow, 1);
    let mut classes = BTreeMap::new();
    for flow in &all {
        *classes.entry(flow.class.clone().unwrap()).or_insert(0) += 1;
    }
    assert_eq!(classes, BTreeMap::from([("web/cubic".to_owned(), 35), ("web/rest".to_owned(), 15)]));
    assert_eq!((all[0].name.as_str(), all[49].name.as_str()), ("web-1", "web-50"));
    assert_eq!(all, flows(flow, 1));
    assert_ne!(all, flows(flow, 2));
    let drawn = Scenario::parse(&text(flow), "w.toml").unwrap().drawn(1);
    assert_eq!(drawn.drawn(9), drawn, "what is drawn stays");
    let again = Scenario::parse(&drawn.to_toml().unwrap(), "w.toml").unwrap();
    assert_eq!(again, drawn, "the scenario as it was run can be written and read");
}

/// Breaks: bytes of one flow that arrive in another, and flows of workloads that do not run.
#[test]
fn a_workload_runs_and_every_byte_is_checked() {
    let flow = "count = 60\nstarts = { poisson = \"5 ms\" }\nsizes = { exponential = \"200 kB\" }";
    let scenario = Scenario::parse(&text(flow), "w.toml").unwrap();
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    assert_eq!(run.scenario().flows.len(), 60);
    while !run.advance(None).unwrap().finished {}
    let outcome = run.finish().unwrap();
    assert!(outcome.flows.iter().all(|flow| flow.is_intact()));
    let sent: u64 = outcome.flows.iter().map(|flow| flow.size.get()).sum();
    assert!((6_000_000..24_000_000).contains(&sent), "{sent}");
    assert!(outcome.flows.iter().any(|flow| flow.size > ByteCount::new(400_000)));
}

/// Breaks: a run in which no flow starts passes for a complete one.
#[test]
fn a_run_without_a_flow_is_refused() {
    let flow = "count = 3\nsize = \"1 kB\"\nstarts = { at = [\"100 s\", \"200 s\", \"300 s\"] }";
    let mut scenario = Scenario::parse(&text(flow), "w.toml").unwrap();
    scenario.duration = Span::from_millis(99_000);
    let error = Run::new(&scenario, Inputs::default()).err().unwrap().to_string();
    assert!(error.contains("no flow starts before the end of the run, at 99 s"), "{error}");
    scenario.duration = Span::from_millis(101_000);
    assert_eq!(Run::new(&scenario, Inputs::default()).unwrap().scenario().flows.len(), 1);
}

/// Breaks: the description of a workload is as long as the number of its flows, or leaves streams of
/// datagrams out, or does not say when the run ends.
#[test]
fn a_workload_is_described_once() {
    let flow = "count = 1000\nstarts = { every = \"1 ms\" }\nsizes = { exponential = \"200 kB\" }\n\
                mix = [{ name = \"c\", share = 0.75, sender = { congestion = \"cubic\" } }, \
                { name = \"r\", share = 0.25, sender = { congestion = \"reno\" } }]\n\
                [[datagrams]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4 Mbit/s\"\n\
                start = \"3 s\"\nlasts = \"10 s\"\nspacing = \"poisson\"\n";
    let scenario = Scenario::parse(&text(flow), "w.toml").unwrap().drawn(1);
    let words = explain(&scenario);
    assert!(words.lines().count() < 80, "{} lines", words.lines().count());
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "The run ends when all flows are complete, after",
        "Class web/c: 750 flows, together",
        "Class web/r: 250 flows, together",
        "The first of them starts at",
        "Datagrams video: 4 Mbit/s of payload from a to b (port 6001), 1 kB in each, at random distances \
         (Poisson), from 3 s on for 10 s. They do not prolong the run.",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(words.matches("Bottleneck:").count(), 2);
}

/// Breaks: the answers to mistakes in workloads.
#[test]
fn mistakes_are_named() {
    for (flow, expected) in [
        ("", "sends nothing"),
        ("size = \"1 kB\"\nsizes = { exponential = \"1 kB\" }", "two ways to say the same"),
        ("sizes = { at_most = \"1 kB\" }", "0 distributions"),
        ("sizes = { exponential = \"1 kB\", named = \"web-search\" }", "2 distributions"),
        ("sizes = { pareto = { mean = \"1 kB\", shape = 1.0 } }", "has no mean"),
        ("sizes = { cdf = [{ size = \"1 kB\", share = 0.5 }] }", "must be 1"),
        (
            "sizes = { cdf = [{ size = \"2 kB\", share = 0.5 }, { size = \"1 kB\", share = 1.0 }] }",
            "must not fall",
        ),
        ("sizes = { named = \"web-serach\" }", "did you mean \"web-search\"?"),
        ("sizes = { exponential = \"1 kB\", at_least = \"3 kB\", at_most = \"2 kB\" }", "above `at_most`"),
        ("size = \"1 kB\"\ncount = 0", "1 flow at least"),
        ("size = \"1 kB\"\ncount = 1e3", "expected a whole number from 0, found the number 1000.0"),
        ("size = \"1 kB\"\ncount = 100001", "100001 flows, with `count`; the limit is 100000"),
        ("size = \"1 kB\"\ncount = 4294967295", "the limit is 100000"),
        ("size = \"1 kB\"\ncount = 2\nport = 80", "choose their ports themselves"),
        ("size = \"1 kB\"\nstarts = { }", "0 ways to start"),
        ("size = \"1 kB\"\nstarts = { at = [] }", "`at` with a time at least"),
        ("size = \"1 kB\"\ncount = 3\nstarts = { at = [\"1 s\"] }", "3 flows, and 1 times"),
        ("size = \"1 kB\"\nmix = [{ name = \"x\", share = 0.7 }]", "0.7 together"),
        ("size = \"1 kB\"\nstarts = { file = \"../x\" }", "not the name of a file"),
        ("sizes = { file = \"x.csv\" }", "no files can be read here"),
    ] {
        let error = Scenario::parse(&text(flow), "w.toml").unwrap_err().to_string();
        assert!(error.contains(expected), "{flow}: {error}");
    }
    let two = text("size = \"1 kB\"\ncount = 3")
        + "[[flows]]\nname = \"web-2\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 kB\"\n";
    assert!(Scenario::parse(&two, "w").unwrap_err().to_string().contains("the name of flow `web-2`"));
    assert_eq!(MAX_DRAWN_FLOWS, 100_000);
}

/// Breaks: traces of start times and tables of sizes in files.
#[test]
fn files_become_part_of_the_scenario() {
    let flow = "starts = { file = \"starts.txt\" }\nsizes = { file = \"sizes.csv\" }";
    let beside = |name: &str| match name {
        "starts.txt" => Ok("# when\n100 ms\n\n0.2 s\n".to_owned()),
        // With the mark of byte order that spreadsheets write.
        "sizes.csv" => Ok("\u{feff}size,share\n10 kB,0.5\n10 kB,1\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let scenario = Scenario::parse_beside(&text(flow), "w.toml", &[], &beside).unwrap().drawn(1);
    let drawn: Vec<_> = scenario.flows.iter().map(|flow| (flow.start, flow.size.get())).collect();
    assert_eq!(drawn, [(Span::from_millis(100), 10_000), (Span::from_millis(200), 10_000)]);
    let nothing = |name: &str| Ok(if name == "sizes.csv" { "size,share\n1 kB,1\n" } else { "" }.to_owned());
    let error = Scenario::parse_beside(&text(flow), "w.toml", &[], &nothing).unwrap_err().to_string();
    assert!(error.contains("starts.txt: there are no times in it"), "{error}");
    for (file, expected) in [("1 kB\n", "expected `size,share`"), ("size,share\n1 kB,half\n", "line 2")] {
        let beside = |name: &str| Ok(if name == "sizes.csv" { file.to_owned() } else { "1 s\n".to_owned() });
        let error = Scenario::parse_beside(&text(flow), "w.toml", &[], &beside).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Breaks: of more flows than a receiver has ports, two are taken for one.
#[test]
fn flows_that_share_a_port_are_told_apart() {
    for count in [1, 60_000, 60_001, 100_000] {
        let scenario =
            Scenario::parse(&text(&format!("size = \"1 kB\"\ncount = {count}")), "w.toml").unwrap();
        let scenario = scenario.drawn(1);
        let ends: BTreeSet<_> = (0..count).map(|n| (scenario.port(n), scenario.source_port(n))).collect();
        assert_eq!(ends.len(), count);
        // With ports enough, hosts choose those of senders.
        assert_eq!(scenario.source_port(0).is_some(), count > 60_000);
    }
}

/// Breaks: a hundred thousand flows that come and go: one is lost, or has bytes of another.
#[test]
fn a_hundred_thousand_flows_come_and_go() {
    let many = text("size = \"1 kB\"\ncount = 100000\nstarts = { within = \"40 s\" }");
    let scenario = Scenario::parse(&many, "w.toml").unwrap();
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    let outcome = run.finish().unwrap();
    assert_eq!(outcome.flows.len(), 100_000);
    for flow in &outcome.flows {
        assert!(flow.completed.is_some() && flow.verified.is_ok(), "{}: {:?}", flow.name, flow.verified);
        assert_eq!(flow.queued.packets(), 1, "{}: its packet is counted as its own", flow.name);
    }
}

/// Connections, closed ones included, at both hosts of [`text`].
fn connections(run: &Run) -> usize {
    let of = |name: &str| run.world().find(name).and_then(|id| run.world().element::<Host>(id)).unwrap();
    of("a").connections().chain(of("b").connections()).count()
}

/// Breaks: flows that are done, or whose time has not come, take memory for connections; or what is known of
/// a flow is lost with its connections.
#[test]
fn only_flows_under_way_have_connections() {
    let flow = "size = \"20 kB\"\ncount = 400\nstarts = { within = \"40 s\" }";
    let scenario = Scenario::parse(&text(flow), "w.toml").unwrap();
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    let (mut seen, mut most) = (BTreeSet::new(), 0);
    while !run.advance(None).unwrap().finished {
        most = most.max(connections(&run));
        seen.extend(run.samples().iter().map(|sample| sample.flow));
    }
    assert_eq!(seen.len(), 400, "each flow had samples");
    // About ten a second, of which each is over within 100 ms.
    assert!(most <= 40, "{most} connections at once");
    assert_eq!(run.progress().delivered, ByteCount::new(400 * 20_000));
    let drawn = run.scenario().flows.clone();
    let outcome = run.finish().unwrap();
    for (flow, spec) in outcome.flows.iter().zip(&drawn) {
        assert_eq!(
            (&flow.name, flow.start.since(Instant::ZERO), flow.size),
            (&spec.name, spec.start, spec.size)
        );
        assert!(flow.is_intact(), "{}: {:?}", flow.name, flow.verified);
        assert_eq!(flow.counters.bytes_sent, ByteCount::new(20_000), "{}", flow.name);
        assert_eq!(flow.receiver.bytes_received, ByteCount::new(20_000), "{}", flow.name);
        assert_eq!(flow.queued.packets(), 14, "{}", flow.name);
    }
}

/// Breaks: a run that ends early has no outcome of flows whose time has not come.
#[test]
fn flows_that_never_began_have_outcomes() {
    let flow = "size = \"20 kB\"\ncount = 50\nstarts = { every = \"1 s\" }";
    let scenario = Scenario::parse(&text(flow), "w.toml").unwrap();
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while run.now() < Instant::from_nanos(10_500_000_000) {
        run.advance(None).unwrap();
    }
    let (now, progress) = (run.now(), run.progress());
    assert_eq!((progress.total, progress.finished), (ByteCount::new(50 * 20_000), false));
    let outcome = run.finish().unwrap();
    assert_eq!(outcome.flows.len(), 50);
    for (n, flow) in outcome.flows.iter().enumerate() {
        assert_eq!(flow.completed.is_some(), n <= 10, "{}", flow.name);
        assert_eq!(flow.delivered.is_zero(), n > 10, "{}", flow.name);
        assert!(flow.completed.is_some() || flow.elapsed == now.since(flow.start), "{}", flow.name);
    }
}

/// Breaks: what keeps a flow of a workload from beginning is found in the middle of a run.
#[test]
fn flows_that_cannot_begin_are_found_at_the_start() {
    let flow = "size = \"1 kB\"\ncount = 60001\nstarts = { within = \"40 s\" }\nmix = [\n\
                { name = \"x\", share = 0.5 },\n\
                { name = \"y\", share = 0.5, receiver = { sack = false } } ]";
    let scenario = Scenario::parse(&text(flow), "w.toml").unwrap();
    // Whether the two flows of the shared port differ is drawn.
    let draws = (0..8).map(|seed| Run::new(&scenario, Inputs { seed: Some(seed), ..Inputs::default() }));
    let errors: Vec<String> = draws.filter_map(|run| Some(run.err()?.to_string())).collect();
    assert!((1..8).contains(&errors.len()), "{errors:?}");
    for error in &errors {
        assert!(error.contains("`web-60001`") && error.contains("share ports"), "{error}");
    }
}
