//! Scenarios over IPv6.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};

const SIX: &str = r#"
title = "Over IPv6, through a router, with losses"

[hosts.a]
address = "2001:db8::1"
[hosts.b]
address = "2001:db8:7::2"
[routers.r]

[[links]]
name = "left"
between = ["a", "r"]
rate = "100 Mbit/s"

[[links]]
name = "right"
between = ["r", "b"]
rate = "50 Mbit/s"
delay = "5 ms"
forward = { loss = 0.01, corrupt = 0.005 }

[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "2 MB"
"#;

/// Breaks: transfers over IPv6: addresses in scenarios, routes, headers, checksums.
#[test]
fn a_transfer_over_ipv6_arrives_intact() {
    let scenario = Scenario::parse(SIX, "six.toml").unwrap();
    let flow = &scenario.flows[0];
    assert_eq!(scenario.segment(flow).payload.get(), 1428);
    assert_eq!(scenario.segment(flow).frame.get(), 1514, "as long as with IPv4");
    let mut run = Run::new(&scenario, Inputs::default()).unwrap();
    while !run.advance(None).unwrap().finished {}
    let outcome = run.finish().unwrap();
    let flow = &outcome.flows[0];
    assert!(flow.is_intact(), "{flow:?}");
    assert_eq!(flow.delivered.get(), 2_000_000);
}

/// Breaks: a flow between two address families is refused only when it runs, without its place in the file.
#[test]
fn the_ends_of_a_flow_have_one_family() {
    let mixed = SIX.replace("2001:db8:7::2", "10.0.0.7");
    let error = Scenario::parse(&mixed, "mixed.toml").unwrap_err().to_string();
    assert!(error.contains("two families") && error.contains("mixed.toml:25:6"), "{error}");
    for bad in ["::", "::1", "ff02::1", "::ffff:10.0.0.1"] {
        let error = Scenario::parse(&SIX.replace("2001:db8:7::2", bad), "bad.toml").unwrap_err().to_string();
        assert!(error.contains("cannot be the address"), "{bad}: {error}");
    }
}
