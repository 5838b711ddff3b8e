//! A path between host and kernel on which packets are lost, corrupted, duplicated and reordered.

use crate::netns::alone;
use crate::peer_host::{HostPlan, LiveHost, OURS, PORT, PathElement};
use crate::programs::Echo;
use crate::stream::there_and_back;
use farpace_path::{
    CorruptDirection, Delay, DelayDirection, Duplex, DuplicateDirection, LossDirection, ReorderDirection,
};
use farpace_units::Span;
use std::net::TcpStream;

const SOME: usize = 5_000_000;

fn echo_through(elements: &'static [PathElement]) {
    for offload in [true, false] {
        alone(|| {
            let host =
                LiveHost::up(HostPlan { elements, offload, ..HostPlan::new(|| Box::<Echo>::default()) });
            there_and_back(&TcpStream::connect((OURS, PORT)).unwrap(), SOME);
            host.down();
        });
    }
}

/// Breaks: lost data is retransmitted in both directions.
#[test]
fn packets_get_lost() {
    echo_through(&[("loss", || Box::new(Duplex::new(LossDirection::new(0.01), LossDirection::new(0.01))))]);
}

/// Breaks: corrupted packets are discarded and retransmitted.
#[test]
fn packets_are_damaged() {
    echo_through(&[("corrupt", || {
        Box::new(Duplex::new(CorruptDirection::new(0.01), CorruptDirection::new(0.01)))
    })]);
}

/// Breaks: duplicated and late packets neither stop a transfer nor deliver data twice.
#[test]
fn packets_are_doubled_and_overtaken() {
    echo_through(&[
        ("duplicate", || Box::new(Duplex::new(DuplicateDirection::new(0.02), DuplicateDirection::new(0.02)))),
        ("reorder", || {
            let direction = || ReorderDirection::new(0.02, Span::from_millis(3));
            Box::new(Duplex::new(direction(), direction()))
        }),
        ("delay", || {
            let direction = || DelayDirection::new(Span::from_millis(5), None);
            Box::new(Delay::new(direction(), direction()))
        }),
    ]);
}
