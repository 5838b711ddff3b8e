//! One host, driven by hand: packets in, packets out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use common::{A, B, Bench, Talker, between, config, segment, segment_at, settle};
use farpace_events::Cause;
use farpace_host::{
    Bind, ConnectError, DEFAULT_CLOSED_KEPT, FIRST_EPHEMERAL, ListenError, ListenSettings, LocalAddress,
    MAX_RESETS_PER_SECOND, MAX_TIME_WAIT,
};
use farpace_path::{DropReason, Element, PortFrames};
use farpace_tcp::config::{Profile, Settings};
use farpace_tcp::{CloseReason, Connection, ConnectionEvent, ConnectionState};
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{EtherType, MacAddr, Packet, PauseFrame};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

const START: Instant = Instant::from_nanos(1_000_000_000);

/// Breaks: two hosts on a wire cannot talk.
#[test]
fn a_conversation() {
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"and to you")).unwrap();
    let id = a.host.connect(START, B, 80, config(), None, Talker::boxed(b"hello")).unwrap();
    assert_eq!(a.host.deadline(), Some(START), "the plan is a deadline");
    assert!(a.host.connection(id).is_none(), "not before its time");
    converse(&mut a, &mut b);
    assert_eq!(a.host.application::<Talker>(id).unwrap().heard, b"and to you");
    let (accepted, _) = b.host.connections().next().unwrap();
    let talker = b.host.application::<Talker>(accepted).unwrap();
    assert_eq!(talker.heard, b"hello");
    let states = [a.host.connection(id).unwrap().state(), b.host.connection(accepted).unwrap().state()];
    assert!(
        states.iter().all(|s| matches!(s, ConnectionState::TimeWait | ConnectionState::Closed)),
        "{states:?}"
    );
    assert_eq!(a.drops(), []);
}

/// Two hosts talk for 100 ms from [`START`] on.
fn converse(a: &mut Bench, b: &mut Bench) {
    for step in 0..20 {
        let now = START + Span::from_millis(5 * step);
        a.run_until(now);
        b.run_until(now);
        a.sent().into_iter().for_each(|p| b.packet(p));
        b.sent().into_iter().for_each(|p| a.packet(p));
    }
}

/// Breaks: IPv6, or hosts with addresses of both families.
#[test]
fn a_conversation_over_either_family() {
    let six = |n: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n));
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    a.host.add_address(six(1));
    b.host.add_address(six(2));
    b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"and to you")).unwrap();
    let ids = [B, six(2)].map(|to| a.host.connect(START, to, 80, config(), None, Talker::boxed(b"hello")));
    converse(&mut a, &mut b);
    for id in ids {
        assert_eq!(a.host.application::<Talker>(id.unwrap()).unwrap().heard, b"and to you");
    }
    let sizes = ids.map(|id| a.host.connection(id.unwrap()).unwrap().inspect().mss);
    assert_eq!(sizes, [1448, 1428], "packets of the same length");
    assert_eq!(b.host.connections().count(), 2);
}

/// Breaks: segments for nobody are not answered as RFC 9293 §3.10.7.1 says, or not counted.
#[test]
fn strangers_get_a_reset() {
    let mut b = Bench::new(B);
    b.packet(segment(TcpFlags::SYN, 1, 80));
    let reset = b.header();
    assert_eq!(reset.flags, TcpFlags::RST.with(TcpFlags::ACK));
    assert_eq!((reset.seq, reset.ack), (Seq::new(0), Seq::new(101)));
    b.packet(segment(TcpFlags::ACK, 1, 80));
    let reset = b.header();
    assert_eq!((reset.flags, reset.seq), (TcpFlags::RST, Seq::new(700)));
    b.packet(segment(TcpFlags::RST, 1, 80));
    b.packet(segment(TcpFlags::RST.with(TcpFlags::ACK), 1, 80));
    assert!(b.sent().is_empty(), "a reset is never answered");
    assert_eq!(b.drops(), [DropReason::NoListener; 4]);
}

