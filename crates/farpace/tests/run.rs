//! `farpace run` as a user runs it.

mod common;

use common::{LOSSY, PACED, bytes, names, run, with_scenario};
use serde_json::Value;
use std::fs;

/// Breaks: the promise of the command: a real file arrives, byte for byte, and everything about it is
/// written.
#[test]
fn a_file_crosses_a_lossy_path() {
    let dir = with_scenario(LOSSY);
    let payload = bytes(1_234_567);
    fs::write(dir.path().join("payload"), &payload).unwrap();
    let arguments =
        ["run", "scenario.toml", "--payload", "payload", "--received", "copy", "--out", "results/first"];
    let (code, stdout, stderr) = run(dir.path(), &arguments);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(fs::read(dir.path().join("copy")).unwrap() == payload, "the copy differs");
    assert!(!dir.path().join("copy.partial").exists());
    for words in ["complete", "efficiency", "longest silence", "wire.forward.loss", "fast retransmit"] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    let out = dir.path().join("results/first");
    let expected = [
        "a.pcapng",
        "b.pcapng",
        "drops.pcapng",
        "figures",
        "report.html",
        "scenario.toml",
        "summary.json",
        "trace.parquet",
    ];
    assert_eq!(names(&out), expected);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let command = arguments.join(" ");
    assert!(page.contains(&format!("farpace {command}")), "the report says how to repeat it");
    assert_eq!(page.matches("<figure ").count(), names(&out.join("figures")).len());
    // The effective scenario is one, and means the same.
    let (code, _, stderr) = run(dir.path(), &["scenario", "check", "results/first/scenario.toml"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(fs::read_to_string(out.join("scenario.toml")).unwrap().contains("size = \"1234567 B\""));
}

/// Breaks: programs that read `--json`: other output among it, a key that is gone, or another unit.
#[test]
fn the_json_is_alone_and_has_its_shape() {
    let dir = with_scenario(LOSSY);
    let (code, stdout, _) =
        run(dir.path(), &["run", "scenario.toml", "--json", "--no-report", "--seed", "9"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(json["format"], "farpace-run/1");
    assert_eq!(json["status"], "complete");
    assert_eq!(json["scenario"]["seed"], 9);
    assert_eq!(json["files"], serde_json::json!([]));
    assert!(json["wall"]["data_packets_per_s"].as_f64().unwrap() > 0.0);
    let flow = &json["flows"][0];
    let mut expected = vec![
        "acks",
        "base_rtt_s",
        "bottleneck",
        "completion_s",
        "delivered_bytes",
        "efficiency",
        "elapsed_s",
        "from",
        "goodput_bit_s",
        "intact",
        "name",
        "problem",
        "profile",
        "retransmissions",
        "segment_bytes",
        "sent",
        "silence",
        "size_bytes",
        "spent",
        "start_s",
        "timeouts",
        "to",
        "verified_bytes",
        "window_changes",
    ];
    expected.sort_unstable();
    let mut found = keys(flow);
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!((&flow["intact"], &flow["verified_bytes"]), (&Value::Bool(true), &Value::from(2_000_000)));
    let goodput = 16e6 / flow["completion_s"].as_f64().unwrap();
    assert!((flow["goodput_bit_s"].as_f64().unwrap() / goodput - 1.0).abs() < 1e-6);
    assert_eq!(flow["bottleneck"]["rate_bit_s"], 100_000_000);
    let dropped = json["drops"][0]["packets"].as_u64().unwrap();
    assert_eq!(json["drops"][0]["cause"], "loss");
    assert!(dropped > 0 && flow["retransmissions"].as_u64().unwrap() >= dropped, "{flow}");
    assert!(!dir.path().join("out").exists(), "--no-report without --out writes nothing");
    // The documentation names every key.
    let manual = include_str!("../../../docs/json.md");
    for key in keys(&json).into_iter().chain(found) {
        assert!(manual.contains(&format!("`{key}`")), "docs/json.md does not tell of `{key}`");
    }
}

/// Breaks: the reports of users who just type `farpace run FILE`, and their runs into a directory used
/// before.
#[test]
fn without_out_there_is_a_report_only() {
    let dir = with_scenario(LOSSY);
    for _ in 0..2 {
        let (code, stdout, _) = run(dir.path(), &["run", "scenario.toml", "--set", "flows.0.size=300 kB"]);
        assert_eq!(code, 0);
        assert!(stdout.contains("out/scenario/report.html"), "{stdout}");
        assert_eq!(names(&dir.path().join("out/scenario")), ["report.html"]);
    }
}

/// Breaks: repeatability: the same scenario and seed give other bytes, or another seed the same.
#[test]
fn the_same_run_gives_the_same_files() {
    let dir = with_scenario(LOSSY);
    for (out, seed) in [("1", "5"), ("2", "5"), ("3", "6")] {
        let (code, _, stderr) =
            run(dir.path(), &["run", "scenario.toml", "--quiet", "--seed", seed, "--out", out]);
        assert_eq!((code, stderr.as_str()), (0, ""));
    }
    let read = |out: &str, name: &str| fs::read(dir.path().join(out).join(name)).unwrap();
    for name in ["trace.parquet", "a.pcapng", "b.pcapng", "drops.pcapng", "summary.json", "scenario.toml"] {
        assert!(read("1", name) == read("2", name), "{name} differs");
        assert!(read("1", name) != read("3", name), "{name} does not depend on the seed");
    }
}

/// Breaks: a transfer that did not complete is taken for a success by a script, or its partial file for a
/// whole.
#[test]
fn a_run_out_of_time_says_so() {
    let dir = with_scenario(LOSSY);
    fs::write(dir.path().join("payload"), bytes(2_000_000)).unwrap();
    let arguments =
        ["run", "scenario.toml", "--set", "duration=100 ms", "--payload", "payload", "--received", "copy"];
    let (code, stdout, _) = run(dir.path(), &arguments);
    assert_eq!(code, 1, "{stdout}");
    assert!(stdout.contains("NOT COMPLETE") && stdout.contains("the run ended before"), "{stdout}");
    assert!(!dir.path().join("copy").exists() && dir.path().join("copy.partial").exists());
}

/// Breaks: several flows: names, order and figures of their own.
#[test]
fn every_flow_has_its_section() {
    let dir = with_scenario(&format!(
        "{LOSSY}\n[[flows]]\nname = \"late\"\nfrom = \"a\"\nto = \"b\"\nstart = \"50 ms\"\nsize = \"500 \
         kB\"\n"
    ));
    // TOML wants [[flows]] before [trace] only by custom.
    let (code, stdout, stderr) = run(dir.path(), &["run", "scenario.toml", "--out", "out", "--trace", "csv"]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let figures = names(&dir.path().join("out/figures"));
    for name in ["bandwidth.svg", "bulk-window.svg", "late-goodput.svg", "late-window.svg"] {
        assert!(figures.iter().any(|f| f == name), "{name}: {figures:?}");
    }
    let trace = fs::read_to_string(dir.path().join("out/trace.csv")).unwrap();
    for connection in ["0", "1"] {
        assert!(trace.lines().skip(1).any(|l| l.split(',').nth(1) == Some(connection)), "{connection}");
    }
}

/// Breaks: the table and the JSON of network cards: rows that are missing, keys that are gone or not
/// documented, wrong sums.
#[test]
fn nics_are_reported_in_words_and_numbers() {
    let text = include_str!("../../../scenarios/gallery/nics.toml");
    let dir = with_scenario(text);
    let turns = [
        "run",
        "scenario.toml",
        "--no-report",
        "--set",
        "hosts.a.multi_nic.order=round-robin",
        "--set",
        "hosts.a.multi_nic.ratio=9/1",
        "--set",
        "flows.bulk.size=3 MB",
    ];
    let (code, stdout, stderr) = run(dir.path(), &turns);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let flat = stdout.replace('\n', " ");
    for words in ["NICs", "nic1", "a-narrow", "the lines of a-wide + a-narrow"] {
        assert!(flat.contains(words), "{words}: {stdout}");
    }
    let (_, stdout, _) = run(dir.path(), &[&turns[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&stdout).unwrap();
    let bottleneck = &json["flows"][0]["bottleneck"];
    assert_eq!(
        (&bottleneck["kind"], &bottleneck["rate_bit_s"]),
        (&"lines".into(), &1_100_000_000_u64.into())
    );
    let number = |value: &Value| value.as_u64().unwrap();
    let host = &json["nics"][0];
    let [wide, narrow] = [&host["nics"][0], &host["nics"][1]];
    assert_eq!(
        (&host["host"], &wide["name"], &narrow["link"]),
        (&"a".into(), &"nic0".into(), &"a-narrow".into())
    );
    assert_eq!((number(&wide["rate_bit_s"]), number(&narrow["rate_bit_s"])), (1_000_000_000, 100_000_000));
    let share = number(&narrow["sent_frames"]) as f64 / number(&wide["sent_frames"]) as f64;
    assert!((0.1..0.13).contains(&share), "{host}");
    assert!(number(&wide["sent_bytes"]) + number(&narrow["sent_bytes"]) > 3_000_000, "{host}");
    let manual = include_str!("../../../docs/json.md");
    for object in [host, wide] {
        for key in object.as_object().unwrap().keys() {
            assert!(manual.contains(&format!("`{key}`")), "docs/json.md does not tell of `{key}`");
        }
    }
}

/// Breaks: the table and the JSON of pacing: rows that are missing, keys that are gone or not documented,
/// wrong sums.
#[test]
fn pacing_is_told_in_words_and_numbers() {
    let dir = with_scenario(PACED);
    let (code, stdout, stderr) = run(dir.path(), &["run", "scenario.toml", "--no-report"]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    for words in ["Pacing", "nic, a to s", "bulk", "100 Mbit/s", "not paced", "(gap frames)"] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    let (_, stdout, _) = run(dir.path(), &["run", "scenario.toml", "--no-report", "--json"]);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    let line = &json["pacing"][0];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!((&line["link"], &line["direction"]), (&"nic".into(), &"forward".into()));
    assert_eq!((&line["from"], &line["to"]), (&"a".into(), &"s".into()));
    let [bulk, none] = [&line["classes"][0], &line["classes"][1]];
    assert_eq!((&bulk["rate"], number(&bulk["rate_bit_s"])), (&"100 Mbit/s".into(), 100_000_000));
    assert_eq!((&none["rate"], number(&none["rate_bit_s"])), (&Value::Null, 0));
    assert_eq!(number(&line["packets"]), number(&bulk["packets"]));
    assert!(number(&bulk["sent_bytes"]) > 500_000 && number(&bulk["dropped"]) == 0);
    // Nine parts of ten are gaps.
    let (gaps, all) = (number(&line["gap_line_bytes"]), number(&line["line_bytes"]));
    assert!(number(&line["gap_frames"]) > 2_000 && gaps > 7 * all, "{gaps} of {all}");
    let manual = include_str!("../../../docs/json.md");
    for object in [line, bulk] {
        for key in object.as_object().unwrap().keys() {
            assert!(manual.contains(&format!("`{key}`")), "docs/json.md does not tell of `{key}`");
        }
    }
}
