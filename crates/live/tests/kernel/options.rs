//! Kernels with other settings: options, congestion controls, packet sizes.

use crate::netns::alone;
use crate::peer_host::{HostPlan, LiveHost, OURS, OURS6, PORT, sysctl};
use crate::programs::Echo;
use crate::stream::there_and_back;
use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::net::{IpAddr, TcpStream};

const SOME: usize = 20_000_000;

fn echo(plan: HostPlan, to: IpAddr, variables: &[(&str, &str)]) {
    alone(|| {
        let host = LiveHost::up(plan);
        variables.iter().for_each(|(name, value)| sysctl(name, value));
        there_and_back(&TcpStream::connect((to, PORT)).unwrap(), SOME);
        let stats = host.down();
        assert_eq!((stats.devices[0].refused, stats.devices[0].malformed), (0, 0));
    });
}

fn plan() -> HostPlan {
    HostPlan::new(|| Box::<Echo>::default())
}

/// Breaks: connections work without each of the SYN options.
#[test]
fn without_options() {
    for name in ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"] {
        echo(plan(), OURS, &[(name, "0")]);
    }
    echo(plan(), OURS, &[("tcp_timestamps", "0"), ("tcp_sack", "0"), ("tcp_window_scaling", "0")]);
}

/// Breaks: every congestion control of the kernel works with the host's ACKs.
#[test]
fn with_every_congestion_control_of_the_kernel() {
    for name in ["reno", "cubic", "bbr"] {
        alone(|| {
            let host = LiveHost::up(plan());
            let stream = TcpStream::connect((OURS, PORT)).unwrap();
            // The sysctl of a namespace is limited to the list of the initial namespace; sockets of root are
            // not.
            setsockopt(&stream, sockopt::TcpCongestion, &OsString::from(name)).unwrap();
            there_and_back(&stream, SOME);
            host.down();
        });
    }
}

/// Breaks: connections work with other MTUs than that of Ethernet.
#[test]
fn packets_of_all_sizes() {
    for mtu in [576, 1280, 1500, 9000] {
        for offload in [true, false] {
            echo(HostPlan { mtu, offload, ..plan() }, OURS, &[]);
        }
    }
}

/// Breaks: IPv6 works with and without super-segments.
#[test]
fn over_ipv6() {
    for offload in [true, false] {
        echo(HostPlan { offload, ..plan() }, OURS6, &[]);
    }
}

/// Breaks: ECN is negotiated with a kernel that requests it.
#[test]
fn with_ecn() {
    let mut plan = plan();
    plan.settings.ecn = Some(farpace_tcp::config::EcnMode::On);
    echo(plan, OURS, &[("tcp_ecn", "1")]);
}
