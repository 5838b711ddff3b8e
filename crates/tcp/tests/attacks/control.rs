//! Attacks with SYN, RST and reflections.

use super::harness::*;
use bytes::Bytes;
use farpace_tcp::config::Profile;
use farpace_tcp::{Connection, ConnectionState, Ports, Segment, Transmit};
use farpace_units::{Instant, RandomStream, Seq, Span};
use farpace_wire::tcp::TcpFlags;

/// Answers that a storm may get in a second (RFC 5961 §7).
const ANSWERS_PER_SECOND: u64 = 10;

/// Breaks: blind resets (RFC 5961 §3): any number of guesses in the window but the one exact number ends the
/// connection, and each guess gets an answer.
#[test]
fn only_the_exact_reset_resets() {
    let _alone = alone();
    for profile in Profile::ALL {
        let mut v = Victim::connected(&config(&settings(profile)), offer(1460));
        let (mut rng, sent) = (RandomStream::new(11, "reset"), v.sent);
        for n in 0..50_000u32 {
            v.now += Span::from_micros(20);
            let offset = match n {
                0..1_000 => n + 1,
                1_000..2_000 => (n - 999).wrapping_neg(),
                _ => (rng.next_u64() as u32).max(1),
            };
            let flags = if n % 2 == 0 { TcpFlags::RST } else { TcpFlags::RST | TcpFlags::ACK };
            let reset = v.segment(flags, v.acked + offset, v.una, 0);
            v.give(reset);
            assert!(v.is_open(), "{profile:?}: a reset {offset} beyond the left edge was believed");
        }
        assert!(v.sent - sent <= ANSWERS_PER_SECOND, "{profile:?}: {} answers in a second", v.sent - sent);
        let reset = v.segment(TcpFlags::RST, v.acked, v.una, 0);
        v.give(reset);
        assert_eq!(v.c.state(), ConnectionState::Closed);
    }
}

/// Breaks: SYNs on an open connection (RFC 5961 §4): they end it, or each gets an answer.
#[test]
fn no_syn_resets() {
    let _alone = alone();
    for profile in Profile::ALL {
        let mut v = Victim::connected(&config(&settings(profile)), offer(1460));
        let (mut rng, sent, before) = (RandomStream::new(12, "syn"), v.sent, heap());
        for n in 0..20_000u32 {
            v.now += Span::from_micros(50);
            let seq = if n < 100 { v.acked - 50 + n } else { Seq::new(rng.next_u64() as u32) };
            let flags = if n % 3 == 0 { TcpFlags::SYN | TcpFlags::ACK } else { TcpFlags::SYN };
            let syn = v.segment(flags, seq, v.una, 9_999);
            v.give(syn);
            assert!(v.is_open(), "{profile:?}");
        }
        assert!(v.sent - sent <= ANSWERS_PER_SECOND, "{profile:?}: {} answers in a second", v.sent - sent);
        assert!(heap() < before + 10_000);
    }
}

/// Breaks: LAND: a connection that is answered with its own segments speaks with itself for ever, at any
/// speed.
#[test]
fn a_mirror_gets_no_storm() {
    let _alone = alone();
    for (profile, data) in Profile::ALL.into_iter().flat_map(|p| [(p, 0), (p, 100_000)]) {
        let mut now = Instant::ZERO;
        let mut c = Connection::connect(now, &config(&settings(profile)), Ports { local: 7, remote: 7 }, ISS);
        c.write(&mut Bytes::from(vec![1; data]));
        let (mut mirrored, mut out): (u64, Vec<_>) = (0, Vec::new());
        let end = now + Span::from_secs(60);
        while now < end {
            // Each segment comes back a millisecond later.
            while let Transmit::Sent(_) = c.poll_transmit(now, &mut out, 64) {}
            mirrored += out.len() as u64;
            now += Span::from_millis(1);
            for o in std::mem::take(&mut out) {
                c.on_segment(now, o.segment);
            }
            if c.deadline().is_some_and(|(at, _)| at <= now) {
                c.on_deadline(now);
            }
            while c.poll_event().is_some() {}
        }
        println!("{profile:?}: {mirrored} segments of {data} B in a minute, then {:?}", c.state());
        assert!(mirrored <= 1_000 + data as u64 / 100, "{profile:?}: {mirrored} segments in a minute");
    }
}

/// Breaks: the handshake: any segment but the right one opens, kills or multiplies an embryonic connection,
/// or it is kept for ever.
#[test]
fn embryonic_connections_are_small_and_die() {
    let _alone = alone();
    let config = config(&settings(Profile::Modern));
    let mut rng = RandomStream::new(13, "embryo");
    let before = heap();
    let mut all = Vec::new();
    const NUMBER: u64 = 1_000;
    for n in 0..NUMBER {
        let mut syn = Segment::default();
        syn.header.flags = TcpFlags::SYN;
        syn.header.seq = Seq::new(rng.next_u64() as u32);
        syn.header.options = offer(1460);
        let ports = Ports { local: 80, remote: n as u16 };
        all.push(Connection::accept(Instant::ZERO, &config, ports, Seq::new(rng.next_u64() as u32), &syn));
    }
    let each = (heap() - before) / NUMBER;
    println!("{each} B for each connection that a SYN made");
    assert!(each < 8_192, "{each} B for each connection that a SYN made");
    let mut segments = 0;
    for mut c in all {
        let (mut now, mut out) = (Instant::ZERO, Vec::new());
        while c.state() != ConnectionState::Closed {
            while let Transmit::Sent(_) = c.poll_transmit(now, &mut out, 64) {}
            let Some((at, _)) = c.deadline() else { break };
            now = at;
            c.on_deadline(now);
        }
        segments += out.len() as u64;
        assert_eq!(c.state(), ConnectionState::Closed, "nobody answers");
        assert!(now < Instant::ZERO + Span::from_secs(200), "it lived until {now}");
    }
    assert!(segments <= NUMBER * 7, "{segments} answers to {NUMBER} SYNs");
}
