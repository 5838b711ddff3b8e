//! `struct sockaddr_in` and `sockaddr_in6`, as bytes.

use super::memory;
use nix::errno::Errno;
use nix::libc;
use std::ffi::c_void;
use std::net::{IpAddr, SocketAddr};

const V4: usize = size_of::<libc::sockaddr_in>();
const V6: usize = size_of::<libc::sockaddr_in6>();

/// What the program means.
pub fn decode(at: *const c_void, len: libc::socklen_t) -> nix::Result<SocketAddr> {
    let bytes = memory::bytes(at.cast(), len as usize)?;
    let family =
        bytes.get(..2).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes).ok_or(Errno::EINVAL)?;
    let port =
        bytes.get(2..4).and_then(|b| b.try_into().ok()).map(u16::from_be_bytes).ok_or(Errno::EINVAL)?;
    let ip = match i32::from(family) {
        libc::AF_INET if bytes.len() >= V4 => {
            let octets: Option<[u8; 4]> = bytes.get(4..8).and_then(|b| b.try_into().ok());
            IpAddr::from(octets.ok_or(Errno::EINVAL)?)
        }
        libc::AF_INET6 if bytes.len() >= V6 => {
            let octets: Option<[u8; 16]> = bytes.get(8..24).and_then(|b| b.try_into().ok());
            IpAddr::from(octets.ok_or(Errno::EINVAL)?)
        }
        libc::AF_INET | libc::AF_INET6 => return Err(Errno::EINVAL),
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    Ok(SocketAddr::new(ip, port))
}

/// Tells the program, if it wants to know: as much as it has room for, and how long it would be.
pub fn encode(address: SocketAddr, at: *mut c_void, len: *mut libc::socklen_t) -> nix::Result<()> {
    if at.is_null() || len.is_null() {
        return Ok(());
    }
    let mut bytes = [0u8; V6];
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    let whole = match address.ip() {
        IpAddr::V4(v4) => {
            bytes[4..8].copy_from_slice(&v4.octets());
            V4
        }
        IpAddr::V6(v6) => {
            bytes[8..24].copy_from_slice(&v6.octets());
            V6
        }
    };
    let room = (memory::read(len)? as usize).min(whole);
    memory::bytes_mut(at.cast(), room)?.copy_from_slice(&bytes[..room]);
    memory::write(len, whole as libc::socklen_t)
}
