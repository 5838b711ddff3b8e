//! Link layers and tunnels: what has to be passed over before TCP.

use super::{Found, MAX_LAYERS, be16, be32, tcp, v4, v6};
use std::net::IpAddr;

/// UDP ports of VXLAN (IANA and Linux's old default) and Geneve.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;

/// What the next header is.
enum NextHeader {
    Ethernet,
    EtherType(u16),
    Ip,
    Done(Found),
}

/// Follows headers until TCP. `original_len` is the length of the frame on the wire.
pub(super) fn read(link_type: u16, bytes: &[u8], original_len: u32) -> Found {
    let mut walk = HeaderWalk { bytes, left: original_len };
    let mut next = match begin(link_type, &mut walk) {
        Some(next) => next,
        None => return Found::TooShort,
    };
    for _ in 0..MAX_LAYERS {
        let step = match next {
            NextHeader::Ethernet => ethernet(&mut walk),
            NextHeader::EtherType(kind) => ether_type(&mut walk, kind),
            NextHeader::Ip => ip(&mut walk),
            NextHeader::Done(found) => return found,
        };
        match step {
            Some(step) => next = step,
            None => return Found::TooShort,
        }
    }
    match next {
        NextHeader::Done(found) => found,
        _ => Found::Other,
    }
}

/// The rest of a frame: captured bytes, and how many there were on the wire.
struct HeaderWalk<'a> {
    bytes: &'a [u8],
    left: u32,
}

impl HeaderWalk<'_> {
    fn skip(&mut self, n: usize) -> Option<()> {
        self.bytes = self.bytes.get(n..)?;
        self.left = self.left.saturating_sub(n as u32);
        Some(())
    }
}

/// LINKTYPE_ numbers of pcap.
fn begin(link_type: u16, walk: &mut HeaderWalk<'_>) -> Option<NextHeader> {
    match link_type {
        1 => Some(NextHeader::Ethernet),
        // NULL (host byte order) and LOOP: an address family, which the IP version also tells.
        0 | 108 => walk.skip(4).map(|()| NextHeader::Ip),
        // RAW, IPV4, IPV6.
        12 | 14 | 101 | 228 | 229 => Some(NextHeader::Ip),
        // Linux cooked, version 1 and 2.
        113 => {
            let kind = be16(walk.bytes, 14)?;
            walk.skip(16).map(|()| NextHeader::EtherType(kind))
        }
        276 => {
            let kind = be16(walk.bytes, 0)?;
            walk.skip(20).map(|()| NextHeader::EtherType(kind))
        }
        // PPP, with or without HDLC framing.
        9 => {
            if walk.bytes.starts_with(&[0xff, 0x03]) {
                walk.skip(2)?;
            }
            ppp(walk)
        }
        _ => Some(NextHeader::Done(Found::Foreign)),
    }
}

fn ethernet(walk: &mut HeaderWalk<'_>) -> Option<NextHeader> {
    let kind = be16(walk.bytes, 12)?;
    walk.skip(14)?;
    // IEEE 802.3 with LLC and SNAP.
    if kind < 0x0600 {
        if walk.bytes.starts_with(&[0xaa, 0xaa, 3]) {
            let kind = be16(walk.bytes, 6)?;
            return walk.skip(8).map(|()| NextHeader::EtherType(kind));
        }
        return Some(NextHeader::Done(Found::Other));
    }
    Some(NextHeader::EtherType(kind))
}

fn ether_type(walk: &mut HeaderWalk<'_>, kind: u16) -> Option<NextHeader> {
    match kind {
        0x0800 | 0x86dd => Some(NextHeader::Ip),
        // VLAN tags, also stacked.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            let kind = be16(walk.bytes, 2)?;
            walk.skip(4).map(|()| NextHeader::EtherType(kind))
        }
        // MPLS: down to the bottom of the stack, then IP by its version, or Ethernet behind a control word.
        0x8847 | 0x8848 => {
            let bottom = walk.bytes.get(2)? & 1 == 1;
            walk.skip(4)?;
            if !bottom {
                return Some(NextHeader::EtherType(kind));
            }
            match walk.bytes.first()? >> 4 {
                4 | 6 => Some(NextHeader::Ip),
                0 => walk.skip(4).map(|()| NextHeader::Ethernet),
                _ => Some(NextHeader::Ethernet),
            }
        }
        // PPPoE session.
        0x8864 => {
            walk.skip(6)?;
            ppp(walk)
        }
        // Transparent Ethernet bridging (GRE, Geneve).
        0x6558 => Some(NextHeader::Ethernet),
        _ => Some(NextHeader::Done(Found::Other)),
    }
}

fn ppp(walk: &mut HeaderWalk<'_>) -> Option<NextHeader> {
    let kind = match *walk.bytes.first()? {
        short if short & 1 == 1 => (u16::from(short), 1),
        _ => (be16(walk.bytes, 0)?, 2),
    };
    walk.skip(kind.1)?;
    Some(match kind.0 {
        0x21 | 0x57 => NextHeader::Ip,
        _ => NextHeader::Done(Found::Other),
    })
}

/// What an IP header says, of either version.
struct Ip {
    src: IpAddr,
    dst: IpAddr,
    id: u16,
    ttl: u8,
    ecn: u8,
    /// Length of the packet.
    len: u32,
    protocol: u8,
}

