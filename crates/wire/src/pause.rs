//! PAUSE frames: a station requests that the other end of its link stops sending for a while (IEEE 802.3
//! Annex 31B).

use crate::error::{Layer, WireError};
use crate::ethernet::{EtherType, MacAddr};
use crate::packet::Packet;
use bytes::Bytes;

/// A MAC control frame. PAUSE with a time of 0 ends an earlier pause.
///
/// ```
/// use farpace_wire::{MacAddr, PauseFrame};
///
/// let pause = PauseFrame::pause(0).packet(MacAddr([2, 0, 0, 0, 0, 1]));
/// assert_eq!(pause.len().get(), 60); // the minimum length
/// assert_eq!(PauseFrame::read(&pause), Ok(PauseFrame { opcode: 1, time: 0 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PauseFrame {
    /// [`PAUSE`](Self::PAUSE), or another opcode; then `time` is its first parameter.
    pub opcode: u16,
    /// Duration in units of 512 bit times of the link.
    pub time: u16,
}

impl PauseFrame {
    /// The opcode of PAUSE.
    pub const PAUSE: u16 = 1;
    /// Bytes of opcode and time.
    pub const LEN: usize = 4;
    /// Payload length of the shortest frame: opcode, time and zeros.
    const PADDED: usize = 46;

    /// PAUSE for `time`.
    pub const fn pause(time: u16) -> Self {
        PauseFrame { opcode: Self::PAUSE, time }
    }
    /// Parses what follows the Ethernet header. Padding is ignored.
    ///
    /// # Errors
    /// Fewer than four bytes.
    pub fn parse(bytes: &[u8]) -> Result<PauseFrame, WireError> {
        let Some(&[o0, o1, t0, t1]) = bytes.first_chunk() else {
            return Err(WireError::Truncated {
                layer: Layer::MacControl,
                need: Self::LEN,
                have: bytes.len(),
            });
        };
        Ok(PauseFrame { opcode: u16::from_be_bytes([o0, o1]), time: u16::from_be_bytes([t0, t1]) })
    }
    /// Parses the MAC control frame in `packet`.
    ///
    /// # Errors
    /// Another EtherType, or too few bytes.
    pub fn read(packet: &Packet) -> Result<PauseFrame, WireError> {
        match packet.ethernet()?.ether_type {
            EtherType::MAC_CONTROL => PauseFrame::parse(packet.payload()),
            EtherType(other) => Err(WireError::NotMacControl(other)),
        }
    }
    /// The bytes after the Ethernet header.
    pub const fn encode(self) -> [u8; Self::LEN] {
        let ([a, b], [c, d]) = (self.opcode.to_be_bytes(), self.time.to_be_bytes());
        [a, b, c, d]
    }
    /// The frame from `src`, padded with zeros to the minimum length.
    pub fn packet(self, src: MacAddr) -> Packet {
        let mut payload = [0; Self::PADDED];
        payload[..Self::LEN].copy_from_slice(&self.encode());
        Packet::from_link(src, MacAddr::MAC_CONTROL, EtherType::MAC_CONTROL, Bytes::copy_from_slice(&payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: an encoded PAUSE frame parses to the same values, and a truncated one is refused.
        #[test]
        fn encoded_frames_parse_to_the_same_values(opcode: u16, time: u16, src: [u8; 6], cut in 0usize..4) {
            let pause = PauseFrame { opcode, time };
            prop_assert_eq!(PauseFrame::read(&pause.packet(MacAddr(src))), Ok(pause));
            prop_assert!(PauseFrame::parse(&pause.encode()[..cut]).is_err());
        }
    }

    /// Breaks: frames have the bytes of IEEE 802.3 Annex 31B, and addresses that bridges do not forward are
    /// recognised.
    #[test]
    fn the_bytes_are_those_of_the_standard() {
        let mut frame = Vec::new();
        PauseFrame::pause(0xffff).packet(MacAddr([2, 0, 0, 0, 0, 1])).write_frame(&mut frame);
        let mut expected = vec![0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 0, 1, 0xff, 0xff];
        expected.resize(60, 0);
        assert_eq!(frame, expected);
        assert!(MacAddr::MAC_CONTROL.is_link_local_group() && MacAddr::NEAREST_BRIDGE.is_link_local_group());
        assert!(!MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x10]).is_link_local_group());
        assert!(!MacAddr::BROADCAST.is_link_local_group());
    }
}
