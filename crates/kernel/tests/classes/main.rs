//! The arithmetic of classes in C beside that of crates/link: departure times beside those of the scheduler,
//! keys of packets beside those of the classifier, lengths of super-segments beside those of their frames.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod driver;

use bytes::Bytes;
use driver::InC;
use farpace_link::pacing::{
    ClassKind, ClassSpec, ClassifierKey, Edf, Gaps, Next, PacedFrame, PacingInterval, Scheduler, layer_2,
};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, RandomStream, Rate, Span};
use farpace_wire::ethernet::{EtherType, MacAddr};
use farpace_wire::ip::AddressPair;
use farpace_wire::udp::UdpHeader;
use farpace_wire::{Below, Packet, fragment};
use std::collections::VecDeque;
use std::net::IpAddr;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// On this line a byte takes a nanosecond.
const LINE: Rate = Rate::from_mbit(8_000);
const NO_LIMIT: u64 = u64::MAX;
const HORIZON: u64 = u64::MAX >> 1;

#[derive(Debug)]
struct Frame(u64);

impl PacedFrame for Frame {
    fn len(&self) -> ByteCount {
        ByteCount::new(self.0)
    }
}

/// When frames that come at these times, with these lengths, leave: by the scheduler of crates/link with
/// timers for gaps.
fn by_the_scheduler(rate: Rate, frames: &[(u64, u64)]) -> Vec<u64> {
    let mut edf = Edf::<Frame>::new(LINE, ByteCount::new(1_500), Gaps::Timers, Span::ZERO).unwrap();
    let spec = ClassSpec { kind: ClassKind::Paced(rate), limit: QueueLimit::Unlimited };
    let class = edf.add_class(spec).unwrap();
    let at = |ns: u64| Instant::from_nanos(ns);
    let mut waiting: VecDeque<_> = frames.iter().copied().collect();
    let (mut now, mut left) = (0, Vec::new());
    while left.len() < frames.len() {
        while let Some((comes, len)) = waiting.front().copied().filter(|(comes, _)| *comes <= now) {
            waiting.pop_front();
            edf.enqueue(at(comes), class, Frame(len)).unwrap();
        }
        let next_comes = waiting.front().map_or(u64::MAX, |(comes, _)| *comes);
        match edf.dequeue(at(now)) {
            Next::Packet { packet, .. } => {
                left.push(now);
                now += layer_2(packet.len()).get() + 20;
            }
            Next::Wait(until) => now = until.as_nanos().min(next_comes).max(now + 1),
            Next::Empty => now = next_comes,
            Next::Gap(_) => panic!("a gap frame, with timers"),
        }
    }
    left
}

/// Breaks: the kernel lets a frame of a class leave at another time than `farpace pacing` does: for any
/// lengths, rates and pauses.
#[test]
fn departures_are_those_of_the_scheduler() {
    let mut c = InC::start();
    for seed in 0..40 {
        let mut random = RandomStream::new(seed, "departures");
        let rate = 8_000 + random.below(1 << (13 + seed % 20));
        let mut now = 1_000;
        let frames: Vec<_> = (0..400)
            .map(|_| {
                let len = 60 + random.below(1_455);
                // At about the rate, so that there are pauses as well as queues.
                now += random.below(2_200 * 8_000_000_000 / rate);
                (now, len)
            })
            .collect();
        c.reset();
        let in_c = frames.iter().map(|(comes, len)| {
            c.depart(*comes, rate, layer_2(ByteCount::new(*len)).get(), NO_LIMIT, HORIZON).unwrap()
        });
        let in_c: Vec<_> = in_c.collect();
        let theirs = by_the_scheduler(Rate::from_bits_per_sec(rate), &frames);
        // After a pause the scheduler carries a fraction of a nanosecond on.
        let far = in_c.iter().zip(&theirs).position(|(a, b)| a.abs_diff(*b) > 1);
        assert_eq!(far, None, "seed {seed}, {rate} bit/s: {in_c:?} {theirs:?}");
        assert!(in_c.iter().zip(&frames).any(|(at, (comes, _))| at > comes));
    }
}

/// Breaks: a rate drifts: after many frames the class is not where its bytes times the interval are, to the
/// nanosecond.
#[test]
fn no_drift() {
    let mut c = InC::start();
    for rate in [8_000, 1_234_567, 99_999_999, 1_000_000_007, 1_000_000_000_000] {
        c.reset();
        let (interval, mut rest) = (PacingInterval::new(Rate::from_bits_per_sec(rate), LINE), 0);
        let (mut sum, mut bytes) = (0, 0u64);
        let mut random = RandomStream::new(rate, "drift");
        for _ in 0..5_000 {
            assert_eq!(c.depart(1, rate, 64, NO_LIMIT, HORIZON), Ok(1 + sum));
            sum += interval.after(ByteCount::new(64), &mut rest);
            let len = 64 + random.below(1_455);
            assert_eq!(c.depart(1, rate, len, NO_LIMIT, HORIZON), Ok(1 + sum));
            sum += interval.after(ByteCount::new(len), &mut rest);
            bytes += 64 + len;
        }
        assert_eq!(u128::from(sum), u128::from(bytes) * 8_000_000_000 / u128::from(rate));
    }
}

