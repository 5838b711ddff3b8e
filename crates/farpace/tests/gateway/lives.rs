//! The gateway is killed, hangs, ends and begins, under connections that live.

use crate::harness::*;
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

// Breaks: after `kill -9` new connections fail, connections with nothing undelivered end, or something is
// left on the router.
#[test]
fn a_killed_gateway_leaves_connections_and_nothing_else() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&[]);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 2_000_000);
    assert_eq!(net.split(), 1);
    std::thread::sleep(Duration::from_millis(300));
    gateway.signal(Signal::SIGKILL);
    gateway.wait();
    exchange(&near, &far, 7, 2_000_000);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 2_000_000);
    net.assert_clean();
    let doctor = net.farpace(&["doctor", "--json"]);
    assert!(!String::from_utf8_lossy(&doctor.stdout).contains("gateway"), "something is left over");
}

// Breaks: a gateway that hangs is a black hole.
#[test]
fn a_hung_gateway_is_killed_within_two_seconds_in_real_time() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&[]);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 100_000);
    std::thread::sleep(Duration::from_millis(300));
    gateway.signal(Signal::SIGSTOP);
    let took = gateway.wait();
    assert!(took < Duration::from_millis(2_000), "{took:?}");
    exchange(&near, &far, 0, 100_000);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 100_000);
    net.assert_clean();
}

// Breaks: connections end, or lose bytes, when the gateway is stopped in order in the middle of a transfer,
// or started again.
#[test]
fn a_stop_and_a_start_lose_nothing() {
    if !has_rights() {
        return;
    }
    const BYTES: usize = 400_000_000;
    let net = Net::new();
    let mut gateway = net.gateway(&[]);
    let listener = net.listen(SERVER);
    let (near, mut far) = net.connect(&listener);
    let sender = send(near.try_clone().unwrap(), 0, BYTES, true);
    let reader = std::thread::spawn(move || receive(&mut far, 0, BYTES));
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(200));
        let since = Instant::now();
        let end = gateway.end();
        assert!(since.elapsed() < Duration::from_secs(10));
        assert_eq!(end["connections"], 0, "{end}");
        net.assert_clean();
        gateway = net.gateway(&[]);
        assert_eq!(net.split(), 0);
    }
    sender.join().unwrap();
    reader.join().unwrap();
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 100_000);
    assert_eq!(net.split(), 1);
    gateway.end();
}

// Breaks: a changed configuration needs a restart, or a wrong one ends the gateway.
#[test]
fn a_configuration_is_read_again() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let file = net.state.path().join("gateway.conf");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "action = \"split\"\n").unwrap();
    let gateway = net.gateway(&["--config", path]);
    let listener = net.listen(SERVER);
    for (text, split) in [
        ("action = \"split\"\n", 1),
        ("[[policy]]\nprefix = \"192.0.2.0/24\"\naction = \"pass\"\n", 1),
        ("action = 5\n", 1),
        ("action = \"split\"\n", 2),
    ] {
        std::fs::write(&file, text).unwrap();
        gateway.signal(Signal::SIGHUP);
        std::thread::sleep(Duration::from_millis(800));
        let (near, far) = net.connect(&listener);
        exchange(&near, &far, 0, 10_000);
        assert_eq!(net.split(), split, "{text}");
    }
    gateway.end();
    std::fs::remove_file(&file).unwrap();
    net.assert_clean();
}

/// Breaks: gateway and watchdog wait for each other when a gateway ends: each restart takes 5 s longer.
#[test]
fn an_orderly_end_waits_for_nothing() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&[]);
    let since = std::time::Instant::now();
    gateway.end();
    assert!(since.elapsed().as_secs_f64() < 4.5, "{:?}", since.elapsed());
    net.assert_clean();
}

// Breaks: where each command of the system takes long, as on a slow router, the watchdog kills a gateway that
// starts or ends in order.
#[test]
fn slow_commands_are_no_hang() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let (gateway, _tools) = net.gateway_with_slow("ip", 0.2);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 100_000);
    assert_eq!(net.split(), 1);
    drop((near, far));
    let (_, notes) = gateway.end_with_notes();
    assert!(!notes.contains("hangs"), "{notes}");
    net.assert_clean();
}
