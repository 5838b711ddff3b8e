//! Whether others on a network have the addresses that a host is to have.

use super::Device;
use crate::clock::Clock;
use farpace_host::ip::conflict::{probe, taken_by};
use farpace_units::{Instant, Span};
use farpace_wire::MacAddr;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;

/// Questions for each address. RFC 5227 §1.1 has as many, a second or two apart; whoever is on a network of today answers at
/// once, and somebody waits for this.
const QUESTIONS: u32 = 3;
/// Time between them, and after the last.
const PATIENCE: Span = Span::from_millis(200);
/// Packets read at once.
const BURST: usize = 32;

/// Asks whether anybody has one of `addresses`, for 600 ms, and says which and who. `mac` is that of the host which wants them.
/// Whatever else comes to the device meanwhile is lost.
///
/// # Errors
/// What the device says when it is of no use any more.
pub fn who_has(
    device: &mut dyn Device,
    addresses: &[IpAddr],
    mac: MacAddr,
) -> io::Result<Option<(IpAddr, MacAddr)>> {
    let clock = Clock::new();
    for _ in 0..QUESTIONS {
        let mut questions: VecDeque<_> = addresses.iter().filter_map(|ip| probe(*ip, mac)).collect();
        device.send(&mut questions)?;
        let until = clock.now() + PATIENCE;
        while let Some(left) = remaining(until, &clock) {
            let mut packets = Vec::new();
            device.receive(BURST, &mut packets)?;
            let told = packets.iter().flat_map(|packet| addresses.iter().map(move |ip| (packet, *ip)));
            let mut told = told.filter_map(|(packet, ip)| Some((ip, taken_by(packet, ip, mac)?)));
            if let Some(taken) = told.next() {
                return Ok(Some(taken));
            }
            if packets.is_empty() {
                let nanos = left.as_nanos() as i64;
                let mut fds = [PollFd::new(device.fd(), PollFlags::POLLIN)];
                // Whatever woke it up, the device knows what it was.
                let _ = ppoll(&mut fds, Some(TimeSpec::new(0, nanos)), None);
            }
        }
    }
    Ok(None)
}

/// The interface by which this machine itself has `address`, in the network namespace of this thread.
pub fn own_interface_of(address: IpAddr) -> Option<String> {
    let all = nix::ifaddrs::getifaddrs().ok()?;
    let has = |found: &nix::sys::socket::SockaddrStorage| match address {
        IpAddr::V4(address) => found.as_sockaddr_in().is_some_and(|found| found.ip() == address),
        IpAddr::V6(address) => found.as_sockaddr_in6().is_some_and(|found| found.ip() == address),
    };
    let mut all = all.filter(|entry| entry.address.as_ref().is_some_and(has));
    all.next().map(|entry| entry.interface_name)
}

fn remaining(until: Instant, clock: &Clock) -> Option<Span> {
    let left = until.since(clock.now());
    (!left.is_zero()).then_some(left)
}
