//! Whatever comes in: nothing panics, every packet is accounted for, and memory is given back.

use crate::harness::*;
use bytes::Bytes;
use farpace_gateway::Gateway;
use farpace_path::Port;
use farpace_units::{ByteCount, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Any {
    from_lan: bool,
    ports: [u16; 2],
    flags: u16,
    seq: u32,
    ack: u32,
    window: u16,
    options: (bool, Option<u16>, Option<u8>, Option<u32>),
    len: usize,
    pause: u64,
    reversed: bool,
}

fn any_packet() -> impl Strategy<Value = Any> {
    let near = prop_oneof![0u32..5, 1000u32..1020, any::<u32>()];
    (
        (
            any::<bool>(),
            1u16..3,
            1u16..3,
            prop_oneof![Just(2u16), Just(0x12), Just(0x10), Just(0x18), Just(0x11), Just(4), any::<u16>()],
        ),
        (near.clone(), near, any::<u16>()),
        (
            any::<bool>(),
            prop::option::of(any::<u16>()),
            prop::option::of(any::<u8>()),
            prop::option::of(any::<u32>()),
        ),
        (0usize..3000, 0u64..400, any::<bool>()),
    )
        .prop_map(|((from_lan, a, b, flags), (seq, ack, window), options, (len, pause, reversed))| Any {
            from_lan,
            ports: [a, b],
            flags,
            seq,
            ack,
            window,
            options,
            len,
            pause,
            reversed,
        })
}

fn packet(any: &Any) -> Packet {
    let pair = AddressPair::V4("10.0.0.7".parse().unwrap(), "192.0.2.7".parse().unwrap());
    let pair = if any.reversed { pair.reversed() } else { pair };
    let (sack_permitted, mss, window_scale, stamp) = any.options;
    let header = TcpHeader {
        src_port: any.ports[0],
        dst_port: any.ports[1],
        seq: Seq::new(any.seq),
        ack: Seq::new(any.ack),
        flags: TcpFlags::from_bits(any.flags),
        window: any.window,
        urgent: any.window,
        options: TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps: stamp.map(|value| Timestamps { value, echo: any.ack }),
            ..TcpOptions::default()
        },
    };
    Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 9).tcp(1, &header, Bytes::from(vec![7; any.len]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    // Breaks: hosts can make the gateway panic, lose count of packets, or keep memory.
    #[test]
    fn nothing_panics_and_everything_ends(packets in prop::collection::vec(any_packet(), 1..60)) {
        let mut net = Net::new(Plan { delay: Span::from_millis(1), ..Plan::new() });
        for any in &packets {
            net.inject(if any.from_lan { Gateway::LAN } else { Gateway::WAN }, packet(any));
            net.run_for(Span::from_millis(any.pause));
        }
        net.world.check().unwrap();
        prop_assert!(net.totals().connections <= 4);
        // Probes of idle connections, each answered by nobody or with a reset.
        net.run_for(Span::from_secs(4_000));
        prop_assert_eq!(net.totals().connections, 0);
        prop_assert_eq!(net.totals().memory, ByteCount::ZERO);
    }

    // Breaks: a frame that is no packet, or a damaged one, stops the gateway.
    #[test]
    fn damaged_packets_pass_or_are_dropped(
        any in any_packet(),
        bits in prop::collection::vec(any::<u64>(), 1..8),
    ) {
        let mut net = Net::new(Plan::new());
        let mut damaged = packet(&any);
        bits.iter().for_each(|bit| damaged.flip_bit(*bit));
        net.inject(Port(u16::from(!any.from_lan)), damaged);
        net.world.check().unwrap();
    }
}
