//! Good scenarios: what they mean, and that all shipped files are good.

use farpace_lab::scenario::{Direction, Hop, PolicerCounts, QueueLimit, Scenario, TapPlace, explain, schema};
use farpace_tcp::config::Profile;
use farpace_units::{Amount, ByteCount, Packets, Rate, Span};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const STOPS: &str = include_str!("../../../scenarios/papers/stops.toml");
const SHARED: &str = include_str!("../../../scenarios/gallery/shared.toml");
const LEO: &str = include_str!("../../../scenarios/gallery/leo.toml");
const AQM: &str = include_str!("../../../scenarios/gallery/aqm.toml");

fn set(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let owned: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Scenario::parse_with(text, "t.toml", &owned).map_err(|e| e.to_string())
}

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = Vec::new();
    for folder in ["papers", "gallery"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the folder is there") {
            files.push(entry.expect("it can be listed").path());
        }
    }
    files.sort();
    files
}

/// Breaks: a shipped scenario cannot be run, explained, or written and read back; or its advice (`--set ...`
/// in its comments) does not work.
#[test]
fn shipped_files_are_good() {
    let files = shipped();
    assert!(files.len() >= 5);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{}\n{e}", file.display()));
        assert_eq!(
            Scenario::parse(&scenario.to_toml().expect("it can be written"), "again"),
            Ok(scenario.clone())
        );
        let words = explain(&scenario);
        assert!(words.contains("Bottleneck") && words.lines().all(|l| l.chars().count() <= 100), "{words}");
        for advice in text.lines().filter_map(|l| l.split_once("--set ")).map(|(_, a)| a) {
            let (key, value) = advice.split_once('=').expect("an override has an equals sign");
            // A comment follows the value after two spaces or more.
            let value = value.split("  ").next().unwrap_or_default().trim();
            // As the shell does.
            let value = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')).unwrap_or(value);
            let changed = set(&text, &[(key, value)]).unwrap_or_else(|e| panic!("{}\n{e}", file.display()));
            assert_ne!(changed, scenario, "{}: {advice}", file.display());
        }
    }
}

/// Breaks: the parameters of the paper's reproduction.
#[test]
fn the_papers_setting() {
    let s = Scenario::parse(STOPS, "stops.toml").unwrap();
    let flow = &s.flows[0];
    let [access, wan] = [&s.links[0], &s.links[1]];
    let policer = wan.forward.policer.as_ref().unwrap();
    assert_eq!((policer.rate, policer.burst), (Rate::from_mbit(500), ByteCount::new(16_000_000)));
    assert_eq!(
        (policer.refill, policer.phase, policer.counts),
        (Span::from_micros(490), Span::ZERO, PolicerCounts::Ip)
    );
    // The sender's NIC has a queue of its own; everything else is the link's.
    let nic = access.direction(Direction::Forward);
    assert_eq!((nic.from, nic.to, nic.queue), ("a", "router", QueueLimit::Packets(Packets::new(10_000))));
    assert!(farpace_path::LinkDirection::new(nic.link()).is_ok());
    assert_eq!(policer.config().refill, Some(policer.refill));
    assert_eq!(access.direction(Direction::Backward).queue, QueueLimit::Packets(Packets::new(1_000)));
    assert_eq!(wan.direction(Direction::Backward).delay, Span::from_millis(5));
    assert!(wan.forward.policer.is_some() && !wan.direction(Direction::Backward).is_impaired());
    assert_eq!(flow.sender.profile, Some(Profile::AistFix));
    assert_eq!(flow.sender.initial_ssthresh, Some(Packets::new(1_000)));
    assert_eq!(flow.receiver.resolve().unwrap().receive_buffer.max, ByteCount::new(2_500 * 1_448));
    let taps: Vec<String> = s.taps().into_iter().map(|t| t.name).collect();
    assert_eq!(taps, ["a", "wan.router", "b"]);
}

/// Breaks: path, base round trip and bottleneck, from which summaries and efficiencies are computed.
#[test]
fn figures_of_the_papers_path() {
    let s = Scenario::parse(STOPS, "stops.toml").unwrap();
    let flow = &s.flows[0];
    let hop = |link| Hop { link, direction: Direction::Forward };
    assert_eq!(s.path(flow), [hop(0), hop(1)]);
    let segment = s.segment(flow);
    assert_eq!((segment.payload.get(), segment.ip.get(), segment.frame.get()), (1_448, 1_500, 1_514));
    assert_eq!(segment.ack_frame.get(), 66);
    // 2 * 5 ms, two frames of 1538 B and two of 90 B at 1 Gbit/s.
    assert_eq!(s.base_rtt(flow), Span::from_nanos(10_000_000 + 2 * 12_304 + 2 * 720));
    let b = s.bottleneck(flow).unwrap();
    assert!(b.is_policer && b.hop == hop(1) && b.rate == Rate::from_mbit(500));
    assert_eq!(b.goodput, Rate::from_bits_per_sec(482_666_667));
    // Without the policer, the first of the two equal links.
    let mut free = s.clone();
    free.links[1].forward.policer = None;
    let b = free.bottleneck(flow).unwrap();
    assert!(!b.is_policer && b.hop == hop(0) && b.rate == Rate::from_mbit(1_000));
}

