//! `farpace papers ack --today` and `--estimators` from outside: the form of their JSON, their reports, and
//! what must hold.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::run;
use serde_json::Value;
use std::path::Path;

fn quick(dir: &Path, which: &str) -> Value {
    let (code, out, err) = run(dir, &["papers", "ack", which, "--quick", "--json"]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

fn runs<'a>(json: &'a Value, all: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Value> {
    json["runs"].as_array().unwrap().iter().filter(move |r| all.iter().all(|(key, value)| r[*key] == *value))
}

fn sum(json: &Value, of: &str, all: &[(&str, &str)]) -> f64 {
    runs(json, all).map(|r| r[of].as_f64().unwrap()).sum()
}

/// Breaks: programs that read the JSON; a figure; or what asking means: more ACKs, most of them confirmed,
/// and a flow that waits for a held ACK ends sooner.
#[test]
fn asking_costs_acks_and_saves_time() {
    let dir = tempfile::tempdir().unwrap();
    let json = quick(dir.path(), "--today");
    assert_eq!(json["format"], "farpace-acks-today/1");
    assert_eq!(json["runs"].as_array().unwrap().len(), 240);
    // While its window opens, Linux acknowledges each segment without being asked.
    for (receiver, more) in [("linux", 1.1), ("bsd 200 ms", 1.3)] {
        let of = |of: &str, asked| {
            sum(&json, of, &[("receiver", receiver), ("asked", asked), ("growth", "by bytes")])
        };
        assert!(of("acks_per_mb", "everything") > more * of("acks_per_mb", "off"), "{receiver}");
        assert!(of("acks_per_mb", "auto") < of("acks_per_mb", "everything"), "{receiver}");
        assert!(of("confirmed", "everything") > 0.7 * of("requests", "everything"), "{receiver}");
        assert_eq!(of("requests", "off"), 0.0);
        assert_eq!(of("saved_percent", "off"), 0.0);
    }
    // One segment per ACK: with every ACK the window grows twice as fast.
    let per_ack = [("receiver", "bsd 200 ms"), ("asked", "everything"), ("growth", "per ACK")];
    assert!(sum(&json, "saved_percent", &per_ack) > 0.0);
    let report = std::fs::read_to_string(dir.path().join("out/ack-today/report.html")).unwrap();
    assert!(report.contains("</html>") && report.contains("Receiver bsd 200 ms"));
    for figure in ["saved", "saved-per-ack"] {
        let svg =
            std::fs::read_to_string(dir.path().join(format!("out/ack-today/figures/{figure}.svg"))).unwrap();
        assert!(svg.matches("<rect").count() > 24 && !svg.contains("no data"), "{figure}");
    }
}

/// Breaks: programs that read the JSON; the truth of the tables; and the sense of asking: with a held ACK the
/// round trip is less wrong if it comes from confirmed samples.
#[test]
fn confirmed_round_trips_are_truer() {
    let dir = tempfile::tempdir().unwrap();
    let json = quick(dir.path(), "--estimators");
    assert_eq!(json["format"], "farpace-acks-estimators/1");
    let error = |receiver, traffic, asked, rto| -> f64 {
        let all = [
            ("receiver", receiver),
            ("traffic", traffic),
            ("asked", asked),
            ("rto", rto),
            ("congestion", "cubic"),
        ];
        runs(&json, &all).next().unwrap_or_else(|| panic!("{all:?}"))["srtt_error_ms"]["mean"]
            .as_f64()
            .unwrap()
    };
    for traffic in ["half the path", "full path", "requests"] {
        assert!(error("none", traffic, "off", "rfc6298") < 0.01, "{traffic}");
    }
    for receiver in ["bsd 200 ms", "stretch 8"] {
        for traffic in ["half the path", "requests"] {
            let (off, asked) =
                (error(receiver, traffic, "off", "rfc6298"), error(receiver, traffic, "everything", "cdl"));
            assert!(asked < off, "{receiver}, {traffic}: {asked} ms, without asking {off} ms");
        }
    }
    for asked in ["tarr, probe-rtt", "safe, probe-rtt"] {
        assert!(sum(&json, "requests", &[("asked", asked)]) > 0.0, "BBR's ProbeRTT does not ask");
    }
    let svg = std::fs::read_to_string(dir.path().join("out/ack-estimators/figures/round-trip.svg")).unwrap();
    assert!(svg.contains("<path") && !svg.contains("no data"));
}

/// Breaks: the same numbers with any number of threads.
#[test]
fn threads_do_not_change_the_result() {
    for which in ["--today", "--estimators"] {
        let once = |threads: &str| {
            let dir = tempfile::tempdir().unwrap();
            let (code, out, err) =
                run(dir.path(), &["papers", "ack", which, "--quick", "--threads", threads]);
            assert_eq!(code, 0, "{err}");
            let report = format!("out/ack{}/report.html", &which[1..]);
            (out, std::fs::read(dir.path().join(report)).unwrap())
        };
        assert!(once("1") == once("2"), "{which}");
    }
}
