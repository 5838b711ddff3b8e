//! Changes of packets in flight: routers decrement the TTL and mark ECN, links damage packets.

use super::{Checksum, Packet};
use crate::ethernet::MacAddr;
use crate::ip::{Ecn, IpView};
use bytes::Bytes;

impl Packet {
    /// Computes the transport checksum and stores it, if that is still to be done.
    pub fn complete_checksum(&mut self) {
        if let Some((at, sum)) = self.missing_checksum() {
            self.0.header[at..at + 2].copy_from_slice(&sum);
        }
        self.0.checksum = Checksum::Complete;
    }

    /// Inverts one bit of the frame: `bit` modulo the number of bits, in order of transmission of bytes, most
    /// significant bit first. The checksum is completed first, so that a receiver detects the damage. The
    /// payload is copied only if the bit is in it.
    ///
    /// The extents of headers and payload do not change. Views of headers that contradict them return errors.
    pub fn flip_bit(&mut self, bit: u64) {
        self.complete_checksum();
        let bit = bit % self.len().bits();
        let (byte, mask) = ((bit / 8) as usize, 0x80 >> (bit % 8));
        let header_len = usize::from(self.0.header_len);
        if byte < header_len {
            self.0.header[byte] ^= mask;
        } else {
            let mut payload = self.0.payload.to_vec();
            payload[byte - header_len] ^= mask;
            self.0.payload = Bytes::from(payload);
        }
    }

    /// Replaces the Ethernet addresses, as a sender on the next link does.
    #[inline]
    pub fn set_macs(&mut self, src: MacAddr, dst: MacAddr) {
        self.0.header[0..6].copy_from_slice(&dst.0);
        self.0.header[6..12].copy_from_slice(&src.0);
    }

    /// Decrements the TTL (IPv4) or hop limit (IPv6), as a router does. A packet that is not IP or whose TTL
    /// is zero stays unchanged. A wrong IPv4 header checksum stays wrong.
    #[inline]
    pub fn decrement_ttl(&mut self) {
        let at = usize::from(self.0.network_offset);
        match self.ip() {
            Some(IpView::V4(ip)) if ip.ttl() > 0 => {
                let word = u16::from_be_bytes([ip.ttl() - 1, ip.protocol()]);
                self.set_ipv4_word(8, word);
            }
            Some(IpView::V6(ip)) if ip.hop_limit() > 0 => self.0.header[at + 7] -= 1,
            _ => {}
        }
    }

    /// Sets CE (RFC 3168 §5). Returns false if the sender is not ECN-capable or the packet is not IP: it
    /// stays unchanged, and a router drops it instead.
    #[inline]
    pub fn mark_ce(&mut self) -> bool {
        let capable = self.ip().is_some_and(|ip| ip.ecn().is_capable());
        if capable {
            self.set_ecn(Ecn::Ce);
        }
        capable
    }

    /// Sets the ECN codepoint, as a middlebox that bleaches it does. A packet that is not IP stays unchanged.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        let at = usize::from(self.0.network_offset);
        match self.ip() {
            Some(IpView::V4(ip)) => {
                let word = u16::from_be_bytes([self.0.header[at], ip.tos() & !3 | ecn.bits()]);
                self.set_ipv4_word(0, word);
            }
            Some(IpView::V6(_)) => {
                let byte = &mut self.0.header[at + 1];
                *byte = *byte & !0x30 | ecn.bits() << 4;
            }
            None => {}
        }
    }

    /// Changes 16 bits of the IPv4 header, and updates its checksum incrementally (RFC 1624 eq. 3).
    #[inline]
    pub(super) fn set_ipv4_word(&mut self, word_at: usize, word: u16) {
        let at = usize::from(self.0.network_offset);
        let header = &mut self.0.header[at..];
        let read = |header: &[u8], at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (was, checksum) = (read(header, word_at), read(header, 10));
        let sum = u32::from(!checksum) + u32::from(!was) + u32::from(word);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        header[word_at..word_at + 2].copy_from_slice(&word.to_be_bytes());
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}
