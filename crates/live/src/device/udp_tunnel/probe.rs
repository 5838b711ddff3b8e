//! Probes of a path: ICMP echo requests inside the tunnel, which any host answers, with zeros behind them up
//! to the size that is tried. WireGuard cuts off what is behind a packet's own length, so the answer is small
//! and only the way there is tried.

use super::UdpTunnel;
use super::socket::{OutgoingBatch, SendFate};
use boringtun::noise::TunnResult;
use bytes::Bytes;
use farpace_units::Instant;
use farpace_wire::checksum::checksum;
use farpace_wire::{AddressPair, Below, Icmp, MacAddr, Packet};
use std::net::{IpAddr, Ipv4Addr};

/// What says in a probe that it is one.
const MARK: &[u8; 8] = b"farpace\n";

/// An echo request from `from` to `to`, without Ethernet header.
pub(super) fn request(from: Ipv4Addr, to: Ipv4Addr, ident: u16, seq: u16) -> Vec<u8> {
    let below = Below::new(MacAddr::default(), MacAddr::default(), AddressPair::V4(from, to), 64);
    let packet = below.icmp(seq, &Icmp::EchoRequest { ident, seq, data: MARK });
    packet.map_or(Vec::new(), |packet| {
        let mut frame = Vec::new();
        packet.write_frame(&mut frame);
        frame.split_off(packet.headers().len() - packet.headers_from_ip().len())
    })
}

/// True for a probe that asks. A host answers it; where there are several tunnels to one host, its answer
/// might take another.
pub(super) fn is_request(packet: &[u8]) -> bool {
    packet.first() == Some(&0x45)
        && packet.get(9) == Some(&1)
        && packet.get(20) == Some(&8)
        && packet.get(28..36) == Some(&MARK[..])
}

/// The number of the probe that `packet` answers.
pub(super) fn reply(packet: &[u8], ident: u16) -> Option<u16> {
    // IPv4 without options, ICMP, echo reply: looked at before anything is made of it.
    if packet.first() != Some(&0x45) || packet.get(9) != Some(&1) || packet.get(20) != Some(&0) {
        return None;
    }
    let packet =
        Packet::from_shared_ip(MacAddr::default(), MacAddr::default(), Bytes::copy_from_slice(packet))
            .ok()?;
    packet.verify_checksums().ok()?;
    match packet.icmp().ok()? {
        Icmp::EchoReply { ident: same, seq, data } if same == ident && data == MARK => Some(seq),
        _ => None,
    }
}

/// What a host is told whose packet is too long for the path: by the other end, so to speak.
pub(super) fn too_long(packet: &Packet, mtu: u16) -> Option<Packet> {
    let addresses = packet.ip()?.addresses().reversed();
    let (src, dst) = packet.macs();
    let mut quoted = packet.headers_from_ip().to_vec();
    quoted.extend_from_slice(packet.payload().get(..8).unwrap_or_default());
    let below = Below::new(dst, src, addresses, 64);
    below.icmp(0, &Icmp::TooBig { mtu: mtu.into(), quoted: &quoted }).ok()
}

impl UdpTunnel {
    /// Answers the probe that has just been opened, by the tunnel by which it came.
    pub(super) fn answer(&mut self, index: u32) {
        let Some(peer) = self.peers.get_mut(&index) else { return };
        // Where boringtun leaves what it has opened.
        let Some(asked) = self.scratch.first_chunk::<36>().copied() else { return };
        let mut answer = asked;
        // Who asked is answered.
        answer[12..16].copy_from_slice(&asked[16..20]);
        answer[16..20].copy_from_slice(&asked[12..16]);
        answer[2..4].copy_from_slice(&36_u16.to_be_bytes());
        answer[10..12].fill(0);
        let sum = checksum(&answer[..20]);
        answer[10..12].copy_from_slice(&sum.to_be_bytes());
        (answer[20], answer[22], answer[23]) = (0, 0, 0);
        let sum = checksum(&answer[20..]);
        answer[22..24].copy_from_slice(&sum.to_be_bytes());
        let mut room = [0; 256];
        if let (Some(to), TunnResult::WriteToNetwork(datagram)) =
            (peer.endpoint, peer.tunn.encapsulate(&answer, &mut room))
        {
            let segment = datagram.len();
            self.socket.send(&OutgoingBatch { to, from: peer.from, ecn: None, segment, bytes: datagram });
        }
    }

    /// Sends the probes that are due.
    pub(super) fn probe_paths(&mut self, now: Instant) {
        let own =
            self.addresses.iter().find_map(|own| if let IpAddr::V4(own) = own { Some(*own) } else { None });
        for peer in self.peers.values_mut() {
            let Some(to) = peer.endpoint.filter(|_| peer.is_ready()) else { continue };
            peer.pmtu.on_deadline(now);
            // Without an address nothing can be asked; the search ends without an answer.
            let host = peer.host();
            while let Some((seq, size)) = peer.pmtu.poll(now) {
                let (Some(own), Some(IpAddr::V4(host))) = (own, host) else { continue };
                let mut probe = request(own, host, peer.echo, seq);
                probe.resize(probe.len().max(size.into()), 0);
                let Some(room) = self.scratch.get_mut(..) else { continue };
                let TunnResult::WriteToNetwork(datagram) = peer.tunn.encapsulate(&probe, room) else {
                    continue;
                };
                let segment = datagram.len();
                let out = OutgoingBatch { to, from: peer.from, ecn: None, segment, bytes: datagram };
                if self.socket.send(&out) == SendFate::TooLong {
                    peer.pmtu.on_too_long(now, size);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_wire::TcpHeader;

    /// Breaks: answers to probes reach the host, or pings of the host are taken for answers to probes.
    #[test]
    fn only_the_answer_to_a_probe_is_one() {
        let (a, b) = (Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2));
        let asked = request(a, b, 7, 300);
        assert_eq!(reply(&asked, 7), None);
        let below = Below::new(MacAddr::default(), MacAddr::default(), AddressPair::V4(b, a), 64);
        let answer = |ident, data| {
            let mut frame = Vec::new();
            below.icmp(1, &Icmp::EchoReply { ident, seq: 300, data }).unwrap().write_frame(&mut frame);
            frame.split_off(14)
        };
        assert_eq!(reply(&answer(7, MARK), 7), Some(300));
        assert_eq!(reply(&answer(8, MARK), 7), None);
        assert_eq!(reply(&answer(7, b"12345678"), 7), None);
        let mut damaged = answer(7, MARK);
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(reply(&damaged, 7), None);
        for len in 0..answer(7, MARK).len() {
            assert_eq!(reply(&answer(7, MARK)[..len], 7), None);
        }
    }

    /// Breaks: a host never learns that its packets are too long for the tunnel.
    #[test]
    fn a_host_is_told_of_the_mtu() {
        let pair = AddressPair::V4([100, 64, 0, 1].into(), [100, 64, 0, 2].into());
        let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 64);
        let packet = below.tcp(1, &TcpHeader::default(), Bytes::from(vec![0; 1_400]));
        let told = too_long(&packet, 1_340).unwrap();
        assert_eq!(told.ip().unwrap().dst(), IpAddr::from([100, 64, 0, 1]));
        assert!(matches!(told.icmp().unwrap(), Icmp::TooBig { mtu: 1_340, .. }));
        assert!(told.verify_checksums().is_ok() && told.icmp().unwrap().quoted().is_some());
    }
}
