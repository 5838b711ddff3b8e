//! `farpace papers pacing` from outside: the form of its JSON, its report, and what must hold of it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::run;
use serde_json::Value;

/// Short transfers: enough for the end of slow start.
const SHORT: [&str; 9] =
    ["papers", "pacing", "--quick", "--time", "3 s", "--sets", "8", "--assume", "literal"];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Breaks: programs that read the JSON, the report, or the core of the reproduction: pacing is precise, at
/// the rate that was asked for, and loses nothing.
#[test]
fn the_short_reproduction_has_everything() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, err) = run(dir.path(), &[&SHORT[..], &["--json"]].concat());
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(keys(&json), ["claims", "paper", "rows"]);
    let rows = json["rows"].as_array().unwrap();
    for row in rows {
        assert_eq!(keys(row), ["assumptions", "id", "measured", "paper", "quantity", "unit"]);
        assert!(row["measured"].is_f64(), "{row}");
        assert!(!row["assumptions"].as_array().unwrap().is_empty(), "{row}");
    }
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap_or_else(|| panic!("no row {id}"));
    let measured = |id: &str| row(id)["measured"].as_f64().unwrap();
    for (id, paper) in [
        ("table2/psp/8K/n1/mean", 7.96),
        ("table3/psp/10M/n1/least", 9.89),
        ("table4/psp/500M/n2/greatest", 658.0),
        ("table5/none/1024kB/lost", 1196.0),
        ("table5/token-bucket/256kB/goodput", 379.0),
        ("fig6/none", 984.0),
    ] {
        assert_eq!(row(id)["paper"], paper);
    }
    assert!(row("table2/edf/8K/n1/mean")["paper"].is_null(), "the paper has no such row");
    // A frame of 1514 B of each 1518 that the rate counts, by a clock of 2^-24 s.
    assert!((measured("table2/psp/10M/n1/mean") / 10.0 - 1514.0 / 1518.0).abs() < 1e-4);
    assert!((measured("fig6/none") - 984.4).abs() < 0.1);
    // To the byte: PSPacer cuts 1632.26 B of the line to 1632.
    assert!(measured("table2/edf/930M/n1/error").abs() < 1.0);
    assert!((100.0..200.0).contains(&measured("table2/psp/930M/n1/error")));
    // A timer of 1 ms lets 42 packets go at once; half of them have left when the last one comes.
    assert!((19.0..23.0).contains(&measured("burstiness/token-bucket")));
    assert!(measured("table5/none/16kB/lost") > 0.0 && measured("table5/token-bucket/16kB/lost") > 0.0);
    assert!(measured("table5/psp/16kB/goodput") > 5.0 * measured("table5/none/16kB/goodput"));
    assert_eq!(measured("sets/edf/above"), 0.0);
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.iter().all(|c| keys(c) == ["evidence", "holds", "id", "text"]));
    for must in ["precise-psp", "precise-edf", "effective", "exact", "never-above", "undisturbed", "no-loss"]
    {
        let claim = claims.iter().find(|c| c["id"] == must).unwrap_or_else(|| panic!("no claim {must}"));
        assert_eq!(claim["holds"], true, "{claim}");
    }
    let out = dir.path().join("out/pacing");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("</html>") && report.contains("Figure 12."), "figures are missing");
    for name in
        ["fig06", "fig07", "fig08a", "fig08a-large", "fig08b", "fig09-psp-token-bucket", "sets", "table5"]
    {
        let svg = std::fs::read_to_string(out.join(format!("figures/{name}.svg"))).unwrap();
        assert!(svg.contains("<path") && !svg.contains("no data"), "{name}");
    }
}

/// Breaks: a wrong option is found out only after all runs, or by a panic.
#[test]
fn bad_input_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (more, says) in [
        (vec!["--set", "links.lime.rate=1 Mbit/s"], "lime"),
        (vec!["--set", "links.nic.forward.pacing.bust=1 kB"], "bust"),
        (vec!["--time", "1 ms"], "--time"),
        (vec!["--sets", "0"], "sets"),
        (vec!["--threads", "0"], "threads"),
        (vec!["--assume", "no-such-world"], "literal"),
        (vec!["--quick", "--full"], "--full"),
    ] {
        let (code, _, err) = run(dir.path(), &[&["papers", "pacing"], &more[..]].concat());
        assert_eq!(code, 2, "{more:?}: {err}");
        assert!(err.contains(says), "{more:?}: {err}");
    }
    assert!(!dir.path().join("out").exists());
}
