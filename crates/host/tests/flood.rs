//! A SYN flood, and those who must get through it (RFC 4987).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use common::{A, B, Bench, Talker, between, config, settle};
use farpace_host::{COOKIE_LIFETIME, DEFAULT_BACKLOG, ListenSettings};
use farpace_path::DropReason;
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionState};
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use std::net::{IpAddr, Ipv4Addr};

const START: Instant = Instant::from_nanos(5_000_000_000);

/// The `n`th of 100,000 forged SYNs.
fn forged(n: u32) -> farpace_wire::Packet {
    let from = Ipv4Addr::from_bits(0xc612_0000 | n >> 1); // 198.18/15
    let header = TcpHeader {
        src_port: 1024 + (n & 1) as u16,
        dst_port: 80,
        seq: Seq::new(n.wrapping_mul(0x9e37_79b9)),
        flags: TcpFlags::SYN,
        window: 65_535,
        options: TcpOptions { mss: Some(1460), ..TcpOptions::default() },
        ..TcpHeader::default()
    };
    between(from.into(), B, &header, b"")
}

fn flooded(settings: ListenSettings) -> Bench {
    let mut b = Bench::new(B);
    b.host.listen(80, settings, || Talker::boxed(b"welcome")).unwrap();
    b.now = START;
    for n in 0..100_000 {
        b.now += Span::from_micros(1);
        b.packet(forged(n));
    }
    b
}

/// Breaks: SYN floods: memory grows with them, nobody else gets in, or the backlog stays full for ever.
#[test]
fn a_legitimate_client_gets_through() {
    let mut b = flooded(ListenSettings::new(config()));
    assert_eq!(b.host.half_open_connections(), DEFAULT_BACKLOG);
    assert_eq!(b.host.open_connections(), DEFAULT_BACKLOG);
    let answers = b.headers();
    assert_eq!(answers.len(), 100_000, "each of them may be an honest one");
    assert!(answers.iter().all(|h| h.flags == TcpFlags::SYN.with(TcpFlags::ACK)));
    assert_eq!(b.drops(), []);

    // Still full when the client comes: scale and SACK travel in its timestamps.
    let mut a = Bench::new(A);
    a.now = b.now;
    let wide = Settings { receive_buffer: Some("8 MB".parse().unwrap()), ..Settings::default() };
    let id = a.host.connect(a.now, B, 80, wide.resolve().unwrap(), None, Talker::boxed(b"please")).unwrap();
    a.wake();
    settle(&mut a, &mut b);
    assert_eq!(a.host.application::<Talker>(id).unwrap().heard, b"welcome");
    let (accepted, there) =
        b.host.connections().find(|(_, c)| c.state() != ConnectionState::SynReceived).unwrap();
    assert_eq!(b.host.application::<Talker>(accepted).unwrap().heard, b"please");
    assert!(there.inspect().rwnd.get() > 65_535, "the client's window scale is known");
    let header = there.inspect();
    assert_eq!(header.mss, 1448, "and so are its segment size and timestamps");

    // The forged ones are given up one after the other.
    b.run_until(START + Span::from_secs(200));
    assert_eq!(b.host.half_open_connections(), 0);
    b.packet(forged(1));
    assert_eq!(b.host.half_open_connections(), 1, "there is room again");
}

/// Breaks: RFC 4987's aim: an answer to a cookie that was never given costs state, or is taken.
#[test]
fn a_forged_answer_is_reset_and_costs_nothing() {
    let mut b = flooded(ListenSettings::new(config()));
    b.sent();
    for n in 0..500 {
        let header = TcpHeader {
            src_port: 9,
            dst_port: 80,
            seq: Seq::new(n),
            ack: Seq::new(n.wrapping_mul(0x9e37_79b9)),
            flags: TcpFlags::ACK,
            ..TcpHeader::default()
        };
        b.packet(between(A, B, &header, b"GET / HTTP/1.1"));
        let reset = b.header();
        assert_eq!((reset.flags, reset.seq), (TcpFlags::RST, header.ack));
    }
    assert_eq!(b.host.open_connections(), DEFAULT_BACKLOG);
    assert_eq!(b.drops(), [DropReason::NoListener; 500]);
}

fn over(c: &Connection) -> bool {
    matches!(c.state(), ConnectionState::SynReceived | ConnectionState::Closed)
}

