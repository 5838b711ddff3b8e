//! Strategies of the tests: any TCP header, and packets with it.

#![allow(dead_code)] // each test file uses some of it
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use bytes::Bytes;
use farpace_units::Seq;
use farpace_wire::tcp::{AckControl, AckDelay, CdlCapability, Tarr};
use farpace_wire::{
    AddressPair, Below, Icmp, IpVersion, MacAddr, NeighbourDiscovery, Packet, SackBlock, TcpFlags, TcpHeader,
    TcpOptions, Timestamps, UdpHeader, Unreachable,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::net::Ipv4Addr;

pub fn options() -> impl Strategy<Value = TcpOptions> {
    let timestamps = option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }));
    let block =
        any::<(u32, u32)>().prop_map(|(start, end)| SackBlock { start: Seq::new(start), end: Seq::new(end) });
    let syn = (option::of(any::<u16>()), option::of(any::<u8>()), any::<bool>());
    (syn, timestamps, ack_control(), vec(block, 0..=4)).prop_map(
        |((mss, window_scale, sack_permitted), timestamps, ack_control, sack)| TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            ack_control,
            sack: sack.into_iter().collect(),
        },
    )
}

/// Any ACK control options; often none.
pub fn ack_control() -> impl Strategy<Value = AckControl> {
    let tarr = prop_oneof![Just(Tarr::Capable), (0u8..=127).prop_map(Tarr::Rate)];
    let some = (
        any::<(bool, bool)>(),
        option::of((0u8..16).prop_map(CdlCapability::from_bits)),
        option::of(any::<u16>().prop_map(AckDelay::from_wire)),
        option::of(tarr),
    )
        .prop_map(|((cdl_allow, request), capability, confirmation, tarr)| AckControl {
            cdl_allow,
            capability,
            request,
            confirmation,
            tarr,
        });
    prop_oneof![Just(AckControl::default()), some]
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

/// IPv4 with the don't fragment flag.
pub fn lower() -> impl Strategy<Value = Below> {
    (mac(), mac(), any::<([u8; 4], [u8; 4], u8, u8)>()).prop_map(
        |(src_mac, dst_mac, (src, dst, ttl, tos))| {
            let addresses = AddressPair::V4(src.into(), dst.into());
            Below { tos, ..Below::new(src_mac, dst_mac, addresses, ttl) }
        },
    )
}

/// The addresses of a value of [`lower`].
pub fn ipv4(lower: &Below) -> (Ipv4Addr, Ipv4Addr) {
    match lower.addresses {
        AddressPair::V4(src, dst) => (src, dst),
        AddressPair::V6(..) => (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED),
    }
}

pub fn packet() -> impl Strategy<Value = Packet> {
    (lower(), any::<u16>(), header(), vec(any::<u8>(), 0..200))
        .prop_map(|(lower, ident, header, payload)| lower.tcp(ident, &header, Bytes::from(payload)))
}

pub fn mac() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr)
}

pub fn addresses() -> impl Strategy<Value = AddressPair> {
    let v4 = any::<([u8; 4], [u8; 4])>().prop_map(|(src, dst)| AddressPair::V4(src.into(), dst.into()));
    let v6 = any::<([u8; 16], [u8; 16])>().prop_map(|(src, dst)| AddressPair::V6(src.into(), dst.into()));
    prop_oneof![v4, v6]
}

/// Both versions of IP.
pub fn below() -> impl Strategy<Value = Below> {
    (mac(), mac(), addresses(), any::<(u8, u8, bool)>(), 0u32..1 << 20).prop_map(
        |(src_mac, dst_mac, addresses, (ttl, tos, dont_fragment), flow_label)| Below {
            src_mac,
            dst_mac,
            addresses,
            ttl,
            tos,
            dont_fragment,
            flow_label,
        },
    )
}

pub fn version(below: &Below) -> IpVersion {
    match below.addresses {
        AddressPair::V4(..) => IpVersion::V4,
        AddressPair::V6(..) => IpVersion::V6,
    }
}