/// Breaks: the bound on what a host can be made to send to forged addresses.
#[test]
fn resets_are_limited() {
    let mut b = Bench::new(B);
    b.now = START;
    for port in 1..=60_000 {
        b.packet(segment(TcpFlags::SYN, port, 80));
    }
    assert_eq!(b.sent().len() as u64, MAX_RESETS_PER_SECOND);
    b.now += Span::from_secs(1);
    b.packet(segment(TcpFlags::SYN, 1, 80));
    assert_eq!(b.sent().len(), 1, "an honest one is answered soon after");
}

/// Breaks: gap frames of a neighbour that paces are dropped as if something were wrong, or are not counted.
#[test]
fn frames_of_the_line_end_at_the_nic() {
    let mut a = Bench::new(A);
    let neighbour = MacAddr([2; 6]);
    for time in [0, 0, 9] {
        a.packet(PauseFrame::pause(time).packet(neighbour));
    }
    for dst in [MacAddr::NEAREST_BRIDGE, neighbour] {
        a.packet(Packet::from_link(neighbour, dst, EtherType::EXPERIMENTAL, vec![0; 46].into()));
    }
    assert_eq!(a.drops(), []);
    assert_eq!(a.sent().len(), 0);
    let counted = PortFrames { pauses: 2, pauses_with_time: 1, others: 2 };
    assert_eq!(*a.host.port_frames(), counted);
}

/// Breaks: what is not for this host, or damaged, reaches a connection.
#[test]
fn wrong_packets_are_dropped_with_their_cause() {
    let mut a = Bench::new(A);
    a.packet(between(B, IpAddr::from([10, 0, 0, 3]), &TcpHeader::default(), b""));
    assert_eq!(a.drops(), [DropReason::NoRoute], "addressed to somebody else");
    let mut shared = Bench::new(A);
    shared.host.share_link();
    shared.packet(between(B, IpAddr::from([10, 0, 0, 3]), &TcpHeader::default(), b""));
    assert_eq!((shared.drops(), shared.host.passed_over()), (vec![], 1), "a switch did not know better");
    let mut b = Bench::new(B);
    let mut damaged = segment(TcpFlags::SYN, 1, 80);
    damaged.flip_bit(8 * 40);
    b.packet(damaged);
    assert_eq!(b.drops(), [DropReason::BadChecksum]);
    let mut frame = vec![0; 60];
    frame[11..14].copy_from_slice(&[1, 0x88, 0xb5]); // an experiment, not to itself
    b.packet(Packet::from_frame(&frame).unwrap());
    assert_eq!(b.drops(), [DropReason::Malformed]);
    assert!(b.sent().is_empty());
}

/// Breaks: LAND (a host that talks to itself until it falls), and answers to groups or nobody.
#[test]
fn martians_are_dropped_unanswered() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), Talker::that_stays).unwrap();
    let syn = TcpHeader { src_port: 80, dst_port: 80, flags: TcpFlags::SYN, ..TcpHeader::default() };
    let sources: [[u8; 4]; 7] = [
        [10, 0, 0, 2], // LAND
        [0, 0, 0, 0],
        [0, 1, 2, 3],
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [240, 0, 0, 1],
        [255, 255, 255, 255],
    ];
    for source in sources {
        b.packet(between(source.into(), B, &syn, b""));
        assert_eq!(b.drops(), [DropReason::Martian], "{source:?}");
    }
    assert!(b.sent().is_empty());
    assert_eq!(b.host.open_connections(), 0);
}

/// Breaks: two listeners on one port, or a port that nobody listens on any more.
#[test]
fn a_port_is_listened_on_once() {
    let mut b = Bench::new(B);
    let talker = || Talker::boxed(b"");
    assert_eq!(b.host.listen(80, ListenSettings::new(config()), talker), Ok(()));
    assert_eq!(b.host.listen(80, ListenSettings::new(config()), talker), Err(ListenError::Taken(80)));
    assert!(b.host.stop_listening(80) && !b.host.stop_listening(80));
    b.packet(segment(TcpFlags::SYN, 1, 80));
    assert!(b.header().flags.contains(TcpFlags::RST));
    assert_eq!(b.host.listen(80, ListenSettings::new(config()), talker), Ok(()));
}

