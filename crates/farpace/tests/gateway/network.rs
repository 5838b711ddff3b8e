//! What passes the gateway, on routers of all kinds.

use crate::harness::*;
use std::time::Duration;

// Breaks: bytes are lost or changed, servers see another address, or strict reverse-path filters drop what
// the gateway sends.
#[test]
fn bytes_and_addresses_are_those_of_the_hosts() {
    if !has_rights() {
        return;
    }
    for filter in ["0", "1", "2"] {
        let net = Net::new();
        for name in ["all", "lan0", "wan0", "default"] {
            net.sysctl(&format!("net/ipv4/conf/{name}/rp_filter"), filter);
        }
        let gateway = net.gateway(&[]);
        let mut open = Vec::new();
        for address in [SERVER, SERVER6] {
            let listener = net.listen(address);
            let (near, far) = net.connect(&listener);
            assert_eq!(far.peer_addr().unwrap(), near.local_addr().unwrap());
            exchange(&near, &far, 0, 20_000_000);
            open.push((near, far));
        }
        let status = net.status();
        assert_eq!(status["totals"]["split"], 2);
        let row = &status["connections"][0];
        assert!(row["wan_leg"]["sent_bytes"].as_u64().unwrap() >= 20_000_000, "{row}");
        gateway.end();
        net.assert_clean();
    }
}

// Breaks: other protocols, or errors of the network, do not pass.
#[test]
fn other_protocols_pass() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let gateway = net.gateway(&[]);
    for address in [SERVER, SERVER6] {
        let ping = net.client.within(|| {
            std::process::Command::new("ping")
                .args(["-c", "2", "-i", "0.2", "-W", "2", address])
                .output()
                .unwrap()
        });
        let ping = ping.unwrap();
        assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stdout));
    }
    gateway.end();
}

// Breaks: connections to a server of another port space are not rewritten by the router's NAT while a
// gateway runs, or after it was killed.
#[test]
fn nat_of_the_router_goes_on() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let chain = "type nat hook postrouting priority srcnat; oifname \"wan0\" masquerade;";
    let rules = format!("table ip nat {{ chain post {{ {chain} }}; }}");
    let added = net.on_router(&["nft", &rules]).output().unwrap();
    if !added.status.success() {
        let error = String::from_utf8_lossy(&added.stderr).into_owned();
        assert!(std::env::var_os("CI").is_none(), "{error}");
        eprintln!("skipped: no NAT here: {error}");
        return;
    }
    let gateway = net.gateway(&[]);
    assert!(gateway.up["up"]["notes"].to_string().contains("notrack"), "{}", gateway.up);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    assert_eq!(far.peer_addr().unwrap().ip().to_string(), "192.0.2.1");
    exchange(&near, &far, 0, 5_000_000);
    assert_eq!(net.split(), 1);
    let check = net.farpace(&["gateway", "check"]);
    assert!(String::from_utf8_lossy(&check.stdout).contains("WAN side alone"));
    gateway.signal(nix::sys::signal::Signal::SIGKILL);
    gateway.wait();
    std::thread::sleep(Duration::from_millis(300));
    let (near, far) = net.connect(&listener);
    assert_eq!(far.peer_addr().unwrap().ip().to_string(), "192.0.2.1");
    exchange(&near, &far, 0, 1_000_000);
    net.assert_clean();
    let tables = net.on_router(&["nft", "list", "tables"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&tables.stdout).contains("farpace"));
}

// Breaks: hosts with larger frames than the far link send what does not fit through it.
#[test]
fn a_smaller_mtu_of_the_wan_is_heeded() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.router.configure("link set wan0 mtu 1300\n").unwrap();
    net.server.configure("link set eth0 mtu 1300\n").unwrap();
    let gateway = net.gateway(&[]);
    assert_eq!(gateway.up["up"]["mtu_bytes"]["wan"], 1300);
    let listener = net.listen(SERVER);
    let (near, far) = net.connect(&listener);
    exchange(&near, &far, 0, 5_000_000);
    assert_eq!(net.status()["connections"][0]["wan_leg"]["mss_bytes"], 1300 - 40 - 12);
    gateway.end();
}
