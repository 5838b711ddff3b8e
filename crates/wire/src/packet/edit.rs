//! What may happen to a packet on its way: routers count its time down and mark it, links damage it.

use super::{Checksum, Packet};
use crate::ethernet::MacAddr;
use crate::ip::{Ecn, IpView};
use bytes::Bytes;

impl Packet {
    /// Works the transport checksum out and writes it into its field, if that is still to be done.
    pub fn complete_checksum(&mut self) {
        if let Some((at, sum)) = self.missing_checksum() {
            self.0.header[at..at + 2].copy_from_slice(&sum);
        }
        self.0.checksum = Checksum::Complete;
    }

    /// Inverts one bit of the frame, number `bit` modulo the bits there are, counted as they stand on the wire:
    /// bit 0 is the top bit of the first byte. The checksum is completed first, so that a receiver sees the
    /// damage. The payload is copied only if the bit lies in it.
    ///
    /// Nothing is found anew: what the headers and the payload are stays as it was, and the views refuse header
    /// bytes that now say otherwise.
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

    /// Puts other Ethernet addresses in, as whoever sends the packet over its next link does.
    #[inline]
    pub fn set_macs(&mut self, src: MacAddr, dst: MacAddr) {
        self.0.header[0..6].copy_from_slice(&dst.0);
        self.0.header[6..12].copy_from_slice(&src.0);
    }

    /// Counts the time to live (IPv4) or hop limit (IPv6) down, as a router does. A packet that is not IP, or
    /// whose time is over, stays as it is. An IPv4 header that came in wrong goes out wrong.
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

    /// Marks the packet: congestion was met (RFC 3168 §5). False if its sender does not take part or it is not
    /// IP: then it stays as it is, and a router drops it instead.
    #[inline]
    pub fn mark_ce(&mut self) -> bool {
        let capable = self.ip().is_some_and(|ip| ip.ecn().is_capable());
        if capable {
            self.set_ecn(Ecn::Ce);
        }
        capable
    }

    /// Puts another ECN codepoint in, as a middlebox that bleaches or a faulty one does. A packet that is not
    /// IP stays as it is.
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

    /// Changes 16 bits of the IPv4 header and adjusts its checksum by the difference alone (RFC 1624 eq. 3).
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
