//! What is said of a gateway, and what is installed.

use crate::harness::*;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

fn finding<'a>(check: &'a Value, what: &str) -> &'a Value {
    let all = check["findings"].as_array().unwrap();
    all.iter().find(|finding| finding["what"] == what).unwrap_or_else(|| panic!("no `{what}` in {check}"))
}

// Breaks: a router that cannot work is called fit, or is told without what mends it.
#[test]
fn check_finds_what_is_wrong_and_says_what_mends_it() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let check = |code: i32| -> Value {
        let output = net.farpace(&["gateway", "check", "--lan", "lan0", "--wan", "wan0", "--json"]);
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stdout));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(finding(&check(0), "gateway")["judgement"], "note");
    net.sysctl("net/ipv4/ip_forward", "0");
    let found = check(1);
    let forwarding = finding(&found, "IPv4 forwarding");
    assert_eq!(forwarding["judgement"], "problem");
    assert_eq!(forwarding["mend"], "sysctl -w net.ipv4.ip_forward=1");
    net.sysctl("net/ipv4/ip_forward", "1");
    net.router
        .configure("link set wan0 mtu 1400\nlink add other type veth peer name another\nlink set other up\n")
        .unwrap();
    net.router.configure("addr add 203.0.113.1/24 dev other\nroute add default dev other\n").unwrap();
    let found = check(0);
    assert!(finding(&found, "MTU")["value"].as_str().unwrap().contains("1400"));
    assert_eq!(finding(&found, "routes V4")["mend"], "name it, too: --wan other");
    let gateway = net.gateway(&[]);
    assert_eq!(finding(&check(0), "rules V4")["judgement"], "ok");
    let gone = net.on_router(&["ip", "rule", "delete", "pref", "101", "iif", "wan0", "ipproto", "tcp"]);
    let mut gone = gone;
    assert!(gone.status().unwrap().success());
    let found = check(1);
    assert_eq!(finding(&found, "rules V4")["value"], "gone: tcp of wan0");
    // Answers that do not pass here are noticed.
    let listener = net.listen(SERVER);
    let _both = net.connect(&listener);
    assert_eq!(finding(&check(1), "asymmetric routes")["judgement"], "problem");
    gateway.end();
    net.assert_clean();
}

// Breaks: monitoring gets nothing, or strangers get more than /metrics.
#[test]
fn metrics_are_served_at_their_path_alone() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&["--metrics", "127.0.0.1:9745"]);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 100_000);
    let get = |request: &str| {
        let mut stream = net.router.within(|| TcpStream::connect("127.0.0.1:9745").unwrap()).unwrap();
        stream.write_all(format!("{request} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let text = get("GET /metrics");
    assert!(text.contains("\nfarpace_gateway_split_total 1\n"), "{text}");
    assert!(text.contains("\nfarpace_gateway_payload_bytes_total{to=\"wan\"} 100000\n"), "{text}");
    assert!(!text.contains(CLIENT), "addresses of hosts are told");
    let lines = text.lines().count();
    let _more: Vec<_> = (0..5).map(|_| net.connect(&listener)).collect();
    assert_eq!(get("GET /metrics").lines().count(), lines, "as many lines, whatever the traffic");
    assert!(get("GET /").contains("404") && get("POST /metrics").contains("404"));
    // The page of a stranger whose name leads here.
    let by = |host: &str| get(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nX-Was:"));
    assert!(by("evil.example").contains("403"));
    assert_eq!(by("127.0.0.1:9745").lines().count(), lines);
    gateway.end();
}

// Breaks: the unit or the configuration that is installed does not work, or one that is there is lost.
#[test]
fn what_is_installed_is_valid() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_str().unwrap();
    let install = |more: &[&str]| {
        let words =
            [&["gateway", "install", "--lan", "eth0", "--wan", "eth1", "--root", path], more].concat();
        Command::new(env!("CARGO_BIN_EXE_farpace")).args(words).output().unwrap()
    };
    let shown = install(&["--dry-run"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("WatchdogSec=2"));
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0, "--dry-run writes");
    assert!(install(&[]).status.success());
    assert_eq!(install(&[]).status.code(), Some(2), "replaced without --force");
    assert!(install(&["--force"]).status.success());
    let config = root.path().join("etc/farpace/gateway.toml");
    assert!(std::fs::read_to_string(config).unwrap().contains("wan = [\"eth1\"]"));
    let unit = root.path().join("etc/systemd/system/farpace-gateway.service");
    if let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&unit).output() {
        let error = String::from_utf8_lossy(&verified.stderr).into_owned();
        // It also tells of units of this host, and that the manual is not installed.
        let own: Vec<_> =
            error.lines().filter(|l| l.contains("farpace-gateway.service:") && !l.contains("man ")).collect();
        assert!(own.is_empty(), "{own:?}");
    }
}