fn ip(walk: &mut HeaderWalk<'_>) -> Option<NextHeader> {
    let header = match walk.bytes.first()? >> 4 {
        4 => ipv4(walk)?,
        6 => ipv6(walk)?,
        _ => return Some(NextHeader::Done(Found::Other)),
    };
    let ip = match header {
        Ok(ip) => ip,
        Err(found) => return Some(NextHeader::Done(found)),
    };
    match ip.protocol {
        6 => {
            let about = tcp::About {
                src: ip.src,
                dst: ip.dst,
                ip_id: ip.id,
                ttl: ip.ttl,
                ecn: ip.ecn,
                ip_len: ip.len,
                tcp_len: walk.left,
            };
            Some(NextHeader::Done(tcp::read(walk.bytes, &about)))
        }
        // IPv4 and IPv6 in IP.
        4 | 41 => Some(NextHeader::Ip),
        47 => gre(walk),
        17 => udp(walk),
        1 => Some(NextHeader::Done(too_big_v4(walk.bytes))),
        58 => Some(NextHeader::Done(too_big_v6(walk.bytes))),
        _ => Some(NextHeader::Done(Found::Other)),
    }
}

fn ipv4(walk: &mut HeaderWalk<'_>) -> Option<Result<Ip, Found>> {
    let b = walk.bytes;
    let header = usize::from(b.first()? & 15) * 4;
    let total = u32::from(be16(b, 2)?);
    // Segmentation offload leaves 0 where the length does not fit.
    let len = if total == 0 { walk.left } else { total };
    let fragment = be16(b, 6)? & 0x1fff;
    let ip = Ip {
        src: v4(b, 12)?,
        dst: v4(b, 16)?,
        id: be16(b, 4)?,
        ttl: *b.get(8)?,
        ecn: *b.get(1)? & 3,
        len,
        protocol: *b.get(9)?,
    };
    if header < 20 {
        return Some(Err(Found::Other));
    }
    if fragment != 0 {
        return Some(Err(Found::Fragment));
    }
    walk.skip(header)?;
    // Ethernet pads short frames.
    walk.left = len.saturating_sub(header as u32);
    Some(Ok(ip))
}

fn ipv6(walk: &mut HeaderWalk<'_>) -> Option<Result<Ip, Found>> {
    let b = walk.bytes;
    let payload = u32::from(be16(b, 4)?);
    let len = if payload == 0 { walk.left } else { payload + 40 };
    let mut ip = Ip {
        src: v6(b, 8)?,
        dst: v6(b, 24)?,
        id: 0,
        ttl: *b.get(7)?,
        ecn: (b.get(1)? >> 4) & 3,
        len,
        protocol: *b.get(6)?,
    };
    walk.skip(40)?;
    walk.left = len.saturating_sub(40);
    for _ in 0..MAX_LAYERS {
        let b = walk.bytes;
        let bytes = match ip.protocol {
            // Hop-by-hop, routing, destination options.
            0 | 43 | 60 => (usize::from(*b.get(1)?) + 1) * 8,
            // Authentication.
            51 => (usize::from(*b.get(1)?) + 2) * 4,
            // Fragment.
            44 => {
                if be16(b, 2)? & 0xfff8 != 0 {
                    return Some(Err(Found::Fragment));
                }
                8
            }
            _ => return Some(Ok(ip)),
        };
        ip.protocol = *b.first()?;
        walk.skip(bytes)?;
    }
    Some(Err(Found::Other))
}

/// RFC 2784 and 2890; version 1 is PPTP's.
fn gre(walk: &mut HeaderWalk<'_>) -> Option<NextHeader> {
    let flags = be16(walk.bytes, 0)?;
    let kind = be16(walk.bytes, 2)?;
    let optional = match flags & 7 {
        0 => [0x8000, 0x2000, 0x1000].iter().filter(|bit| flags & **bit != 0).count() * 4,
        1 => 4 + [0x1000, 0x0080].iter().filter(|bit| flags & **bit != 0).count() * 4,
        _ => return Some(NextHeader::Done(Found::Other)),
    };
    walk.skip(4 + optional)?;
    match kind {
        0x880b => ppp(walk),
        // ERSPAN II and III: a mirrored frame behind a header.
        0x88be => {
            if flags & 0x1000 != 0 {
                walk.skip(8)?;
            }
            Some(NextHeader::Ethernet)
        }
        0x22eb => walk.skip(12).map(|()| NextHeader::Ethernet),
        kind => Some(NextHeader::EtherType(kind)),
    }
}

fn udp(walk: &mut HeaderWalk<'_>) -> Option<NextHeader> {
    let port = be16(walk.bytes, 2)?;
    let source = be16(walk.bytes, 0)?;
    if VXLAN_PORTS.contains(&port) {
        return walk.skip(16).map(|()| NextHeader::Ethernet);
    }
    if port == GENEVE_PORT && source != GENEVE_PORT {
        let options = usize::from(walk.bytes.get(8)? & 0x3f) * 4;
        let kind = be16(walk.bytes, 10)?;
        return walk.skip(16 + options).map(|()| NextHeader::EtherType(kind));
    }
    Some(NextHeader::Done(Found::Other))
}

/// RFC 1191: fragmentation needed, with the packet's header.
fn too_big_v4(bytes: &[u8]) -> Found {
    let read = || {
        if bytes.get(..2)? != [3, 4] {
            return None;
        }
        let mtu = u32::from(be16(bytes, 6)?);
        Some(Found::TooBig { src: v4(bytes, 20)?, dst: v4(bytes, 24)?, mtu })
    };
    read().unwrap_or(Found::Other)
}

/// RFC 4443 §3.2.
fn too_big_v6(bytes: &[u8]) -> Found {
    let read = || {
        if *bytes.first()? != 2 {
            return None;
        }
        Some(Found::TooBig { src: v6(bytes, 16)?, dst: v6(bytes, 32)?, mtu: be32(bytes, 4)? })
    };
    read().unwrap_or(Found::Other)
}
