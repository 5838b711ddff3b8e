//! `farpace sweep`: from the words of a command line to the files of a study, and what may go wrong.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests; one waits for a file to grow"
)]

mod common;

use common::{LOSSY, farpace, names, run, with_scenario};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DELAYS: [&str; 6] =
    ["--vary", "links.wire.delay=5ms..45ms*3", "--set", "flows.bulk.size=100 kB", "--out", "study"];

fn sweep<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", "scenario.toml"], &DELAYS[..], more].concat()
}

/// Breaks: the way of a study through the command: a table, JSON, CSV, figures, more seeds, shards that are
/// joined.
#[test]
fn a_study_is_made_shown_and_joined() {
    let dir = with_scenario(LOSSY);
    let (code, out, error) = run(dir.path(), &sweep(&["--seeds", "2"]));
    assert_eq!(code, 0, "{error}");
    assert!(
        out.contains("goodput [Mbit/s]") && out.contains("45 ms") && out.contains("6 runs made: study"),
        "{out}"
    );
    assert_eq!(names(&dir.path().join("study")), ["runs.parquet", "scenario.toml", "study.json"]);
    let (code, out, error) = run(dir.path(), &sweep(&["--seeds", "4", "--json"]));
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("6 of 12 runs are there already"), "{error}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["format"], &json["runs"]), (&"farpace-sweep/1".into(), &12.into()));
    assert_eq!(json["points"][2]["values"]["links.wire.delay"], "45 ms");
    assert!(json["points"][0]["goodput_mbit_s"]["ci95"].as_f64().unwrap() > 0.0);
    let (code, out, error) = run(dir.path(), &["sweep", "show", "study"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("Report: study/report.html"), "{out}");
    let page = std::fs::read_to_string(dir.path().join("study/report.html")).unwrap();
    assert!(page.contains("links.wire.delay") && page.contains("<svg"));
    assert!(dir.path().join("study/figures/goodput-1.svg").exists());
    let (code, csv, error) =
        run(dir.path(), &["sweep", "show", "study", "--csv", "--no-report", "--flow", "bulk"]);
    assert_eq!((code, csv.lines().count()), (0, 4), "{error}");
    // The same in shards.
    for shard in ["1/2", "2/2"] {
        let mut words = sweep(&["--seeds", "4", "--shard", shard, "--quiet"]);
        words[7] = "parts";
        let (code, out, error) = run(dir.path(), &words);
        assert!(code == 0 && !out.contains("not there"), "{out}{error}");
    }
    let (code, _, error) = run(dir.path(), &["sweep", "merge", "parts", "--out", "parts"]);
    assert_eq!(code, 0, "{error}");
    let data = |study: &str| std::fs::read(dir.path().join(study).join("runs.parquet")).unwrap();
    assert_eq!(data("parts"), data("study"));
    let (_, out, _) = run(dir.path(), &["sweep", "show", "parts", "--json", "--no-report"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["digest"], json["digest"]);
}

/// Breaks: the answers to wrong words: nothing is made, and what would be right is said.
#[test]
fn wrong_words_are_answered() {
    let dir = with_scenario(LOSSY);
    for (words, expected) in [
        (&["--vary", "links.wire.dealy=1ms,2ms"][..], "did you mean `delay`?"),
        (&["--vary", "links.wire.delay=5ms..5ms*3"], "is empty"),
        (&["--vary", "links.wire.delay="], "no values"),
        (&["--vary", "links.wire.delay"], "expected PATH=VALUES"),
        (&["--samples", "halton:5"], "lhs:200 or sobol:256"),
        (&["--shard", "4/3"], "from 1/16 to 16/16"),
        (&["--stop-at", "0"], "as in 2%"),
        (&["--seeds", "0"], "--seeds must be from 1"),
        (&["--vary", "seed=1,2"], "--seeds N"),
        (&["--vary", "flows.bulk.size=1 kB,2 kB"], "flows.bulk.size is set and varied"),
        (&["--vary", "links.wire.delay=5ms,0.005s"], "are the same value"),
        // 10^9 runs: how long, and what to do.
        (
            &[
                "--vary",
                "links.wire.delay=1..1000 us*1000",
                "--vary",
                "links.wire.queue=10..1009 kB*1000",
                "--seeds",
                "1000",
            ],
            "1000000000 runs take about",
        ),
    ] {
        let words =
            [&["sweep", "scenario.toml", "--set", "flows.bulk.size=10 kB", "--out", "study"], words].concat();
        let (code, out, error) = run(dir.path(), &words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {error}");
        assert!(error.contains(expected), "{words:?}: {error}");
        assert!(!dir.path().join("study").exists());
    }
    // Long, but possible: without a terminal nobody answers.
    let long = [
        "--vary",
        "links.wire.delay=1..1000 us*1000",
        "--vary",
        "links.wire.queue=100..199 kB*100",
        "--set",
        "flows.bulk.size=50 MB",
    ];
    let words = [&["sweep", "scenario.toml", "--out", "study"], &long[..]].concat();
    let (code, _, error) = run(dir.path(), &words);
    assert!(code == 2 && error.contains("100000 runs take about") && error.contains("--yes"), "{error}");
    // No directory `s3:` is made here.
    let words = ["sweep", "scenario.toml", "--vary", "links.wire.delay=5ms", "--out", "s3://bucket/study"];
    let (code, _, error) = run(dir.path(), &words);
    assert!(code == 2 && error.contains("farpace.sweep(..., out=\"s3://bucket/study\")"), "{error}");
    assert!(!dir.path().join("s3:").exists());
    for words in [&["sweep", "show", "nothing"][..], &["sweep", "merge", "nothing", "--out", "x"]] {
        assert_eq!(run(dir.path(), words).0, 2);
    }
}

/// Breaks: Ctrl-C loses finished runs, or the same command begins anew.
#[test]
fn an_interrupted_sweep_goes_on() {
    let dir = with_scenario(LOSSY);
    let words = sweep(&["--seeds", "4000", "--jobs", "1"]);
    let mut child =
        farpace(dir.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = dir.path().join("study/journal");
    while std::fs::metadata(&journal).map_or(0, |file| file.len()) < 5_000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Another one into the same folder.
    let (code, _, error) = run(dir.path(), &words);
    assert!(code == 2 && error.contains("another sweep is writing to `study`"), "{error}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let (_, out, _) = run(dir.path(), &["sweep", "show", "study", "--json", "--no-report"]);
    let runs = serde_json::from_str::<Value>(&out).unwrap()["runs"].as_u64().unwrap();
    assert!((5..12_000).contains(&runs), "{runs}");
    let (code, _, error) = run(dir.path(), &sweep(&["--seeds", "4"]));
    assert!(code == 0 && error.contains(" of 12 runs are there already"), "{error}");
}

/// Breaks: a full disk loses what was finished, or passes for success. A limit on file sizes stands for the
/// disk.
#[test]
fn a_full_disk_is_an_error_and_nothing_is_lost() {
    let dir = with_scenario(LOSSY);
    let command = format!(
        "trap '' XFSZ; ulimit -f 16; exec {} sweep scenario.toml --set 'flows.bulk.size=20 kB' \
         --seeds 100 --jobs 1 --out study",
        env!("CARGO_BIN_EXE_farpace")
    );
    let output = Command::new("bash").args(["-c", &command]).current_dir(dir.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot write `study/"), "{error}");
    let (_, out, _) = run(dir.path(), &["sweep", "show", "study", "--json", "--no-report"]);
    let runs = serde_json::from_str::<Value>(&out).unwrap()["runs"].as_u64().unwrap();
    assert!((5..100).contains(&runs), "{runs}");
    let words =
        ["sweep", "scenario.toml", "--set", "flows.bulk.size=20 kB", "--seeds", "100", "--out", "study"];
    let (code, _, error) = run(dir.path(), &words);
    assert!(code == 0 && error.contains(&format!("{runs} of 100 runs are there already")), "{error}");
}

/// Breaks: a run that does not end holds a study up for ever.
#[test]
fn a_run_above_its_limit_is_a_row() {
    let dir = with_scenario(LOSSY);
    let words = sweep(&["--run-limit", "1 us", "--json"]);
    let (code, out, error) = run(dir.path(), &words);
    assert_eq!(code, 1, "{error}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["status"]["overdue"], 3);
    assert!(json["bad_runs"][0]["reason"].as_str().unwrap().contains("of at most 60 s of virtual time"));
    let (code, out, _) = run(dir.path(), &sweep(&["--retry", "--json"]));
    assert_eq!((code, &serde_json::from_str::<Value>(&out).unwrap()["status"]["complete"]), (0, &3.into()));
}

/// A program in place of Python that does what these lines say for `-c` (which packages are there) and `-m`
/// (work).
fn with_python(dir: &Path, probe: &str, work: &str) {
    let file = dir.join("python");
    std::fs::write(&file, format!("#!/bin/sh\ncase $1 in\n-c) {probe} ;;\n-m) {work} ;;\nesac\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// What an interpreter says that has all.
fn complete_probe() -> String {
    format!(r#"echo '{{"missing": [], "build": "{}"}}'"#, farpace::sweep::version())
}

/// Breaks: `--ray` without what it needs: the command does not say what is missing or how to get it, or
/// leaves a folder behind.
#[test]
fn what_a_cluster_needs_is_said_first() {
    let dir = with_scenario(LOSSY);
    let words = sweep(&["--ray", "auto", "--python", "./python"]);
    let fails = |expected: &[&str]| {
        let (code, out, error) = run(dir.path(), &words);
        assert!(code == 2 && out.is_empty() && expected.iter().all(|e| error.contains(e)), "{error}");
        assert!(!dir.path().join("study").exists());
    };
    fails(&["there is no `./python`", "apt-get install python3", "--python"]);
    with_python(dir.path(), r#"echo '{"missing": ["farpace", "ray"], "build": null}'"#, "exit 9");
    fails(&["`./python` has no farpace", "./python -m pip install './crates/py[ray]'"]);
    with_python(dir.path(), r#"echo '{"missing": ["ray"], "build": "1"}'"#, "exit 9");
    fails(&["`./python` has no ray: ./python -m pip install ray"]);
    with_python(dir.path(), r#"echo '{"missing": [], "build": "0.0.1 (older)"}'"#, "exit 9");
    fails(&["has farpace 0.0.1 (older), and this is", "--force-reinstall"]);
    with_python(dir.path(), "echo 'ImportError: no such library' >&2; exit 1", "exit 9");
    fails(&["`./python` cannot load farpace: ImportError: no such library"]);
    let (code, _, error) = run(dir.path(), &sweep(&["--python", "python3"]));
    assert!(code == 2 && error.contains("--ray"), "{error}");
}

/// Breaks: the conversation of `--ray` with the program that talks to the cluster: runs that are handed out
/// twice or get lost, its errors, and what was finished before one.
#[test]
fn runs_go_to_a_cluster_and_come_back() {
    let dir = with_scenario(LOSSY);
    let words = sweep(&["--ray", "auto", "--python", "./python", "--json"]);
    let record = r#""seed":3,"values":[],"status":"crashed","reason":"no cluster""#;
    let measured = r#""measured":{"ended_s":0,"events":0,"flows":[]}"#;
    let key = r#"$(echo "$runs" | sed 's/.*"run":"\([0-9a-f]*\)".*/\1/')"#;
    let crashed = format!(r#"printf '{{"add":[{{"run":"%s",{record},{measured}}}]}}\n' "{key}""#);
    let take = r#"printf '{"take":1}\n'; read -r runs"#;
    // One run, and then an error: it is kept.
    let failed = r#"printf '{"failed":"there is no cluster at auto"}\n'"#;
    with_python(dir.path(), &complete_probe(), &format!("read -r order; {take}; {crashed}; {failed}"));
    let (code, _, error) = run(dir.path(), &words);
    assert!(code == 2 && error.contains("there is no cluster at auto"), "{error}");
    for (work, expected) in [
        ("exit 3", "`./python -m farpace.ray` ended early: exit status: 3"),
        ("echo hello", "something else than it should"),
        (&format!("read -r order; {take}"), "1 runs did not come back"),
    ] {
        with_python(dir.path(), &complete_probe(), work);
        let (code, _, error) = run(dir.path(), &words);
        assert!(code == 2 && error.contains(expected), "{work}: {error}");
    }
    let all = format!(r#"read -r order; {take}; while [ "$runs" != "[]" ]; do {crashed}; {take}; done"#);
    with_python(dir.path(), &complete_probe(), &all);
    let (code, out, error) = run(dir.path(), &words);
    assert!(code == 1 && error.contains("1 of 3 runs are there already"), "{error}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["runs"], &json["status"]["crashed"]), (&3.into(), &3.into()));
    // Nothing is left: nobody is asked.
    with_python(dir.path(), &complete_probe(), "exit 9");
    assert_eq!(run(dir.path(), &words).0, 1);
    let (code, out, error) = run(dir.path(), &sweep(&["--retry", "--json"]));
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["status"]["complete"]), (0, &3.into()), "{error}");
}

/// Breaks: Ctrl-C during a sweep on a cluster: the program that talks to it goes on, or finished runs are
/// lost.
#[test]
fn an_interrupted_sweep_ends_on_the_cluster_too() {
    let dir = with_scenario(LOSSY);
    let words = sweep(&["--ray", "auto", "--python", "./python"]);
    let work = "trap 'echo withdrawn >withdrawn; exit 130' INT; read -r order; echo >began; \
                while :; do sleep 0.05; done";
    with_python(dir.path(), &complete_probe(), work);
    let child = farpace(dir.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !dir.path().join("began").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(dir.path().join("withdrawn")).unwrap(), "withdrawn\n");
}
