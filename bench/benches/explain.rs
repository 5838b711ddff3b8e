//! Reading captures and following their connections: bytes of file per second on one core, of full frames
//! and of headers alone, and of 100,000 connections.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use farpace_explain::flow::Side;
use farpace_explain::{diagnose, input};

/// A classic pcap of `flows` connections that take turns; each sends `segments` segments of 1448 B, every
/// second one is acknowledged, and one in five hundred is sent again.
fn capture(flows: u32, segments: u32, snaplen: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    let mut nanos = 0u64;
    let mut packet = |flow: u32, back: bool, seq: u32, ack: u32, flags: u8, len: usize| {
        nanos += 6_000;
        let (a, b) = ([10, 0, (flow >> 8) as u8, flow as u8], [10, 9, 0, 1]);
        let port = (20_000 + (flow >> 16)) as u16;
        let (src, dst) = if back { (b, a) } else { (a, b) };
        let (from, to) = if back { (80, port) } else { (port, 80) };
        let total = 52 + len;
        let mut bytes = vec![0x45, 0];
        bytes.extend((total as u16).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        bytes.extend(src);
        bytes.extend(dst);
        bytes.extend(from.to_be_bytes());
        bytes.extend(to.to_be_bytes());
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([0x80, flags, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
        bytes.extend(((nanos / 1_000_000) as u32).to_be_bytes());
        bytes.extend(((nanos / 1_000_000) as u32).to_be_bytes());
        bytes.resize(total, 0x55);
        let captured = total.min(snaplen);
        let head =
            [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32, captured as u32, total as u32];
        head.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(&bytes[..captured]);
    };
    for n in 0..segments {
        for flow in 0..flows {
            let seq = n.wrapping_mul(1_448);
            if n == 0 {
                packet(flow, false, seq.wrapping_sub(1), 0, 2, 0);
                packet(flow, true, 0, seq, 18, 0);
            }
            packet(flow, false, seq, 1, 16, 1_448);
            if n % 500 == 499 {
                packet(flow, false, seq, 1, 16, 1_448);
            }
            if n % 2 == 1 {
                packet(flow, true, 1, seq.wrapping_add(1_448), 16, 0);
            }
        }
    }
    file
}

#[allow(clippy::panic, reason = "a benchmark without a valid capture must stop")]
fn explain(c: &mut Criterion) {
    let mut group = c.benchmark_group("explain");
    group.sample_size(10);
    for (name, flows, segments, snaplen) in [
        ("full frames", 8, 20_000, 65_535),
        ("headers of 128 B", 8, 100_000, 128),
        ("100,000 connections", 100_000, 6, 128),
    ] {
        let file = capture(flows, segments, snaplen);
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let capture = input::read(file.as_slice()).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(capture.flows.len(), flows as usize);
                capture.flows.iter().take(10).map(|f| diagnose(f, Side::Client).shares.len()).sum::<usize>()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, explain);
criterion_main!(benches);
