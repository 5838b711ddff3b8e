//! Captures of protocols other than TCP over IPv4, read by tshark: IPv6, UDP, ICMP, ARP and fragments.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use bytes::Bytes;
use farpace_trace::PcapngWriter;
use farpace_units::Instant;
use farpace_wire::icmp::solicited_node_mac;
use farpace_wire::{
    AddressPair, Arp, Below, Icmp, MacAddr, NeighbourDiscovery, Packet, TcpFlags, TcpHeader, UdpHeader,
    Unreachable, fragment,
};
use std::process::Command;

fn packets() -> Vec<Packet> {
    let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    let v4 = Below::new(a, b, AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), 64);
    let (here, there) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let v6 = Below::new(a, b, AddressPair::V6(here, there), 255);
    let request = Arp::request(a, [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let mut packets = vec![request.packet(MacAddr::BROADCAST), request.reply(b).packet(a)];
    let solicitation = NeighbourDiscovery::Solicitation { target: there, source_link: Some(a) };
    let mut packet = v6.icmp(0, &Icmp::Neighbour(solicitation)).unwrap();
    packet.set_macs(a, solicited_node_mac(there));
    let advertisement = NeighbourDiscovery::Advertisement {
        target: there,
        target_link: Some(b),
        router: false,
        solicited: true,
        overrides: true,
    };
    packets.extend([packet, v6.reversed().icmp(0, &Icmp::Neighbour(advertisement)).unwrap()]);
    let payload = Bytes::from_iter((0..333u32).map(|n| (n * 7) as u8));
    let header = TcpHeader { src_port: 5001, dst_port: 5002, flags: TcpFlags::ACK, ..TcpHeader::default() };
    let ports = UdpHeader { src_port: 5001, dst_port: 5002 };
    for below in [v4, v6] {
        let segment = below.tcp(1, &header, payload.clone());
        let datagram = below.udp(2, ports, payload.clone()).unwrap();
        let mut frame = Vec::new();
        datagram.write_frame(&mut frame);
        packets.extend([segment, datagram]);
        let quoted = &frame[14..];
        for message in [
            Icmp::EchoRequest { ident: 1, seq: 2, data: b"odd" },
            Icmp::EchoReply { ident: 1, seq: 2, data: b"odd" },
            Icmp::Unreachable { why: Unreachable::Port, quoted },
            Icmp::TooBig { mtu: 1300, quoted },
            Icmp::TimeExceeded { code: 0, quoted },
            Icmp::ParameterProblem { code: 0, pointer: 9, quoted },
        ] {
            packets.push(below.reversed().icmp(3, &message).unwrap());
        }
        let mut marked = Below { tos: 2, ..below }.udp(4, ports, payload.clone()).unwrap();
        assert!(marked.mark_ce());
        marked.decrement_ttl();
        packets.push(marked);
        let below = Below { dont_fragment: false, ..below };
        let big = below.udp(5, ports, Bytes::from_iter((0..3000u32).map(|n| (n * 3) as u8))).unwrap();
        packets.extend(fragment(big, 1280, 5).unwrap());
    }
    packets
}

/// Breaks: Wireshark opens captures of all protocols without errors, and reassembles fragments.
#[test]
fn tshark_reads_all_protocols_without_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.pcapng");
    let file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let mut capture = PcapngWriter::new(file, "protocols").unwrap();
    let tap = capture.add_interface("eth0", "", None).unwrap();
    let packets = packets();
    for (n, packet) in packets.iter().enumerate() {
        capture.packet(tap, Instant::from_nanos(n as u64), packet, None).unwrap();
    }
    capture.finish().unwrap();
    let rows = |arguments: &[&str]| {
        let mut command = Command::new("tshark");
        command.env("LC_ALL", "C.UTF-8").arg("-n").arg("-r").arg(&path);
        for checked in ["ip", "tcp", "udp"] {
            command.args(["-o", &format!("{checked}.check_checksum:TRUE")]);
        }
        let output = common::run_if_installed(command.args(arguments), "tshark")?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        Some(text.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let wrong = "_ws.malformed || _ws.expert.severity == \"Error\" || ip.checksum.status == 0 \
                 || tcp.checksum.status == 0 || udp.checksum.status == 0 || icmp.checksum.status == 0 \
                 || icmpv6.checksum.status == 0";
    let Some(errors) = rows(&["-Y", wrong]) else { return };
    assert_eq!(errors, [""; 0]);
    let count = |filter: &str| rows(&["-Y", filter]).map_or(0, |rows| rows.len());
    assert_eq!(count("frame"), packets.len());
    assert_eq!(count("arp.opcode == 1 || arp.opcode == 2"), 2);
    assert_eq!(
        count("icmpv6.nd.ns.target_address == fd00::2 && icmpv6.opt.linkaddr == 02:00:00:00:00:01"),
        1
    );
    assert_eq!(count("icmpv6.nd.na.flag.s == 1 && icmpv6.opt.linkaddr == 02:00:00:00:00:02"), 1);
    assert_eq!(count("icmp.mtu == 1300 || icmpv6.mtu == 1300"), 2);
    assert_eq!(count("udp.checksum.status == 1 && (ip.dsfield.ecn == 3 || ipv6.tclass.ecn == 3)"), 2);
    // Reassembled by tshark, with a valid checksum over 3008 bytes.
    assert_eq!(count("udp.length == 3008 && udp.checksum.status == 1"), 2);
}