/// Breaks: a connection whose listener went away during the handshake hangs without an application.
#[test]
fn a_handshake_that_nobody_waits_for_is_reset() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), Talker::that_stays).unwrap();
    b.packet(segment(TcpFlags::SYN, 1, 80));
    let iss = b.header().seq;
    b.host.stop_listening(80);
    b.packet(segment_at(101, iss + 1, TcpFlags::ACK, 1, 80));
    assert!(b.headers().iter().any(|h| h.flags.contains(TcpFlags::RST)));
    assert_eq!((b.host.open_connections(), b.host.connections().count()), (0, 0));
}

/// Breaks: a host that is asked for connections all day grows without limit.
#[test]
fn closed_connections_are_forgotten_in_time() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"")).unwrap();
    for i in 0..2 * DEFAULT_CLOSED_KEPT + 1_000 {
        let port = (i % 60_000) as u16 + 1;
        b.packet(segment(TcpFlags::SYN, port, 80));
        let iss = b.header().seq;
        if i % 2 == 0 {
            b.packet(segment_at(101, iss + 1, TcpFlags::ACK, port, 80));
        }
        // The reset that ends it again: exactly at RCV.NXT.
        b.packet(segment_at(101, iss + 1, TcpFlags::RST, port, 80));
        b.sent();
    }
    assert_eq!(b.host.open_connections(), 0);
    // Handshakes that came to nothing are not kept at all.
    assert_eq!(b.host.connections().count(), DEFAULT_CLOSED_KEPT);
    assert!(b.host.connections().all(|(_, c)| c.state() == ConnectionState::Closed));
}

/// Breaks: two connections with the same ends, or a silent wait when all ports are taken.
#[test]
fn ports_run_out_with_an_error() {
    let mut a = Bench::new(A);
    let mut open = |to: IpAddr| a.host.connect(START, to, 80, config(), None, Talker::that_stays());
    let ports = u16::MAX - FIRST_EPHEMERAL + 1;
    assert!((0..ports).all(|_| open(B).is_ok()));
    assert_eq!(open(B), Err(ConnectError::NoPort { address: B, port: 80 }));
    assert!(open(IpAddr::from([10, 0, 0, 3])).is_ok(), "other destinations have their own");
}

/// Breaks: RFC 9293 MUST-46: connections to what cannot be a machine are refused when they are asked for.
#[test]
fn impossible_destinations_are_refused() {
    let mut a = Bench::new(A);
    let mut open = |to: IpAddr| a.host.connect(START, to, 80, config(), None, Talker::that_stays());
    for bad in [A, Ipv4Addr::BROADCAST.into(), Ipv4Addr::UNSPECIFIED.into(), IpAddr::from([239, 1, 1, 1])] {
        assert_eq!(open(bad), Err(ConnectError::BadAddress(bad)));
    }
    let six = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    assert_eq!(open(six), Err(ConnectError::NoAddress(six)));
}

/// Breaks: RFC 9293 MUST-43: a connection begins at the address that its program named, or fails if there is
/// none such.
#[test]
fn a_program_names_the_address_of_its_own_end() {
    let mut a = Bench::new(A);
    let second = IpAddr::from([10, 0, 0, 77]);
    let stranger = IpAddr::from([10, 0, 0, 78]);
    a.host.add_address(second);
    let mut open = |from: Option<IpAddr>, port: u16| {
        let local = LocalAddress { address: from, ..LocalAddress::default() };
        a.host.connect_with(local, START, B, port, config(), None, Talker::that_stays())
    };
    for (from, port) in [(None, 80), (Some(A), 81), (Some(second), 82)] {
        open(from, port).unwrap();
    }
    assert_eq!(open(Some(stranger), 83), Err(ConnectError::NoAddress(B)));
    a.run_until(START);
    let mut sent: Vec<_> =
        a.sent().iter().map(|p| (p.tcp().unwrap().header().dst_port, p.ip().unwrap().src())).collect();
    sent.sort_unstable();
    assert_eq!(sent, [(80, A), (81, A), (82, second)]);
}

