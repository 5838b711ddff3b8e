//! Packet filters of the router, which see each packet twice.

use crate::harness::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::net::TcpListener;
use std::time::Duration;

/// A connection that a filter drops is given up after this time.
const DROPPED: Duration = Duration::from_millis(1_500);
/// A filter that lets the LAN open connections, and the WAN none.
const CLOSED: &str = "table inet fw { chain forward { type filter hook forward priority 0; policy drop; \
                      ct state established,related accept; iifname \"lan0\" accept; }; }";

fn nft(net: &Net, rules: &str) {
    let added = net.on_router(&["nft", rules]).output().unwrap();
    assert!(added.status.success(), "{rules}: {}", String::from_utf8_lossy(&added.stderr));
}

fn problems(net: &Net) -> Vec<Value> {
    let check = net.farpace(&["gateway", "check", "--lan", "lan0", "--wan", "wan0", "--json"]);
    let check: Value = serde_json::from_slice(&check.stdout).unwrap();
    let all = check["findings"].as_array().unwrap().clone();
    all.into_iter().filter(|finding| finding["judgement"] == "problem").collect()
}

/// Does what `check` says of the filter, until it says no more.
fn mend(net: &Net) {
    for _ in 0..4 {
        let found = problems(net);
        for problem in &found {
            let mend = problem["mend"].as_str().unwrap();
            assert!(mend.starts_with("nft insert rule"), "{problem}");
            assert!(net.on_router(&["sh", "-c", mend]).status().unwrap().success(), "{mend}");
        }
        if found.is_empty() {
            return;
        }
    }
    panic!("{:?}", problems(net));
}

/// Whether the LAN can open connections, and the WAN.
fn opens(net: &Net) -> (bool, bool) {
    let server = net.listen(SERVER);
    let _client = listen_on(&net.client, CLIENT);
    let lan = connect_from(&net.client, SERVER, DROPPED);
    if let Ok(near) = &lan {
        let far = accepted(&server);
        exchange(near, &far, 0, 300_000);
    }
    (lan.is_ok(), connect_from(&net.server, CLIENT, DROPPED).is_ok())
}

/// Breaks: the advice of `check` for a filter that drops what it does not know opens the LAN to the WAN, or
/// does not let the gateway work; or `check` takes the gateway's own table for rules that know it.
#[test]
fn what_check_advises_keeps_a_filter_closed() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    nft(&net, CLOSED);
    assert_eq!(opens(&net), (true, false));
    let gateway = net.gateway(&[]);
    assert!(gateway.up["up"]["notes"].to_string().contains("inet fw forward drops"), "{}", gateway.up);
    assert!(!opens(&net).0);
    assert_eq!(problems(&net).len(), 2);
    mend(&net);
    assert_eq!(opens(&net), (true, false));
    // An accept of all that leaves to a device of the gateway.
    nft(&net, "insert rule inet fw forward oifname \"fpwan*\" accept");
    assert!(opens(&net).1, "the case is the wrong one");
    let found = problems(&net);
    assert_eq!(found.len(), 1, "{found:?}");
    let value = found[0]["value"].as_str().unwrap();
    assert!(value.starts_with("`oifname \"fpwan*\" accept` (inet fw forward) admits"), "{value}");
    gateway.end();
    nft(&net, "delete table inet fw");
    net.assert_clean();
}

