//! `farpace papers nics` from outside: the form of its JSON, its report, and what must hold of it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::run;
use serde_json::Value;

/// Short transfers.
const SHORT: [&str; 7] = ["papers", "nics", "--quick", "--assume", "literal", "--time", "400 ms"];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Breaks: programs that read the JSON, the report, or the core of the reproduction: without order what goes
/// by the narrow card is sent again, with the right skip number nothing is, and `earliest` gets more than the
/// best card alone.
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
        ("fig9/90-10/s0/goodput", 143.0),
        ("fig9/90-10/s8/again", 7.17),
        ("fig9/99.6-0.4/s18/goodput", 714.0),
        ("best/99.6-0.4/skip", 18.0),
        ("alone", 689.0),
        ("gain", 2.6),
    ] {
        assert_eq!(row(id)["paper"], paper);
    }
    assert!(row("fig9/90-10/s6/goodput")["paper"].is_null(), "the paper has no such number");
    // What the machine was worked out from comes out.
    assert!((measured("alone") / 689.0 - 1.0).abs() < 0.01);
    assert!((measured("udp/90-10") / 914.0 - 1.0).abs() < 0.01);
    // Each frame of the narrow card is sent again, or none of them.
    assert!((9.0..11.0).contains(&measured("fig9/90-10/s0/again")));
    assert!(measured("fig9/90-10/s8/again") < 0.1);
    assert!(measured("beyond/1000-100/stock/earliest/share") > measured("beyond/1000-100/alone"));
    assert!(measured("beyond/1000-100/stock/round-robin/share") < measured("beyond/1000-100/alone"));
    assert!(measured("beyond/wan/resequenced/earliest/share") > measured("beyond/wan/alone"));
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.iter().all(|c| keys(c) == ["evidence", "holds", "id", "text"]));
    for must in ["collapse", "best-90", "fewer", "window", "never-below"] {
        let claim = claims.iter().find(|c| c["id"] == must).unwrap_or_else(|| panic!("no claim {must}"));
        assert_eq!(claim["holds"], true, "{claim}");
    }
    let out = dir.path().join("out/nics");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("</html>") && report.contains("Figure 5."), "figures are missing");
    for name in ["fig09-goodput", "fig09-again", "fig10", "orders", "failure"] {
        let svg = std::fs::read_to_string(out.join(format!("figures/{name}.svg"))).unwrap();
        assert!(svg.contains("<path") && !svg.contains("no data"), "{name}");
    }
}

/// Breaks: a wrong option is found out only after all runs, or by a panic.
#[test]
fn bad_input_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (more, says) in [
        (vec!["--set", "links.a-whide.rate=1 Mbit/s"], "a-whide"),
        (vec!["--set", "hosts.a.multi_nic.skipp=3"], "skipp"),
        (vec!["--time", "1 ms"], "--time"),
        (vec!["--threads", "0"], "threads"),
        (vec!["--assume", "no-such-world"], "late-interrupts"),
    ] {
        let (code, _, err) = run(dir.path(), &[&["papers", "nics"], &more[..]].concat());
        assert_eq!(code, 2, "{more:?}: {err}");
        assert!(err.contains(says), "{more:?}: {err}");
    }
    assert!(!dir.path().join("out").exists());
}
