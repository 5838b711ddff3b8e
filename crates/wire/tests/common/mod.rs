//! What the tests draw: any TCP header, and packets around it.

#![allow(dead_code)] // each test file uses its part

use bytes::Bytes;
use farpace_units::Seq;
use farpace_wire::{Ipv4Tcp, MacAddr, Packet, SackBlock, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub fn options() -> impl Strategy<Value = TcpOptions> {
    let timestamps = option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }));
    let block =
        any::<(u32, u32)>().prop_map(|(start, end)| SackBlock { start: Seq::new(start), end: Seq::new(end) });
    (option::of(any::<u16>()), option::of(any::<u8>()), any::<bool>(), timestamps, vec(block, 0..=4))
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, sack)| TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack: sack.into_iter().collect(),
        })
}

pub fn header() -> impl Strategy<Value = TcpHeader> {
    (any::<[u16; 4]>(), any::<[u32; 2]>(), 0u16..0x1000, options()).prop_map(
        |([src_port, dst_port, window, urgent], [seq, ack], flags, options)| TcpHeader {
            src_port,
            dst_port,
            seq: Seq::new(seq),
            ack: Seq::new(ack),
            flags: TcpFlags::from_bits(flags),
            window,
            urgent,
            options,
        },
    )
}

pub fn lower() -> impl Strategy<Value = Ipv4Tcp> {
    any::<([u8; 6], [u8; 6], [u8; 4], [u8; 4], u8, u8)>().prop_map(
        |(src_mac, dst_mac, src, dst, ttl, tos)| Ipv4Tcp {
            src_mac: MacAddr(src_mac),
            dst_mac: MacAddr(dst_mac),
            src: src.into(),
            dst: dst.into(),
            ttl,
            tos,
        },
    )
}

pub fn packet() -> impl Strategy<Value = Packet> {
    (lower(), any::<u16>(), header(), vec(any::<u8>(), 0..200))
        .prop_map(|(lower, ident, header, payload)| lower.build(ident, &header, Bytes::from(payload)))
}

/// What is left of the options when the header is written: SACK blocks that do not fit are gone.
pub fn fitting(header: &TcpHeader) -> TcpHeader {
    let mut header = header.clone();
    let o = &header.options;
    let others = 4 * usize::from(o.mss.is_some())
        + 4 * usize::from(o.window_scale.is_some())
        + match (o.sack_permitted, o.timestamps.is_some()) {
            (_, true) => 12,
            (true, false) => 4,
            (false, false) => 0,
        };
    header.options.sack.truncate((40 - others - 4) / 8);
    header
}

pub fn frame(packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    frame
}