/// Any message that both versions have, or that only `version` has. It leaks its data.
pub fn icmp(version: IpVersion) -> impl Strategy<Value = Icmp<'static>> {
    let v4 = version == IpVersion::V4;
    let data = || vec(any::<u8>(), 0..120).prop_map(|data| &*data.leak());
    let echo = (any::<(bool, u16, u16)>(), data()).prop_map(|((request, ident, seq), data)| match request {
        true => Icmp::EchoRequest { ident, seq, data },
        false => Icmp::EchoReply { ident, seq, data },
    });
    let unreachable = (any::<u8>(), data()).prop_filter_map("that is too big", move |(code, quoted)| {
        let why = Unreachable::from_code(version, code);
        (!v4 || code != 4).then_some(Icmp::Unreachable { why, quoted })
    });
    let word = move |bits: u32, word: u32| if v4 { word >> (32 - bits) } else { word };
    let others =
        (0u8..3, any::<(u8, u32)>(), data()).prop_map(move |(which, (code, n), quoted)| match which {
            0 => Icmp::TooBig { mtu: word(16, n), quoted },
            1 => Icmp::TimeExceeded { code, quoted },
            _ => Icmp::ParameterProblem { code, pointer: word(8, n), quoted },
        });
    let neighbour = (any::<[bool; 4]>(), any::<[u8; 16]>(), option::of(mac())).prop_map(
        |([solicitation, router, solicited, overrides], target, link)| {
            let target = target.into();
            Icmp::Neighbour(match solicitation {
                true => NeighbourDiscovery::Solicitation { target, source_link: link },
                false => NeighbourDiscovery::Advertisement {
                    target,
                    target_link: link,
                    router,
                    solicited,
                    overrides,
                },
            })
        },
    );
    // A type that neither version defines.
    let unknown = (any::<u8>(), vec(any::<u8>(), 4..40)).prop_map(|(code, body)| Icmp::Other {
        kind: 200,
        code,
        body: body.leak(),
    });
    let both = prop_oneof![echo, unreachable, others, unknown];
    if v4 { both.boxed() } else { prop_oneof![4 => both, 1 => neighbour].boxed() }
}

/// Packets of all kinds that this crate builds.
pub fn any_packet() -> impl Strategy<Value = Packet> {
    let data = || vec(any::<u8>(), 0..200).prop_map(Bytes::from);
    let tcp = (below(), any::<u16>(), header(), data()).prop_map(|(b, id, h, data)| b.tcp(id, &h, data));
    let udp = (below(), any::<(u16, u16, u16)>(), data()).prop_map(|(b, (id, src_port, dst_port), data)| {
        b.udp(id, UdpHeader { src_port, dst_port }, data).unwrap()
    });
    let icmp = below()
        .prop_flat_map(|b| (Just(b), any::<u16>(), icmp(version(&b))))
        .prop_map(|(b, id, message)| b.icmp(id, &message).unwrap());
    prop_oneof![tcp, udp, icmp]
}

/// The header after encoding: ACK control that does not fit beside the options before it is omitted as a
/// whole, and then SACK blocks that do not fit.
pub fn fitting(header: &TcpHeader) -> TcpHeader {
    let mut header = header.clone();
    let o = &mut header.options;
    let mut room = 40
        - 4 * usize::from(o.mss.is_some())
        - 4 * usize::from(o.window_scale.is_some())
        - match (o.sack_permitted, o.timestamps.is_some()) {
            (_, true) => 12,
            (true, false) => 4,
            (false, false) => 0,
        };
    match room.checked_sub(ack_control_len(&o.ack_control)) {
        Some(left) => room = left,
        None => o.ack_control = AckControl::default(),
    }
    o.sack.truncate(room.saturating_sub(4) / 8);
    header
}

/// Length of the ACK control options, padded.
fn ack_control_len(control: &AckControl) -> usize {
    let bytes = 4 * usize::from(control.cdl_allow)
        + 5 * usize::from(control.capability.is_some())
        + 5 * usize::from(control.request)
        + 7 * usize::from(control.confirmation.is_some())
        + match control.tarr {
            None => 0,
            Some(Tarr::Capable) => 4,
            Some(Tarr::Rate(_)) => 5,
        };
    bytes.next_multiple_of(4)
}

pub fn frame(packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    frame
}
