//! The lab against reality at a point of a grid.

use super::harness::{alone, has_rights};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A queue of 40 ms, as in the comparison of one path.
const POINTS: &str = r#"
[[points]]
rate = ["20 Mbit/s"]
rtt = ["40 ms"]
queue = ["1 BDP"]
"#;

fn grid(here: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
    command.args(["lab", "grid", "--points", "points.toml", "--seconds", "3", "--runs", "1..2"]);
    command.args(["--out", "grid", "--json"]).args(more).current_dir(here);
    command.output().unwrap()
}

fn journal(here: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(here.join("grid/runs.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Breaks: a grid is measured and kept as one comparison is, or runs that are there are made again. Runs must
/// agree with the lab that has their stalls; a machine that is too busy must be called that.
#[test]
fn a_grid_goes_on_with_the_runs_it_has() {
    if !has_rights() {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    std::fs::write(here.join("points.toml"), POINTS).unwrap();
    let first = grid(here, &["--with", "farpace"]);
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    let before = journal(here);
    let again = grid(here, &[]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("--resume"), "{again:?}");
    let second = grid(here, &["--resume"]);
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    let runs = journal(here);
    assert_eq!(runs[..before.len()], before);
    let of = |way: &str| runs.iter().filter(|run| run["way"] == way).count();
    let farpace = before.iter().filter(|run| run["way"] == "farpace").count();
    assert_eq!(of("farpace"), farpace);
    assert!((1..=4).contains(&of("kernel")), "{runs:?}");

    let found: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(found["format"], "farpace-lab-grid/2");
    let point = &found["points"][0];
    assert_eq!((&point["queue_bytes"], &point["limit"]), (&100_000.into(), &0.05.into()));
    for way in point["ways"].as_array().unwrap() {
        let counted = way["runs"].as_u64().unwrap();
        match way["verdict"].as_str().unwrap() {
            "agrees" => assert!(counted >= 1, "{way}"),
            "machine_too_busy" => {
                let stalled = way["lab_stalled_mbit_s"].as_f64();
                assert!(way["disturbed"].as_u64().unwrap() >= 2 || stalled.unwrap() < 10.0, "{way}");
            }
            _ => panic!("{point}"),
        }
    }
    let written: Value =
        serde_json::from_slice(&std::fs::read(here.join("grid/grid.json")).unwrap()).unwrap();
    assert_eq!(written, found);
    assert!(here.join("grid/report.html").exists() && here.join("grid/figures/cubic.svg").exists());
}

/// Breaks: a grid that is interrupted while the kernel's TCP runs never ends, because its receiver waits for
/// data of a network that has stopped.
#[test]
fn an_interrupted_run_of_the_kernel_ends() {
    if !has_rights() {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("points.toml"), POINTS).unwrap();
    for more in [1, 2] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
        command.args(["lab", "grid", "--points", "points.toml", "--seconds", "60", "--with", "kernel"]);
        let out = format!("out{more}");
        let mut child = command.args(["--out", &out]).current_dir(here.path()).spawn().unwrap();
        let begun = Instant::now();
        // The lab's run is first.
        let runs = || std::fs::read_to_string(here.path().join(&out).join("runs.jsonl")).unwrap_or_default();
        while !runs().contains("\"way\":\"lab\"") && begun.elapsed() < Duration::from_secs(100) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(more));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = child.try_wait().unwrap();
        if ended.is_none() {
            // A second signal ends it at once.
            let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
            let _ = child.wait();
        }
        assert_eq!(ended.and_then(|status| status.code()), Some(130), "after {more} s");
    }
}
