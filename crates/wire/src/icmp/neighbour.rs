//! Neighbour solicitations and advertisements (RFC 4861 §4.3, §4.4).

use crate::error::{Layer, WireError};
use crate::ethernet::MacAddr;
use std::net::Ipv6Addr;

/// ICMPv6 type of a neighbour solicitation.
pub(super) const SOLICITATION: u8 = 135;
/// ICMPv6 type of a neighbour advertisement.
pub(super) const ADVERTISEMENT: u8 = 136;
/// Bytes of the target address.
pub(super) const TARGET_LEN: usize = 16;
/// Option kind: link-layer address of the source.
pub(super) const SOURCE_LINK: u8 = 1;
/// Option kind: link-layer address of the target.
pub(super) const TARGET_LINK: u8 = 2;

const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// A neighbour discovery message. Options other than the link-layer address are ignored;
/// [`neighbour_nics`](super::neighbour_nics) parses a list of NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NeighbourDiscovery {
    /// Asks for the link-layer address of the target.
    Solicitation {
        /// The requested address.
        target: Ipv6Addr,
        /// Link-layer address of the sender. None during duplicate address detection (RFC 4862).
        source_link: Option<MacAddr>,
    },
    /// Announces the link-layer address of the target.
    Advertisement {
        /// The announced address.
        target: Ipv6Addr,
        /// Its link-layer address.
        target_link: Option<MacAddr>,
        /// The target is a router.
        router: bool,
        /// It answers a solicitation.
        solicited: bool,
        /// It overrides a cached link-layer address.
        overrides: bool,
    },
}

impl NeighbourDiscovery {
    /// Parses the bytes after the flags of a message of type `kind`.
    pub(super) fn parse(kind: u8, flags: u8, bytes: &[u8]) -> Result<NeighbourDiscovery, WireError> {
        let Some((octets, options)) = bytes.split_first_chunk::<TARGET_LEN>() else {
            let (need, have) = (super::ICMP_LEN + TARGET_LEN, super::ICMP_LEN + bytes.len());
            return Err(WireError::Truncated { layer: Layer::Icmp, need, have });
        };
        let target = Ipv6Addr::from(*octets);
        Ok(match kind {
            SOLICITATION => {
                NeighbourDiscovery::Solicitation { target, source_link: link_address(SOURCE_LINK, options)? }
            }
            _ => NeighbourDiscovery::Advertisement {
                target,
                target_link: link_address(TARGET_LINK, options)?,
                router: flags & ROUTER != 0,
                solicited: flags & SOLICITED != 0,
                overrides: flags & OVERRIDE != 0,
            },
        })
    }

    /// Type, flags, and the bytes after the flags.
    pub(super) fn encode(&self) -> (u8, u8, Vec<u8>) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let (kind, flags, target, option, link) = match *self {
            NeighbourDiscovery::Solicitation { target, source_link } => {
                (SOLICITATION, 0, target, SOURCE_LINK, source_link)
            }
            NeighbourDiscovery::Advertisement { target, target_link, router, solicited, overrides } => {
                let flags = bit(router, ROUTER) | bit(solicited, SOLICITED) | bit(overrides, OVERRIDE);
                (ADVERTISEMENT, flags, target, TARGET_LINK, target_link)
            }
        };
        let mut body = target.octets().to_vec();
        if let Some(mac) = link {
            body.extend_from_slice(&[option, 1]);
            body.extend_from_slice(&mac.0);
        }
        (kind, flags, body)
    }
}

/// The Ethernet address in the first option of the given kind. All options are checked: a message with an
/// option of length zero must be discarded (RFC 4861 §7.1).
fn link_address(wanted: u8, bytes: &[u8]) -> Result<Option<MacAddr>, WireError> {
    let mut found = None;
    for option in options(bytes) {
        if let &[kind, _, a, b, c, d, e, f] = option?
            && kind == wanted
            && found.is_none()
        {
            found = Some(MacAddr([a, b, c, d, e, f]));
        }
    }
    Ok(found)
}

/// The options of a message, each with kind and length. The last item is an error if its length is invalid.
pub(super) fn options(mut bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], WireError>> {
    std::iter::from_fn(move || {
        let &kind = bytes.first()?;
        let len = 8 * usize::from(bytes.get(1).copied().unwrap_or(0));
        let split = bytes.split_at_checked(len).filter(|_| len > 0);
        bytes = split.map_or(&[], |(_, rest)| rest);
        Some(split.map(|(option, _)| option).ok_or(WireError::NeighbourOption { kind }))
    })
}

/// The solicited-node multicast address of `target` (RFC 4291 §2.7.1).
pub const fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    let [.., g, h] = target.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | g & 0xff, h)
}

/// The Ethernet multicast address of [`solicited_node`] (RFC 2464 §7).
pub const fn solicited_node_mac(target: Ipv6Addr) -> MacAddr {
    let [.., b, c, d] = target.octets();
    MacAddr([0x33, 0x33, 0xff, b, c, d])
}
