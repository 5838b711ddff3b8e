//! Address conflict detection before a host takes its addresses.

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

/// Number of probes per address. RFC 5227 §1.1 has as many, one or two seconds apart. Hosts on modern
/// networks answer at once, and a user waits for this.
const PROBES: u32 = 3;
/// Time between probes, and after the last.
const PROBE_INTERVAL: Span = Span::from_millis(200);
/// Packets per read.
const BURST: usize = 32;

/// Probes for `addresses` for 600 ms, and returns the first conflict with its address and MAC address. `mac`
/// is that of the host that wants the addresses. All other packets that the device receives meanwhile are
/// lost.
///
/// # Errors
/// The device has failed permanently.
pub fn who_has(
    device: &mut dyn Device,
    addresses: &[IpAddr],
    mac: MacAddr,
) -> io::Result<Option<(IpAddr, MacAddr)>> {
    let clock = Clock::new();
    for _ in 0..PROBES {
        let mut questions: VecDeque<_> = addresses.iter().filter_map(|ip| probe(*ip, mac)).collect();
        device.send(&mut questions)?;
        let until = clock.now() + PROBE_INTERVAL;
        while let Some(left) = remaining(until, &clock) {
            let mut packets = Vec::new();
            device.receive(BURST, &mut packets)?;
            let announced = packets.iter().flat_map(|packet| addresses.iter().map(move |ip| (packet, *ip)));
            let mut announced = announced.filter_map(|(packet, ip)| Some((ip, taken_by(packet, ip, mac)?)));
            if let Some(taken) = announced.next() {
                return Ok(Some(taken));
            }
            if packets.is_empty() {
                let nanos = left.as_nanos() as i64;
                let mut fds = [PollFd::new(device.fd(), PollFlags::POLLIN)];
                // The cause of the wake-up does not matter; the device is read in any case.
                let _ = ppoll(&mut fds, Some(TimeSpec::new(0, nanos)), None);
            }
        }
    }
    Ok(None)
}

/// The interface on which this machine itself has `address`, in the network namespace of this thread.
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
