//! Captures that were made to take memory and time.

use crate::make::{Transfer, ethernet, outer, pcap, segment};
use farpace_explain::flow::{Flow, MAX_LOSSES, MAX_STALLS, Side};
use farpace_explain::frame::MAX_LAYERS;
use farpace_explain::input::{Follower, read};
use farpace_explain::{Diagnosis, diagnose};
use farpace_units::{ByteCount, Instant};

/// Segments of two bytes with wide gaps in the numbers between them, each of which stands for many missing
/// segments.
fn with_gaps(port: u16, count: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |n| {
        let mut packet = segment(false, n.wrapping_mul(16_000), 1, 16, 2, n, 0, n as u16);
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet
    })
}

fn adds_up(d: &Diagnosis) -> bool {
    d.shares.iter().map(|s| s.time.as_nanos()).sum::<u64>() == d.duration().as_nanos()
}

// Breaks: memory. A small file of connections that leave gaps everywhere would take many times its size.
#[test]
fn connections_share_one_limit_of_memory() {
    const LIMIT: usize = 8 << 20;
    let mut follower = Follower::with_memory(LIMIT);
    let (mut now, mut most, mut read) = (Instant::from_nanos(1), 0, 0);
    for port in 0..300 {
        for packet in with_gaps(port, 100) {
            now = Instant::from_nanos(now.as_nanos() + 1_000_000);
            read += packet.len();
            follower.frame((101, 0), now, &packet, ByteCount::of_len(packet.len()), &mut |_| {});
            most = most.max(follower.memory());
        }
    }
    assert!(most > LIMIT / 2, "the limit was not reached: {most} B");
    // The connection that reaches the limit keeps its counters.
    assert!(most <= LIMIT + size_of::<Flow>(), "{most} B for {read} B of packets");
    let capture = follower.finish();
    assert!(capture.left_out > 0);
    let stopped: Vec<_> = capture.flows.iter().filter(|f| f.stopped.is_some()).collect();
    assert!(!stopped.is_empty());
    for flow in &stopped {
        let d = diagnose(flow, Side::Client);
        assert!(adds_up(&d) && d.unknowable.iter().any(|u| u.contains("memory")), "{:?}", d.unknowable);
    }
}

// Breaks: lists that grow with each retransmission and each pause.
#[test]
fn losses_and_stalls_are_thinned_out() {
    let mut packets = Transfer::default().packets();
    let (mut time, last) = packets.last().cloned().unwrap_or_default();
    let seq = u32::from_be_bytes([last[24], last[25], last[26], last[27]]);
    for n in 0..20_000u32 {
        let new = segment(false, 900_000_u32.wrapping_add(n * 1_448), seq, 16, 1_448, n, 0, n as u16);
        time += 300_000_000;
        packets.push((time, new.clone()));
        time += 3_000_000_000;
        packets.push((time, new));
    }
    let capture = read(pcap(101, &packets, 100).as_slice()).unwrap();
    let half = capture.flows[0].half(Side::Client);
    assert!(half.counts.retransmissions >= 20_000);
    assert!(half.losses.kept().len() <= MAX_LOSSES && half.losses.stride() > 1);
    assert!(half.stalls.kept().len() <= MAX_STALLS && half.stalls.count > MAX_STALLS as u64);
    assert!(adds_up(&diagnose(&capture.flows[0], Side::Client)));
}

// Breaks: a frame whose headers go on without an end.
#[test]
fn layers_end() {
    let packet = segment(false, 1, 1, 16, 100, 0, 0, 1);
    let wrapped = |times: usize| ethernet(&(0..times).fold(packet.clone(), |inner, _| outer(4, &inner)));
    let segments = |frame: Vec<u8>| read(pcap(1, &[(1, frame)], 65_535).as_slice()).unwrap().segments;
    assert_eq!(segments(wrapped(MAX_LAYERS / 2)), 1);
    assert_eq!(segments(wrapped(MAX_LAYERS + 1)), 0);
}
