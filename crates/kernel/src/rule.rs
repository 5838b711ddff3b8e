//! What holds for connections to a destination.

use crate::KernelControl;
use farpace_units::{Packets, Rate, Span};
use serde::Serialize;
use std::net::IpAddr;

/// Most rules of a policy (`bpf/rules.h`).
pub const MAX_RULES: usize = 4096;

/// What holds for connections to a destination; what is none stays as the kernel has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Their control.
    pub control: Option<KernelControl>,
    /// Least retransmission timeout; the kernel takes at most its own, 200 ms.
    pub rto_min: Option<Span>,
    /// Largest retransmission timeout, back-off included; from 1 s to 120 s, since Linux 6.15.
    pub rto_max: Option<Span>,
    /// Longest that an ACK is delayed.
    pub delack_max: Option<Span>,
    /// Segments that are sent before the first ACK comes.
    pub initial_window: Option<Packets>,
    /// Segments that the peer may send before the receive window grows.
    pub initial_receive_window: Option<Packets>,
    /// Fastest rate at which segments leave, at most 34 Gbit/s.
    pub max_rate: Option<Rate>,
    /// It asks for ACKs where the peer can answer, and answers requests.
    pub ack_requests: bool,
}

impl Rule {
    /// The rule as `struct rule` has it.
    #[cfg_attr(not(any(feature = "bpf", test)), expect(dead_code, reason = "who loads rules needs it"))]
    pub(crate) fn bytes(&self) -> [u8; 40] {
        let us = |span: Option<Span>| {
            span.map_or(0, |span| u32::try_from(span.as_nanos() / 1_000).unwrap_or(u32::MAX))
        };
        let segments = |n: Option<Packets>| n.map_or(0, Packets::get);
        let rate = self.max_rate.map_or(0, |rate| (rate.bits_per_sec() / 8).max(1));
        let control = match self.control {
            None => 0,
            Some(KernelControl::Farpace) => 1,
            Some(KernelControl::Star) => 2,
        };
        let words = [
            control,
            us(self.rto_min),
            us(self.delack_max),
            us(self.rto_max) / 1_000,
            segments(self.initial_window),
            segments(self.initial_receive_window),
            u32::from(self.ack_requests),
            0,
        ];
        let mut bytes = [0; 40];
        let (head, tail) = bytes.split_at_mut(8);
        head.copy_from_slice(&rate.to_ne_bytes());
        tail.chunks_exact_mut(4)
            .zip(words)
            .for_each(|(slot, word)| slot.copy_from_slice(&word.to_ne_bytes()));
        bytes
    }
}

/// A rule, and the peers that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KernelDestination {
    /// An address of the network.
    pub address: IpAddr,
    /// Bits of its prefix.
    pub bits: u8,
    /// What holds for connections to it.
    pub rule: Rule,
}

impl KernelDestination {
    /// Every IPv4 and IPv6 address.
    pub fn everywhere(rule: Rule) -> Self {
        KernelDestination { address: IpAddr::from([0; 16]), bits: 0, rule }
    }

    /// The key of the map: IPv4 addresses as IPv6 knows them.
    #[cfg_attr(not(any(feature = "bpf", test)), expect(dead_code, reason = "who loads rules needs it"))]
    pub(crate) fn key(&self) -> [u8; 20] {
        let (address, bits) = match self.address {
            // Nothing but every address has no bits.
            IpAddr::V6(address) => (address.octets(), u32::from(self.bits)),
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), 96 + u32::from(self.bits)),
        };
        let mut key = [0; 20];
        let (head, tail) = key.split_at_mut(4);
        head.copy_from_slice(&bits.to_ne_bytes());
        tail.copy_from_slice(&address);
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: rules hold for other addresses than they are for.
    #[test]
    fn keys() {
        let at = |text: &str, bits| {
            KernelDestination { address: text.parse().unwrap(), bits, rule: Rule::default() }.key()
        };
        assert_eq!(at("10.1.2.3", 8)[..4], 104u32.to_ne_bytes());
        assert_eq!(at("10.1.2.3", 8)[4..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 1, 2, 3]);
        assert_eq!(at("fd00::1", 64)[..6], [64, 0, 0, 0, 0xfd, 0]);
        assert_eq!(KernelDestination::everywhere(Rule::default()).key(), [0; 20]);
    }

    /// Breaks: a rule is another in the kernel.
    #[test]
    fn rules() {
        let rule = Rule {
            control: Some(KernelControl::Star),
            rto_min: Some(Span::from_millis(50)),
            rto_max: Some(Span::from_secs(3)),
            initial_window: Some(Packets::new(32)),
            max_rate: Some(Rate::from_mbit(8)),
            ..Rule::default()
        };
        let bytes = rule.bytes();
        assert_eq!(bytes[..8], 1_000_000u64.to_ne_bytes());
        let words: Vec<_> =
            bytes[8..].chunks_exact(4).map(|w| u32::from_ne_bytes(w.try_into().unwrap())).collect();
        assert_eq!(words, [2, 50_000, 0, 3_000, 32, 0, 0, 0]);
        assert_eq!(Rule::default().bytes(), [0; 40]);
    }
}