/// Breaks: the numbers in `scenario explain`.
#[test]
fn stops_is_explained() {
    let s = Scenario::parse(STOPS, "stops.toml").unwrap();
    let words = explain(&s).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Path: a -access-> router -wan-> b",
        "a round trip takes 10.03 ms",
        "Bottleneck: the policer of wan, 500 Mbit/s",
        "Of each 1500 B it counts, 1448 B are payload",
        "482.7 Mbit/s of goodput, an efficiency of 96.5 %",
        "604.9 kB of payload, 418 packets of 1448 B",
        "A full frame of 1538 B takes 12.30 us on the link, an ACK of 90 B 720 ns",
        "3.620 MB (2500 packets), set by the receiver's window; per round trip this allows 2.888 Gbit/s",
        // 1e9 * 1500/1538 arrive; 16 MB last 128e6 / 475.3e6 s; of the 32.8 MB that arrived 1448/1500 are
        // payload.
        "up to 975.3 Mbit/s arrive, 475.3 Mbit/s more than it lets pass",
        "it is empty after 269.3 ms at that speed, when 31.69 MB of payload have been sent",
        "48.7 % of the packets are dropped",
        // 2500 packets minus the 815 that fit into a GbE round trip.
        "up to 1685 packets stand in its queue at a",
        "from 3 packets to 815 (what the links keep in flight) in 9 round trips",
    ] {
        assert!(words.contains(part), "`{part}` is not in:\n{words}");
    }
    let small = explain(&set(STOPS, &[("flows.bulk.receiver.window", "100 packets")]).unwrap());
    assert!(small.contains("the flow reaches 23.9 % of the ceiling"), "{small}");
    assert!(small.contains("at most 119.7 Mbit/s arrive, so it never becomes empty"), "{small}");
}

/// Breaks: a flow whose links have no rate, or whose path has no delay, cannot be explained.
#[test]
fn paths_without_limits_are_explained() {
    let text = "title = \"t\"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = \"l\"\nbetween = [\"b\", \"a\"]\n\
                [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 MB\"\n";
    let s = Scenario::parse(text, "t").unwrap();
    assert_eq!((s.base_rtt(&s.flows[0]), s.bottleneck(&s.flows[0])), (Span::ZERO, None));
    assert_eq!(s.path(&s.flows[0]), [Hop { link: 0, direction: Direction::Backward }]);
    assert!(explain(&s).contains("Nothing on the path has a rate"));
    // Defaults.
    assert_eq!((s.seed, s.duration, s.port(0)), (1, Span::from_secs(600), 5_001));
    assert_eq!((s.trace.bin, s.trace.snaplen), (Span::from_millis(10), ByteCount::new(128)));
    assert_eq!(s.links[0].overhead, ByteCount::new(24));
    let policed =
        set(text, &[("links.l.backward.policer", "{ rate = \"1 Mbit/s\", burst = \"1 MB\" }")]).unwrap();
    assert!(explain(&policed).contains("it empties at once"));
}

/// Breaks: packets are forwarded over the wrong link, or hosts get each other's addresses.
#[test]
fn routes_ports_and_addresses() {
    let s = set(SHARED, &[("hosts.b.address", "10.0.0.1")]).unwrap();
    let addresses: Vec<String> = s.addresses().iter().map(|(n, a)| format!("{n} {a}")).collect();
    assert_eq!(addresses, ["a 10.0.0.2", "b 10.0.0.1", "c 10.0.0.3", "d 10.0.0.4"]);
    assert_eq!((s.port(0), s.port(1)), (5_001, 5_002));
    let toward_c: Vec<String> = s
        .routes_to("c")
        .iter()
        .map(|(n, h)| format!("{n} {} {:?}", s.links[h.link].name, h.direction))
        .collect();
    assert_eq!(
        toward_c,
        ["a left Forward", "b right Forward", "d down Backward", "east up Forward", "west trunk Forward"]
    );
    // Of two taps at one place only the first counts.
    let s = set(SHARED, &[("trace.taps", "[\"a\", \"left\"]")]).unwrap();
    let taps: Vec<_> = s.taps().into_iter().map(|t| (t.name, t.place)).collect();
    let end = |end| TapPlace::End { link: 0, end };
    assert_eq!(taps, [("a".to_string(), end(0)), ("left.west".to_string(), end(1))]);
}

