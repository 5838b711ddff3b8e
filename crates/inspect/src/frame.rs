//! From the bytes of a capture to a packet: link types other than Ethernet, and frames of which not all was
//! kept.

use farpace_units::ByteCount;
use farpace_wire::{EtherType, Packet};

/// Bytes up to which a frame that was cut is filled up: more than any IP packet has.
const LARGEST: usize = 1 << 17;

/// The packet in `bytes`, of which `original_len` bytes were on the wire. What is missing of its payload is
/// zeros; if that would show, it is an error. Changes `bytes` on its way. The error says in words what there
/// is instead of a packet.
pub fn read(link_type: u16, bytes: &mut Vec<u8>, original_len: ByteCount) -> Result<Packet, String> {
    let captured = bytes.len();
    let missing = usize::try_from(original_len.get()).unwrap_or(usize::MAX).saturating_sub(captured);
    if !to_ethernet(link_type, bytes) {
        return Err(format!("link type {link_type} is not known here, len {captured}"));
    }
    let have = bytes.len();
    let whole = Packet::from_frame(bytes);
    if missing == 0 {
        return whole.map_err(|why| format!("malformed ({why}) len {captured}"));
    }
    let cut = |what: &str| Err(format!("{what}cut short: {captured} of {original_len} captured"));
    bytes.resize(have.saturating_add(missing).min(LARGEST), 0);
    match Packet::from_frame(bytes) {
        Ok(packet) if packet.headers().len() <= have => {
            let is_cut = packet.len().as_len() > have;
            match packet.ip() {
                // Of these the payload would be shown.
                Some(ip) if is_cut && !ip.is_fragment() && ip.protocol() == ip.icmp_protocol() => {
                    cut(&format!("{} > {} ICMP ", ip.src(), ip.dst()))
                }
                None if is_cut && packet.ethernet().is_ok_and(|e| e.ether_type == EtherType::ARP) => {
                    cut("ARP ")
                }
                _ => Ok(packet),
            }
        }
        // Zeros in place of a header are no reason to call a packet malformed.
        _ => cut(""),
    }
}

/// Gives a frame of another link type an Ethernet header; false if the link type is not known.
pub fn to_ethernet(link_type: u16, bytes: &mut Vec<u8>) -> bool {
    // Bytes before the network header, and which of them are the EtherType.
    let (header, ether_type) = match link_type {
        1 => return true,
        0 | 108 => (4, None),                   // BSD loopback
        12 | 14 | 101 | 228 | 229 => (0, None), // IP alone
        113 => (16, Some(14)),                  // Linux "any", the older form
        276 => (20, Some(0)),                   // Linux "any"
        _ => return false,
    };
    let ether_type = match ether_type {
        Some(at) => bytes.get(at..at + 2).map(<[u8]>::to_vec),
        None => {
            let v6 = bytes.get(header).is_some_and(|first| first >> 4 == 6);
            Some(if v6 { EtherType::IPV6 } else { EtherType::IPV4 }.0.to_be_bytes().to_vec())
        }
    };
    let made_up = [vec![0; 12], ether_type.unwrap_or_default()].concat();
    bytes.splice(..header.min(bytes.len()), made_up);
    true
}