/// Breaks: rules that drop by a pair of interfaces have no effect with a gateway, and nobody hears of it.
#[test]
fn rules_of_two_interfaces_are_not_bypassed_in_silence() {
    if !has_rights() {
        return;
    }
    for drops in [
        "iifname \"wan0\" oifname \"lan0\" tcp flags syn / syn,ack drop; \
         iifname \"lan0\" oifname \"wan0\" tcp dport 5001 drop;",
        "iifname . oifname { \"wan0\" . \"lan0\" } tcp flags syn / syn,ack drop; \
         iifname \"lan0\" oifname vmap { \"wan0\" : drop };",
        "iifname \"wan0\" jump from_wan; iifname \"lan0\" ct state new oifname \"wan0\" reject;",
    ] {
        let net = Net::new();
        let inner = "chain from_wan { oifname \"lan0\" tcp flags syn / syn,ack drop; }; ";
        nft(
            &net,
            &format!(
                "table inet fw {{ {inner}chain f {{ type filter hook forward priority 0; {drops} }}; }}"
            ),
        );
        let gateway = net.gateway(&[]);
        assert_eq!(opens(&net), (true, true), "the case is the wrong one: {drops}");
        assert_eq!(problems(&net).len(), 2, "{drops}: {:?}", problems(&net));
        assert!(gateway.up["up"]["notes"].to_string().contains("does not match"), "{}", gateway.up);
        if !drops.contains(" . ") {
            mend(&net);
            assert_eq!(opens(&net), (false, false), "{drops}");
        }
        gateway.end();
    }
}

/// Breaks: `check` warns of filters that do with a gateway what they do without, and so of nothing.
#[test]
fn filters_that_name_one_interface_are_no_problem() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    let rules = "iifname \"wan0\" tcp dport 22 drop; oifname \"wan0\" tcp dport 25 drop; \
                 ct state invalid drop; tcp flags fin,syn / fin,syn drop; udp dport 53 accept; \
                 iifname \"lan0\" oifname \"wan0\" accept; iifname \"lan0\" oifname \"wan0\" counter;";
    nft(&net, &format!("table inet fw {{ chain f {{ type filter hook forward priority 0; {rules} }}; }}"));
    assert_eq!(problems(&net), Vec::<Value>::new());
    let gateway = net.gateway(&[]);
    assert_eq!(problems(&net), Vec::<Value>::new());
    gateway.end();
}

/// The router sends what the LAN has for the server's port to a port of its own.
fn redirect_lan(net: &Net) {
    let chain = "chain pre { type nat hook prerouting priority dstnat; \
                 iifname \"lan0\" tcp dport 5001 redirect to :5002; }";
    nft(net, &format!("table ip nat {{ {chain}; }}"));
}

/// Breaks: a redirection of the LAN to a proxy on the router ends silently with a gateway, or its mend does
/// not work.
#[test]
fn a_redirection_of_the_lan_works_with_a_mark() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    redirect_lan(&net);
    let proxy = net.router.within(|| TcpListener::bind("0.0.0.0:5002").unwrap()).unwrap();
    proxy.set_nonblocking(true).unwrap();
    let _server = net.listen(SERVER);
    let is_redirected = || {
        let _near = net.try_connect(SERVER).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        proxy.accept().is_ok()
    };
    assert!(is_redirected());
    let gateway = net.gateway(&[]);
    assert!(!is_redirected());
    assert!(gateway.up["up"]["notes"].to_string().contains("redirect to :5002"), "{}", gateway.up);
    let found = problems(&net);
    assert_eq!((found.len(), &found[0]["what"]), (1, &"NAT of the LAN".into()), "{found:?}");
    gateway.end();
    nft(
        &net,
        "table inet marks { chain pre { type filter hook prerouting priority -310; \
         iifname \"lan0\" tcp dport 5001 meta mark set 0x70; }; }",
    );
    let config = net.state.path().with_extension("toml");
    std::fs::write(&config, "pass_marks = [0x70]\n").unwrap();
    let gateway = net.gateway(&["--config", config.to_str().unwrap()]);
    assert!(is_redirected());
    assert_eq!(problems(&net), Vec::<Value>::new());
    gateway.end();
    net.assert_clean();
}

/// Breaks: a gateway says that it is there while its packet filter is not: the first connections are those of
/// the filters before, and are not split.
#[test]
fn a_filter_that_takes_long_is_waited_for() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    redirect_lan(&net);
    let listener = net.listen(SERVER);
    let (gateway, _tools) = net.gateway_with_slow("nft", 0.7);
    drop(net.connect(&listener));
    assert_eq!(net.split(), 1);
    gateway.end();
    net.assert_clean();
}

