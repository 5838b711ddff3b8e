//! The addresses by which others may reach this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// First those that lead to the Internet; none of the loopback interface or of one link alone.
pub fn list() -> Vec<IpAddr> {
    // Nothing is sent: the system only looks up by which address it would be.
    let towards = |any: IpAddr, to: &str| {
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    let first = [
        towards(Ipv4Addr::UNSPECIFIED.into(), "192.0.2.1"),
        towards(Ipv6Addr::UNSPECIFIED.into(), "2001:db8::1"),
    ];
    let found = nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    let mut all = Vec::new();
    for address in first.into_iter().flatten().chain(found) {
        if is_reached(address) && !all.contains(&address) {
            all.push(address);
        }
    }
    all
}

fn is_reached(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}