/// Breaks: `--set`.
#[test]
fn overrides_replace_the_named_values() {
    let s = set(
        SHARED,
        &[
            ("seed", "3"),
            ("links.trunk.delay", "20ms"),
            ("links.0.rate", "\"2 Gbit/s\""),
            ("links.trunk.backward.loss", "0.5"),
            ("flows.*.sender.profile", "linux-2.6.22"),
            ("flows.second.receiver.window", "1554 packets"),
            ("title", "true story"),
        ],
    )
    .unwrap();
    assert_eq!((s.seed, s.title.as_str()), (3, "true story"));
    assert_eq!((s.links[2].delay, s.links[0].rate), (Span::from_millis(20), Some(Rate::from_mbit(2_000))));
    assert!((s.links[2].backward.loss.0 - 0.5).abs() < f64::EPSILON);
    assert!(s.flows.iter().all(|f| f.sender.profile == Some(Profile::Linux2622)));
    assert_eq!(s.flows[1].receiver.window, Some(Amount::Packets(Packets::new(1_554))));
    // The last of two wins.
    assert_eq!(set(SHARED, &[("seed", "4"), ("seed", "5")]).unwrap().seed, 5);
}

/// Breaks: errors of `--set` point into the file, or do not name the nearest word.
#[test]
fn wrong_overrides_are_reported() {
    for (key, value, message, hint) in [
        ("links.trnk.delay", "20 ms", "`links` has no element `trnk`", "did you mean `trunk`?"),
        ("links.9.delay", "20 ms", "`links` has no element `9`", "or 0 to 4, or `*` for all"),
        ("links.trunk.dealy", "20 ms", "unknown key `dealy`", "did you mean `delay`?"),
        ("link.trunk.delay", "20 ms", "unknown key `link`", "did you mean `links`?"),
        ("hosts.e.address", "10.0.0.9", "`hosts` has no `e`", "there are a, b, c, d"),
        ("seed.x", "1", "`seed` is the number 1: it has no `x`", ""),
        ("seed", "one", "expected a whole number from 0, found the string \"one\"", "All random numbers"),
        ("seed", "18446744073709551615", "the number 18446744073709551615 is beyond 2^63", ""),
        ("links.trunk.rate", "0 bit/s", "a rate of 0", "infinitely fast"),
        ("links.trunk.rate", "5 mbit", "unknown unit `mbit`", "did you mean `Mbit/s`?"),
        ("links.trunk.forward.policer", "{ rate = \"1 Mbit/s\" }", "`policer` has no `burst`", "16 MB"),
        ("flows.*.sender.profile", "cubic", "unknown word \"cubic\"", "linux-2.6.17+ab"),
        ("flows..size", "1 MB", "`flows..size` is not a path", "`links.wan.delay`"),
        ("", "1", "`` is not a path", ""),
    ] {
        let with_seed = format!("seed = 1\n{SHARED}");
        let error = set(&with_seed, &[("duration", "50 s"), (key, value)]).unwrap_err();
        assert!(error.contains(message) && error.contains(hint), "{error}");
        assert!(error.contains(&format!("--> in --set {key}={value}")), "{error}");
    }
}

/// Breaks: editors and `scenario schema` do not know a key that the reader knows.
#[test]
fn the_schema_has_every_key() {
    let schema = schema();
    let text = schema.to_string();
    for key in [
        "title",
        "description",
        "seed",
        "duration",
        "hosts",
        "address",
        "routers",
        "links",
        "name",
        "between",
        "rate",
        "delay",
        "queue",
        "overhead",
        "forward",
        "backward",
        "policer",
        "burst",
        "refill",
        "phase",
        "counts",
        "loss",
        "burst_loss",
        "begin",
        "bit_errors",
        "clock_jumps",
        "ticks",
        "aqm",
        "red",
        "codel",
        "fq_codel",
        "target",
        "interval",
        "quantum",
        "schedule",
        "period",
        "steps",
        "file",
        "reorders",
        "middlebox",
        "strip_options",
        "strip_options_on",
        "clear_reserved",
        "clear_ae",
        "drop_without_ack",
        "ack_thinning",
        "every",
        "hold",
        "duplicate",
        "corrupt",
        "reorder",
        "chance",
        "extra",
        "jitter",
        "outages",
        "mtu",
        "limit",
        "silent",
        "changes",
        "at",
        "lasts",
        "flows",
        "from",
        "to",
        "port",
        "start",
        "size",
        "sender",
        "receiver",
        "profile",
        "window",
        "initial_ssthresh",
        "trace",
        "bin",
        "taps",
        "snaplen",
    ] {
        assert!(text.contains(&format!("\"{key}\":{{")), "{key}");
    }
    // Every key of every table has a description, and no table accepts other keys.
    let defs = schema["$defs"].as_object().expect("definitions");
    let tables = defs.values().chain([&schema]).filter(|t| t.get("properties").is_some());
    let mut keys = 0;
    for table in tables {
        assert_eq!(table["additionalProperties"], false, "{table}");
        for (key, value) in table["properties"].as_object().expect("a table") {
            assert!(value["description"].as_str().is_some_and(|d| !d.is_empty()), "{key}");
            keys += 1;
        }
    }
    assert!(keys > 60, "{keys}");
}