/// Breaks: a half-open connection that outlives its listener, keeps its place among the orphans, or says a
/// word of its end.
#[test]
fn half_open_connections_end_with_their_listener() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), || Box::new(Leaver)).unwrap();
    b.packet(segment(TcpFlags::SYN, 9, 80));
    let ours = b.header();
    assert_eq!(b.host.half_open_connections(), 1);
    b.host.stop_listening(80);
    assert_eq!((b.host.half_open_connections(), b.host.orphans(), b.host.deadline()), (0, 0, None));
    assert!(b.headers().is_empty(), "the peer is told nothing");
    b.packet(segment_at(101, ours.seq + 1, TcpFlags::ACK, 9, 80));
    assert!(b.header().flags.contains(TcpFlags::RST), "whoever goes on is nobody's peer");
}

/// Breaks: plans opened late, twice, or out of order; the cost of a wake-up that looks at all plans.
#[test]
fn many_plans_open_in_their_order() {
    let mut a = Bench::new(A);
    let ids: Vec<_> = (0..5_000u64)
        .map(|n| {
            let at = START + Span::from_micros(n * 7_919 % 5_000);
            (at, a.host.connect(at, B, 80, config(), None, Talker::that_stays()).unwrap())
        })
        .collect();
    a.run_until(START + Span::from_micros(2_499));
    for (at, id) in &ids {
        assert_eq!(a.host.connection(*id).is_some(), *at <= a.now, "{at:?}");
    }
    assert_eq!(a.headers().len(), 2_500, "one SYN each");
}

/// Breaks: `shutdown`: a connection stays open, a new one is taken, or the application loses what it has
/// written.
#[test]
fn a_host_shuts_down_in_good_order() {
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    (a.now, b.now) = (START, START);
    b.host.listen(80, ListenSettings::new(config()), Talker::that_stays).unwrap();
    let ids: Vec<_> = (0..10)
        .map(|_| a.host.connect(START, B, 80, config(), None, Talker::that_stays()).unwrap())
        .collect();
    a.wake();
    settle(&mut a, &mut b);
    b.packet(segment(TcpFlags::SYN, 1, 80)); // half-open
    let later =
        a.host.connect(START + Span::from_secs(9), B, 80, config(), None, Talker::that_stays()).unwrap();
    let stop = START + Span::from_millis(1);
    b.host.shutdown(stop);
    assert_eq!(b.host.deadline(), Some(stop));
    b.sent();
    b.run_until(stop);
    let (fins, resets) = b.headers().iter().fold((0, 0), |(fins, resets), h| {
        (
            fins + u32::from(h.flags.contains(TcpFlags::FIN)),
            resets + u32::from(h.flags.contains(TcpFlags::RST)),
        )
    });
    assert_eq!((fins, resets), (10, 1));
    let refused = b.host.connect(stop, A, 80, config(), None, Talker::that_stays());
    assert_eq!(refused, Err(ConnectError::ShutDown));
    b.packet(segment(TcpFlags::SYN, 2, 80));
    assert!(b.header().flags.contains(TcpFlags::RST), "nobody is let in any more");
    // The FINs were lost; the peers close in their turn.
    a.host.shutdown(stop);
    for step in 0..100 {
        let now = stop + Span::from_millis(10 * step);
        a.run_until(now);
        b.run_until(now);
        settle(&mut a, &mut b);
    }
    assert!(a.host.connection(later).is_none(), "not opened after the end");
    let end = stop + Span::from_secs(300);
    a.run_until(end);
    b.run_until(end);
    assert_eq!((a.host.open_connections(), b.host.open_connections()), (0, 0));
    for id in ids {
        assert_eq!(a.host.application::<Talker>(id).unwrap().ended, Some(CloseReason::Finished));
    }
    assert_eq!((a.host.deadline(), b.host.deadline()), (None, None));
}

