//! Whatever comes in: nothing panics, every packet is accounted for, and the host does not grow.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use bytes::Bytes;
use common::{A, B, Bench, Talker, config};
use farpace_host::{ListenSettings, LocalLink};
use farpace_path::Element;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::udp::UdpHeader;
use farpace_wire::{
    AddressPair, Below, Icmp, MacAddr, Packet, TcpFlags, TcpHeader, TcpOptions, Timestamps, Unreachable,
    fragment,
};
use proptest::prelude::*;
use std::net::IpAddr;

const BACKLOG: usize = 4;
const MAX: usize = 8;

/// What may befall a host.
#[derive(Clone, Debug)]
enum Step {
    /// A frame of these bytes.
    Bytes(Vec<u8>),
    /// A segment; its numbers are relative to the last segment that the host has sent.
    Segment { port: u16, remote: u8, flags: u16, seq: i32, ack: i32, stamp: Option<u32>, payload: u16 },
    /// A datagram, whole or in fragments of which some are left out.
    Datagram { port: u16, size: u16, keep: u8 },
    /// An error that quotes what the host has sent last.
    Error { kind: u8, mtu: u32, damage: Option<u8> },
    /// Time passes.
    Wait(u64),
    /// The host opens a connection.
    Connect,
    /// A bit of the next packet is wrong.
    Damage(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let near = || prop_oneof![Just(0), Just(1), -3..5i32, any::<i32>()];
    let flags =
        prop_oneof![Just(0x02), Just(0x10), Just(0x11), Just(0x04), Just(0x14), Just(0x12), any::<u16>()];
    let segment = (
        prop_oneof![Just(80u16), 79..82u16],
        0..6u8,
        flags,
        near(),
        near(),
        prop::option::of(any::<u32>()),
        prop_oneof![Just(0u16), 0..2_000u16],
    );
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Step::Bytes),
        8 => segment.prop_map(|(port, remote, flags, seq, ack, stamp, payload)| Step::Segment {
            port, remote, flags, seq, ack, stamp, payload,
        }),
        2 => (8..11u16, 0..9_000u16, any::<u8>()).prop_map(|(port, size, keep)| Step::Datagram { port, size, keep }),
        1 => (any::<u8>(), any::<u32>(), prop::option::of(any::<u8>()))
            .prop_map(|(kind, mtu, damage)| Step::Error { kind, mtu, damage }),
        3 => (0..200_000_000_000u64).prop_map(Step::Wait),
        1 => Just(Step::Connect),
        1 => any::<u64>().prop_map(Step::Damage),
    ]
}

fn below(from: IpAddr) -> Below {
    Below::new(MacAddr([2; 6]), MacAddr([2, 0, 0, 0, 0, 0xb]), AddressPair::new(from, B).unwrap(), 64)
}

fn packets(step: &Step, last: &Packet) -> Vec<Packet> {
    match step {
        Step::Bytes(bytes) => Packet::from_frame(bytes).into_iter().collect(),
        Step::Segment { port, remote, flags, seq, ack, stamp, payload } => {
            let last = last.tcp().map(|tcp| tcp.header()).unwrap_or_default();
            let header = TcpHeader {
                src_port: 7,
                dst_port: *port,
                seq: last.ack + (*seq as u32),
                ack: last.seq + (*ack as u32),
                flags: TcpFlags::from_bits(*flags),
                window: 1_000,
                options: TcpOptions {
                    timestamps: stamp.map(|value| Timestamps { value, echo: value }),
                    ..TcpOptions::default()
                },
                ..TcpHeader::default()
            };
            let from = IpAddr::from([10, 0, 0, *remote]);
            vec![below(from).tcp(1, &header, Bytes::from(vec![1; usize::from(*payload)]))]
        }
        Step::Datagram { port, size, keep } => {
            let header = UdpHeader { src_port: 9, dst_port: *port };
            let whole =
                below(A).udp(u16::from(*keep), header, Bytes::from(vec![2; usize::from(*size)])).unwrap();
            let parts = fragment(whole, 576, 0).unwrap();
            parts
                .into_iter()
                .enumerate()
                .filter(|(n, _)| keep >> (n % 8) & 1 == 1)
                .map(|(_, part)| part)
                .collect()
        }
        Step::Error { kind, mtu, damage } => {
            let mut frame = Vec::new();
            last.write_frame(&mut frame);
            let mut quoted = frame.get(14..).unwrap_or_default().to_vec();
            quoted.truncate(40);
            if let (Some(damage), false) = (damage, quoted.is_empty()) {
                let at = usize::from(*damage) % quoted.len();
                quoted[at] ^= 1;
            }
            let message = match kind % 4 {
                0 => Icmp::TooBig { mtu: *mtu, quoted: &quoted },
                1 => Icmp::Unreachable { why: Unreachable::Port, quoted: &quoted },
                2 => Icmp::TimeExceeded { code: 0, quoted: &quoted },
                _ => Icmp::ParameterProblem { code: 0, pointer: *mtu, quoted: &quoted },
            };
            below(IpAddr::from([10, 0, 0, 4])).icmp(1, &message).into_iter().collect()
        }
        Step::Wait(_) | Step::Connect | Step::Damage(_) => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Breaks: hosts on the Internet: a packet that makes one panic, packets that vanish from the account, a
    /// host that wants to be woken for ever, or one that keeps more connections than it may.
    #[test]
    fn nothing_breaks_a_host(steps in prop::collection::vec(step(), 1..120), resolves: bool) {
        let mut b = Bench::new(B);
        b.now = Instant::from_nanos(1_000_000_000);
        if resolves {
            b.host.join_link(MacAddr([2, 0, 0, 0, 0, 0xb]), LocalLink::default());
        }
        let limits = ListenSettings { backlog: BACKLOG, accepted: MAX, ..ListenSettings::new(config()) };
        b.host.listen(80, limits, Talker::that_stays).unwrap();
        b.host.listen(81, ListenSettings::new(config()), || Talker::boxed(b"welcome")).unwrap();
        let mut last = below(A).tcp(1, &TcpHeader { seq: Seq::new(5), ..TcpHeader::default() }, Bytes::new());
        let (mut received, mut opened, mut damage) = (0, 0, None);
        for step in &steps {
            match step {
                Step::Wait(time) => b.run_until(b.now + Span::from_nanos(*time)),
                Step::Connect => {
                    let to = IpAddr::from([10, 0, 0, 1]);
                    b.host.connect(b.now, to, 7, config(), None, Talker::boxed(b"hello")).unwrap();
                    opened += 1;
                    b.run_until(b.now);
                }
                Step::Damage(bit) => damage = Some(*bit),
                step => for mut packet in packets(step, &last) {
                    if let Some(bit) = damage.take() {
                        packet.flip_bit(bit);
                    }
                    received += 1;
                    b.packet(packet);
                    b.run_until(b.now);
                }
            }
            if let Some(packet) = b.look().last() {
                last = packet.clone();
            }
            let (gone, made) = b.account();
            prop_assert_eq!(received + made, gone + b.host.held(), "after {:?}", step);
            prop_assert!(b.host.half_open_connections() <= 2 * BACKLOG.max(6));
            prop_assert!(b.host.open_connections() <= MAX + 6 + opened);
        }
        b.run_until(b.now + Span::from_secs(3_600));
        prop_assert_eq!(b.host.held(), 0, "nothing waits for ever");
        prop_assert_eq!(b.host.half_open_connections(), 0);
    }
}
