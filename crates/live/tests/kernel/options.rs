//! Kernels that are set up otherwise: options, congestion controls, packet sizes.

use crate::netns::alone;
use crate::peer_host::{Machine, OURS, OURS6, PORT, Plan, sysctl};
use crate::programs::Echo;
use crate::stream::there_and_back;
use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::net::{IpAddr, TcpStream};

const SOME: usize = 20_000_000;

fn echo(plan: Plan, to: IpAddr, variables: &[(&str, &str)]) {
    alone(|| {
        let machine = Machine::up(plan);
        variables.iter().for_each(|(name, value)| sysctl(name, value));
        there_and_back(&TcpStream::connect((to, PORT)).unwrap(), SOME);
        let stats = machine.down();
        assert_eq!((stats.devices[0].refused, stats.devices[0].malformed), (0, 0));
    });
}

fn plan() -> Plan {
    Plan::new(|| Box::<Echo>::default())
}

/// Breaks: we do not get on with kernels without one of the options of SYNs.
#[test]
fn without_options() {
    for name in ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"] {
        echo(plan(), OURS, &[(name, "0")]);
    }
    echo(plan(), OURS, &[("tcp_timestamps", "0"), ("tcp_sack", "0"), ("tcp_window_scaling", "0")]);
}

/// Breaks: a congestion control of the kernel stalls with our acknowledgments.
#[test]
fn with_every_congestion_control_of_the_kernel() {
    for name in ["reno", "cubic", "bbr"] {
        alone(|| {
            let machine = Machine::up(plan());
            let stream = TcpStream::connect((OURS, PORT)).unwrap();
            // The variable of a namespace is limited to what the first namespace allows; root's sockets are not.
            setsockopt(&stream, sockopt::TcpCongestion, &OsString::from(name)).unwrap();
            there_and_back(&stream, SOME);
            machine.down();
        });
    }
}

/// Breaks: links of other sizes than Ethernet's.
#[test]
fn packets_of_all_sizes() {
    for mtu in [576, 1280, 1500, 9000] {
        for offload in [true, false] {
            echo(Plan { mtu, offload, ..plan() }, OURS, &[]);
        }
    }
}

/// Breaks: IPv6, with super-segments and without.
#[test]
fn over_ipv6() {
    for offload in [true, false] {
        echo(Plan { offload, ..plan() }, OURS6, &[]);
    }
}

/// Breaks: a kernel that asks for ECN gets no answer, or a wrong one.
#[test]
fn with_ecn() {
    let mut plan = plan();
    plan.settings.ecn = Some(farpace_tcp::config::EcnMode::On);
    echo(plan, OURS, &[("tcp_ecn", "1")]);
}