/// Breaks: the choice of TCP for each connection; one host runs several at once.
#[test]
fn each_connection_has_its_own_profile() {
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"")).unwrap();
    let ids = Profile::ALL.map(|profile| {
        let config = Settings { profile: Some(profile), ..Settings::default() }.resolve().unwrap();
        a.host.connect(START, B, 80, config, None, Talker::boxed(b"hello")).unwrap()
    });
    a.run_until(START);
    b.now = START;
    let syns = a.sent();
    let sack = syns.iter().filter(|p| p.tcp().unwrap().header().options.sack_permitted).count();
    assert!(sack > 0 && sack < syns.len(), "NewReno offers no SACK");
    syns.into_iter().for_each(|p| b.packet(p));
    settle(&mut a, &mut b);
    for id in ids {
        assert_eq!(a.host.connection(id).unwrap().counters().bytes_sent.get(), 5);
    }
    assert!(b.host.connections().all(|(id, _)| b.host.application::<Talker>(id).unwrap().heard == b"hello"));
}

/// Breaks: hosts on real networks, where a program acts when it likes and not only when something happens.
#[test]
fn a_program_may_act_between_events() {
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    (a.now, b.now) = (START, START);
    b.host.listen(80, ListenSettings::new(config()), Talker::that_stays).unwrap();
    let id = a.host.connect(START, B, 80, config(), None, Talker::that_stays()).unwrap();
    a.wake();
    settle(&mut a, &mut b);
    let said =
        a.with(|host, cx| host.with_connection(id, cx, |c| c.write(&mut bytes::Bytes::from_static(b"now"))));
    assert_eq!(said.map(|n| n.get()), Some(3));
    settle(&mut a, &mut b);
    let (accepted, _) = b.host.connections().next().unwrap();
    assert_eq!(b.host.application::<Talker>(accepted).unwrap().heard, b"now");
}

/// Breaks: busy clients: a port that is used again within TIME-WAIT is refused (RFC 6191), or segments of the
/// old connection can be taken for the new one's.
#[test]
fn a_connection_in_time_wait_makes_room_for_its_successor() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"welcome")).unwrap();
    b.packet(segment(TcpFlags::SYN, 7, 80));
    let iss = b.header().seq;
    b.packet(segment_at(101, iss + 1, TcpFlags::ACK, 7, 80));
    let end = iss + 1 + 7 + 1; // its words and its FIN
    b.packet(segment_at(101, end, TcpFlags::ACK.with(TcpFlags::FIN), 7, 80));
    let (first, c) = b.host.connections().next().unwrap();
    assert_eq!((c.state(), b.host.time_waits()), (ConnectionState::Closed, 1));
    b.headers();

    b.packet(segment_at(90, end, TcpFlags::SYN, 7, 80));
    assert!(!b.header().flags.contains(TcpFlags::SYN), "an old SYN is not a new connection");
    b.packet(segment_at(5_000, end, TcpFlags::SYN, 7, 80));
    let answer = b.header();
    assert_eq!((answer.flags, answer.ack), (TcpFlags::SYN.with(TcpFlags::ACK), Seq::new(5_001)));
    assert!(answer.seq.after(end + 65_000), "far above the old numbers");
    assert_eq!(b.host.application::<Talker>(first).unwrap().ended, Some(CloseReason::Finished));
    assert_eq!((b.host.open_connections(), b.host.half_open_connections()), (1, 1));

    // Without a listener it is nobody's.
    b.packet(segment_at(5_001, answer.seq + 1, TcpFlags::ACK, 7, 80));
    let end = answer.seq + 1 + 7 + 1;
    b.packet(segment_at(5_001, end, TcpFlags::ACK.with(TcpFlags::FIN), 7, 80));
    b.headers();
    b.host.stop_listening(80);
    b.packet(segment_at(90_000, end, TcpFlags::SYN, 7, 80));
    assert!(b.headers().iter().all(|h| !h.flags.contains(TcpFlags::SYN)));
    assert_eq!(b.host.open_connections(), 1);
}

