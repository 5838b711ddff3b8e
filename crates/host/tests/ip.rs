//! What a host does at the Internet layer: neighbours, fragments, ICMP, UDP.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use bytes::Bytes;
use common::{A, B, Bench, Talker, between, config, settle};
use farpace_host::ip::udp::{BindError, UdpDatagram, UdpId};
use farpace_host::{DatagramProgram, ListenSettings, LocalLink, UdpSocket};
use farpace_path::{DropReason, Element};
use farpace_tcp::{CloseReason, ConnectionState};
use farpace_units::{Instant, Span};
use farpace_wire::tcp::{TcpFlags, TcpOptions};
use farpace_wire::udp::UdpHeader;
use farpace_wire::{AddressPair, Below, EtherType, Icmp, MacAddr, Packet, TcpHeader, Unreachable};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const START: Instant = Instant::from_nanos(1_000_000_000);
const A6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const B6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));
const MAC_A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
const MAC_B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);

fn below(src: IpAddr, dst: IpAddr) -> Below {
    Below::new(MAC_A, MAC_B, AddressPair::new(src, dst).unwrap(), 64)
}

fn icmp(src: IpAddr, dst: IpAddr, message: &Icmp<'_>) -> Packet {
    below(src, dst).icmp(1, message).unwrap()
}

/// The beginning of an IP packet, as routers quote it.
fn quote(packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    frame[14..14 + 28].to_vec()
}

/// Sends datagrams at a constant rate and keeps what comes in; or sends it back.
#[derive(Default)]
struct Program {
    next: Option<Instant>,
    left: u32,
    to: Option<SocketAddr>,
    size: usize,
    echoes: bool,
    got: Vec<UdpDatagram>,
}

