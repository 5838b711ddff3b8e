//! What programs say by socket options of what is sent and acknowledged: MSG_MORE, TCP_CORK, TCP_NODELAY,
//! TCP_QUICKACK, TCP_DEFER_ACCEPT, TCP_SYNCNT, TCP_NOTSENT_LOWAT, TCP_CONGESTION.

use crate::script::{Script, plain};
use farpace_tcp::config::{Config, Congestion, Profile, Settings, Tuning};
use farpace_tcp::{Connection, ConnectionEvent, ConnectionState, Ports, Segment};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::tcp::TcpFlags;

/// Breaks: programs that cork send small segments, or what they corked never leaves.
#[test]
fn a_cork_holds_what_fills_no_segment() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "10  ! cork
         10  ! write 300
         10  ! quiet
         50  ! write 800
         50  > . 1+1000 ack 1                     # as soon as one is full
         60         < . 1 ack 1001
         100 ! uncork
         100 > . 1001+100 ack 1
         110        < . 1 ack 1101
         200 ! cork
         200 ! write 10
         400 > . 1101+10 ack 1                    # nothing more has come for 200 ms
         410        < . 1 ack 1111
         500 ! write 20
         500 ! close                              # the last of all does not wait
         500 > F. 1111+20 ack 1",
    );
}

/// Breaks: what a program sends at once after a cork waits for the cork.
#[test]
fn nodelay_lets_go_once() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "10  ! cork
         10  ! write 300
         20  ! nodelay
         20  > . 1+300 ack 1
         30         < . 1 ack 301
         40  ! write 100
         40  ! quiet
         240 > . 301+100 ack 1",
    );
}

/// Breaks: the parts of a message that are written with MSG_MORE leave one by one, or wait for ever.
#[test]
fn more_waits_for_the_next_part() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "10  ! nodelay
         10  ! more
         10  ! write 200
         20  ! write 50
         20  ! no_more
         20  > . 1+250 ack 1
         30  ! more
         30  ! write 100
         40         < . 1 ack 251                 # a segment has come: no reason to wait any more
         40  > . 251+100 ack 1
         50         < . 1 ack 351
         60  ! more
         60  ! write 100
         260 > . 351+100 ack 1",
    );
}

/// Breaks: a program that asks for quick ACKs waits for delayed ones, or gets them for ever.
#[test]
fn quick_acks_last_for_a_while() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "100        < . 1+10 ack 1
         110 ! quick                              # what waits goes at once
         110 > . 1 ack 11",
    );
    for n in 0..16 {
        let (at, seq) = (200 + n, 11 + 10 * n);
        s.run(&format!("{at} < . {seq}+10 ack 1\n{at} > . 1 ack {}", seq + 10));
    }
    s.run(
        "300        < . 171+10 ack 1
         340 > . 1 ack 181
         400 ! quick
         400 ! slow
         400        < . 181+10 ack 1
         440 > . 1 ack 191",
    );
}

fn with(tuning: Tuning) -> Config {
    Config { tuning, ..plain().resolve().expect("settings") }
}

/// Everything that leaves and every event, in the order of time, until nothing is due before `end`.
fn run(c: &mut Connection, now: &mut Instant, end: Instant) -> Vec<(Instant, Segment)> {
    let (mut seen, mut out) = (Vec::new(), Vec::new());
    loop {
        while let farpace_tcp::Transmit::Sent(_) = c.poll_transmit(*now, &mut out, 64) {}
        seen.extend(out.drain(..).map(|o| (*now, o.segment)));
        match c.deadline().filter(|(at, _)| *at <= end) {
            Some((at, _)) => {
                *now = at;
                c.on_deadline(at);
            }
            None => return seen,
        }
    }
}

/// Breaks: TCP_SYNCNT: a connection to nobody is tried more or less often than the program wants.
#[test]
fn a_syn_is_repeated_as_often_as_asked() {
    for retries in [1, 2, 4] {
        let config = with(Tuning { syn_retries: Some(retries), ..Tuning::default() });
        let mut now = Instant::ZERO;
        let mut c = Connection::connect(now, &config, Ports { local: 1, remote: 2 }, Seq::new(5));
        let sent = run(&mut c, &mut now, Instant::ZERO + Span::from_secs(600));
        assert_eq!((sent.len() as u32, c.state()), (retries + 1, ConnectionState::Closed));
    }
}

