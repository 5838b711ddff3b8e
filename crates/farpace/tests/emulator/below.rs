//! Layers below the kernel's own TCP.

use crate::harness::*;
use farpace::live::Namespace;
use std::process::Child;
use std::time::Duration;

/// A parameter of the kernel in a namespace.
fn parameter(namespace: &Namespace, name: &str) -> String {
    namespace
        .within(|| std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap())
        .unwrap()
        .trim()
        .to_owned()
}

/// Breaks: two NICs are no faster than the better of them, for programs that know nothing of it; or what was
/// set stays.
#[test]
fn two_nics_carry_one_connection_in_real_time() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let [a, b, between] = ["a", "b", "m"].map(|name| Namespace::create(&unique(name)).unwrap());
    for (host, end) in [(&a, "a"), (&b, "b")] {
        for number in [1, 2] {
            let far =
                format!("link add {end}{number} type veth peer name eth{number} netns {}\n", host.name());
            between.configure(&format!("{far}link set {end}{number} up\n")).unwrap();
            host.configure(&format!("link set eth{number} up\n")).unwrap();
        }
    }
    let line = |number: u8, rate: &str| {
        let [x, y] = ["a", "b"].map(|end| format!("{end}{number}"));
        let words = ["emulate", &x, &y, "--rate", rate, "--delay", "1ms", "--queue", "30ms", "--json"];
        running(&between, &words, "Between")
    };
    let lines = [line(1, "40mbit"), line(2, "20mbit")];
    let up = |host: &Namespace, address: &str| -> Child {
        let words =
            ["nics", "up", "--addr", address, "--nic", "eth1=40mbit", "--nic", "eth2=20mbit", "--json"];
        running(host, &words, "far0, ")
    };
    let hosts = [up(&a, "10.1.0.1/24"), up(&b, "10.1.0.2/24")];
    assert_eq!(parameter(&a, "ipv4/conf/eth1/arp_ignore"), "8");
    // What each has for the other is found out by ARP and by probes.
    std::thread::sleep(Duration::from_secs(1));
    let bytes = 15_000_000;
    // The better one alone carries 37.7 Mbit/s of payload, both 56.5. Where others have the cores, a try may
    // come late.
    let mut rates = (0..8).map(|_| bytes as f64 * 8.0 / transfer(&a, &b, B, bytes).as_secs_f64() / 1e6);
    let mut tried = Vec::new();
    while tried.last().is_none_or(|rate| *rate < 42.0) {
        tried.push(rates.next().unwrap_or_else(|| panic!("{tried:?} Mbit/s")));
    }
    assert!(tried.iter().all(|rate| *rate < 57.0), "{tried:?} Mbit/s");
    let [ours, _] = hosts.map(summary);
    for nic in ours["nics"].as_array().unwrap() {
        assert!(nic["sent_bytes"].as_u64().unwrap() > bytes as u64 / 10, "{ours}");
    }
    for line in lines {
        summary(line);
    }
    assert_eq!(parameter(&a, "ipv4/conf/eth1/arp_ignore"), "0");
}

/// Breaks: one NIC that vanishes takes the network of the whole host down; or it is not used again when it
/// returns; or its undo journal stays for ever.
#[test]
fn the_other_nics_go_on_when_one_vanishes() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let [a, b] = ["a", "b"].map(|name| Namespace::create(&unique(name)).unwrap());
    let veth = |number: u8| {
        let mac = |end: u8| format!("02:00:00:00:0{number}:0{end}");
        let (near, far) = (mac(1), mac(2));
        a.configure(&format!(
            "link add eth{number} address {near} type veth peer name eth{number} address {far} netns {}\n\
             link set eth{number} up\n",
            b.name()
        ))
        .unwrap();
        b.configure(&format!("link set eth{number} up\n")).unwrap();
    };
    veth(1);
    veth(2);
    let up = |host: &Namespace, address: &str| -> Child {
        let words = ["nics", "up", "--addr", address, "--nic", "eth1=1G", "--nic", "eth2=1G", "--json"];
        running(host, &words, "far0, ")
    };
    let hosts = [up(&a, "10.1.0.1/24"), up(&b, "10.1.0.2/24")];
    let bytes = 1_000_000;
    transfer(&a, &b, B, bytes);
    a.configure("link del eth2\n").unwrap();
    transfer(&a, &b, B, bytes);
    veth(2);
    let begun = std::time::Instant::now();
    while [&a, &b].iter().any(|host| parameter(host, "ipv4/conf/eth2/arp_ignore") != "8") {
        assert!(begun.elapsed() < Duration::from_secs(20), "eth2 is not taken again");
        std::thread::sleep(Duration::from_millis(100));
    }
    transfer(&a, &b, B, bytes);
    for host in hosts {
        let output = interrupt(host);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("`eth2` has been removed") && said.contains("`eth2` is back, and"), "{said}");
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["nics"].as_array().map(Vec::len), Some(2), "{summary}");
    }
    assert_eq!(parameter(&a, "ipv4/conf/eth2/arp_ignore"), "0");
}

