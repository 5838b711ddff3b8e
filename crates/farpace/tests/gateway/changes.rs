//! What changes on the router, or on the way to it, while a gateway runs.

use crate::harness::*;
use farpace::live::Namespace;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

/// The gateway looks at what has changed each second.
const LOOK: Duration = Duration::from_millis(2_200);

/// Breaks: the first connections over IPv6 of a new network get "no route to host" on a busy machine, where
/// the router's own link-local addresses are not known to be unique for seconds.
#[test]
fn interfaces_of_a_new_network_have_their_addresses() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    // It never becomes unique by itself.
    let slow = "net/ipv6/conf/default/dad_transmits";
    net.sysctl(slow, "1000");
    net.router.configure("link add d0 type veth peer name d1\nlink set d0 up\nlink set d1 up\n").unwrap();
    let has = |flags: &str| ip_on(&net.router, &["-6", "addr", "show", "dev", "d0", "scope", "link", flags]);
    let since = std::time::Instant::now();
    while has("up").is_empty() {
        assert!(since.elapsed() < STEP_TIMEOUT, "no link-local address");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(has("tentative"), "");
}

/// Breaks: a connection hangs for good when a router before the gateway cuts its segments into fragments.
#[test]
fn a_connection_survives_fragments() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let inner = Namespace::create(&unique("i")).unwrap();
    let name = inner.name();
    net.client.configure(&format!("link add inner0 type veth peer name eth0 netns {name}\n")).unwrap();
    net.client.configure("addr add 10.8.0.1/24 dev inner0\nlink set inner0 up\n").unwrap();
    inner.configure("addr add 10.8.0.2/24 dev eth0\nlink set eth0 up\n").unwrap();
    inner.configure("route add default via 10.8.0.1\n").unwrap();
    net.router.configure("route add 10.8.0.0/24 via 10.9.0.2\n").unwrap();
    let set = |host: &Namespace, name: &str| {
        host.within(|| std::fs::write(format!("/proc/sys/net/ipv4/{name}"), "1").unwrap()).unwrap();
    };
    set(&net.client, "ip_forward");
    set(&inner, "ip_no_pmtu_disc");
    let gateway = net.gateway(&[]);
    let listener = net.listen(SERVER);
    let near = connect_from(&inner, SERVER, STEP_TIMEOUT).unwrap();
    let mut far = accepted(&listener);
    exchange(&near, &far, 0, 10_000);
    net.client.configure("link set eth0 mtu 1000\n").unwrap();
    let sender = send(near, 10_000, 600_000, true);
    receive(&mut far, 10_000, 600_000);
    sender.join().unwrap();
    assert_eq!(net.split(), 1);
    gateway.end();
}

/// Breaks: hosts of a connection with undelivered bytes wait for each other for good when the gateway ends,
/// or its record is lost.
#[test]
fn what_cannot_be_handed_over_is_reset_and_recorded() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let gateway = net.gateway(&["--log", log.to_str().unwrap()]);
    let listener = net.listen(SERVER);
    let (mut near, mut far) = net.connect(&listener);
    // The server reads nothing: the gateway keeps what it has acknowledged.
    near.write_all(&vec![7; 2_000_000]).unwrap();
    gateway.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(500));
    // The second signal ends it at once.
    let end = gateway.end();
    assert_eq!((&end["cut"], &end["connections"]), (&1.into(), &0.into()), "{end}");
    assert_eq!(near.read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut all = Vec::new();
    assert_eq!(far.read_to_end(&mut all).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let text = std::fs::read_to_string(&log).unwrap();
    let record: Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(record["end"], "cut");
    net.assert_clean();
}

/// Breaks: hosts of a connection with undelivered bytes wait for ever when the gateway was killed; or one
/// whose bytes are delivered does not live on.
#[test]
fn what_a_killed_gateway_has_lost_is_reset() {
    if !has_rights() {
        return;
    }
    for address in [SERVER, SERVER6] {
        let net = Net::new();
        let gateway = net.gateway(&[]);
        let listener = net.listen(address);
        let (whole, far_whole) = net.connect(&listener);
        exchange(&whole, &far_whole, 0, 10_000);
        let (mut near, mut far) = net.connect(&listener);
        // The server reads nothing: the gateway keeps what it has acknowledged.
        near.write_all(&vec![7; 2_000_000]).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        gateway.signal(Signal::SIGKILL);
        gateway.wait();
        let began = std::time::Instant::now();
        let ended = read_some(&mut near, &mut [0; 10]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
        let mut all = Vec::new();
        assert_eq!(far.read_to_end(&mut all).unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        exchange(&whole, &far_whole, 10_000, 100_000);
        net.assert_clean();
    }
}

/// Breaks: after a change of the MTU of an interface each new connection stalls; or after a device of the
/// gateway was set down, as by a network manager, nothing is split any more, and `check` says that all is
/// well.
#[test]
fn mtus_are_followed_and_routes_restored() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&[]);
    let listener = net.listen(SERVER);
    net.router.configure("link set wan0 mtu 1300\n").unwrap();
    net.server.configure("link set eth0 mtu 1300\n").unwrap();
    std::thread::sleep(LOOK);
    assert_eq!(net.status()["mtu_bytes"]["wan"], 1300);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 2_000_000);
    assert_eq!(net.status()["connections"][0]["wan_leg"]["mss_bytes"], 1300 - 40 - 12);
    net.router.configure("link set fplan0 down\n").unwrap();
    let check = net.farpace(&["gateway", "check"]);
    let text = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(text.contains("table 7710 has no route to the gateway"), "{text}");
    net.router.configure("link set fplan0 up\n").unwrap();
    std::thread::sleep(LOOK);
    let _v4 = net.connect(&listener);
    let _v6 = net.connect(&net.listen(SERVER6));
    assert_eq!(net.split(), 3);
    let check = net.farpace(&["gateway", "check"]);
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let (_, notes) = gateway.end_with_notes();
    assert!(notes.contains("fplan0 in table 7710 was gone (V4)"), "{notes}");
    assert!(notes.contains("fplan0 in table 7710 was gone (V6)"), "{notes}");
}

