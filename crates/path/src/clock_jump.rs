//! A sender whose timestamp clock jumps, as its peers see it: the timestamps that it sends are changed, and
//! their echoes are changed back.

use crate::tcp_edit::edited;
use crate::{Cx, Duplex, ElementDirection, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::Packet;
use farpace_wire::tcp::{TCP_LEN, TcpFlags};

/// A jumping clock at port 0: [`ClockField::Value`] in one direction, [`ClockField::Echo`] in the other.
pub type ClockJump = Duplex<ClockJumpDirection>;

impl ClockJump {
    /// The clock of the host at port 0 jumps by `jumps`.
    pub fn of_port_0(jumps: Vec<Jump>) -> Self {
        let back = ClockJumpDirection::new(ClockField::Echo, jumps.clone());
        Duplex::new(ClockJumpDirection::new(ClockField::Value, jumps), back)
    }
    /// The clock of the host at port 1 jumps by `jumps`.
    pub fn of_port_1(jumps: Vec<Jump>) -> Self {
        let forward = ClockJumpDirection::new(ClockField::Echo, jumps.clone());
        Duplex::new(forward, ClockJumpDirection::new(ClockField::Value, jumps))
    }
}

/// A jump of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// When.
    pub at: Instant,
    /// By how many ticks of the timestamp clock (RFC 7323 §5.4 leaves their length open).
    pub ticks: u32,
}

/// Which half of the timestamps option is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockField {
    /// TSval, by the jump.
    Value,
    /// TSecr, by the negative jump. Only with ACK, where it has a meaning (RFC 7323 §3.2).
    Echo,
}

/// One direction of a [`ClockJump`].
#[derive(Clone, Debug)]
pub struct ClockJumpDirection {
    field: ClockField,
    /// Future jumps, the next one last.
    jumps: Vec<Jump>,
    offset: u32,
}

impl ClockJumpDirection {
    /// Changes `field` by the sum of the `jumps` that have happened.
    pub fn new(field: ClockField, mut jumps: Vec<Jump>) -> Self {
        jumps.sort_by_key(|jump| std::cmp::Reverse(jump.at));
        ClockJumpDirection { field, jumps, offset: 0 }
    }

    fn offset(&mut self, now: Instant) -> u32 {
        while let Some(jump) = self.jumps.pop_if(|jump| jump.at <= now) {
            self.offset = self.offset.wrapping_add(jump.ticks);
        }
        self.offset
    }
}

impl ElementDirection for ClockJumpDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let offset = self.offset(cx.now());
        let moved = if offset == 0 { None } else { with_offset(&packet, self.field, offset) };
        cx.emit(out, moved.unwrap_or(packet));
    }
    fn inspect(&self) -> Inspection {
        vec![("offset", format!("{} ticks", self.offset))]
    }
}

const END: u8 = 0;
const NOP: u8 = 1;
const TIMESTAMPS: u8 = 8;
const TIMESTAMPS_LEN: u8 = 10;

/// Offset of the timestamps option's data, counted from the first option.
fn timestamps_at(options: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match options.get(at..)? {
            [TIMESTAMPS, TIMESTAMPS_LEN, rest @ ..] if rest.len() >= 8 => return Some(at + 2),
            [END, ..] | [_] | [] => return None,
            [NOP, ..] => at += 1,
            [_, len, ..] => at += usize::from(*len).max(2),
        }
    }
}

/// The packet with `field` changed; none if it has no such field.
fn with_offset(packet: &Packet, field: ClockField, offset: u32) -> Option<Packet> {
    let tcp = packet.tcp().ok()?;
    if field == ClockField::Echo && !tcp.flags().contains(TcpFlags::ACK) {
        return None;
    }
    let option = timestamps_at(tcp.options())?;
    let (in_tcp, step) = match field {
        ClockField::Value => (TCP_LEN + option, offset),
        ClockField::Echo => (TCP_LEN + option + 4, offset.wrapping_neg()),
    };
    edited(packet, |header| {
        if let Some(field) = header.get_mut(in_tcp..).and_then(<[u8]>::first_chunk_mut) {
            *field = u32::from_be_bytes(*field).wrapping_add(step).to_be_bytes();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Harness;
    use bytes::Bytes;
    use farpace_units::Seq;
    use farpace_wire::tcp::{TcpHeader, TcpOptions, Timestamps};
    use farpace_wire::{AddressPair, Below, MacAddr};
    use proptest::prelude::*;

    fn packet(flags: TcpFlags, value: u32, echo: u32, seq: u32, payload: usize) -> Packet {
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 1, 2].into());
        let lower = Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64);
        let timestamps = Some(Timestamps { value, echo });
        let options = TcpOptions { mss: Some(1460), timestamps, ..TcpOptions::default() };
        let header = TcpHeader { flags, seq: Seq::new(seq), options, ..TcpHeader::default() };
        lower.tcp(7, &header, Bytes::from(vec![seq as u8; payload]))
    }

    fn through(at: u64, port: Port, packet: Packet) -> Packet {
        let mut harness = Harness::new(ClockJump::of_port_0(vec![
            Jump { at: Instant::from_nanos(20), ticks: u32::MAX },
            Jump { at: Instant::from_nanos(10), ticks: 1_001 },
        ]));
        harness.packet(Instant::from_nanos(at), port, packet);
        harness.emitted.remove(0).2
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Breaks: the clock jumps at the wrong time or by the wrong amount, an echo without ACK is changed,
        /// a right checksum becomes wrong, or a wrong one right.
        #[test]
        fn only_the_timestamp_moves(
            value: u32, echo: u32, seq: u32, len in 0usize..50, ack: bool, bit in 0u64..64,
        ) {
            let flags = if ack { TcpFlags::ACK } else { TcpFlags::SYN };
            for (at, offset) in [(9, 0), (10, 1_001), (19, 1_001), (20, 1_000u32)] {
                let (v, e) = (value.wrapping_add(offset), echo.wrapping_sub(offset));
                for (port, v, e) in [(Port(0), v, echo), (Port(1), value, if ack { e } else { echo })] {
                    let out = through(at, port, packet(flags, value, echo, seq, len));
                    prop_assert!(out.verify_checksums().is_ok());
                    let same = packet(flags, v, e, seq, len);
                    prop_assert_eq!(out.tcp().unwrap().header(), same.tcp().unwrap().header());
                    prop_assert_eq!(out.payload(), same.payload());
                    // Port numbers and sequence number: damage that changes no length.
                    let mut damaged = packet(flags, value, echo, seq, len);
                    damaged.flip_bit(34 * 8 + bit);
                    prop_assert!(through(at, port, damaged).verify_checksums().is_err());
                }
            }
        }
    }

    /// Breaks: a malformed list of options is read past its end, or in an endless loop.
    #[test]
    fn options_are_walked_with_care() {
        assert_eq!(timestamps_at(&[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]), Some(4));
        assert_eq!(timestamps_at(&[2, 4, 5, 180, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]), Some(6));
        for none in [&[8, 10, 0, 0, 0, 0, 0, 0, 0][..], &[0, 8, 10], &[5, 0, 5, 0], &[1, 1], &[3], &[]] {
            assert_eq!(timestamps_at(none), None);
        }
    }
}
