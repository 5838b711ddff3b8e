//! `farpace papers stops` from outside: the form of its JSON, and the claims that must hold.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn stops(out: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_farpace"))
        .args(["papers", "stops", "--out"])
        .arg(out)
        .args(more)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A tenth of the paper's gigabyte: the first loss and what follows.
const SMALL: [&str; 5] = ["--quick", "--set", "flows.bulk.size=100 MB", "--assume", "literal"];

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Breaks: programs that read the JSON, the reproduction itself (claims that held no longer do), or the
/// report.
#[test]
fn the_quick_reproduction_holds() {
    let dir = tempfile::tempdir().unwrap();
    let done = stops(dir.path(), &[&SMALL[..], &["--json"]].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    let mut top = keys(&json);
    top.sort_unstable();
    assert_eq!(top, ["claims", "paper", "rows"]);

    let rows = json["rows"].as_array().unwrap();
    for row in rows {
        let mut names = keys(row);
        names.sort_unstable();
        assert_eq!(names, ["assumptions", "id", "measured", "paper", "quantity", "unit"]);
        assert!(row["measured"].is_f64(), "{row}");
        assert!(!row["assumptions"].as_array().unwrap().is_empty(), "{row}");
    }
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap_or_else(|| panic!("no row {id}"));
    assert_eq!(row("table2/window-2500/linux-2.6.17/time-mean")["paper"], 52.4);
    assert_eq!(row("table2/window-2500/aist-fix/timeouts")["measured"], 0.0);
    let silence = row("table2/window-2500/linux-2.6.17/longest-silence")["measured"].as_f64().unwrap();
    assert!(silence >= 1.0, "2.6.17 no longer stops: {silence} s");

    let claims = json["claims"].as_array().unwrap();
    for must in [
        "order/window-2500",
        "fix-saturates",
        "patient-stops",
        "cured-do-not-stop",
        "abc-alone",
        "one-pass-alone",
    ] {
        let claim = claims.iter().find(|c| c["id"] == must).unwrap_or_else(|| panic!("no claim {must}"));
        assert_eq!(claim["holds"], true, "{must}: {claim}");
    }
    let report = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(report.contains("</html>") && report.contains("<svg"), "no figures");
    assert!(dir.path().join("figures/bandwidth-cured.svg").exists());
}

/// Breaks: the same command gives other numbers on a machine with another number of cores.
#[test]
fn threads_do_not_change_the_result() {
    let run = |threads: &str| {
        let dir = tempfile::tempdir().unwrap();
        let tiny = ["--quick", "--set", "flows.bulk.size=20 MB", "--json", "--threads", threads];
        let done = stops(dir.path(), &tiny);
        assert!(done.status.success(), "{}", text(&done.stderr));
        (text(&done.stdout), std::fs::read(dir.path().join("report.html")).unwrap())
    };
    let (one, two) = (run("1"), run("2"));
    assert_eq!(one.0, two.0);
    assert!(one.1 == two.1, "the reports differ");
}

/// Breaks: transfers that do not complete count as measured.
#[test]
fn a_transfer_that_does_not_complete_fails_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let done = stops(dir.path(), &[&SMALL[..], &["--set", "duration=1 s"]].concat());
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stdout));
    assert!(text(&done.stderr).contains("of 100 MB"), "{}", text(&done.stderr));
    assert!(!dir.path().join("report.html").exists());
}

/// Breaks: a real file is not what is sent, or the file made for the purpose stays on the disk.
#[test]
fn a_real_file_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, vec![7u8; 3_000_000]).unwrap();
    let sent = stops(
        &dir.path().join("a"),
        &["--quick", "--assume", "literal", "--payload", file.to_str().unwrap()],
    );
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(text(&sent.stdout).contains("transfers of 3 MB"), "{}", text(&sent.stdout));
    let made = stops(&dir.path().join("b"), &["--quick", "--set", "flows.bulk.size=2 MB", "--real-file"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let mut left: Vec<_> =
        std::fs::read_dir(dir.path().join("b")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".farpace", "figures", "report.html"]);
}

/// Breaks: a wrong option or file is found out only after all transfers, or by a panic.
#[test]
fn bad_input_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (args, says) in [
        (vec!["--payload", "/no/such/file"], "/no/such/file"),
        (vec!["--set", "flows.bulk.sizee=1 GB"], "size"),
        (vec!["--threads", "0"], "threads"),
        (vec!["--assume", "no-such-world"], "sender-processor"),
    ] {
        let done = stops(&dir.path().join("out"), &args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        assert!(text(&done.stderr).contains(says), "{args:?}: {}", text(&done.stderr));
    }
    assert!(!dir.path().join("out").exists());
}