proptest! {
    /// Breaks: the law that no file can crash the reader.
    #[test]
    fn any_text_is_answered(text in ".{0,200}", key in ".{0,20}", value in ".{0,20}") {
        if let Err(e) = Scenario::parse_with(&text, "t", &[(key, value)]) {
            prop_assert!(!e.problems.is_empty() && e.to_string().starts_with("error: "));
        }
    }

    /// Breaks: the same for files that are nearly right: a good one with one part replaced.
    #[test]
    fn nearly_good_text_is_answered(
        file in prop::sample::select(vec![STOPS, SHARED, LEO, AQM]),
        at in any::<prop::sample::Index>(),
        cut in 0usize..30,
        piece in prop::sample::select(vec![
            "", "\"", "0", "=", "[", "{}", "\n", "name", "-1", "999999999999 h", "a", "\u{e9}",
        ]),
    ) {
        let chars: Vec<char> = file.chars().collect();
        let at = at.index(chars.len());
        let rest = chars.iter().skip(at + cut).copied();
        let text: String =
            chars[..at].iter().copied().chain(piece.chars()).chain(rest).collect();
        match Scenario::parse(&text, "t") {
            Ok(s) => {
                prop_assert!(!explain(&s).is_empty());
                prop_assert_eq!(Scenario::parse(&s.to_toml().unwrap(), "again"), Ok(s));
            }
            Err(e) => {
                // The place is inside the text.
                for (line, column) in e.problems.iter().filter_map(|p| p.position()) {
                    let length = text.split('\n').nth(line - 1).expect("the line exists").chars().count();
                    prop_assert!(column <= length + 1, "{}", e);
                }
            }
        }
    }

    /// Breaks: extreme but legal numbers overflow in figures or explanations.
    #[test]
    fn extreme_values_are_explained(
        rate in 1u64..u64::MAX,
        delay in any::<u64>(),
        size in 1u64..u64::MAX,
        mss in 88u64..=65_495,
    ) {
        let overrides = [
            ("links.*.rate", format!("{rate} bit/s")),
            ("links.*.queue", "4000000000 packets".to_string()),
            ("links.*.delay", format!("{delay} ns")),
            ("flows.*.size", format!("{size} B")),
            ("flows.*.sender.mss", mss.to_string()),
            ("flows.*.receiver.mss", mss.to_string()),
        ];
        let overrides: Vec<_> = overrides.iter().map(|(k, v)| (*k, v.as_str())).collect();
        for text in [STOPS, SHARED, LEO, AQM] {
            match set(text, &overrides) {
                Ok(s) => prop_assert!(!explain(&s).is_empty()),
                Err(e) => prop_assert!(e.contains("`window` must be"), "{}", e),
            }
        }
    }
}

/// Breaks: elements refuse what the scenario reader accepts, or get other values than it read.
#[test]
fn directions_become_elements() {
    let text = include_str!("../../../scenarios/gallery/impaired.toml");
    let s = set(text, &[("links.wire.backward.queue", "64 kB"), ("links.wire.overhead", "0 B")]).unwrap();
    let (there, back) = (s.links[0].direction(Direction::Forward), s.links[0].direction(Direction::Backward));
    assert!(there.is_impaired() && back.is_impaired());
    assert_eq!(there.spec.outages.0[0].lasts, Span::from_millis(500));
    assert_eq!(back.link().queue, farpace_path::QueueLimit::Bytes(ByteCount::new(64_000)));
    assert_eq!(back.framing(), farpace_path::Framing::NONE);
    let policer = "{ rate = \"1 Mbit/s\", burst = \"64 kB\", counts = \"frame\" }";
    let s = set(text, &[("links.wire.forward.policer", policer)]).unwrap();
    let config = s.links[0].forward.policer.as_ref().unwrap().config();
    assert_eq!((config.refill, config.counted), (None, farpace_path::PolicedBytes::Ethernet));
    assert!(farpace_path::PolicerDirection::new(config).is_ok());
}
