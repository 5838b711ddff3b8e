//! Super-segments: what leaves under one header and is cut by a device, and what a device has put together.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use bytes::Bytes;
use common::drain;
use farpace_tcp::config::{Config, EcnMode, MAX_SUPER_SEGMENT, Settings};
use farpace_tcp::{Connection, ConnectionState, OutgoingSegment, Ports, Segment};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Seq, Span};
use farpace_wire::tcp::TcpFlags;
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

const PORTS: Ports = Ports { local: 1, remote: 2 };
const START: Instant = Instant::from_nanos(5_000_000_000);
const DELAY: Span = Span::from_millis(5);

/// What a run is made of.
#[derive(Clone, Debug)]
struct Plan {
    chunks: Vec<usize>,
    mss: u16,
    timestamps: bool,
    sack: bool,
    ecn: bool,
    pacing: bool,
    /// In 1000.
    loss: u64,
    seed: u64,
    /// Segments that the receiver's device puts together.
    merges: usize,
}

impl Plan {
    fn config(&self, super_segment: u32) -> Config {
        let settings = Settings {
            mss: Some(self.mss),
            timestamps: Some(self.timestamps),
            sack: Some(self.sack),
            ecn: Some(if self.ecn { EcnMode::On } else { EcnMode::Off }),
            pacing: Some(self.pacing),
            initial_window: Some(Packets::new(40)),
            ..Settings::default()
        };
        Config { super_segment, ..settings.resolve().unwrap() }
    }

    fn stream(&self) -> Vec<u8> {
        (0..self.chunks.iter().sum()).map(|i: usize| (i * 31 + i / 251) as u8).collect()
    }
}

/// What a run has shown.
#[derive(Default)]
struct Seen {
    received: Vec<u8>,
    /// Everything the sender's device has put on the line, in order: times and bytes.
    line: Vec<(Instant, Vec<u8>)>,
    /// Headers that the sender made.
    headers: usize,
    /// Segments of the largest super-segment.
    largest: u32,
}

fn on_line(from_sender: bool, number: u16, out: &OutgoingSegment) -> Packet {
    let (a, b) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
    let (src, dst) = if from_sender { (a, b) } else { (b, a) };
    let Segment { header, payload, segment_size, ecn } = out.segment.clone();
    let below = Below {
        tos: ecn.bits(),
        ..Below::new(MacAddr([2; 6]), MacAddr([4; 6]), AddressPair::new(src, dst).unwrap(), 64)
    };
    let mut packet = below.tcp(number, &header, payload);
    packet.set_segment_size(segment_size);
    packet
}

fn off_line(packet: &Packet, segment_size: u16) -> Segment {
    let (header, ecn) = (packet.tcp().unwrap().header(), packet.ip().unwrap().ecn());
    Segment { header, payload: packet.payload().clone(), ecn, segment_size }
}

/// Puts segments together that follow each other, as GRO does; the last may be shorter.
fn coalesce(segments: Vec<Segment>, most: usize) -> Vec<Segment> {
    let mut whole: Vec<Segment> = Vec::new();
    let mut size = 0;
    for segment in segments {
        let len = segment.payload.len();
        if let Some(last) = whole.last_mut()
            && last.header.seq + last.payload.len() as u32 == segment.header.seq
            && size > 0
            && last.payload.len().is_multiple_of(size)
            && (1..=size).contains(&len)
            && last.payload.len() / size < most
            && last.ecn == segment.ecn
            && !last.header.flags.intersects(TcpFlags::PSH.with(TcpFlags::FIN))
            && last.header.options == segment.header.options
        {
            last.payload = [&last.payload[..], &segment.payload[..]].concat().into();
            last.header.flags = last.header.flags.with(segment.header.flags);
            last.segment_size = size as u16;
        } else {
            size = len;
            whole.push(segment);
        }
    }
    whole
}

/// A sender with this limit of super-segments sends its stream to a receiver, until both are closed.
fn run(plan: &Plan, super_segment: u32) -> Seen {
    let (mut seen, mut now) = (Seen::default(), START);
    let mut rng = RandomStream::new(plan.seed, "losses");
    let mut sender = Connection::connect(now, &plan.config(super_segment), PORTS, Seq::new(100));
    let syn = drain(&mut sender, now, 1).remove(0).segment;
    let back = Ports { local: 2, remote: 1 };
    let mut receiver = Connection::accept(now, &plan.config(0), back, Seq::new(u32::MAX - 5), &syn);
    let mut rest = VecDeque::from(plan.chunks.clone());
    let (stream, mut written) = (Bytes::from(plan.stream()), 0);
    // Everything flies for the same time.
    let mut flying: VecDeque<(Instant, bool, Vec<Segment>)> = VecDeque::new();
    for _ in 0..100_000 {
        while let Some(len) =
            rest.front().copied().filter(|len| sender.write_room() >= ByteCount::of_len(*len))
        {
            sender.write(&mut stream.slice(written..written + len));
            written += len;
            rest.pop_front();
        }
        if rest.is_empty() {
            sender.close();
        }
        receiver.read(|bytes| seen.received.extend_from_slice(&bytes));
        for from_sender in [true, false] {
            let sent = drain(if from_sender { &mut sender } else { &mut receiver }, now, 7);
            let mut arriving = Vec::new();
            for out in &sent {
                seen.headers += usize::from(from_sender);
                let number = seen.line.len() as u16;
                seen.largest = seen.largest.max(out.segment.segments());
                on_line(from_sender, number, out).split_segments(|mut part| {
                    part.complete_checksum();
                    let lost = from_sender && !part.payload().is_empty() && rng.below(1000) < plan.loss;
                    if from_sender {
                        let mut frame = Vec::new();
                        part.write_frame(&mut frame);
                        seen.line.push((now, frame));
                    }
                    if !lost {
                        arriving.push(off_line(&part, 0));
                    }
                });
            }
            if !arriving.is_empty() {
                flying.push_back((now + DELAY, !from_sender, coalesce(arriving, plan.merges)));
            }
        }
        if receiver.state() == ConnectionState::CloseWait {
            receiver.close();
            continue;
        }
        if receiver.state() == ConnectionState::Closed {
            return seen;
        }
        let timers = [sender.deadline(), receiver.deadline()].into_iter().flatten().map(|(at, _)| at);
        let Some(next) = timers.chain(flying.front().map(|f| f.0)).min() else { break };
        now = now.max(next);
        while flying.front().is_some_and(|f| f.0 <= now) {
            let Some((_, to_sender, segments)) = flying.pop_front() else { break };
            for segment in segments {
                let end = if to_sender { &mut sender } else { &mut receiver };
                end.on_segment(now, segment);
                if !to_sender {
                    // An ACK for each, as they would be without a burst.
                    receiver.read(|bytes| seen.received.extend_from_slice(&bytes));
                    let acks = drain(&mut receiver, now, 7);
                    let acks = acks.iter().map(|out| off_line(&on_line(false, 0, out), 0)).collect();
                    flying.push_back((now + DELAY, true, acks));
                }
            }
        }
        for end in [&mut sender, &mut receiver] {
            if end.deadline().is_some_and(|(at, _)| at <= now) {
                end.on_deadline(now);
            }
        }
    }
    panic!("{plan:?}: they never close; {} of {} bytes", seen.received.len(), stream.len());
}

