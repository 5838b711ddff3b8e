//! `farpace view`, and the pages of commands in a browser.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod common;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn farpace(directory: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_farpace")).current_dir(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A directory with what a run has written in `out`.
fn made() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("lossy.toml"), common::LOSSY).unwrap();
    farpace(directory.path(), &["run", "lossy.toml", "--out", "out", "--explain"]);
    directory
}

/// A server that ends with the test.
struct Viewed {
    child: Child,
    authority: String,
    root: String,
}

impl Viewed {
    fn of(directory: &Path, path: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_farpace"))
            .current_dir(directory)
            .args(["view", path, "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // One object, over several lines.
        let mut text = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            text += &line.unwrap();
            if text.trim_end().ends_with('}') {
                break;
            }
        }
        let url = serde_json::from_str::<Value>(&text).unwrap()["url"].as_str().unwrap().to_owned();
        let (authority, root) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        Viewed { child, authority: authority.to_owned(), root: format!("/{root}") }
    }

    /// The status and the body.
    fn ask(&self, method: &str, path: &str, host: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", &format!("{}{path}", self.root), &self.authority)
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Breaks: a capture in a browser: the list of a directory, the page, parts of its figures; and its secrecy:
/// without the secret, with another host name or method there is nothing.
#[test]
fn a_directory_is_served_to_those_who_know_the_secret() {
    let directory = made();
    let served = Viewed::of(directory.path(), "out");
    let (status, index) = served.get("");
    assert_eq!(status, 200);
    let links: Vec<&str> = index.split("<a href=\"").filter_map(|part| part.split('"').next()).collect();
    let open = links.iter().find(|link| link.contains("/open/") && link.starts_with(&served.root)).unwrap();
    assert!(index.contains("wire.a.pcapng") || index.contains(".pcapng"), "{index}");
    assert_eq!(served.ask("GET", open, &served.authority).0, 200);
    let at = index.split("open/").find(|part| part.contains(".pcapng")).unwrap().split('"').next().unwrap();
    let (status, page) = served.get(&format!("open/{at}"));
    assert!(status == 200 && page.contains("figure-1-packets") && page.contains("random loss"));
    let (status, part) = served.get(&format!("slice/{at}/0?from=0&to=0.5"));
    assert_eq!(status, 200);
    let panels: Value = serde_json::from_str(&part).unwrap();
    let series = panels[0].as_array().unwrap();
    let sent = series.iter().find(|s| s["name"] == "data sent").unwrap();
    let n = sent["x"]["d"].as_array().unwrap().len();
    assert!(n > 10 && sent["packets"]["d"].as_array().unwrap().len() == n, "{sent}");

    assert_eq!(served.get("slice/999/0?from=0&to=1").0, 404);
    assert_eq!(served.get(&format!("slice/{at}/999?from=0&to=1")).0, 404);
    assert_eq!(served.get("open/../lossy.toml").0, 404);
    assert_eq!(served.ask("GET", "/", &served.authority).0, 404);
    assert_eq!(served.ask("GET", "/00000000000000000000000000000000/", &served.authority).0, 404);
    assert_eq!(served.ask("GET", &served.root, "evil.example").0, 403);
    assert_eq!(served.ask("POST", &served.root, &served.authority).0, 405);
}

/// Breaks: what is no capture is told at once, before a browser is asked to open anything.
#[test]
fn what_cannot_be_shown_is_told() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("text.pcap"), "no capture").unwrap();
    fs::create_dir(directory.path().join("empty")).unwrap();
    for (path, said) in [("text.pcap", "text.pcap"), ("empty", "no report"), ("absent", "absent")] {
        let output = Command::new(env!("CARGO_BIN_EXE_farpace"))
            .current_dir(directory.path())
            .args(["view", path])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(said));
    }
}

/// Breaks: the pages of `run`, `explain` and `pacing report` in Chromium: errors on the console, sideways
/// scrolling, contrast, and the button for the first loss.
#[test]
fn pages_of_commands_work_in_a_browser() {
    let directory = made();
    let capture = fs::read_dir(directory.path().join("out")).unwrap().find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        (name.ends_with(".pcapng") && !name.starts_with("drops")).then(|| format!("out/{name}"))
    });
    let capture = capture.unwrap();
    farpace(directory.path(), &["explain", &capture, "--out", "why"]);
    farpace(directory.path(), &["pacing", "report", &capture, "--out", "paced"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/browser/check.py");
    for page in ["out", "why", "paced"] {
        let report = directory.path().join(page).join("report.html");
        let mut command = Command::new(common::python());
        if !common::browser_checks(command.arg(&script).arg("page").arg(&report).arg(directory.path())) {
            return;
        }
    }
}

/// Breaks: `run --explain`: the verdict on each flow in words, as JSON and on the page; without it nothing
/// changes.
#[test]
fn a_run_says_why() {
    let directory = made();
    let json = farpace(directory.path(), &["run", "lossy.toml", "--no-report", "--json", "--explain"]);
    let told = serde_json::from_str::<Value>(&json).unwrap()["explain"][0].clone();
    assert_eq!((&told["flow"], &told["dominant"]), (&Value::from("bulk"), &Value::from("random_loss")));
    let sum: f64 = told["times"].as_array().unwrap().iter().map(|t| t["time_s"].as_f64().unwrap()).sum();
    assert!((sum - told["duration_s"].as_f64().unwrap()).abs() < 1e-6);
    let text = farpace(directory.path(), &["run", "lossy.toml", "--no-report", "--explain"]);
    assert!(text.contains("Why bulk took its time") && text.contains("What helps"), "{text}");
    let page = fs::read_to_string(directory.path().join("out/report.html")).unwrap();
    assert!(page.contains("Show where this begins: random loss"));
    let plain = farpace(directory.path(), &["run", "lossy.toml", "--no-report", "--json"]);
    assert!(serde_json::from_str::<Value>(&plain).unwrap().get("explain").is_none());
}
