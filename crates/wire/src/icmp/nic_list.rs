//! The list of a host's NICs in neighbour discovery: an option that other hosts ignore.

use super::neighbour::{SOURCE_LINK, TARGET_LEN, TARGET_LINK, options};
use super::{CHECKSUM_AT, ICMP_LEN, Icmp, NeighbourDiscovery};
use crate::arp::{Extension, ExtensionError};
use crate::ethernet::MacAddr;
use crate::ip::{AddressPair, PROTOCOL_ICMPV6};
use crate::packet::Packet;
use std::net::IpAddr;

/// Offset of the payload length in an IPv6 header.
const PAYLOAD_LEN_AT: usize = 4;

/// The list of NICs in a neighbour discovery message. None if the packet is no such message, carries no list,
/// or contains no link-layer address. The function checks neither checksum nor hop limit.
///
/// # Errors
/// The list is invalid; the message around it may be valid.
pub fn neighbour_nics(packet: &Packet) -> Result<Option<Extension>, ExtensionError> {
    let (Some(ip), Ok(Icmp::Neighbour(message))) = (packet.ipv6(), packet.icmp()) else { return Ok(None) };
    let (owner, first) = match message {
        NeighbourDiscovery::Solicitation { source_link, .. } => (ip.src(), source_link),
        NeighbourDiscovery::Advertisement { target, target_link, .. } => (target, target_link),
    };
    let Some(first) = first else { return Ok(None) };
    for option in options(packet.payload().get(ICMP_LEN + TARGET_LEN..).unwrap_or_default()).flatten() {
        if let Some((&[Extension::ND_OPTION, _], list)) = option.split_first_chunk() {
            // Another protocol may use the option for something else.
            let found = Extension::parse(IpAddr::V6(owner), first, list);
            if found != Ok(None) {
                return found;
            }
        }
    }
    Ok(None)
}

/// The neighbour discovery message with `mac` as its link-layer address, and with the list if given.
/// Everything else is kept, including unknown options. None if it is no such message, contains no link-layer
/// address, or would be too long for a packet.
pub fn with_nics(packet: &Packet, mac: MacAddr, extension: Option<&Extension>) -> Option<Packet> {
    let (ip, Ok(Icmp::Neighbour(message))) = (packet.ipv6()?, packet.icmp()) else { return None };
    let link = match message {
        NeighbourDiscovery::Solicitation { source_link, .. } => source_link.map(|_| SOURCE_LINK),
        NeighbourDiscovery::Advertisement { target_link, .. } => target_link.map(|_| TARGET_LINK),
    }?;
    let (fixed, rest) = packet.payload().split_at_checked(ICMP_LEN + TARGET_LEN)?;
    let mut out = fixed.to_vec();
    for option in options(rest).flatten() {
        match option {
            &[kind, 1, ..] if kind == link => {
                out.extend_from_slice(&[kind, 1]);
                out.extend_from_slice(&mac.0);
            }
            other => out.extend_from_slice(other),
        }
    }
    out.extend(extension.map(Extension::encode_option).unwrap_or_default());
    out[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let addresses = AddressPair::V6(ip.src(), ip.dst());
    let sum = addresses.pseudo_header(PROTOCOL_ICMPV6, out.len() as u32).bytes(&out).finish();
    out[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());

    let longer = out.len() - packet.payload().len();
    let payload_len = u16::try_from(usize::from(ip.payload_len()) + longer).ok()?;
    let mut frame = packet.headers().to_vec();
    let network = frame.len().checked_sub(ip.header_len())?;
    let field = frame.get_mut(network + PAYLOAD_LEN_AT..network + PAYLOAD_LEN_AT + 2)?;
    field.copy_from_slice(&payload_len.to_be_bytes());
    frame.extend_from_slice(&out);
    Packet::from_frame(&frame).ok()
}
