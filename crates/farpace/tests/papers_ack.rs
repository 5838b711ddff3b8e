//! `farpace papers ack` from outside: the form of its JSON, its report, and what must hold of it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::run;
use serde_json::Value;

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Breaks: programs that read the JSON, the report, or the core of the reproduction: asking gains, requests
/// are confirmed, and confirmed samples are nearer to the path's round trip.
#[test]
fn the_quick_reproduction_has_everything() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, err) = run(dir.path(), &["papers", "ack", "--quick", "--json"]);
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(keys(&json), ["claims", "comparison", "paper", "rows"]);
    let rows = json["rows"].as_array().unwrap();
    for row in rows {
        assert_eq!(keys(row), ["assumptions", "id", "measured", "paper", "quantity", "unit"]);
        assert!(row["measured"].is_f64(), "{row}");
        assert!(!row["assumptions"].as_array().unwrap().is_empty(), "{row}");
    }
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap_or_else(|| panic!("no row {id}"));
    let measured = |id: &str| row(id)["measured"].as_f64().unwrap();
    for (id, paper) in [
        ("table5.1/none/bytes", 561.0),
        ("table5.2/none/acks", 205.0),
        ("table5.2/every-3/shared", 125.0),
        ("table5.2/slow-start/cdl", 231.0),
        ("table5.2/rtt-timestamps/cdlack", 262.0),
        ("fig5.1/round-trip", 78.7),
    ] {
        assert_eq!(row(id)["paper"], paper);
    }
    assert!(row("table5.2/window-end/bytes")["paper"].is_null(), "the thesis has no such row");
    // Two Ethernets, 23.4 ms on the line, 50 ms of propagation and the ACK's way: it must be near the thesis'
    // trace.
    assert!((75.0..79.0).contains(&measured("fig5.1/round-trip")));
    // Nobody who asks gets every ACK that would wait; nobody who never asks gets one confirmed.
    assert_eq!(measured("table5.2/none/cdl"), 0.0);
    for policy in ["rtt", "every-2", "every-3", "every-4", "window-end", "slow-start"] {
        let of = |what: &str| measured(&format!("table5.2/{policy}/{what}"));
        assert!(of("cdl") > 50.0 && of("cdl") - of("cdlack") <= 6.0, "{policy}");
        assert!((of("sent") - of("acks") - of("shared")).abs() < 1e-6, "{policy}");
    }
    // Every segment asks: every segment has an ACK, but for the window that is under way.
    assert!(measured("table5.2/slow-start/shared") <= 6.0);
    // Every segment asks: SRTT is the path's round trip, worked out from the lines alone.
    assert!(measured("clock/1us/slow-start/srtt-error") < 0.1);
    // The last segment was lost: a timeout must pass, BSD's of 1 s at least, and the line's round trip.
    assert!(measured("clock/bsd/repaired") > 1.0);
    assert!((0.1..1.0).contains(&measured("clock/1us/rtt/repaired")));
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.iter().all(|c| keys(c) == ["evidence", "holds", "id", "text"]));
    for must in ["every-policy-gains", "slow-start-best", "confirmed", "srtt-nearer", "no-false-timeouts"] {
        let claim = claims.iter().find(|c| c["id"] == must).unwrap_or_else(|| panic!("no claim {must}"));
        assert_eq!(claim["holds"], true, "{claim}");
    }
    let out = dir.path().join("out/ack");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("</html>") && report.contains("Figure 11."), "figures are missing");
    let over_time = [2, 3, 4, 5].map(|n| [format!("fig5-{n}-behind"), format!("fig5-{n}-rate")]);
    for name in
        over_time.into_iter().flatten().chain(["table-5-2".into(), "table-5-2-four".into(), "clocks".into()])
    {
        let svg = std::fs::read_to_string(out.join(format!("figures/{name}.svg"))).unwrap();
        assert!(svg.contains("<path") && !svg.contains("no data"), "{name}");
    }
}

