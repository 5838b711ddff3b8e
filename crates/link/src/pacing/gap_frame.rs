//! Gap frames: frames that occupy the link and carry nothing.

use super::{FCS, MIN_FRAME, PREAMBLE_AND_GAP};
use bytes::Bytes;
use farpace_units::ByteCount;
use farpace_wire::ethernet::ETHERNET_LEN;
use farpace_wire::{EtherType, MacAddr, Packet, PauseFrame};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The format of gap frames. All end at the port at the other end of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GapFrameKind {
    /// PAUSE with a time of 0 (IEEE 802.3 Annex 31B), as in the paper. It requests no pause, and every port
    /// consumes it. Some drivers drop PAUSE frames that do not come from their own hardware.
    #[default]
    Pause,
    /// The local experimental EtherType 0x88B5 to the nearest bridge, 01-80-C2-00-00-0E. Of all reserved
    /// group addresses, this is the one that even two-port relays do not forward (IEEE 802.1Q Table 8-1) and
    /// without a specific protocol.
    Experimental,
    /// EtherType 0x88B5 to the sender's own address. A bridge finds the destination on the port where the
    /// frame arrived, and discards it. A bridge that has not learned the address floods the frame once.
    #[serde(rename = "self")]
    ToSelf,
}

impl GapFrameKind {
    /// The kind of gap frame that `packet` is; none if it is not a gap frame.
    pub fn of(packet: &Packet) -> Option<GapFrameKind> {
        let (src, dst) = packet.macs();
        let carries = |ether_type| packet.ethernet().is_ok_and(|header| header.ether_type == ether_type);
        if dst == MacAddr::MAC_CONTROL {
            let nothing = PauseFrame::read(packet) == Ok(PauseFrame::pause(0));
            return nothing.then_some(GapFrameKind::Pause);
        }
        let kind = match dst {
            MacAddr::NEAREST_BRIDGE => GapFrameKind::Experimental,
            _ if dst == src => GapFrameKind::ToSelf,
            _ => return None,
        };
        carries(EtherType::EXPERIMENTAL).then_some(kind)
    }
    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            GapFrameKind::Pause => "pause",
            GapFrameKind::Experimental => "experimental",
            GapFrameKind::ToSelf => "self",
        }
    }
}

/// Builds gap frames of one kind. All share one payload buffer.
#[derive(Clone, Debug)]
pub struct GapFrames {
    kind: GapFrameKind,
    payload: Bytes,
}

impl GapFrames {
    /// A builder for a link that carries IP packets of up to `mtu` bytes, 65535 at most.
    pub fn new(kind: GapFrameKind, mtu: ByteCount) -> Self {
        let mut payload = vec![0; mtu.as_len().clamp(SHORTEST_PAYLOAD, usize::from(u16::MAX))];
        if kind == GapFrameKind::Pause {
            payload[..PauseFrame::LEN].copy_from_slice(&PauseFrame::pause(0).encode());
        }
        GapFrames { kind, payload: payload.into() }
    }
    /// A frame from `src` with a wire length of `gap` bytes, clamped to the range from the minimum frame to a
    /// frame of the MTU. Check sequence, preamble and inter-frame gap are part of `gap` but not of the frame
    /// in memory.
    pub fn frame(&self, src: MacAddr, gap: ByteCount) -> Packet {
        let around = FCS + PREAMBLE_AND_GAP + ByteCount::of_len(ETHERNET_LEN);
        let len = (gap - around).as_len().clamp(SHORTEST_PAYLOAD, self.payload.len());
        let (dst, ether_type) = match self.kind {
            GapFrameKind::Pause => (MacAddr::MAC_CONTROL, EtherType::MAC_CONTROL),
            GapFrameKind::Experimental => (MacAddr::NEAREST_BRIDGE, EtherType::EXPERIMENTAL),
            GapFrameKind::ToSelf => (src, EtherType::EXPERIMENTAL),
        };
        Packet::from_link(src, dst, ether_type, self.payload.slice(..len))
    }
}

