//! Segments that wait in a queue of their own host: they are neither lost nor sent once more.

use crate::script::{Script, plain};
use farpace_events::RecoveryState;
use farpace_tcp::config::{Profile, Settings, TimeoutProcedure};
use farpace_units::Span;

/// Breaks: a slow NIC gets a second copy of a segment behind the first, which makes the round trip longer
/// still. The timer of a segment that has not left is no timeout; it begins when the segment is found to have
/// left.
#[test]
fn a_segment_that_has_not_left_is_not_sent_again() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "10  ! departed 1                         # the SYN
         10  ! write 2000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         609 ! cwnd 4                             # 200, 400 ms
         650 ! departed 2
         1409 ! cwnd 4                            # 800 ms: it has left since
         1410 ! rto 200
         1610 > . 1+1000 ack 1 why timeout_retransmit
         1610 ! cwnd 1",
    );
    assert_eq!(s.connection.counters().found_inside, 2);
    assert_eq!(s.connection.counters().timeouts, 1);
    // The copy waits now (number 4), and the second segment has left.
    s.run(
        "1700 ! departed 3
         2010 ! cwnd 1                            # 400 ms after it: not again
         2020 ! departed 4
         2030       < . 1 ack 2001
         9999 ! quiet",
    );
    assert_eq!(s.connection.counters().found_inside, 3);
}

/// Breaks: three duplicate ACKs, or a partial one, put a second copy behind the first.
#[test]
fn duplicate_acks_do_not_help_what_has_not_left() {
    let mut s = Script::established(&plain(), 9000);
    s.run("10 ! write 4000\n 10 > . 1+1000 ack 1\n 10 > . 1001+1000 ack 1\n 10 > . 2001+1000 ack 1");
    s.run("10 > . 3001+1000 ack 1\n 11 ! departed 1");
    s.run("20 < . 1 ack 1\n 20 < . 1 ack 1\n 20 < . 1 ack 1\n 20 < . 1 ack 1\n 30 ! quiet");
    s.run("40 ! departed 5\n 40 > . 1+1000 ack 1 why fast_retransmit\n 50 < . 1 ack 4001");
}

/// Breaks: a tail that waits in the host is probed by a copy of itself.
#[test]
fn a_tail_that_has_not_left_is_its_own_probe() {
    let settings = Settings { profile: Some(Profile::RackTlp), sack: Some(true), ..plain() };
    let mut s = Script::established(&settings, 9000);
    s.run("10 ! write 2000\n 10 > . 1+1000 ack 1\n 10 > . 1001+1000 ack 1\n 20 ! departed 2");
    s.run("209 ! quiet\n 209 ! departed 3\n 210 > . 1+1000 ack 1 why timeout_retransmit");
    let mut s = Script::established(&settings, 9000);
    s.run("10 ! write 2000\n 10 > . 1+1000 ack 1\n 10 > . 1001+1000 ack 1\n 20 ! departed 3");
    s.run("30 > . 1001+1000 ack 1 why tail_loss_probe\n 35 < . 1 ack 2001");
    assert_eq!(s.connection.inspect().recovery, RecoveryState::Open);
}

/// Breaks: TCP-STAR asks with its newest segment after a timeout, and waits for ever with a question that has
/// yet to leave when all has been acknowledged.
#[test]
fn a_question_that_has_not_left_is_not_waited_for() {
    let settings = Settings {
        profile: Some(Profile::Rfc6675),
        sack: Some(true),
        timeout: Some(TimeoutProcedure::Aen),
        ..plain()
    };
    let mut s = Script::established(&settings, 9000);
    s.run(
        "10  ! write 3000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         20  ! departed 3
         210 > . 1+1000 ack 1 why timeout_retransmit
         220        < . 1 ack 3001
         230 ! write 1000
         230 > . 3001+1000 ack 1 why new_data
         240        < . 1 ack 4001",
    );
}

/// Breaks: a host that never lets a segment go keeps its connection for ever; or it ends sooner than one to a
/// silent peer.
#[test]
fn a_segment_that_never_leaves() {
    let mut s = Script::established(&plain(), 9000);
    s.run("10 ! departed 1\n 10 ! write 10\n 10 > . 1+10 ack 1");
    let (mut at, mut wait) = (10u64, 200u64);
    for _ in 0..15 {
        at += wait;
        wait = (wait * 2).min(120_000);
    }
    s.run(&format!("{} ! state Established\n {1} ! event Closed(TimedOut)", at + wait - 1, at + wait));
    // SYN and SYN-ACK.
    let mut s = Script::connect(&plain());
    s.run("0 > S 0\n 0 ! departed 0\n 190000 ! state SynSent\n 999999 ! event Closed(TimedOut)");
    let mut s = Script::accept(&plain(), "S 0 win 9000 mss 1000");
    s.run("0 > S. 0 ack 1\n 0 ! departed 0\n 62000 ! state SynReceived\n 64000 ! event Closed(TimedOut)");
    // With a user timeout as ever.
    let mut s =
        Script::established(&Settings { user_timeout: Some(Span::from_millis(500)), ..plain() }, 9000);
    s.run("10 ! departed 1\n 10 ! write 10\n 10 > . 1+10 ack 1\n 510 > R. 11 ack 1");
}
