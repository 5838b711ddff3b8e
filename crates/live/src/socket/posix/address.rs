//! `struct sockaddr_in` and `sockaddr_in6`, as bytes.

use nix::errno::Errno;
use std::net::{IpAddr, SocketAddr};

/// AF_UNSPEC, AF_INET, AF_INET6.
pub const UNSPECIFIED: u16 = 0;
pub const INET: u16 = 2;
pub const INET6: u16 = 10;
/// Lengths of the structures.
pub const V4: usize = 16;
pub const V6: usize = 28;
/// Maximum length of an address in Linux, in bytes: `struct sockaddr_storage`.
pub const LONGEST: usize = 128;

/// The family of an address.
pub fn family(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|family| u16::from_ne_bytes(*family))
}

/// Parses an address for an IPv6 or an IPv4 socket.
///
/// # Errors
/// `EINVAL`: too short; `EAFNOSUPPORT`: another family.
pub fn decode(bytes: &[u8], v6: bool) -> nix::Result<SocketAddr> {
    let min = if v6 { V6 - 4 } else { V4 };
    // Linux accepts IPv6 addresses without the scope (RFC 2133).
    if bytes.len() < min {
        let known = family(bytes).filter(|_| v6) == Some(INET);
        return Err(if known && bytes.len() >= V4 { Errno::EAFNOSUPPORT } else { Errno::EINVAL });
    }
    let port = bytes.get(2..4).and_then(|b| b.try_into().ok()).map(u16::from_be_bytes);
    let port = port.ok_or(Errno::EINVAL)?;
    let ip = match (family(bytes), v6) {
        (Some(INET), false) => {
            let octets: [u8; 4] = bytes.get(4..8).and_then(|b| b.try_into().ok()).ok_or(Errno::EINVAL)?;
            IpAddr::from(octets)
        }
        (Some(INET6), true) => {
            let octets: [u8; 16] = bytes.get(8..24).and_then(|b| b.try_into().ok()).ok_or(Errno::EINVAL)?;
            IpAddr::from(octets)
        }
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    Ok(SocketAddr::new(ip, port))
}

/// Encodes an address.
pub fn encode(address: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![0; if address.is_ipv4() { V4 } else { V6 }];
    let family = if address.is_ipv4() { INET } else { INET6 };
    bytes[..2].copy_from_slice(&family.to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(v4) => bytes[4..8].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => bytes[8..24].copy_from_slice(&v6.octets()),
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: addresses of programs are parsed exactly, and invalid ones are refused.
    #[test]
    fn addresses_are_read_as_they_are_written() {
        let v4: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let v6: SocketAddr = "[fd00::1]:443".parse().unwrap();
        assert_eq!(decode(&encode(v4), false), Ok(v4));
        assert_eq!(decode(&encode(v6), true), Ok(v6));
        assert_eq!(decode(&encode(v6)[..24], true), Ok(v6));
        assert_eq!(decode(&encode(v6), false), Err(Errno::EAFNOSUPPORT));
        assert_eq!(decode(&encode(v4), true), Err(Errno::EAFNOSUPPORT));
        assert_eq!(decode(&encode(v4)[..15], false), Err(Errno::EINVAL));
        assert_eq!(decode(&encode(v6)[..23], true), Err(Errno::EINVAL));
        assert_eq!(decode(&[], false), Err(Errno::EINVAL));
    }
}
