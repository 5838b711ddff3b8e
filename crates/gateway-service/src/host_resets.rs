//! Resets for the hosts of connections that a gateway has left with undelivered bytes when it died: nobody
//! else tells them.

use super::shared_ledger::{LeftFlow, left_flows};
use bytes::Bytes;
use farpace_gateway::LegNumbers;
use farpace_units::Seq;
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, sendto, socket,
};
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

/// Hops of a reset at most.
const HOPS: u8 = 64;

/// Resets the hosts of all connections that were left, and returns how many connections that were. What one
/// expects is between two numbers: of both a reset is sent. One that expects something else asks the other
/// host, which was reset too, and answers with the right number.
///
/// # Errors
/// The ledger cannot be read, or the system does not let packets of others be sent.
pub fn reset_left(ledger: &File) -> io::Result<usize> {
    let mut sockets = [None, None];
    let (mut count, mut failed) = (0, None);
    left_flows(ledger, |LeftFlow { entry, both }| {
        let [lan, wan] = entry.hosts;
        let ways = [(wan, lan, entry.legs[0]), (lan, wan, entry.legs[1])];
        count += 1;
        for (from, to, leg) in ways.into_iter().take(if both { 2 } else { 1 }) {
            if let Err(error) = reset(&mut sockets, from, to, &leg) {
                failed = Some(error);
            }
        }
    })?;
    // A host that has no route any more is none that waits; a socket that cannot be had is an error.
    match failed.filter(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        Some(error) => Err(error),
        None => Ok(count),
    }
}

fn reset(
    sockets: &mut [Option<OwnedFd>; 2],
    from: SocketAddr,
    to: SocketAddr,
    leg: &LegNumbers,
) -> io::Result<()> {
    let addresses = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => AddressPair::V4(from, to),
        (IpAddr::V6(from), IpAddr::V6(to)) => AddressPair::V6(from, to),
        _ => return Ok(()),
    };
    let below = Below::new(MacAddr::default(), MacAddr::default(), addresses, HOPS);
    let packet = |seq: Seq| {
        let header = TcpHeader {
            src_port: from.port(),
            dst_port: to.port(),
            seq,
            ack: leg.expected,
            flags: TcpFlags::RST.with(TcpFlags::ACK),
            ..TcpHeader::default()
        };
        let mut packet = below.tcp(0, &header, Bytes::new());
        packet.complete_checksum();
        packet
    };
    let slot = &mut sockets[usize::from(to.is_ipv6())];
    let socket = match slot {
        Some(socket) => socket,
        None => slot.insert(open(to)?),
    };
    let first = (leg.unacknowledged != leg.next).then_some(leg.unacknowledged);
    for seq in first.into_iter().chain([leg.next]) {
        let packet = packet(seq);
        let (bytes, fd) = (packet.headers_from_ip(), socket.as_raw_fd());
        let none = MsgFlags::empty();
        // The port of the address has to be zero: it is that of a protocol.
        match to.ip() {
            IpAddr::V4(ip) => sendto(fd, bytes, &SockaddrIn::from(SocketAddrV4::new(ip, 0)), none)?,
            IpAddr::V6(ip) => sendto(fd, bytes, &SockaddrIn6::from(SocketAddrV6::new(ip, 0, 0, 0)), none)?,
        };
    }
    Ok(())
}

/// A socket that takes whole packets, headers included (raw(7)).
fn open(to: SocketAddr) -> io::Result<OwnedFd> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    Ok(socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw)?)
}