/// Bytes after the Ethernet header in a minimum frame.
const SHORTEST_PAYLOAD: usize = MIN_FRAME.get() as usize - FCS.get() as usize - ETHERNET_LEN;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::{MIN_GAP, wire_len};
    use proptest::prelude::*;

    const OWN: MacAddr = MacAddr([2, 0, 10, 0, 0, 1]);
    const KINDS: [GapFrameKind; 3] = [GapFrameKind::Pause, GapFrameKind::Experimental, GapFrameKind::ToSelf];

    fn bytes(packet: &Packet) -> Vec<u8> {
        let mut frame = Vec::new();
        packet.write_frame(&mut frame);
        frame
    }

    /// Breaks: the bytes of gap frames, as the paper and the standards define them.
    #[test]
    fn the_bytes_of_each_kind() {
        let own = OWN.0;
        let cases: [(_, &[u8], &[u8], &[u8]); 3] = [
            (GapFrameKind::Pause, &[0x01, 0x80, 0xc2, 0, 0, 0x01], &[0x88, 0x08], &[0, 1, 0, 0]),
            (GapFrameKind::Experimental, &[0x01, 0x80, 0xc2, 0, 0, 0x0e], &[0x88, 0xb5], &[0; 4]),
            (GapFrameKind::ToSelf, &own, &[0x88, 0xb5], &[0; 4]),
        ];
        for (kind, dst, ether_type, begins) in cases {
            for (gap, len) in [(84, 60), (85, 61), (1_538, 1_514)] {
                let frame = GapFrames::new(kind, ByteCount::new(1_500)).frame(OWN, ByteCount::new(gap));
                let mut expected = [dst, &own, ether_type, begins].concat();
                expected.resize(len, 0);
                assert_eq!(bytes(&frame), expected, "{kind:?}, {gap}");
            }
        }
    }

    /// Breaks: gap frames share their payload instead of copying zeros.
    #[test]
    fn payloads_are_shared() {
        let gaps = GapFrames::new(GapFrameKind::Pause, ByteCount::new(1_500));
        let (long, short) = (gaps.frame(OWN, ByteCount::new(1_538)), gaps.frame(OWN, MIN_GAP));
        assert_eq!(long.payload().as_ptr(), short.payload().as_ptr());
    }

    proptest! {
        /// Breaks: a gap frame has the wire length of its gap, and the receiver recognises it.
        #[test]
        fn a_gap_frame_fills_its_gap(gap in 84u64..1_539, kind in 0usize..3, own: [u8; 5]) {
            let own = MacAddr([2, own[0], own[1], own[2], own[3], own[4]]);
            let frame = GapFrames::new(KINDS[kind], ByteCount::new(1_500)).frame(own, ByteCount::new(gap));
            prop_assert_eq!(wire_len(frame.len()), ByteCount::new(gap));
            let arrived = Packet::from_frame(&bytes(&frame)).unwrap();
            prop_assert_eq!(GapFrameKind::of(&arrived), Some(KINDS[kind]));
            prop_assert!(farpace_path::ends_at_port(&arrived));
        }
    }

    /// Breaks: other frames are not mistaken for gap frames, which a measurement leaves out.
    #[test]
    fn other_frames_are_no_gap_frames() {
        let link = |dst, ether_type| Packet::from_link(OWN, dst, ether_type, Bytes::from_static(&[0; 46]));
        for packet in [
            PauseFrame::pause(1).packet(OWN),
            PauseFrame { opcode: 0x0101, time: 0 }.packet(OWN),
            link(MacAddr::NEAREST_BRIDGE, EtherType(0x88cc)), // LLDP
            link(OWN, EtherType::IPV4),
            link(MacAddr::BROADCAST, EtherType::EXPERIMENTAL),
        ] {
            assert_eq!(GapFrameKind::of(&packet), None, "{packet:?}");
        }
    }
}