/// Breaks: the table of waits keeps rows for ever, loses the port of one, or answers for connections that are
/// over; a host that has ended all of them keeps their memory.
#[test]
fn rows_of_time_wait_end_when_their_time_comes() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"")).unwrap();
    let mut ends = Vec::new();
    for port in 1..=2_000 {
        b.packet(segment(TcpFlags::SYN, port, 80));
        let iss = b.header().seq;
        b.packet(segment_at(101, iss + 1, TcpFlags::ACK, port, 80));
        ends.push(iss + 2);
        b.packet(segment_at(101, iss + 2, TcpFlags::ACK.with(TcpFlags::FIN), port, 80));
        b.headers();
    }
    assert_eq!((b.host.time_waits(), b.host.open_connections()), (2_000, 2_000));
    b.run_until(b.now + Span::from_secs(30));
    // The peer of one has not got our last ACK: it is answered, and its wait begins anew.
    b.packet(segment_at(101, ends[6], TcpFlags::ACK.with(TcpFlags::FIN), 7, 80));
    assert_eq!((b.header().seq, b.host.time_waits()), (ends[6], 2_000));
    // A reset with the exact number ends one (RFC 1337 leaves that to the host), another is challenged.
    b.packet(segment_at(102, ends[7], TcpFlags::RST, 8, 80));
    b.packet(segment_at(103, ends[8], TcpFlags::RST, 9, 80));
    assert_eq!((b.headers().len(), b.host.time_waits()), (1, 1_999));
    b.run_until(b.now + Span::from_secs(31));
    assert_eq!(b.host.time_waits(), 1, "the one that began anew");
    b.run_until(b.now + Span::from_secs(30));
    assert_eq!((b.host.time_waits(), b.host.open_connections(), b.host.deadline()), (0, 0, None));
    b.packet(segment_at(102, ends[0], TcpFlags::ACK, 1, 80));
    assert!(b.header().flags.contains(TcpFlags::RST), "nobody has these ends");
}

/// Breaks: a peer that leaves in TIME-WAIT what it can fills the host. Beyond the limit connections end
/// without it.
#[test]
fn the_table_of_time_wait_has_an_end() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), || Talker::boxed(b"")).unwrap();
    let per_address = 60_000;
    for n in 0..MAX_TIME_WAIT + 100 {
        let from = IpAddr::from([10, 1, 0, (n / per_address) as u8 + 1]);
        let port = (n % per_address) as u16 + 1;
        let segment = |seq: u32, ack: Seq, flags: TcpFlags| {
            let (seq, window) = (Seq::new(seq), 65_535);
            let header =
                TcpHeader { src_port: port, dst_port: 80, seq, ack, flags, window, ..TcpHeader::default() };
            between(from, B, &header, b"")
        };
        b.packet(segment(100, Seq::new(0), TcpFlags::SYN));
        let iss = b.header().seq;
        b.packet(segment(101, iss + 1, TcpFlags::ACK));
        b.packet(segment(101, iss + 2, TcpFlags::ACK.with(TcpFlags::FIN)));
        b.sent();
    }
    assert_eq!((b.host.time_waits(), b.host.time_waits_ended_early()), (MAX_TIME_WAIT, 100));
    b.run_until(b.now + Span::from_secs(61));
    assert_eq!(b.host.open_connections(), 0);
}

