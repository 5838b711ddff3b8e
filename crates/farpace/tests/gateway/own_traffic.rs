//! Rules with `iif lo`: what a router itself sends, and what is sent to it.

use crate::harness::*;
use crate::sites::{self, Sites};
use serde_json::Value;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

fn findings(output: &std::process::Output) -> Vec<Value> {
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    value["findings"].as_array().unwrap().clone()
}

/// The finding about a subject that is not as it should be, if there is one.
fn fault<'a>(all: &'a [Value], what: &str) -> Option<&'a Value> {
    all.iter().find(|finding| finding["what"] == what && finding["judgement"] != "ok")
}

/// Runs the command that a finding names.
fn mend(finding: &Value, run: impl Fn(&[&str]) -> Command) {
    let text = finding["mend"].as_str().unwrap();
    let command = &text[text.find("ip -4").unwrap()..];
    let words: Vec<_> = command.split_whitespace().collect();
    assert!(run(&words).status().unwrap().success(), "{command}");
}

/// Breaks: an administrator who wants the router's own TCP to be split, and adds a rule with `iif lo` for
/// that, is not told that it loses the router's connections, or by the wrong command; or rules before those
/// of the gateway, which keep traffic from it, are not found.
#[test]
fn rules_for_the_routers_own_traffic_are_found() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&[]);
    let check = || findings(&net.farpace(&["gateway", "check", "--json"]));
    let listener = net.listen(SERVER);
    let connects = || connect_from(&net.router, SERVER, Duration::from_secs(1)).is_ok();
    assert!(connects() && fault(&check(), "own traffic V4").is_none());
    for rule in ["iif lo ipproto tcp lookup 7710", "lookup 7710"] {
        let words = [&["ip", "rule", "add", "pref", "90"], &rule.split(' ').collect::<Vec<_>>()[..]].concat();
        assert!(net.on_router(&words).status().unwrap().success());
        assert!(!connects(), "{rule}");
        let found = check();
        let finding = fault(&found, "own traffic V4").unwrap();
        assert_eq!(finding["judgement"], "problem");
        mend(finding, |words| net.on_router(words));
        assert!(connects() && fault(&check(), "own traffic V4").is_none());
    }
    drop(listener);
    // A table of the administrator takes what comes from the LAN.
    for words in ["route add default via 192.0.2.2 table 90", "rule add pref 90 from 10.9.0.0/24 lookup 90"] {
        let words = [&["ip"], &words.split(' ').collect::<Vec<_>>()[..]].concat();
        assert!(net.on_router(&words).status().unwrap().success());
    }
    let split = net.split();
    let listener = net.listen(SERVER);
    let _both = net.connect(&listener);
    let found = check();
    let finding = fault(&found, "rules V4").unwrap();
    assert_eq!(finding["judgement"], "problem");
    assert!(finding["value"].as_str().unwrap().contains("90: from 10.9.0.0/24 lookup 90"), "{finding}");
    assert!(finding["mend"].as_str().unwrap().contains("less than 90"), "{finding}");
    gateway.end();
    let gateway = net.gateway_with_priority(80);
    assert!(fault(&check(), "rules V4").is_none());
    let _both = net.connect(&listener);
    assert_eq!(net.split(), 1, "{split} before");
    gateway.end();
    net.assert_clean();
}

/// Breaks: ICMP of a router of a pair leaves unencrypted, because a rule with `iif lo` is gone or another
/// comes before it, and `check` does not say so; or the router's own TCP to the peer's networks does not work
/// with the rule that `check` names.
#[test]
fn own_traffic_of_a_pair_is_judged() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, true);
    for name in ["all", "default"] {
        sites.sysctl(0, &format!("net/ipv4/conf/{name}/rp_filter"), "1");
    }
    let [a, b] = sites.pair();
    let check = || findings(&sites.farpace(0, &["gateway", "check", "--json"]));
    let ip = |words: &str| {
        let words = [&["ip"], &words.split(' ').collect::<Vec<_>>()[..]].concat();
        assert!(sites.on_router(0, &words).status().unwrap().success(), "{words:?}");
    };
    // TCP between the router and a host behind the peer does not work: the way back is not the tunnel.
    let listener = sites.routers[0].within(|| TcpListener::bind(("10.1.0.1", PORT)).unwrap()).unwrap();
    let connects = || connect_from(&sites.server, "10.1.0.1", Duration::from_secs(1));
    assert!(connects().is_err());
    let found = check();
    let finding = fault(&found, "own traffic V4").unwrap();
    assert_eq!(finding["judgement"], "note", "{finding}");
    let value = finding["value"].as_str().unwrap();
    assert!(value.contains("leaves by l0") && value.contains("rp_filter is strict on fplan0"), "{finding}");
    mend(finding, |words| sites.on_router(0, words));
    let near = connects().unwrap();
    let far = accepted(&listener);
    let own: IpAddr = sites::SERVER.parse().unwrap();
    assert_eq!(far.peer_addr().unwrap().ip(), own);
    exchange(&near, &far, 0, 1_000_000);
    drop::<(TcpStream, TcpStream)>((near, far));
    assert!(fault(&check(), "own traffic V4").is_none());
    // A rule of the administrator comes first.
    ip("route add default via 172.16.0.2 table 90");
    ip("rule add pref 90 iif lo lookup 90");
    let found = check();
    let finding = fault(&found, "own traffic V4").unwrap();
    assert_eq!(finding["judgement"], "problem");
    assert!(finding["value"].as_str().unwrap().contains("90: from all iif lo lookup 90"), "{finding}");
    mend(finding, |words| sites.on_router(0, words));
    assert!(fault(&check(), "own traffic V4").is_none());
    // The gateway's own rule is gone.
    ip("rule delete pref 100 iif lo ipproto icmp to 10.2.0.0/24 lookup 7710");
    let found = check();
    let finding = fault(&found, "own traffic V4").unwrap();
    assert_eq!(finding["judgement"], "problem");
    let value = finding["value"].as_str().unwrap();
    assert!(value.contains("gone") && value.contains("iif lo ipproto icmp to 10.2.0.0/24"), "{finding}");
    assert!(fault(&found, "own traffic V6").is_none_or(|finding| finding["judgement"] == "note"));
    a.end();
    b.end();
}

/// Breaks: rules that the gateway has set are called gone, where the Internet is behind the peer.
#[test]
fn rules_to_the_internet_are_found() {
    if !has_rights() {
        return;
    }
    let sites = Sites::new(1, true);
    let [of_b, of_a] = sites.keys_with("keys", "b=10.2.0.128/25,0.0.0.0/0,::/0", &["172.16.0.2".to_owned()]);
    let b = sites.gateway(1, &of_a, &[]);
    let a = sites.gateway(0, &of_b, &[]);
    sites.wait_for_paths(1);
    let found = findings(&sites.farpace(0, &["gateway", "check", "--json"]));
    let gone = |finding: &&Value| finding["value"].as_str().unwrap().contains("gone");
    assert_eq!(found.iter().find(gone), None);
    a.end();
    b.end();
}