/// Breaks: the best world is not beside the literal runs, or counts as better without more claims that hold;
/// `--assume` gives other numbers than the default shows for that world, or literal numbers depend on it.
#[test]
fn a_world_stands_beside_the_literal_runs() {
    let json = |more: &[&str]| -> Value {
        let dir = tempfile::tempdir().unwrap();
        let (code, out, err) = run(dir.path(), &[&["papers", "ack", "--quick", "--json"], more].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    };
    let beside = json(&[]);
    let literal = json(&["--assume", "literal"]);
    let name = beside["comparison"]["world"]["name"].as_str().unwrap();
    let world = json(&["--assume", name]);
    assert_eq!(keys(&literal), ["claims", "paper", "rows"]);
    assert_eq!(keys(&world), ["assumed", "claims", "paper", "rows"]);
    assert_eq!((&beside["rows"], &beside["claims"]), (&literal["rows"], &literal["claims"]));
    assert_eq!(beside["comparison"]["world"], world["assumed"]);
    let find = |all: &Value, id: &Value| -> Value {
        all.as_array().unwrap().iter().find(|one| one["id"] == *id).cloned().unwrap_or(Value::Null)
    };
    // As many claims hold as literally.
    assert_eq!(beside["comparison"]["better"], false);
    let numbers = beside["comparison"]["numbers"].as_array().unwrap();
    assert!(numbers.iter().any(|n| n["fitted"] == true) && numbers.iter().any(|n| n["fitted"] == false));
    for number in numbers {
        assert_eq!(number["literal"], find(&literal["rows"], &number["id"])["measured"], "{number}");
        assert_eq!(number["world"], find(&world["rows"], &number["id"])["measured"], "{number}");
    }
    for claim in beside["comparison"]["claims"].as_array().unwrap() {
        assert_eq!(claim["literal"], find(&literal["claims"], &claim["id"])["holds"], "{claim}");
        assert_eq!(claim["world"], find(&world["claims"], &claim["id"])["holds"], "{claim}");
    }
    let dir = tempfile::tempdir().unwrap();
    let (code, list, err) = run(dir.path(), &["papers", "ack", "--assume", "list"]);
    assert_eq!(code, 0, "{err}");
    assert!(list.contains(name) && list.contains("receive_buffer"), "{list}");
    assert!(!dir.path().join("out").exists());
    let (code, text, err) = run(dir.path(), &["papers", "ack", "--quick"]);
    assert_eq!(code, 0, "{err}");
    assert!(text.contains("No world is better than the literal runs"), "{text}");
    assert!(err.contains("in the world `five-segments`"), "{err}");
}

/// Breaks: the same numbers with any number of threads.
#[test]
fn threads_do_not_change_the_result() {
    let once = |threads: &str| {
        let dir = tempfile::tempdir().unwrap();
        let (code, out, err) = run(dir.path(), &["papers", "ack", "--quick", "--threads", threads]);
        assert_eq!(code, 0, "{err}");
        (out, std::fs::read(dir.path().join("out/ack/report.html")).unwrap())
    };
    let (one, two) = (once("1"), once("2"));
    assert_eq!(one.0, two.0);
    assert!(one.1 == two.1, "the reports differ");
}

/// Breaks: `--strict` is ignored, or a wrong option is found out only after all runs, or by a panic.
#[test]
fn bad_input_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (more, says) in [
        (vec!["--set", "links.lime.rate=1 Mbit/s"], "lime"),
        (vec!["--set", "flows.bulk.sender.cdl_bit=9"], "cdl_bit"),
        (vec!["--threads", "0"], "threads"),
        (vec!["--today", "--estimators"], "--estimators"),
        (vec!["--today", "--strict"], "--strict"),
        (vec!["--today", "--assume", "five-segments"], "--assume"),
        (vec!["--assume", "no-such-world"], "five-segments"),
    ] {
        let (code, _, err) = run(dir.path(), &[&["papers", "ack"], &more[..]].concat());
        assert_eq!(code, 2, "{more:?}: {err}");
        assert!(err.contains(says), "{more:?}: {err}");
    }
    assert!(!dir.path().join("out").exists());
    let (code, _, err) = run(dir.path(), &["papers", "ack", "--quick", "--strict"]);
    assert_eq!(code, 1, "claims fail: {err}");
}
