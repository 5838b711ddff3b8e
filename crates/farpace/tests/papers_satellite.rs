//! `farpace papers satellite` from outside: the form of its JSON, its report, and what must hold of it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::run;
use serde_json::Value;

/// Short runs: enough to fill the path, to lose ACKs, and to come back.
const SHORT: [&str; 6] = ["papers", "satellite", "--seeds", "1", "--time", "16 s"];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Breaks: programs that read the JSON, the report, or the core of the reproduction: STAR fills the path
/// first, comes back first when ACKs are lost, and has the most at every bit error rate.
#[test]
fn the_short_reproduction_has_everything() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, err) =
        run(dir.path(), &[&SHORT[..], &["--quick", "--assume", "literal", "--json"]].concat());
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(keys(&json), ["claims", "paper", "rows"]);
    let rows = json["rows"].as_array().unwrap();
    for row in rows {
        assert_eq!(keys(row), ["assumptions", "id", "measured", "paper", "quantity", "unit"]);
        assert!(!row["assumptions"].as_array().unwrap().is_empty(), "{row}");
    }
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap_or_else(|| panic!("no row {id}"));
    assert_eq!(row("gain/reno")["paper"], 152.0);
    assert_eq!(row("gain/tcp-j")["paper"], 13.5);
    for (figure, of) in [("fig5", "star"), ("fig10", "reno"), ("fig11", "scalable"), ("fig12", "tcp-j")] {
        for ber in ["0", "1e-8", "1e-7", "1e-6", "1e-5"] {
            let id = format!("{figure}/{of}/ber-{ber}{}", if figure == "fig12" { "/jain" } else { "" });
            assert!(row(&id)["measured"].is_f64(), "{id}");
        }
    }
    assert!(row("fig20/star-highspeed/ber-1e-7/highspeed")["measured"].is_f64());
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.iter().all(|c| keys(c) == ["evidence", "holds", "id", "text"]));
    for must in ["single-highest", "recovers-first"] {
        let claim = claims.iter().find(|c| c["id"] == must).unwrap_or_else(|| panic!("no claim {must}"));
        assert_eq!(claim["holds"], true, "{claim}");
    }
    let report = std::fs::read_to_string(dir.path().join("out/satellite/report.html")).unwrap();
    assert!(report.contains("</html>") && report.contains("Figure 15."), "figures are missing");
    for n in [5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20] {
        let figure = dir.path().join(format!("out/satellite/figures/fig{n:02}.svg"));
        let svg = std::fs::read_to_string(&figure).unwrap();
        assert!(svg.contains("<path") && !svg.contains("no data"), "{}", figure.display());
    }
}

/// Breaks: the sensitivity table, and the same numbers with any number of threads.
#[test]
fn threads_do_not_change_the_result() {
    let once = |threads: &str| {
        let dir = tempfile::tempdir().unwrap();
        let short = ["--seeds", "1", "--time", "4 s", "--assume", "literal", "--threads", threads];
        let (code, out, err) = run(dir.path(), &[&["papers", "satellite"], &short[..]].concat());
        assert_eq!(code, 0, "{err}");
        let report = std::fs::read(dir.path().join("out/satellite/report.html")).unwrap();
        (out, report)
    };
    let (one, two) = (once("1"), once("2"));
    assert_eq!(one.0, two.0);
    assert!(one.1 == two.1, "the reports differ");
    let (table, bursts) = one.0.split_once("how fast bursts reach the queue").unwrap();
    assert!(bursts.lines().any(|l| l.starts_with("10 Mbit/s")), "{bursts}");
    let table = table.split("filter x first interval x cap").nth(1).unwrap();
    for word in
        ["ewma-ack", "tustin", "westwood-plus", "tsw", "delivery-rate", "handshake", "10 ms", "2.0 BDP"]
    {
        assert!(table.contains(word), "{word}: {table}");
    }
    assert!(!table.contains('–') && !bursts.split("Claims").next().unwrap().contains('–'), "{table}{bursts}");
}

/// Breaks: the frontier: places or algorithms are missing, or its ratios are not those of its numbers.
#[test]
fn the_frontier_compares_with_the_best() {
    let dir = tempfile::tempdir().unwrap();
    let more = ["--frontier", "--only", "reno,bbr3", "--json"];
    let (code, out, err) = run(dir.path(), &[&SHORT[..], &more].concat());
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["format"], "farpace-satellite-frontier/1");
    let places = json["places"].as_array().unwrap();
    assert_eq!(places.len(), 20, "five bit error rates, two queues, one and two flows");
    for place in places {
        let points = place["congestion"].as_array().unwrap();
        assert_eq!(points.iter().map(|p| p["name"].as_str().unwrap()).collect::<Vec<_>>(), ["reno", "bbr3"]);
        let best = place["best_mbit_s"].as_f64().unwrap();
        let of_best: Vec<f64> = points.iter().map(|p| p["of_best"].as_f64().unwrap()).collect();
        assert_eq!(of_best.iter().copied().fold(0.0, f64::max), 1.0, "{place}");
        for (p, ratio) in points.iter().zip(of_best) {
            assert!((p["goodput_mbit_s"].as_f64().unwrap() / best - ratio).abs() < 1e-9);
            assert_eq!(p["jain"].is_f64(), place["flows"] == 2, "{p}");
            assert_eq!(p["cubic_keeps_percent"].is_f64(), place["flows"] == 2, "{p}");
        }
    }
    assert!(dir.path().join("out/satellite/report.html").exists());
}

/// Breaks: a wrong option is found out only after all runs, or by a panic.
#[test]
fn bad_input_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (more, says) in [
        (vec!["--set", "links.satelite.rate=1 Mbit/s"], "satelite"),
        (vec!["--time", "1 s"], "--time"),
        (vec!["--time", "soon"], "soon"),
        (vec!["--seeds", "0"], "seeds"),
        (vec!["--only", "reno"], "--frontier"),
        (vec!["--frontier", "--only", "renno"], "renno"),
        (vec!["--frontier", "--quick"], "--quick"),
        (vec!["--frontier", "--assume", "two-systems"], "--assume"),
        (vec!["--assume", "no-such-world"], "two-systems"),
    ] {
        let (code, _, err) = run(dir.path(), &[&["papers", "satellite"], &more[..]].concat());
        assert_eq!(code, 2, "{more:?}: {err}");
        assert!(err.contains(says), "{more:?}: {err}");
    }
    assert!(!dir.path().join("out").exists());
}
