//! A way between us and the kernel on which packets are lost, damaged, doubled and overtaken.

use crate::netns::alone;
use crate::peer_host::{Machine, OURS, PORT, Plan, Trouble};
use crate::programs::Echo;
use crate::stream::there_and_back;
use farpace_path::{
    CorruptDirection, Delay, DelayDirection, Duplex, DuplicateDirection, LossDirection, ReorderDirection,
};
use farpace_units::Span;
use std::net::TcpStream;

const SOME: usize = 5_000_000;

fn echo_through(troubles: &'static [Trouble]) {
    for offload in [true, false] {
        alone(|| {
            let machine = Machine::up(Plan { troubles, offload, ..Plan::new(|| Box::<Echo>::default()) });
            there_and_back(&TcpStream::connect((OURS, PORT)).unwrap(), SOME);
            machine.down();
        });
    }
}

/// Breaks: what the kernel and we lose of each other's is not sent again, or not taken.
#[test]
fn packets_get_lost() {
    echo_through(&[("loss", || Box::new(Duplex::new(LossDirection::new(0.01), LossDirection::new(0.01))))]);
}

/// Breaks: damage gets through, or stops the transfer.
#[test]
fn packets_are_damaged() {
    echo_through(&[("corrupt", || {
        Box::new(Duplex::new(CorruptDirection::new(0.01), CorruptDirection::new(0.01)))
    })]);
}

/// Breaks: what comes twice or late is taken for loss, without end, or delivered twice.
#[test]
fn packets_are_doubled_and_overtaken() {
    echo_through(&[
        ("duplicate", || Box::new(Duplex::new(DuplicateDirection::new(0.02), DuplicateDirection::new(0.02)))),
        ("reorder", || {
            let way = || ReorderDirection::new(0.02, Span::from_millis(3));
            Box::new(Duplex::new(way(), way()))
        }),
        ("delay", || {
            let way = || DelayDirection::new(Span::from_millis(5), None);
            Box::new(Delay::new(way(), way()))
        }),
    ]);
}