fn plans() -> impl Strategy<Value = Plan> {
    let chunks = prop::collection::vec(
        prop_oneof![3 => 1usize..60_000, 1 => 1usize..300, 1 => Just(65_536), 1 => Just(1 << 18)],
        1..14,
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (chunks, 500u16..1460, flags, prop_oneof![Just(0), Just(5), Just(40)], any::<u64>(), 1usize..45).prop_map(
        |(chunks, mss, (timestamps, sack, ecn, pacing), loss, seed, merges)| Plan {
            chunks,
            mss,
            timestamps,
            sack,
            ecn,
            pacing,
            loss,
            seed,
            merges,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Breaks: a device that cuts super-segments puts something else on the line than a sender without one:
    /// other bytes, at other times, or in another order. And the stream must come whole, whatever is lost or
    /// put together.
    #[test]
    fn cut_they_are_what_would_have_been_sent(plan in plans(), limit in 2_000u32..70_000) {
        let (plain, whole) = (run(&plan, 0), run(&plan, limit));
        prop_assert_eq!(plain.largest, 1);
        prop_assert!(plain.received == plan.stream(), "without");
        prop_assert!(whole.received == plan.stream(), "with");
        prop_assert!(whole.headers <= plain.headers);
        prop_assert!(whole.line == plain.line, "{} and {} frames", whole.line.len(), plain.line.len());
    }
}

/// Breaks: the point of it: a long stream leaves under few headers, and none longer than the device takes.
#[test]
fn a_long_stream_needs_few_headers() {
    let plan = Plan {
        chunks: vec![1 << 18; 16],
        mss: 1460,
        timestamps: true,
        sack: true,
        ecn: false,
        pacing: false,
        loss: 0,
        seed: 1,
        merges: 44,
    };
    let seen = run(&plan, u32::MAX);
    assert_eq!(seen.largest, MAX_SUPER_SEGMENT / 1448);
    let segments = seen.line.len();
    assert!(seen.headers * 20 < segments, "{} headers for {segments} segments", seen.headers);
}

/// Breaks: a receiver whose device puts segments together acknowledges the first flights of the sender as
/// one, from which the sender learns no rate; or it goes on with an ACK for every second segment when that is
/// over.
#[test]
fn parts_of_the_first_flights_have_their_own_acks() {
    let config =
        Settings { mss: Some(1_000), timestamps: Some(false), ..Settings::default() }.resolve().unwrap();
    let mut sender = Connection::connect(START, &config, PORTS, Seq::new(100));
    let syn = drain(&mut sender, START, 1).remove(0).segment;
    let back = Ports { local: 2, remote: 1 };
    let mut receiver = Connection::accept(START, &config, back, Seq::new(7), &syn);
    let syn_ack = drain(&mut receiver, START, 1).remove(0).segment;
    sender.on_segment(START, syn_ack);
    let open = drain(&mut sender, START, 1).remove(0).segment;
    receiver.on_segment(START, open.clone());
    let mut seq = open.header.seq;
    let mut acks_of = |segments: u32| -> Vec<u32> {
        let mut segment = open.clone();
        segment.header.seq = seq;
        segment.payload = vec![7; segments as usize * 1_000].into();
        segment.segment_size = if segments > 1 { 1_000 } else { 0 };
        let before = seq;
        seq += segments * 1_000;
        receiver.on_segment(START, segment);
        receiver.read(|_| ());
        let sent = drain(&mut receiver, START, 100);
        assert!(sent.iter().all(|out| out.segment.payload.is_empty()));
        sent.iter().map(|out| out.segment.header.ack.bytes_since(before)).collect()
    };
    assert_eq!(acks_of(10), [2_000, 4_000, 6_000, 8_000, 10_000]);
    assert_eq!(acks_of(5), [2_000, 4_000, 5_000]);
    assert!(acks_of(1).is_empty());
    assert_eq!(acks_of(2), [1_000, 2_000]);
    for _ in 0..20 {
        let _ = acks_of(30);
    }
    assert_eq!(acks_of(30), [30_000]);
}