/// Breaks: what does not fit takes time of its class, a class that is idle refuses a frame, or a burst leaves
/// after a pause.
#[test]
fn limits_and_pauses() {
    let mut c = InC::start();
    // A microsecond a byte.
    let rate = 8_000_000;
    let mut at = |now, bytes, limit, horizon| c.depart(now, rate, bytes, limit, horizon);
    assert_eq!(at(0, 1_000, 10, 10), Ok(0));
    assert_eq!(at(0, 1_000, 1_999_999, HORIZON), Err(1));
    assert_eq!(at(0, 1_000, 2_000_000, 999_999), Err(2));
    assert_eq!(at(0, 1_000, 2_000_000, 1_000_000), Ok(1_000_000));
    assert_eq!(at(5_000_000, 64, NO_LIMIT, HORIZON), Ok(5_000_000));
    assert_eq!(at(5_000_000, 64, NO_LIMIT, HORIZON), Ok(5_064_000));
}

/// Breaks: a super-segment counts for other bytes than its frames.
#[test]
fn super_segments_are_their_frames() {
    let mut c = InC::start();
    let mut random = RandomStream::new(7, "segments");
    for _ in 0..2_000 {
        let header = 42 + random.below(60) as u32;
        let size = 1 + random.below(9_000) as u32;
        let payload = 1 + random.below(64_000) as u32;
        let segments = payload.div_ceil(size);
        let last = payload - (segments - 1) * size;
        let frames = (1..segments).map(|_| header + size).chain([header + last]);
        let bytes: u64 = frames.map(|len| layer_2(ByteCount::new(len.into())).get()).sum();
        let told = c.layer_2(header + payload, segments * header + payload, segments, size);
        assert_eq!(told, bytes, "{header} {size} {payload}");
    }
    assert_eq!(c.layer_2(42, 42, 0, 0), 64);
    assert_eq!(c.layer_2(1_514, 1_514, 1, 1_448), 1_518);
}

fn address(random: &mut RandomStream, v4: bool) -> IpAddr {
    let bits = random.next_u64();
    match v4 {
        true => IpAddr::from((bits as u32).to_be_bytes()),
        false => IpAddr::from((u128::from(bits) << 64 | u128::from(random.next_u64())).to_be_bytes()),
    }
}

/// A frame of any kind.
fn any_frame(random: &mut RandomStream) -> Vec<u8> {
    let v4 = random.below(2) == 0;
    let addresses = AddressPair::new(address(random, v4), address(random, v4)).unwrap();
    let below = Below { tos: random.below(256) as u8, ..Below::new(MAC, MAC, addresses, 64) };
    let header = UdpHeader { src_port: random.below(65_536) as u16, dst_port: random.below(65_536) as u16 };
    let datagram = |len| below.udp(1, header, Bytes::from(vec![7; len])).unwrap();
    let packet = match random.below(4) {
        0 => fragment(datagram(2_000), 1_500, 9).unwrap().remove(random.below(2) as usize),
        1 => Packet::from_link(MAC, MAC, EtherType::ARP, Bytes::from_static(&[0; 28])),
        _ => datagram(random.below(200) as usize),
    };
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    let at = 14 + if v4 { 20 } else { 40 };
    match random.below(4) {
        // As TCP, with a header of 20 bytes.
        0 if packet.udp().is_ok() && frame.len() >= at + 20 => {
            frame[if v4 { 23 } else { 20 }] = 6;
            frame[at + 12] = 5 << 4;
        }
        // Destination options before it.
        1 if packet.udp().is_ok() && !v4 => {
            frame.splice(54..54, [17, 0, 1, 4, 0, 0, 0, 0]);
            frame[20] = 60;
            let len = u16::from_be_bytes([frame[18], frame[19]]) + 8;
            frame[18..20].copy_from_slice(&len.to_be_bytes());
        }
        _ => {}
    }
    for _ in 0..random.below(4) {
        frame.splice(12..12, [0x81, 0, 0, 7]);
    }
    frame
}

/// Breaks: a filter in the kernel looks at other bits of a packet than `farpace pacing` does.
#[test]
fn keys_are_those_of_the_classifier() {
    let mut c = InC::start();
    let mut random = RandomStream::new(3, "keys");
    let (mut with_ports, mut without_ip) = (0, 0);
    for _ in 0..3_000 {
        let frame = any_frame(&mut random);
        let theirs = ClassifierKey::of_packet(&Packet::from_frame(&frame).unwrap()).words();
        assert_eq!(c.key(&frame), theirs, "{frame:02x?}");
        with_ports += usize::from(theirs[4] >> 51 == 1);
        without_ip += usize::from(theirs[4] == 0);
    }
    assert!(with_ports > 500 && without_ip > 500, "{with_ports} {without_ip}");
}