fn syn(source: IpAddr, timestamps: Option<u32>) -> (TcpHeader, farpace_wire::Packet) {
    let timestamps = timestamps.map(|value| Timestamps { value, echo: 0 });
    let header = TcpHeader {
        src_port: 4242,
        dst_port: 80,
        seq: Seq::new(99),
        flags: TcpFlags::SYN,
        window: 1000,
        options: TcpOptions {
            mss: Some(1400),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps,
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    (header.clone(), between(source, B, &header, b""))
}

/// Breaks: what a cookie promises is not what the connection does: options offered that cannot be remembered,
/// or a cookie that is good for ever.
#[test]
fn a_cookie_offers_what_it_can_remember() {
    let mut b = flooded(ListenSettings::new(config()));
    b.sent();
    for stamps in [None, Some(7)] {
        let (sent, packet) = syn(A, stamps);
        b.packet(packet);
        let answer = b.header();
        let offers = [answer.options.window_scale.is_some(), answer.options.sack_permitted];
        assert_eq!(offers, [stamps.is_some(); 2]);
        assert_eq!(answer.options.timestamps.map(|t| t.echo), stamps);
        let (ack, value) = (answer.seq + 1, 8);
        let options = TcpOptions {
            timestamps: answer.options.timestamps.map(|t| Timestamps { value, echo: t.value }),
            ..TcpOptions::default()
        };
        let header = TcpHeader { seq: sent.seq + 1, ack, flags: TcpFlags::ACK, options, ..sent.clone() };
        let before = b.now;
        b.now += COOKIE_LIFETIME;
        b.packet(between(A, B, &header, b""));
        assert_eq!(b.header().flags, TcpFlags::RST, "too late");
        b.now = before;
        b.packet(between(A, B, &header, b""));
        let (_, c) = b.host.connections().find(|(_, c)| !over(c)).unwrap();
        let (scaled, size) =
            (u64::from(header.window) << if stamps.is_some() { 7 } else { 0 }, c.inspect().mss);
        assert_eq!((c.inspect().rwnd.get(), size), (scaled, if stamps.is_some() { 1388 } else { 1400 }));
        let said = b.headers();
        let reply = said.first().unwrap();
        assert!(said.iter().all(|h| !h.flags.contains(TcpFlags::SYN)), "the SYN-ACK was sent before");
        assert_eq!((reply.seq, reply.ack), (ack, header.seq));
        let clock = |h: &TcpHeader| h.options.timestamps.map(|t| t.value);
        if let (Some(then), Some(now)) = (clock(&answer), clock(reply)) {
            assert!(now.wrapping_sub(then) < 64, "our clock goes on from the cookie's stamp");
        }
        b.packet(between(A, B, &TcpHeader { flags: TcpFlags::RST, seq: header.seq, ..sent }, b""));
        b.sent();
    }
}

/// Breaks: the limits a listener can set for itself.
#[test]
fn limits_of_a_listener_hold() {
    let few = ListenSettings { backlog: 3, cookies: false, ..ListenSettings::new(config()) };
    let mut b = flooded(few);
    assert_eq!(b.host.half_open_connections(), 3);
    assert_eq!(b.drops().len(), 100_000 - 3, "dropped, to be tried again");
    assert_eq!(b.sent().len(), 3);

    let few = ListenSettings { accepted: 2, ..ListenSettings::new(config()) };
    let (mut a, mut b) = (Bench::new(A), Bench::new(B));
    b.host.listen(80, few, Talker::that_stays).unwrap();
    let open = |a: &mut Bench, b: &mut Bench| {
        let id = a.host.connect(a.now, B, 80, config(), None, Talker::that_stays()).unwrap();
        a.wake();
        settle(a, b);
        (id, a.host.connection(id).unwrap().state())
    };
    let (first, state) = open(&mut a, &mut b);
    assert_eq!(state, ConnectionState::Established);
    assert_eq!(open(&mut a, &mut b).1, ConnectionState::Established);
    let (waiting, state) = open(&mut a, &mut b);
    assert_eq!((state, b.drops()), (ConnectionState::SynSent, vec![DropReason::HostLimit]));
    a.with(|host, cx| host.with_connection(first, cx, |c| c.abort()));
    settle(&mut a, &mut b);
    a.run_until(a.now + Span::from_secs(2));
    settle(&mut a, &mut b);
    assert_eq!(
        a.host.connection(waiting).unwrap().state(),
        ConnectionState::Established,
        "the next one's turn"
    );
}
