//! What of the networks behind a pair can be seen on the link between both gateways.

use crate::harness::*;
use crate::sites::{self, Sites};
use farpace::live::Namespace;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr, Ipv6Ttl};
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
};
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

/// The addresses of router a and of its site, IPv4 and IPv6.
const ROUTER: [&str; 2] = ["10.1.0.1", "fd01::1"];
const CLIENT: [&str; 2] = [sites::CLIENT, "fd01::2"];
const SERVER: [&str; 2] = [sites::SERVER, sites::SERVER6];

/// Listens to a link of a router.
struct LinkTap {
    socket: OwnedFd,
    index: usize,
}

impl LinkTap {
    fn open(router: &Namespace, link: &str) -> Self {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let open = || {
            let packet = AddressFamily::Packet;
            let socket = socket(packet, SockType::Datagram, flags, SockProtocol::EthAll).unwrap();
            LinkTap { socket, index: if_nametoindex(link).unwrap() as usize }
        };
        router.within(open).unwrap()
    }

    /// The packets since the last call that have an address of a host, as source and destination; and how
    /// many others there were.
    fn heard(&self) -> (Vec<[IpAddr; 2]>, usize) {
        let is_inside = |address: &IpAddr| match address {
            IpAddr::V4(v4) => v4.octets()[0] == 10,
            IpAddr::V6(v6) => [0xfd01, 0xfd02].contains(&v6.segments()[0]),
        };
        let (mut inside, mut others) = (Vec::new(), 0);
        let mut room = [0; 2_048];
        while let Ok((len, from)) = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut room) {
            if from.is_none_or(|from| from.ifindex() != self.index) || len < 40 {
                continue;
            }
            let v4 = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&room[at..at + 4]).unwrap());
            let v6 = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&room[at..at + 16]).unwrap());
            let addresses = match room[0] >> 4 {
                4 => [v4(12), v4(16)],
                6 => [v6(8), v6(24)],
                _ => continue,
            };
            if addresses.iter().any(is_inside) {
                inside.push(addresses);
            } else {
                others += 1;
            }
        }
        (inside, others)
    }
}

/// A UDP socket of the server that hears of errors.
fn erring_socket(sites: &Sites, own: &str, to: &str) -> UdpSocket {
    let open = || {
        let socket = UdpSocket::bind((own, 0)).unwrap();
        match own.contains(':') {
            false => setsockopt(&socket, Ipv4RecvErr, &true).unwrap(),
            true => setsockopt(&socket, Ipv6RecvErr, &true).unwrap(),
        }
        socket.connect((to, 9)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket
    };
    sites.server.within(open).unwrap()
}

/// The error that a datagram to `to` is answered with.
fn answer(socket: &UdpSocket) -> ErrorKind {
    let since = std::time::Instant::now();
    loop {
        let _ = socket.send(&[7; 200]);
        match socket.recv(&mut [0; 10]).unwrap_err().kind() {
            ErrorKind::WouldBlock => assert!(since.elapsed() < STEP_TIMEOUT, "no ICMP error comes"),
            other => return other,
        }
    }
}

/// Breaks: an error about a packet that came out of the tunnel, which quotes it, or another ICMP answer of
/// the router crosses the link between both gateways unencrypted, or does not reach the host behind the peer.
#[test]
fn icmp_of_the_router_stays_in_the_tunnel() {
    if !has_rights() {
        return;
    }
    // The kernel of a knows a way to the hosts behind b: by routes, or by a default route.
    for (behind_b, route4, route6) in [
        ("b=10.2.0.0/24,fd02::/64", "10.2.0.0/24", "fd02::/64"),
        ("b=10.2.0.128/25,0.0.0.0/0,::/0", "default", "default"),
    ] {
        let sites = Sites::new(1, false);
        let routes = format!("route add {route4} via 172.16.0.2\nroute add {route6} via fd16:0::2\n");
        sites.routers[0].configure(&routes).unwrap();
        let [of_b, of_a] = sites.keys_with("keys", behind_b, &["172.16.0.2".to_owned()]);
        let b = sites.gateway(1, &of_a, &[]);
        let a = sites.gateway(0, &of_b, &[]);
        sites.wait_for_paths(1);
        let tap = LinkTap::open(&sites.routers[0], "l0");
        for (at, own) in SERVER.into_iter().enumerate() {
            // To an address of the router itself, where nobody listens.
            let socket = erring_socket(&sites, own, ROUTER[at]);
            assert_eq!(answer(&socket), ErrorKind::ConnectionRefused, "{behind_b} {own}");
            // To a host, with too few hops left behind the tunnel.
            let socket = erring_socket(&sites, own, CLIENT[at]);
            match own.contains(':') {
                false => socket.set_ttl(2).unwrap(),
                true => setsockopt(&socket, Ipv6Ttl, &2).unwrap(),
            }
            assert_eq!(answer(&socket), ErrorKind::HostUnreachable, "{behind_b} {own}");
            let ping = || Command::new("ping").args(["-c", "1", "-W", "5", ROUTER[at]]).output().unwrap();
            assert!(sites.server.within(ping).unwrap().status.success(), "{behind_b} {own}");
        }
        let (inside, others) = tap.heard();
        assert!(inside.is_empty(), "{behind_b}, in the clear: {inside:?}");
        assert!(others > 0, "the tap hears nothing");
        // The link itself is not in the tunnel.
        let ping = || Command::new("ping").args(["-c", "1", "-W", "5", "172.16.0.1"]).output().unwrap();
        assert!(sites.routers[1].within(ping).unwrap().status.success(), "{behind_b}");
        a.end();
        b.end();
        (0..2).for_each(|at| sites.assert_clean(at));
    }
}
