//! The TCP header, as much of it as was captured.

use super::{CapturedSegment, Flags, Found, Options, be16, be32};
use farpace_units::Instant;
use std::net::IpAddr;

/// What the layers below say.
pub(super) struct About {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ip_id: u16,
    pub ttl: u8,
    pub ecn: u8,
    pub ip_len: u32,
    /// Bytes of TCP header and payload.
    pub tcp_len: u32,
}

/// Up to the window; the rest of a header may be cut off.
const LEAST: usize = 16;

pub(super) fn read(bytes: &[u8], about: &About) -> Found {
    let parse = || {
        if bytes.len() < LEAST {
            return None;
        }
        let header = usize::from(bytes.get(12)? >> 4) * 4;
        Some((header, be16(bytes, 0)?, be16(bytes, 2)?, be32(bytes, 4)?, be32(bytes, 8)?, be16(bytes, 14)?))
    };
    let Some((header, src_port, dst_port, seq, ack, window)) = parse() else { return Found::TooShort };
    if header < 20 || about.tcp_len < header as u32 {
        return Found::Other;
    }
    Found::Tcp(CapturedSegment {
        frame: 0,
        time: Instant::ZERO,
        interface: 0,
        src: about.src,
        dst: about.dst,
        src_port,
        dst_port,
        seq,
        ack,
        flags: Flags(bytes.get(13).copied().unwrap_or_default()),
        window: u32::from(window),
        len: about.tcp_len - header as u32,
        options: options(bytes.get(20..).unwrap_or_default(), header - 20),
        ip_id: about.ip_id,
        ttl: about.ttl,
        ecn: about.ecn,
        ip_len: about.ip_len,
        damaged: damaged(bytes, about),
    })
}

/// `len` is how many bytes of options the header has.
fn options(bytes: &[u8], len: usize) -> Options {
    // What nearly every segment has: two NOPs and timestamps.
    if len == 12
        && let Some([1, 1, 8, 10]) = bytes.first_chunk()
        && let (Some(value), Some(echo)) = (be32(bytes, 4), be32(bytes, 8))
    {
        return Options { timestamps: Some((value, echo)), ..Options::default() };
    }
    let mut options = Options { cut: bytes.len() < len, ..Options::default() };
    let mut rest = bytes.get(..len).unwrap_or(bytes);
    while let [kind, after @ ..] = rest {
        match kind {
            0 => break,
            1 => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let Some(length) = after.first().map(|n| usize::from(*n)).filter(|n| *n >= 2) else { break };
        let Some(body) = rest.get(2..length) else { break };
        match (kind, length) {
            (2, 4) => options.mss = be16(body, 0),
            (3, 3) => options.window_scale = body.first().map(|n| (*n).min(14)),
            (4, 2) => options.sack_permitted = true,
            (5, _) => {
                for block in body.chunks_exact(8) {
                    if let (Some(start), Some(end)) = (be32(block, 0), be32(block, 4)) {
                        // More than four do not fit a header.
                        let _ = options.sack.try_push((start, end));
                    }
                }
            }
            (8, 10) => options.timestamps = be32(body, 0).zip(be32(body, 4)),
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    options
}

/// The checksum, where everything that it covers was captured. Segments that wait for offload have only the
/// sum of the pseudo-header in it, which is not damage.
fn damaged(bytes: &[u8], about: &About) -> Option<bool> {
    let len = about.tcp_len as usize;
    // Short segments and all but tiny snap lengths: summing long payloads would cost more than all the rest.
    let whole = bytes.get(..len)?;
    let pseudo = pseudo_header(about)?;
    let stored = be16(whole, 16)?;
    let fold = |mut sum: u64| {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    };
    if stored == fold(pseudo) || stored == 0 {
        return None;
    }
    Some(fold(pseudo + sum(whole)) != 0xffff)
}

fn pseudo_header(about: &About) -> Option<u64> {
    let addresses = match (about.src, about.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => sum(&src.octets()) + sum(&dst.octets()),
        (IpAddr::V6(src), IpAddr::V6(dst)) => sum(&src.octets()) + sum(&dst.octets()),
        _ => return None,
    };
    Some(addresses + u64::from(about.tcp_len) + 6)
}

/// One's complement sum, eight bytes at a time.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    sum += u64::from(u32::from_be_bytes(last));
    // To 16 bits: the halves of each word weigh the same.
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    (sum >> 16) + (sum & 0xffff)
}