/// Breaks: traffic that a mark leads into a VPN, or nowhere while that is down, leaves in the clear with a
/// gateway; or the mend does not work.
#[test]
fn rules_by_marks_are_not_bypassed_in_silence() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    nft(
        &net,
        "table inet m { chain pre { type filter hook prerouting priority mangle; \
         iifname \"lan0\" tcp dport 5001 meta mark set 7; }; }",
    );
    net.router.configure("rule add pref 1000 fwmark 7 lookup 200\n").unwrap();
    net.router.configure("route add unreachable default table 200\n").unwrap();
    let _server = net.listen(SERVER);
    let leaks = || connect_from(&net.client, SERVER, DROPPED).is_ok();
    assert!(!leaks());
    let gateway = net.gateway(&[]);
    assert!(leaks(), "the case is the wrong one");
    assert!(gateway.up["up"]["notes"].to_string().contains("fwmark 0x7"), "{}", gateway.up);
    let found = problems(&net);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["mend"].as_str().unwrap().contains("pass_marks = [0x7]"), "{found:?}");
    gateway.end();
    let config = net.state.path().with_extension("toml");
    std::fs::write(&config, "pass_marks = [0x7]\n").unwrap();
    let gateway = net.gateway(&["--config", config.to_str().unwrap()]);
    assert!(!leaks());
    assert_eq!(problems(&net), Vec::<Value>::new());
    gateway.signal(Signal::SIGKILL);
    gateway.wait();
    assert!(!leaks());
    net.assert_clean();
}

/// Breaks: hosts of the LAN do not reach a server of the LAN by the public address of the router, though its
/// packets are marked to pass by the kernel.
#[test]
fn hairpin_nat_works_with_a_mark() {
    if !has_rights() {
        return;
    }
    let net = Net::new();
    net.client.configure("addr add 10.9.0.3/24 dev eth0\n").unwrap();
    nft(
        &net,
        "table ip nat { chain pre { type nat hook prerouting priority dstnat; \
         ip daddr 192.0.2.1 tcp dport 5001 dnat to 10.9.0.3:5001; }; \
         chain post { type nat hook postrouting priority srcnat; oifname \"wan0\" masquerade; \
         ip saddr 10.9.0.0/24 ip daddr 10.9.0.3 masquerade; }; }",
    );
    let inner = listen_on(&net.client, "10.9.0.3");
    let outer = net.listen(SERVER);
    let works = || {
        let near = connect_from(&net.client, "192.0.2.1", DROPPED);
        near.map(|near| exchange(&near, &accepted(&inner), 0, 200_000)).is_ok()
    };
    assert!(works());
    let gateway = net.gateway(&[]);
    assert!(!works(), "the case is the wrong one");
    assert_eq!(problems(&net)[0]["what"], "NAT of the LAN");
    gateway.end();
    nft(
        &net,
        "table inet marks { chain pre { type filter hook prerouting priority -310; \
         iifname \"lan0\" ip daddr 192.0.2.1 tcp dport 5001 meta mark set 0x70; \
         iifname \"lan0\" ip saddr 10.9.0.3 ip daddr 10.9.0.1 tcp sport 5001 meta mark set 0x70; }; }",
    );
    let config = net.state.path().with_extension("toml");
    std::fs::write(&config, "pass_marks = [0x70]\n").unwrap();
    let gateway = net.gateway(&["--config", config.to_str().unwrap()]);
    assert!(works());
    assert_eq!(problems(&net), Vec::<Value>::new());
    // All else is split, and its addresses are rewritten.
    let (near, far) = net.connect(&outer);
    assert_eq!(far.peer_addr().unwrap().ip().to_string(), "192.0.2.1");
    exchange(&near, &far, 0, 300_000);
    assert_eq!(net.split(), 1);
    gateway.end();
}