/// Breaks: a burst costs an ACK for each packet, or segments out of order no longer get one each.
#[test]
fn a_burst_is_answered_once() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), Talker::that_stays).unwrap();
    b.packet(segment(TcpFlags::SYN, 1, 80));
    let iss = b.header().seq;
    let data = |seq: u32, size: u16| {
        let flags = TcpFlags::ACK;
        let (seq, ack) = (Seq::new(seq), iss + 1);
        let header =
            TcpHeader { src_port: 1, dst_port: 80, seq, ack, flags, window: 9_000, ..TcpHeader::default() };
        let mut packet = between(A, B, &header, &[7; 4_000]);
        packet.set_segment_size(size);
        packet
    };
    let from = |burst: u32| 101 + 32_000 * burst;
    let burst = |n: u32| (0..8).map(move |i| (from(n) + 4_000 * i, 1_000));
    // The first 512 KiB are acknowledged in parts, from which the sender learns the rate.
    for n in 0..17 {
        b.with(|host, cx| host.on_burst(burst(n).map(|(seq, size)| data(seq, size)), cx));
        b.headers();
    }
    let before = b.account();
    b.with(|host, cx| host.on_burst(burst(17).map(|(seq, size)| data(seq, size)), cx));
    let after = b.account();
    assert_eq!(after.0 - before.0, after.1 - before.1, "what came in is counted as made, and ends here");
    assert_eq!(b.header().ack, Seq::new(from(18)), "one ACK for all");
    let (id, c) = b.host.connections().next().unwrap();
    assert_eq!(c.counters().segments_received, 1 + 18 * 8 * 4);
    assert_eq!(b.host.application::<Talker>(id).unwrap().heard.len(), 18 * 32_000);
    let late = [13_000, 17_000, 21_000].map(|ahead| data(from(18) + ahead, 0));
    b.with(|host, cx| host.on_burst(late, cx));
    let acks = b.headers();
    assert_eq!(acks.len(), 3, "duplicates are counted by the sender");
    assert!(acks.iter().all(|h| h.ack == Seq::new(from(18))));
}

/// Breaks: all connections of a burst are established, however few the program has room for.
#[test]
fn a_burst_of_handshakes_finds_the_room_that_is_left() {
    let (mut b, made) = (Bench::new(B), Rc::new(Cell::new(0)));
    let factory = {
        let made = made.clone();
        move || {
            made.set(made.get() + 1);
            Talker::that_stays()
        }
    };
    let id = b.host.bind(Bind::new(B, 80)).unwrap();
    b.host.listen_on(id, ListenSettings::new(config()), factory).unwrap();
    let seen = made.clone();
    assert!(b.host.ask_for_room(id, move || seen.get() < 2));
    let mut last = Vec::new();
    for port in 1..=5 {
        b.packet(segment(TcpFlags::SYN, port, 80));
        let (seq, ack, flags) = (Seq::new(101), b.header().seq + 1, TcpFlags::ACK);
        let header = TcpHeader { src_port: port, dst_port: 80, seq, ack, flags, ..TcpHeader::default() };
        last.push(between(A, B, &header, &[]));
    }
    b.with(|host, cx| host.on_burst(last, cx));
    assert_eq!(made.get(), 2);
    assert_eq!(b.drops(), [DropReason::HostLimit; 3]);
}

/// Breaks: a host whose device takes super-segments sends none, or numbers their parts twice.
#[test]
fn super_segments_leave_where_the_device_takes_them() {
    static TEXT: [u8; 30_000] = [b'x'; 30_000];
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    a.host.set_super_segments(u32::MAX);
    let settings = || ListenSettings::new(config());
    b.host.listen(80, settings(), || Talker::boxed(b"and to you")).unwrap();
    let id = a.host.connect(START, B, 80, config(), None, Talker::boxed(&TEXT)).unwrap();
    let (mut parts, mut supers) = (Vec::new(), 0);
    for step in 0..20 {
        let now = START + Span::from_millis(5 * step);
        a.run_until(now);
        b.run_until(now);
        for packet in a.sent() {
            supers += usize::from(packet.segments() > 1);
            packet.split_segments(|part| parts.push(part));
        }
        for part in parts.drain(..) {
            assert!(part.len().get() <= 1514);
            b.packet(part);
        }
        b.sent().into_iter().for_each(|p| a.packet(p));
    }
    assert!(supers >= 2, "{supers}");
    assert_eq!(a.host.application::<Talker>(id).unwrap().heard, b"and to you");
    let (accepted, _) = b.host.connections().next().unwrap();
    assert_eq!(b.host.application::<Talker>(accepted).unwrap().heard, TEXT);
    assert_eq!(b.drops(), []);
}

/// Closes both directions as soon as it is connected, as a program that ends.
struct Leaver;

impl farpace_host::Application for Leaver {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::Connected {
            connection.stop_reading();
            connection.close();
        }
    }
}