/// Breaks: TCP_DEFER_ACCEPT: a server is woken by a connection that says nothing, or one that says nothing is
/// never given to it.
#[test]
fn a_connection_opens_when_it_has_something_to_say() {
    let config = with(Tuning { defer_accept: 2, ..Tuning::default() });
    let ports = Ports { local: 1, remote: 2 };
    let mut syn = Segment::default();
    (syn.header.flags, syn.header.seq, syn.header.window) = (TcpFlags::SYN, Seq::new(100), 60_000);
    let ack = |payload: &'static [u8]| {
        let mut ack = Segment { payload: payload.into(), ..Segment::default() };
        (ack.header.flags, ack.header.seq, ack.header.ack) = (TcpFlags::ACK, Seq::new(101), Seq::new(6));
        ack.header.window = 60_000;
        ack
    };
    let begun = || {
        let mut c = Connection::accept(Instant::ZERO, &config, ports, Seq::new(5), &syn);
        let mut now = Instant::ZERO;
        assert_eq!(run(&mut c, &mut now, Instant::ZERO).len(), 1);
        c.on_segment(now + Span::from_millis(1), ack(b""));
        assert_eq!(c.state(), ConnectionState::SynReceived);
        c
    };
    let mut c = begun();
    let mut now = Instant::ZERO + Span::from_millis(2);
    c.on_segment(now, ack(b"hello"));
    assert_eq!(c.state(), ConnectionState::Established);
    assert_eq!(std::iter::from_fn(|| c.poll_event()).next(), Some(ConnectionEvent::Connected));
    // Silence: one timeout passes without a SYN-ACK, the second sends one, and the ACK for that opens.
    let mut c = begun();
    let sent = run(&mut c, &mut now, Instant::ZERO + Span::from_secs(4));
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0].1.header.flags.contains(TcpFlags::SYN));
    c.on_segment(now, ack(b""));
    assert_eq!(c.state(), ConnectionState::Established);
}

/// Breaks: TCP_NOTSENT_LOWAT: more is taken than the program wants unsent, or it is not told when there is
/// room again.
#[test]
fn what_is_unsent_is_limited() {
    let mut s = Script::established(&plain(), 60_000);
    let mut config = s.connection.config().clone();
    config.tuning.unsent_limit = Some(ByteCount::new(2_500));
    s.connection.retune(&config);
    while s.connection.poll_event().is_some() {}
    let mut data = bytes::Bytes::from(vec![0; 100_000]);
    assert_eq!(s.connection.write(&mut data).get(), 2_500);
    assert_eq!(s.connection.write(&mut data).get(), 0);
    assert_eq!(data.len(), 97_500);
    // Four segments may leave: two and a half are there, and what was unsent is sent.
    let mut out = Vec::new();
    s.connection.poll_transmit(Instant::ZERO + Span::from_millis(10), &mut out, 64);
    assert_eq!(out.len(), 2);
    assert_eq!(std::iter::from_fn(|| s.connection.poll_event()).last(), Some(ConnectionEvent::Writable));
    assert_eq!(s.connection.write(&mut data).get(), 2_000, "500 wait for Nagle");
}

/// Breaks: a program that chooses another congestion control while it sends keeps the old one, or loses its
/// window.
#[test]
fn congestion_control_can_be_changed() {
    let settings = Settings { profile: Some(Profile::Modern), ..Settings::default() };
    let change =
        |congestion| Settings { congestion: Some(congestion), ..settings.clone() }.resolve().unwrap();
    let mut s = Script::connect(&settings);
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    s.connection.poll_transmit(now, &mut out, 8);
    let syn = out.remove(0).segment;
    let mut peer =
        Connection::accept(now, &change(Congestion::Cubic), Ports { local: 2, remote: 1 }, Seq::new(9), &syn);
    let mut got = 0;
    let controls =
        [Congestion::Bbr3, Congestion::Reno, Congestion::Farpace, Congestion::Vegas, Congestion::Cubic];
    for round in 0..500usize {
        now += Span::from_millis(10);
        if round % 100 == 50 {
            let config = change(controls[round / 100]);
            let before = s.connection.inspect().cwnd;
            s.connection.set_congestion(now, &config);
            assert_eq!(s.connection.config().congestion, controls[round / 100]);
            assert!(s.connection.inspect().cwnd.get() >= before.get() / 2, "{:?}", controls[round / 100]);
        }
        let _ = s.connection.write(&mut vec![7; 30_000].into());
        for (from, to) in [(0, 1), (1, 0), (0, 1), (1, 0)] {
            let (a, b) = (&mut s.connection, &mut peer);
            let (from, to) = if (from, to) == (0, 1) { (a, b) } else { (b, a) };
            if from.deadline().is_some_and(|(at, _)| at <= now) {
                from.on_deadline(now);
            }
            while let farpace_tcp::Transmit::Sent(_) = from.poll_transmit(now, &mut out, 64) {}
            out.drain(..).for_each(|o| to.on_segment(now, o.segment));
        }
        peer.read(|piece| got += piece.len());
    }
    assert!(got > 10_000_000, "{got}");
}