impl DatagramProgram for Program {
    fn run(&mut self, now: Instant, socket: &mut UdpSocket<'_>) {
        while let Some(datagram) = socket.receive() {
            if self.echoes {
                socket.send_to(datagram.from, datagram.payload.clone()).unwrap();
            }
            self.got.push(datagram);
        }
        if let (Some(to), Some(next)) = (self.to, self.next)
            && next <= now
        {
            let payload: Vec<u8> = (0..self.size).map(|n| (n % 251) as u8).collect();
            socket.send_to(to, Bytes::from(payload)).unwrap();
            self.left -= 1;
            self.next = (self.left > 0).then(|| next + Span::from_millis(10));
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

fn sender(to: IpAddr, left: u32, size: usize) -> Box<Program> {
    Box::new(Program {
        next: Some(START),
        left,
        to: Some(SocketAddr::new(to, 9)),
        size,
        ..Program::default()
    })
}

/// Breaks: UDP flows: their rate, what they carry, whom they come from, and answers to them.
#[test]
fn datagrams_come_and_go() {
    for (from, to) in [(A, B), (A6, B6)] {
        let (mut a, mut b) = (Bench::new(from), Bench::new(to));
        let source = a.host.open_udp(from, 7, sender(to, 3, 100)).unwrap();
        let sink = b.host.open_udp(to, 9, Box::new(Program { echoes: true, ..Program::default() })).unwrap();
        let again = b.host.open_udp(to, 9, Box::new(Program::default()));
        assert_eq!(again, Err(BindError::Taken(9)));
        for n in 0..3u64 {
            let now = START + Span::from_millis(10 * n);
            assert_eq!(a.host.deadline(), Some(now), "one every 10 ms");
            a.run_until(now);
            b.now = now;
            settle(&mut a, &mut b);
        }
        assert_eq!(a.host.deadline(), None);
        let got = |host: &farpace_host::Host, id: UdpId| {
            host.datagram_program::<Program>(id)
                .unwrap()
                .got
                .iter()
                .map(|d| (d.from, d.payload.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(got(&b.host, sink), [(SocketAddr::new(from, 7), 100); 3]);
        assert_eq!(got(&a.host, source), [(SocketAddr::new(to, 9), 100); 3]);
        b.host.close_udp(sink);
        b.packet(below(from, to).udp(1, UdpHeader { src_port: 7, dst_port: 9 }, Bytes::new()).unwrap());
        assert_eq!(b.drops(), [DropReason::NoListener]);
        let complaint = b.sent().remove(0);
        assert!(matches!(complaint.icmp(), Ok(Icmp::Unreachable { why: Unreachable::Port, .. })));
    }
}

/// Breaks: `shutdown`: a program goes on sending.
#[test]
fn a_shutdown_ends_programs() {
    let mut a = Bench::new(A);
    a.host.open_udp(A, 7, sender(B, 1_000, 10)).unwrap();
    a.host.shutdown(START + Span::from_millis(25));
    a.run_until(START + Span::from_secs(60));
    assert_eq!((a.sent().len(), a.host.deadline()), (3, None));
}

/// Breaks: datagrams longer than a packet, packets that wait here uncounted, and the end of those that stay
/// in parts.
#[test]
fn long_datagrams_go_in_fragments() {
    for (from, to) in [(A, B), (A6, B6)] {
        let (mut a, mut b) = (Bench::new(from), Bench::new(to));
        a.host.open_udp(from, 7, sender(to, 2, 4_000)).unwrap();
        let sink = b.host.open_udp(to, 9, Box::new(Program::default())).unwrap();
        a.run_until(START);
        b.now = START;
        let mut parts = a.sent();
        assert_eq!(parts.len(), 3);
        parts.reverse();
        let last = parts.pop().unwrap();
        parts.into_iter().for_each(|part| b.packet(part));
        assert_eq!(b.host.held(), 2);
        b.packet(last);
        assert_eq!(b.host.held(), 0);
        let got = &b.host.datagram_program::<Program>(sink).unwrap().got;
        assert!(got[0].payload.iter().enumerate().all(|(n, byte)| *byte == (n % 251) as u8));
        assert_eq!((got.len(), got[0].payload.len()), (1, 4_000));
        // Of the second one a part gets lost.
        a.run_until(START + Span::from_secs(1));
        let mut parts = a.sent();
        parts.pop();
        parts.into_iter().for_each(|part| b.packet(part));
        b.run_until(START + Span::from_secs(100));
        assert_eq!((b.drops(), b.host.held()), (vec![DropReason::Fragment; 2], 0));
        let complaint = b.sent().remove(0);
        assert!(matches!(complaint.icmp(), Ok(Icmp::TimeExceeded { code: 1, .. })), "{complaint:?}");
    }
}

/// Breaks: a device with another MTU than 1500: datagrams go out in pieces that it does not take, or in
/// needlessly small ones, and connections offer and send segments that do not fit.
#[test]
fn packets_have_the_length_of_the_device() {
    for (from, to) in [(A, B), (A6, B6)] {
        for (mtu, count) in [(1500, 3), (1400, 3), (1280, 4), (9000, 1)] {
            let mut a = Bench::new(from);
            a.host.set_mtu(mtu);
            a.host.open_udp(from, 7, sender(to, 1, 4_000)).unwrap();
            a.run_until(START);
            let parts = a.sent();
            assert!(parts.iter().all(|part| part.network_len().get() <= u64::from(mtu)));
            assert_eq!(parts.len(), count, "{mtu}");
            a.host.connect(a.now, to, 80, config(), None, Talker::that_stays()).unwrap();
            a.wake();
            let header = if from.is_ipv4() { 40 } else { 60 };
            assert_eq!(a.header().options.mss, Some((mtu - header).min(1500 - header)), "{mtu}");
            // The same of one that is accepted, also from a cookie.
            let settings = ListenSettings { backlog: 1, ..ListenSettings::new(config()) };
            a.host.listen(80, settings, Talker::that_stays).unwrap();
            for port in 1..4 {
                let options = TcpOptions { mss: Some(8_000), ..TcpOptions::default() };
                let flags = TcpFlags::SYN;
                let syn = TcpHeader { src_port: port, dst_port: 80, flags, options, ..TcpHeader::default() };
                a.packet(between(to, from, &syn, b""));
                assert_eq!(a.header().options.mss, Some((mtu - header).min(1500 - header)), "{mtu}");
            }
        }
    }
}

/// Breaks: a kernel that leaves many datagrams in one packet (USO): a program gets them as one, or one of
/// them keeps the memory of all.
#[test]
fn datagrams_that_come_together_are_taken_apart() {
    for (from, to) in [(A, B), (A6, B6)] {
        let mut b = Bench::new(to);
        let sink = b.host.open_udp(to, 9, Box::new(Program::default())).unwrap();
        let payload: Bytes = (0..4_500).map(|n| (n % 251) as u8).collect();
        let mut packet =
            below(from, to).udp(1, UdpHeader { src_port: 7, dst_port: 9 }, payload.clone()).unwrap();
        packet.set_segment_size(1_000);
        b.with(|host, cx| host.on_burst([packet.clone()], cx));
        let got = &b.host.datagram_program::<Program>(sink).unwrap().got;
        assert_eq!(got.iter().map(|d| d.payload.len()).collect::<Vec<_>>(), [1000, 1000, 1000, 1000, 500]);
        assert_eq!(got.iter().flat_map(|d| d.payload.clone()).collect::<Bytes>(), payload);
        assert!(!payload.as_ptr_range().contains(&got[1].payload.as_ptr()));
        assert_eq!((b.drops(), b.account()), (vec![], (6, 6)), "each is counted once");
        // Nobody there: one complaint for each, as if they had come alone, so far as complaints go.
        b.host.close_udp(sink);
        b.with(|host, cx| host.on_burst([packet], cx));
        assert_eq!(b.drops(), [DropReason::NoListener; 5]);
        assert!(!b.sent().is_empty());
    }
}

/// Breaks: ping; or a host that answers to groups.
#[test]
fn echo_is_answered() {
    for (from, to) in [(A, B), (A6, B6)] {
        let mut b = Bench::new(to);
        b.packet(icmp(from, to, &Icmp::EchoRequest { ident: 5, seq: 6, data: b"are you there" }));
        let reply = b.sent().remove(0);
        let ip = reply.ip().unwrap();
        assert_eq!((ip.src(), ip.dst()), (to, from));
        assert_eq!(reply.icmp(), Ok(Icmp::EchoReply { ident: 5, seq: 6, data: b"are you there" }));
        b.packet(icmp(from, to, &Icmp::EchoReply { ident: 5, seq: 6, data: b"" }));
        assert!(b.sent().is_empty());
    }
}

/// Breaks: protocols that nobody knows are taken for damage, or answered too often.
#[test]
fn an_unknown_protocol_is_complained_of() {
    let mut b = Bench::new(B);
    let mut frame = Vec::new();
    below(A, B).udp(1, UdpHeader::default(), Bytes::from_static(b"what")).unwrap().write_frame(&mut frame);
    frame[23] = 200; // the protocol; the header checksum is made right again
    frame[24..26].fill(0);
    let sum = farpace_wire::checksum::checksum(&frame[14..34]).to_be_bytes();
    frame[24..26].copy_from_slice(&sum);
    b.packet(Packet::from_frame(&frame).unwrap());
    assert_eq!(b.drops(), [DropReason::NoListener]);
    let complaint = b.sent().remove(0);
    assert!(matches!(complaint.icmp(), Ok(Icmp::Unreachable { why: Unreachable::Protocol, .. })));
}

/// Breaks: a packet is taken whose extension headers tell a host to discard it (RFC 8200 §4, RFC 5095); or
/// its sender hears nothing, or something else than the RFCs say.
#[test]
fn extension_headers_are_judged() {
    const TCP: u8 = 6;
    let routing = |kind, left| vec![TCP, 0, kind, left, 0, 0, 0, 0];
    let options = |kind| vec![TCP, 0, kind, 2, 0, 0, 1, 0];
    let problem = |code, pointer| Some((code, pointer));
    // The first next header, the extension headers, whether the SYN is answered, the message to its sender.
    for (first, extensions, taken, told) in [
        (43, routing(0, 0), true, None),
        (43, routing(0, 1), false, problem(0, 42)),
        (43, routing(4, 1), false, problem(0, 42)),
        (60, options(0x1e), true, None),
        (60, options(0x5e), false, None),
        (60, options(0x9e), false, problem(2, 42)),
        (60, options(0xde), false, problem(2, 42)),
        (0, options(0x9e), false, problem(2, 42)),
        (0, options(5), true, None),
        (60, vec![TCP, 0, 0x1e, 9, 0, 0, 0, 0], false, None),
        (0, [vec![0, 0, 1, 4, 0, 0, 0, 0], options(0x1e)].concat(), false, problem(1, 40)),
        (60, [vec![0, 0, 1, 4, 0, 0, 0, 0], options(0x1e)].concat(), false, problem(1, 40)),
        (59, vec![], false, None),
        (200, vec![], false, problem(1, 6)),
    ] {
        let mut b = Bench::new(B6);
        let factory = || Talker::boxed(b"");
        b.host.listen(80, ListenSettings::new(config()), factory).unwrap();
        let header = TcpHeader { src_port: 1, dst_port: 80, flags: TcpFlags::SYN, ..TcpHeader::default() };
        let mut frame = Vec::new();
        below(A6, B6).tcp(1, &header, Bytes::new()).write_frame(&mut frame);
        frame[20] = first;
        let len = u16::from_be_bytes([frame[18], frame[19]]) + extensions.len() as u16;
        frame[18..20].copy_from_slice(&len.to_be_bytes());
        frame.splice(54..54, extensions.iter().copied());
        b.packet(Packet::from_frame(&frame).unwrap());
        let sent = b.sent();
        let answers = sent.iter().filter(|packet| packet.ip_tcp().is_ok()).count();
        assert_eq!(answers, usize::from(taken), "{first} {extensions:x?}");
        let messages: Vec<_> = sent
            .iter()
            .filter_map(|packet| match packet.icmp() {
                Ok(Icmp::ParameterProblem { code, pointer, .. }) => Some((code, pointer)),
                _ => None,
            })
            .collect();
        assert_eq!(messages, Vec::from_iter(told), "{first} {extensions:x?}");
        assert_eq!(sent.len(), answers + messages.len());
    }
}

/// Breaks: a packet is taken that a source route sends on to others (RFC 7126), a SYN that also closes opens
/// a connection, or one from the broadcast address of the link is answered.
#[test]
fn what_no_honest_sender_sends_is_dropped() {
    let syn = |flags| TcpHeader { src_port: 1, dst_port: 80, flags, ..TcpHeader::default() };
    let host = || {
        let mut b = Bench::new(B);
        b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"")).unwrap();
        b
    };
    let routed = |pointer: u8| {
        let mut frame = Vec::new();
        below(A, B).tcp(1, &syn(TcpFlags::SYN), Bytes::new()).write_frame(&mut frame);
        let len = u16::from_be_bytes([frame[16], frame[17]]) + 8;
        frame[14] = 0x47;
        frame[16..18].copy_from_slice(&len.to_be_bytes());
        frame.splice(34..34, [1, 131, 7, pointer, 10, 0, 0, 9]);
        frame[24..26].fill(0);
        let sum = farpace_wire::checksum::checksum(&frame[14..42]).to_be_bytes();
        frame[24..26].copy_from_slice(&sum);
        Packet::from_frame(&frame).unwrap()
    };
    for (pointer, answers) in [(8, 1), (4, 0)] {
        let mut b = host();
        b.packet(routed(pointer));
        assert_eq!(b.sent().len(), answers, "pointer {pointer}");
    }
    let mut b = host();
    b.packet(below(A, B).tcp(1, &syn(TcpFlags::SYN.with(TcpFlags::FIN)), Bytes::new()));
    assert_eq!((b.sent().len(), b.drops()), (0, vec![DropReason::Malformed]));
    let mut b = host();
    join(&mut b, MAC_B);
    b.packet(below(IpAddr::from([10, 0, 0, 255]), B).tcp(1, &syn(TcpFlags::SYN), Bytes::new()));
    assert_eq!((b.sent().len(), b.drops()), (0, vec![DropReason::Martian]));
}

/// Breaks: connections to ports that are closed hang until they time out; or anybody who guesses addresses
/// and ports can end or slow a connection with ICMP (RFC 5927).
#[test]
fn errors_reach_the_connection_they_are_about() {
    let router = IpAddr::from([10, 9, 9, 9]);
    let unreachable = |quoted: &[u8]| icmp(router, A, &Icmp::Unreachable { why: Unreachable::Port, quoted });
    let mut a = Bench::new(A);
    let id = a.host.connect(START, B, 80, config(), None, Talker::boxed(b"")).unwrap();
    a.run_until(START);
    let syn = quote(&a.sent()[0]);
    let forge = |at: usize| {
        let mut forged = syn.clone();
        forged[at] ^= 1;
        forged
    };
    // Source, destination, either port, sequence number.
    for at in [15, 19, 21, 23, 27] {
        a.packet(unreachable(&forge(at)));
        assert_eq!(a.host.connection(id).unwrap().state(), ConnectionState::SynSent, "byte {at}");
    }
    a.packet(unreachable(&syn));
    assert_eq!(a.host.application::<Talker>(id).unwrap().ended, Some(CloseReason::Unreachable));
    assert_eq!(a.host.open_connections(), 0);
}

/// Breaks: path MTU discovery (RFC 1191): segments that never fit are sent for ever.
#[test]
fn a_report_of_a_small_mtu_makes_segments_smaller() {
    static LONG: [u8; 20_000] = [7; 20_000];
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    (a.now, b.now) = (START, START);
    b.host.listen(80, ListenSettings::new(config()), Talker::that_stays).unwrap();
    let id = a.host.connect(START, B, 80, config(), None, Talker::that_stays()).unwrap();
    a.wake();
    settle(&mut a, &mut b);
    a.with(|host, cx| host.with_connection(id, cx, |c| c.write(&mut Bytes::from_static(&LONG))));
    let lost = a.sent();
    assert_eq!(lost[0].network_len().get(), 1500);
    let quoted = quote(&lost[0]);
    a.packet(icmp(IpAddr::from([10, 9, 9, 9]), A, &Icmp::TooBig { mtu: 1280, quoted: &quoted }));
    let again = a.sent();
    assert!(!again.is_empty() && again.iter().all(|p| p.network_len().get() <= 1280), "{again:?}");
    assert_eq!(a.host.connection(id).unwrap().inspect().mss, 1280 - 52);
}

fn join(bench: &mut Bench, mac: MacAddr) {
    let link = LocalLink { prefixes: vec![(A, 24), (A6, 64)], gateways: vec![IpAddr::from([10, 0, 0, 254])] };
    bench.host.join_link(mac, link);
}

/// Breaks: hosts on a real link: they find each other by ARP and neighbour discovery, and what waits
/// meanwhile is counted and sent.
#[test]
fn neighbours_are_asked_for() {
    for (from, to) in [(A, B), (A6, B6)] {
        let (mut a, mut b) = (Bench::new(from), Bench::new(to));
        join(&mut a, MAC_A);
        join(&mut b, MAC_B);
        b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"and to you")).unwrap();
        let id = a.host.connect(START, to, 80, config(), None, Talker::boxed(b"hello")).unwrap();
        a.run_until(START);
        b.now = START;
        assert_eq!(a.host.held(), 1, "the SYN waits");
        let question = a.sent().remove(0);
        let ethernet = question.ethernet().unwrap();
        assert!(ethernet.dst.is_multicast() && ethernet.src == MAC_A);
        assert_eq!(ethernet.ether_type == EtherType::ARP, from.is_ipv4());
        b.packet(question);
        settle(&mut a, &mut b);
        assert_eq!(a.host.held(), 0);
        assert_eq!(a.host.application::<Talker>(id).unwrap().heard, b"and to you");
        b.packet(between(from, to, &TcpHeader::default(), b""));
        assert_eq!(b.sent().remove(0).ethernet().unwrap().dst, MAC_A, "known by now");
    }
}

/// Breaks: packets for a neighbour that is not there wait for ever; or those for far away are sent to nobody.
#[test]
fn nobody_answers() {
    let mut a = Bench::new(A);
    join(&mut a, MAC_A);
    let far = IpAddr::from([192, 0, 2, 1]);
    let ids = [B, far].map(|to| a.host.connect(START, to, 80, config(), None, Talker::boxed(b"")).unwrap());
    a.run_until(START);
    let targets: Vec<_> = a.sent().iter().map(|p| p.arp().unwrap().target.to_string()).collect();
    assert_eq!(targets, ["10.0.0.2", "10.0.0.254"], "the gateway for what is far away");
    a.run_until(START + Span::from_secs(4));
    assert_eq!(a.host.held(), 0);
    let drops = a.drops();
    assert!(drops.len() >= 2 && drops.iter().all(|why| *why == DropReason::Unresolved), "{drops:?}");
    a.run_until(START + Span::from_secs(1_000));
    for id in ids {
        let ended = a.host.application::<Talker>(id).unwrap().ended;
        assert_eq!(ended, Some(CloseReason::Unreachable), "tried again, and then told why");
    }
}