/// Breaks: segments do not fit a route with a smaller MTU than its interface, and each connection stalls; or
/// a connection that lives stalls until its leg finds the black hole, when the MTU of its route has changed.
#[test]
fn mtus_of_routes_are_heeded() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let config = net.state.path().with_extension("toml");
    std::fs::write(&config, "threads = 2\n").unwrap();
    let gateway = net.gateway(&["--config", config.to_str().unwrap()]);
    for (address, prefix, overhead) in [(SERVER, 32, 40), (SERVER6, 128, 60)] {
        let listener = net.listen(address);
        let route = |to: &str, device: &str, mtu: &str| {
            net.router.configure(&format!("route replace {to} dev {device} mtu {mtu}\n")).unwrap();
        };
        let far_route = format!("{address}/{prefix}");
        // By the kernel's own errors: both directions, while the connection lives.
        let (near, far) = net.connect(&listener);
        exchange(&near, &far, 0, 300_000);
        let near_route = format!("{}/{prefix}", near.local_addr().unwrap().ip());
        let both = [&near, &far].map(|stream| stream.try_clone().unwrap());
        let [near_too, far_too] = both;
        let ways = [(&far_route, "wan0", &near, far_too), (&near_route, "lan0", &far, near_too)];
        for (to, device, own, mut other) in ways {
            route(to, device, "1300");
            let began = std::time::Instant::now();
            let sender = send(own.try_clone().unwrap(), 300_000, 500_000, false);
            receive(&mut other, 300_000, 500_000);
            sender.join().unwrap();
            let took = began.elapsed();
            assert!(took < Duration::from_millis(600), "{to}: {took:?}");
        }
        let row = net.status()["connections"][0].clone();
        for leg in ["lan_leg", "wan_leg"] {
            assert_eq!(row[leg]["timeouts"], 0, "{row}");
            assert_eq!(row[leg]["mss_bytes"], 1300 - overhead - 12, "{row}");
        }
        drop((near, far));
        // What is known when a connection opens.
        std::thread::sleep(LOOK);
        route(&near_route, "lan0", "1290");
        let (near, far) = net.connect(&listener);
        exchange(&near, &far, 0, 300_000);
        let row = net.status()["connections"][0].clone();
        for leg in ["lan_leg", "wan_leg"] {
            assert_eq!(row[leg]["mss_bytes"], 1290 - overhead - 12, "{row}");
            // Had segments not fit, the first flight would have been lost.
            assert!(row[leg]["retransmitted_bytes"].as_u64().unwrap() < 10_000, "{row}");
        }
    }
    gateway.end();
}

/// Breaks: a router whose new devices have no IPv6 cannot start a gateway; or a second one ends without
/// saying which process is in its way.
#[test]
fn starts_say_what_is_in_their_way() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.sysctl("net/ipv6/conf/default/disable_ipv6", "1");
    let gateway = net.gateway(&[]);
    let _both = net.connect(&net.listen(SERVER6));
    assert_eq!(net.split(), 1);
    net.router
        .configure("link add lan1 type veth peer name wan1\nlink set lan1 up\nlink set wan1 up\n")
        .unwrap();
    let second = ["gateway", "up", "--lan", "lan1", "--wan", "wan1", "--for", "1s"];
    let refused = net.farpace(&second);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains(&format!("process {}", gateway.pid())), "{error}");
    assert!(error.contains("set table = 7712 and rule_priority = 110"), "{error}");
    let config = net.state.path().with_extension("toml");
    std::fs::write(&config, "table = 7712\nrule_priority = 110\n").unwrap();
    let other = net.farpace(&[&second[..], &["--config", config.to_str().unwrap()]].concat());
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stderr));
    gateway.end();
    net.assert_clean();
}