/// `n` connections from ports of [`A`], left by their program and acknowledged by a peer that never closes.
/// Ports that were told of a reset.
fn orphans(b: &mut Bench, n: u16) -> Vec<u16> {
    let mut resets = Vec::new();
    for port in 1..=n {
        b.packet(segment(TcpFlags::SYN, port, 80));
        let iss = b.header().seq;
        b.packet(segment_at(101, iss + 1, TcpFlags::ACK, port, 80));
        b.packet(segment_at(101, iss + 2, TcpFlags::ACK, port, 80));
        b.now += Span::from_millis(1);
        resets.extend(b.headers().iter().filter(|h| h.flags.contains(TcpFlags::RST)).map(|h| h.dst_port));
    }
    resets
}

/// Breaks: peers that never close, or that vanish, hold connections of programs that have long left: tables
/// grow and ports are not given back.
#[test]
fn orphans_end_and_leave_nothing() {
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), || Box::new(Leaver)).unwrap();
    assert!(orphans(&mut b, 500).is_empty());
    assert_eq!((b.host.orphans(), b.host.open_connections()), (500, 500));
    assert!(b.host.connections().all(|(_, c)| c.state() == ConnectionState::FinWait2));
    b.run_until(b.now + Span::from_secs(61));
    assert_eq!((b.host.orphans(), b.host.open_connections(), b.host.orphans_ended()), (0, 0, 0));
    assert!(b.headers().iter().all(|h| h.flags.contains(TcpFlags::RST)), "each peer is told");
    assert_eq!(b.host.deadline(), None);
    orphans(&mut b, 500);
    assert_eq!(b.host.orphans(), 500, "the same ends can be used again");

    // The other way round: our own port comes back, too, from a peer that has vanished.
    let mut a = Bench::new(A);
    let connect =
        |a: &mut Bench| a.host.connect_from(Some(7), a.now, B, 80, config(), None, Box::new(Leaver));
    connect(&mut a).unwrap();
    a.wake();
    let syn = a.header();
    let flags = TcpFlags::SYN.with(TcpFlags::ACK);
    let header =
        TcpHeader { src_port: 80, dst_port: 7, ack: syn.seq + 1, flags, window: 9, ..TcpHeader::default() };
    a.packet(between(B, A, &header, b""));
    assert_eq!(a.host.connections().next().unwrap().1.state(), ConnectionState::FinWait1);
    assert_eq!(connect(&mut a), Err(ConnectError::PortInUse(7)));
    a.run_until(a.now + Span::from_secs(101));
    assert_eq!((a.host.orphans(), a.host.open_connections()), (0, 0));
    connect(&mut a).unwrap();
}

/// Breaks: the bound on orphans: a peer that makes more of them in a minute than a host can hold; the oldest
/// go first, and connections that have a program stay.
#[test]
fn of_too_many_orphans_the_oldest_end() {
    let mut b = Bench::new(B);
    b.host
        .listen(80, ListenSettings { log_as: Some(1), ..ListenSettings::new(config()) }, || Box::new(Leaver))
        .unwrap();
    b.host.listen(81, ListenSettings::new(config()), Talker::that_stays).unwrap();
    b.packet(segment(TcpFlags::SYN, 9, 81));
    let iss = b.header().seq;
    b.packet(segment_at(101, iss + 1, TcpFlags::ACK, 9, 81));
    b.host.set_max_orphans(10);
    let reset = orphans(&mut b, 25);
    assert_eq!((b.host.orphans(), b.host.orphans_ended(), b.host.open_connections()), (10, 15, 11));
    assert_eq!(reset, (1..=15).collect::<Vec<_>>(), "in their order");
    let mut causes = 0;
    b.host.take_records(|record| causes += u32::from(record.cause == Some(Cause::OrphanLimit)));
    assert_eq!(causes, 15, "each with its cause");
    let open: Vec<_> = b
        .host
        .connections()
        .filter(|(_, c)| c.state() != ConnectionState::Closed)
        .map(|(_, c)| c.ports().local)
        .collect();
    assert!(open.contains(&81));
}
