//! One host, driven by hand: packets in, packets out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use bytes::Bytes;
use farpace_host::{Application, Host, ListenError, MAX_CLOSED_KEPT};
use farpace_path::{Cx, DropReason, Effects, Element, Port};
use farpace_tcp::config::{Config, Settings};
use farpace_tcp::{CloseReason, Connection, Event, State};
use farpace_units::{Instant, Seq, Span, Stream};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{Ipv4Tcp, MacAddr, Packet};
use std::net::Ipv4Addr;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn config() -> Config {
    Settings::default().resolve().unwrap()
}

/// Sends a text on connecting and closes; keeps what it reads.
#[derive(Default)]
struct Talker {
    say: &'static [u8],
    heard: Vec<u8>,
    ended: Option<CloseReason>,
}

impl Application for Talker {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Connected => {
                connection.write(&mut Bytes::from_static(self.say));
                connection.close();
            }
            Event::Readable => _ = connection.read(|b| self.heard.extend_from_slice(&b)),
            Event::Closed(reason) => self.ended = Some(reason),
            Event::Writable | Event::PeerClosed => {}
        }
    }
}

/// Calls a host and collects what it does.
struct Bench {
    host: Host,
    rng: Stream,
    effects: Effects,
}

impl Bench {
    fn new(address: Ipv4Addr) -> Self {
        Bench {
            host: Host::new(address),
            rng: Stream::new(1, &address.to_string()),
            effects: Effects::default(),
        }
    }
    fn packet(&mut self, now: Instant, packet: Packet) {
        self.host.on_packet(Port(0), packet, &mut Cx::new(now, &mut self.effects, &mut self.rng));
    }
    fn wake(&mut self, now: Instant) {
        self.host.on_wake(&mut Cx::new(now, &mut self.effects, &mut self.rng));
    }
    fn sent(&mut self) -> Vec<Packet> {
        self.effects.emitted.drain(..).map(|(_, p)| p).collect()
    }
    fn drops(&mut self) -> Vec<DropReason> {
        self.effects.dropped.drain(..).map(|(_, r)| r).collect()
    }
}

fn segment(flags: TcpFlags, src_port: u16, dst_port: u16) -> Packet {
    let below =
        Ipv4Tcp { src_mac: MacAddr([2; 6]), dst_mac: MacAddr([4; 6]), src: A, dst: B, ttl: 9, tos: 0 };
    let header = TcpHeader {
        src_port,
        dst_port,
        seq: Seq::new(100),
        ack: Seq::new(700),
        flags,
        ..TcpHeader::default()
    };
    below.build(1, &header, Bytes::new())
}

/// Breaks: two hosts on a wire cannot talk.
#[test]
fn a_conversation() {
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    let start = Instant::ZERO + Span::from_secs(1);
    b.host
        .listen(80, config(), None, || Box::new(Talker { say: b"and to you", ..Talker::default() }))
        .unwrap();
    let id =
        a.host.connect(start, B, 80, config(), None, Box::new(Talker { say: b"hello", ..Talker::default() }));
    assert_eq!(a.host.deadline(), Some(start), "the plan is a deadline");
    assert!(a.host.connection(id).is_none(), "not before its time");
    let mut now = start;
    a.wake(now);
    for _ in 0..12 {
        now += Span::from_millis(5);
        for p in a.sent() {
            b.packet(now, p);
        }
        for p in b.sent() {
            a.packet(now, p);
        }
        for bench in [&mut a, &mut b] {
            if bench.host.deadline().is_some_and(|d| d <= now) {
                bench.wake(now);
            }
        }
    }
    assert_eq!(a.host.application::<Talker>(id).unwrap().heard, b"and to you");
    let (accepted, _) = b.host.connections().next().unwrap();
    let talker = b.host.application::<Talker>(accepted).unwrap();
    assert_eq!(talker.heard, b"hello");
    let states = [a.host.connection(id).unwrap().state(), b.host.connection(accepted).unwrap().state()];
    assert!(states.iter().all(|s| matches!(s, State::TimeWait | State::Closed)), "{states:?}");
    assert_eq!(a.drops(), []);
}

/// Breaks: segments for nobody are not answered as RFC 9293 §3.10.7.1 says, or not counted.
#[test]
fn strangers_get_a_reset() {
    let mut b = Bench::new(B);
    b.packet(Instant::ZERO, segment(TcpFlags::SYN, 1, 80));
    let reset = b.sent().remove(0).tcp().unwrap().header();
    assert_eq!(reset.flags, TcpFlags::RST.with(TcpFlags::ACK));
    assert_eq!((reset.seq, reset.ack), (Seq::new(0), Seq::new(101)));
    b.packet(Instant::ZERO, segment(TcpFlags::ACK, 1, 80));
    let reset = b.sent().remove(0).tcp().unwrap().header();
    assert_eq!((reset.flags, reset.seq), (TcpFlags::RST, Seq::new(700)));
    b.packet(Instant::ZERO, segment(TcpFlags::RST, 1, 80));
    assert!(b.sent().is_empty(), "a reset is never answered");
    assert_eq!(b.drops(), [DropReason::NoListener; 3]);
}

/// Breaks: what is not for this host, or damaged, reaches a connection.
#[test]
fn wrong_packets_are_dropped_with_their_cause() {
    let mut a = Bench::new(A);
    a.packet(Instant::ZERO, segment(TcpFlags::SYN, 1, 80));
    assert_eq!(a.drops(), [DropReason::NoRoute], "addressed to somebody else");
    let mut b = Bench::new(B);
    let mut damaged = segment(TcpFlags::SYN, 1, 80);
    damaged.flip_bit(8 * 40);
    b.packet(Instant::ZERO, damaged);
    assert_eq!(b.drops(), [DropReason::BadChecksum]);
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&[0x08, 0x06]); // ARP
    b.packet(Instant::ZERO, Packet::from_frame(&frame).unwrap());
    assert_eq!(b.drops(), [DropReason::Malformed]);
}

/// Breaks: two listeners on one port.
#[test]
fn a_port_is_listened_on_once() {
    let mut b = Bench::new(B);
    let talker = || Box::new(Talker::default()) as Box<dyn Application>;
    assert_eq!(b.host.listen(80, config(), None, talker), Ok(()));
    assert_eq!(b.host.listen(80, config(), None, talker), Err(ListenError::Taken(80)));
}

/// Breaks: a host that is asked for connections all day grows without limit.
#[test]
fn closed_connections_are_forgotten_in_time() {
    let mut b = Bench::new(B);
    b.host.listen(80, config(), None, || Box::new(Talker::default())).unwrap();
    let rounds = MAX_CLOSED_KEPT + 500;
    for i in 0..rounds {
        let port = (i % 60_000) as u16 + 1;
        b.packet(Instant::ZERO, segment(TcpFlags::SYN, port, 80));
        // The reset that ends it again: exactly at RCV.NXT.
        let below =
            Ipv4Tcp { src_mac: MacAddr([2; 6]), dst_mac: MacAddr([4; 6]), src: A, dst: B, ttl: 9, tos: 0 };
        let header = TcpHeader {
            src_port: port,
            dst_port: 80,
            seq: Seq::new(101),
            flags: TcpFlags::RST,
            ..TcpHeader::default()
        };
        b.packet(Instant::ZERO, below.build(2, &header, Bytes::new()));
        b.sent();
    }
    assert_eq!(b.host.connections().count(), MAX_CLOSED_KEPT);
    assert!(b.host.connections().all(|(_, c)| c.state() == State::Closed));
}
