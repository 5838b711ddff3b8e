//! A stateful firewall or normaliser: it strips TCP options, clears reserved bits, and drops segments that no
//! ordinary connection sends.

use crate::tcp_edit::edited;
use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_wire::tcp::{TCP_LEN, TcpFlags, TcpView};
use farpace_wire::{Packet, WireError};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A middlebox in each direction.
pub type Middlebox = Duplex<MiddleboxDirection>;

/// What a middlebox does. By default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MiddleboxConfig {
    /// Kinds of TCP options that it overwrites with NOPs, so that nothing moves. Kinds 0 and 1 have no
    /// effect.
    pub strip: BTreeSet<u8>,
    /// The segments from which it strips them.
    pub strip_on: StripOn,
    /// Bits of the header that it clears.
    pub clear: TcpFlags,
    /// It drops segments without ACK, SYN and RST.
    pub drop_without_ack: bool,
}

impl MiddleboxConfig {
    /// The three reserved bits, 4 to 6 of the word with the data offset (RFC 9293 §3.1, RFC 9768 §3.1.1).
    pub const RESERVED: TcpFlags = TcpFlags::from_bits(0x0e00);
    /// Kinds that a conservative firewall knows: MSS, window scale, SACK, timestamps (2 to 5, 8).
    const KNOWN: [RangeInclusive<u8>; 2] = [0..=5, 8..=8];

    /// Every kind of option but MSS, window scale, SACK and timestamps.
    pub fn unknown_options() -> BTreeSet<u8> {
        (0..=u8::MAX).filter(|kind| !Self::KNOWN.iter().any(|known| known.contains(kind))).collect()
    }
}

/// The segments from which options are stripped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StripOn {
    /// Those with SYN: the ends do not agree on the feature.
    Syn,
    /// Those without SYN, data and ACKs: the ends have agreed, but the option never arrives.
    Data,
    /// All.
    #[default]
    All,
}

/// One direction of a [`Middlebox`]. A packet that is not a whole TCP segment passes unchanged: other
/// protocols, fragments, and headers that cannot be read.
#[derive(Clone, Debug)]
pub struct MiddleboxDirection {
    config: MiddleboxConfig,
    stripped: u64,
    cleared: u64,
    dropped: u64,
    unreadable: u64,
}

impl MiddleboxDirection {
    /// A middlebox that does what `config` says.
    pub const fn new(config: MiddleboxConfig) -> Self {
        MiddleboxDirection { config, stripped: 0, cleared: 0, dropped: 0, unreadable: 0 }
    }
    /// Segments from which options were stripped so far.
    pub const fn stripped(&self) -> u64 {
        self.stripped
    }
    /// Segments of which bits were cleared so far.
    pub const fn cleared(&self) -> u64 {
        self.cleared
    }
    /// Segments dropped so far.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
    /// TCP segments that passed because their header could not be read; fragments are not counted.
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn strips_from(&self, tcp: &TcpView<'_>) -> bool {
        let syn = tcp.flags().contains(TcpFlags::SYN);
        let here = match self.config.strip_on {
            StripOn::Syn => syn,
            StripOn::Data => !syn,
            StripOn::All => true,
        };
        here && tcp.raw_options().map_while(Result::ok).any(|(kind, _)| self.strips(kind))
    }
    fn strips(&self, kind: u8) -> bool {
        kind > NOP && self.config.strip.contains(&kind)
    }

    /// Overwrites options with NOPs. After an invalid length the rest is left unchanged.
    fn strip(&self, options: &mut [u8]) {
        let mut at = 0;
        while let Some([kind, rest @ ..]) = options.get(at..) {
            let (kind, len) = match (*kind, rest) {
                (END, _) => return,
                (NOP, _) => (NOP, 1),
                (kind, [len, ..]) if *len >= 2 => (kind, usize::from(*len)),
                _ => return,
            };
            let Some(option) = options.get_mut(at..at + len) else { return };
            if self.strips(kind) {
                option.fill(NOP);
            }
            at += len;
        }
    }
}

const END: u8 = 0;
const NOP: u8 = 1;
/// Data offset and flags are here.
const FLAGS_AT: usize = 12;

impl ElementDirection for MiddleboxDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let tcp = match packet.tcp() {
            Ok(tcp) => tcp,
            Err(why) => {
                let other = matches!(why, WireError::NotTcp(_) | WireError::NotIp(_) | WireError::Fragment);
                self.unreadable += u64::from(!other);
                return cx.emit(out, packet);
            }
        };
        let flags = tcp.flags();
        if self.config.drop_without_ack && !flags.intersects(TcpFlags::ACK | TcpFlags::SYN | TcpFlags::RST) {
            self.dropped += 1;
            return cx.drop(packet, DropReason::NoAck);
        }
        let (strips, clears) = (self.strips_from(&tcp), flags.intersects(self.config.clear));
        if !strips && !clears {
            return cx.emit(out, packet);
        }
        self.stripped += u64::from(strips);
        self.cleared += u64::from(clears);
        let changed = edited(&packet, |header| {
            if clears && let Some(word) = header.get_mut(FLAGS_AT..).and_then(<[u8]>::first_chunk_mut) {
                *word = (u16::from_be_bytes(*word) & !self.config.clear.bits()).to_be_bytes();
            }
            if strips && let Some(options) = header.get_mut(TCP_LEN..) {
                self.strip(options);
            }
        });
        cx.emit(out, changed.unwrap_or(packet));
    }
    fn inspect(&self) -> Inspection {
        vec![
            ("stripped", self.stripped.to_string()),
            ("cleared", self.cleared.to_string()),
            ("dropped", self.dropped.to_string()),
            ("unreadable", self.unreadable.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests;
