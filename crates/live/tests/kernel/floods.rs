//! Attacks: forged SYNs, resets and garbage, and a port scan. Memory stays bounded, an honest connection
//! continues, and everything is counted.

use crate::netns::alone;
use crate::peer_host::{HostPlan, LiveHost, OURS, PORT};
use crate::programs::Echo;
use bytes::Bytes;
use farpace_units::Seq;
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

const MANY: u32 = 200_000;
/// Maximum growth of the process during a flood, in bytes: half-open connections and buffers for answers to
/// the kernel.
const GROWTH: u64 = 60_000_000;

/// A raw socket of the kernel: its packets have any source address.
struct Forger {
    socket: OwnedFd,
    random: u64,
}

impl Forger {
    fn new() -> Self {
        let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw).unwrap();
        Forger { socket: raw, random: 1 }
    }
    fn next(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 16
    }
    fn send(&mut self, packet: &Packet) {
        let mut frame = Vec::new();
        packet.write_frame(&mut frame);
        let IpAddr::V4(to) = OURS else { unreachable!() };
        let to = SockaddrIn::from(SocketAddrV4::new(to, 0));
        match sendto(self.socket.as_raw_fd(), &frame[14..], &to, MsgFlags::empty()) {
            Ok(_) | Err(Errno::ENOBUFS) => {}
            Err(error) => panic!("{error}"),
        }
    }
    /// A segment from an address in the network of the device.
    fn segment(&mut self, flags: TcpFlags, to_port: u16, payload: &'static [u8]) -> Packet {
        let from = Ipv4Addr::new(10, 77, 0, 3 + (self.next() % 250) as u8);
        let IpAddr::V4(to) = OURS else { unreachable!() };
        let mac = MacAddr([2; 6]);
        let below = Below::new(mac, mac, AddressPair::V4(from, to), 64);
        let header = TcpHeader {
            src_port: self.next() as u16,
            dst_port: to_port,
            seq: Seq::new(self.next() as u32),
            ack: Seq::new(self.next() as u32),
            flags,
            window: 1000,
            ..TcpHeader::default()
        };
        below.tcp(1, &header, Bytes::from_static(payload))
    }
}

/// Memory of the process, in bytes.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Sends a flood while an honest connection exchanges data.
fn flood(one: impl Fn(&mut Forger, u32) -> Packet + Sync) {
    alone(|| {
        let host = LiveHost::up(HostPlan::new(|| Box::<Echo>::default()));
        let mut honest = TcpStream::connect((OURS, PORT)).unwrap();
        let (mut forger, before) = (Forger::new(), memory());
        for number in 0..MANY {
            let packet = one(&mut forger, number);
            forger.send(&packet);
            if number % 10_000 == 0 {
                honest.write_all(&number.to_le_bytes()).unwrap();
                let mut back = [0; 4];
                honest.read_exact(&mut back).unwrap();
                assert_eq!(back, number.to_le_bytes());
            }
        }
        let grown = memory().saturating_sub(before);
        assert!(grown < GROWTH, "{grown} bytes more after the flood");
        TcpStream::connect((OURS, PORT)).expect("a new connection after the flood");
        host.down();
    });
}

/// Breaks: forged SYNs use bounded memory, and do not block honest peers.
#[test]
fn a_flood_of_syns() {
    flood(|forger, _| forger.segment(TcpFlags::SYN, PORT, b""));
}

/// Breaks: forged resets and ACKs without a connection have no effect.
#[test]
fn a_flood_of_resets_and_acknowledgments() {
    flood(|forger, number| {
        let flags = if number % 2 == 0 { TcpFlags::RST } else { TcpFlags::ACK };
        forger.segment(flags, PORT, b"nothing")
    });
}

/// Breaks: a port scan does not stop the host.
#[test]
fn a_scan_of_all_ports() {
    flood(|forger, number| forger.segment(TcpFlags::SYN, number as u16, b""));
}

/// Breaks: malformed packets do not stop the host.
#[test]
fn a_flood_of_garbage() {
    flood(|forger, number| {
        let mut packet = forger.segment(TcpFlags::ACK, PORT, b"some payload that is damaged as well");
        // Not the first bytes: the kernel forwards packets by them.
        (0..=number % 7).for_each(|_| {
            let bit = 14 * 8 + 160 + forger.next() % 400;
            packet.flip_bit(bit);
        });
        packet
    });
}