/// Breaks: an interface that keeps its address is taken, and what the kernel sends from it passes farpace by,
/// silently; or the refusal does not tell the command that mends it.
#[test]
fn an_interface_with_an_address_is_refused() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let a = Namespace::create(&unique("a")).unwrap();
    let link = "link add eth1 type veth peer name far1\nlink set eth1 up\naddr add 10.1.0.1/24 dev eth1\n";
    a.configure(link).unwrap();
    let pacing = ["pacing", "up", "--iface", "eth1", "--rate", "50mbit"];
    let nics = ["nics", "up", "--addr", "10.1.0.1/24", "--nic", "eth1"];
    for words in [pacing, nics] {
        let output = command(&a, &words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("ip address del 10.1.0.1/24 dev eth1"), "{said}");
        assert_eq!(parameter(&a, "ipv4/conf/eth1/arp_ignore"), "0", "{said}");
    }
}

/// Breaks: a device that is gone counts as wrong usage, and what was measured until then is lost.
#[test]
fn a_device_that_is_gone_ends_with_the_summary() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let a = Namespace::create(&unique("a")).unwrap();
    for words in [
        &["pacing", "up", "--iface", "eth1", "--rate", "50mbit", "--json"][..],
        &["emulate", "eth1", "eth2", "--delay", "1ms", "--json"],
        &["nics", "up", "--nic", "eth1=1G", "--nic", "eth2=1G", "--json"],
    ] {
        for number in [1, 2] {
            let link =
                format!("link add eth{number} type veth peer name far{number}\nlink set eth{number} up\n");
            a.configure(&link).unwrap();
        }
        let (says, gone) = match words[0] {
            "emulate" => ("Between", "eth1"),
            "pacing" => ("far0, ", "eth1"),
            _ => ("far0, ", "far0"),
        };
        let child = running(&a, words, says);
        a.configure(&format!("link del {gone}\n")).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("the network has stopped"), "{words:?}: {said}");
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(summary.is_object(), "{words:?}: {summary}");
        for number in [1, 2] {
            let _ = a.configure(&format!("link del eth{number}\n"));
        }
    }
}

/// Breaks: what the kernel sends leaves in bursts, or at another rate than was asked for.
#[test]
fn the_kernel_is_paced_in_real_time() {
    let _alone = alone();
    if !has_rights() {
        return;
    }
    let [a, b] = ["a", "b"].map(|name| Namespace::create(&unique(name)).unwrap());
    a.configure(&format!("link add eth1 type veth peer name eth1 netns {}\nlink set eth1 up\n", b.name()))
        .unwrap();
    b.configure("link set eth1 up\naddr add 10.1.0.2/24 dev eth1\n").unwrap();
    let words = [
        "pacing",
        "up",
        "--iface",
        "eth1",
        "--addr",
        "10.1.0.1/24",
        "--rate",
        "50mbit",
        "--line",
        "1gbit",
        "--json",
    ];
    let pacer = running(&a, &words, "far0, ");
    let bytes = 10_000_000;
    let times: Vec<f64> = (0..3).map(|_| transfer(&a, &b, B, bytes).as_secs_f64()).collect();
    let rate = |seconds: f64| bytes as f64 * 8.0 / seconds / 1e6;
    let (best, mean) =
        (rate(times.iter().copied().fold(f64::MAX, f64::min)), rate(times.iter().sum::<f64>() / 3.0));
    let summary = summary(pacer);
    // 1448 of 1518 bytes of layer 2 are payload. The summary says what the machine kept back and what was not
    // made up for.
    let ms = |key: &str| summary[key].as_f64().unwrap();
    let missed = ms("stalled_ms") - ms("made_up_ms");
    assert!(missed >= 0.0, "{summary}");
    // What is made up for has been missed before: a transfer may exceed the rate by 2 %, all together
    // may not.
    let max = if ms("made_up_ms") > 0.0 { 48.0 * 1.02 } else { 48.0 };
    assert!(mean < 48.0 && best < max, "{mean} Mbit/s, at best {best}: {summary}");
    assert!(best > 42.0 || missed > 200.0, "{best} Mbit/s: {summary}");
    assert!(summary["packets"].as_u64().unwrap() > 20_000, "{summary}");
    assert_eq!(summary["gap_frames"], 0, "gap frames leave only with --gap-frames: {summary}");
    assert!(summary["late_median_us"].as_f64().unwrap() < 1_000.0, "{summary}");
}
