//! FIN in every order, TIME-WAIT, resets, giving up.

use crate::script::{Script, plain};
use farpace_tcp::config::Settings;
use farpace_units::Packets;

/// Breaks: we close first: FIN-WAIT-1, FIN-WAIT-2, TIME-WAIT of 60 s, which a repeated FIN restarts.
#[test]
fn close_first() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "10     ! write 100
         10     > . 1+100 ack 1
         20            < . 1 ack 101
         20     ! close
         20     > F. 101 ack 1 why fin
         20     ! state FinWait1
         30            < . 1 ack 102
         30     ! state FinWait2
         40            < . 1+50 ack 102
         40     ! read 50
         45            < F. 51 ack 102
         45     > . 102 ack 52
         45     ! state TimeWait
         45     ! event PeerClosed
         1000          < F. 51 ack 102
         1000   > . 102 ack 52
         60999  ! state TimeWait
         61000  ! state Closed
         61000  ! event Closed(Finished)",
    );
}

/// Breaks: in TIME-WAIT a FIN that comes again with its data restarts the wait as well.
#[test]
fn time_wait_and_a_repeated_fin_with_data() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20     ! close
         20     > F. 1 ack 1
         30            < F. 1+50 ack 2
         30     > . 2 ack 52
         30     ! state TimeWait
         1000          < F. 1+50 ack 2
         1000   > . 2 ack 52
         60999  ! state TimeWait
         61000  ! state Closed",
    );
}

/// Breaks: the peer closes first: CLOSE-WAIT, LAST-ACK, closed. The FIN waits for the congestion window.
#[test]
fn peer_closes_first() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(1)), ..plain() }, 9000);
    s.run(
        "20         < F. 1+10 ack 1
         20  > . 1 ack 12
         20  ! state CloseWait
         20  ! event PeerClosed
         20  ! read 10
         30  ! write 100
         30  > . 1+100 ack 12
         30  ! close                              # the window is full: initial_window is 1
         30  ! state CloseWait
         40         < . 12 ack 101
         40  > F. 101 ack 12
         40  ! state LastAck
         50         < . 12 ack 102
         50  ! state Closed
         50  ! event Closed(Finished)",
    );
}

/// Breaks: a FIN goes out beyond the peer's window behind data that fills it, is refused there, and waits for
/// a timeout when the window opens.
#[test]
fn a_fin_has_a_place_in_the_window() {
    let mut s = Script::established(&plain(), 500);
    s.run(
        "20  ! write 500
         20  > . 1+500 ack 1
         30  ! write 500
         30  ! close
         40         < . 1 ack 501 win 500
         40  > . 501+500 ack 1
         50         < . 1 ack 1001 win 0
         60         < . 1 ack 1001 win 500
         60  > F. 1001 ack 1
         60  ! state FinWait1",
    );
}

/// Breaks: a FIN that somebody else has sent takes the place of the first one: the end of the data is not
/// known any more until the peer's timeout.
#[test]
fn the_first_fin_counts() {
    let mut s = Script::established(&plain(), 20_000);
    s.run(
        "20         < F. 1001 ack 1
         20  > . 1 ack 1
         22         < F. 2001 ack 1
         22  > . 1 ack 1
         30         < . 1+1000 ack 1
         30  > . 1 ack 1002
         30  ! state CloseWait",
    );
}

/// Breaks: both close at once: CLOSING, then TIME-WAIT.
#[test]
fn simultaneous_close() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20  ! close
         20  > F. 1 ack 1
         25         < F. 1 ack 1
         25  > . 2 ack 2
         25  ! state Closing
         30         < . 2 ack 2
         30  ! state TimeWait
         60029 ! state TimeWait
         60030 ! state Closed",
    );
}

/// Breaks: a lost FIN goes again, and a FIN beyond a hole waits for what is missing.
#[test]
fn lost_fin() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20     ! close
         20     > F. 1 ack 1
         220    > F. 1 ack 1 why timeout_retransmit
         230           < . 1 ack 2
         230    ! state FinWait2
         240           < F. 1001+100 ack 2
         240    > . 2 ack 1
         240    ! state FinWait2
         250           < . 1+1000 ack 2
         250    > . 2 ack 1102
         250    ! state TimeWait
         250    ! read 1100",
    );
}

/// Breaks: RFC 5961 §3.2: only a reset with exactly the next number ends a connection.
#[test]
fn resets() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20         < R 2
         20  > . 1 ack 1 why ack_unacceptable     # in the window: a challenge
         30         < R 30000                     # outside: nothing
         40         < R 0
         50  ! state Established
         60         < R 1
         60  ! state Closed
         60  ! event Closed(Reset)
         70         < . 1+10 ack 1
         80  ! quiet",
    );
}

/// Breaks: RFC 5961 §4.2: a SYN in a connection is challenged, not believed.
#[test]
fn syn_in_a_connection() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20         < S 1
         20  > . 1 ack 1 why ack_unacceptable
         600        < S 500000
         600 > . 1 ack 1 why ack_unacceptable
         600 ! state Established",
    );
}

/// Breaks: abort tells the peer.
#[test]
fn abort_sends_a_reset() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "10  ! write 100
         10  > . 1+100 ack 1
         20  ! abort
         20  > R. 101 ack 1 why reset
         20  ! state Closed
         20  ! event Closed(Aborted)
         5000 ! quiet",
    );
    let mut s = Script::connect(&plain());
    s.run("0 > S 0\n 10 ! abort\n 10 ! state Closed\n 5000 ! quiet");
}

/// Breaks: a peer that never answers: the connection gives up after 15 repetitions.
#[test]
fn gives_up_at_last() {
    let mut s = Script::established(&plain(), 60_000);
    s.run("10 ! write 10\n 10 > . 1+10 ack 1");
    let (mut at, mut wait) = (10, 200);
    for _ in 0..15 {
        at += wait;
        wait = (wait * 2).min(120_000);
        s.run(&format!("{at} > . 1+10 ack 1"));
    }
    s.run(&format!("{} ! state Closed\n {0} ! event Closed(TimedOut)", at + wait));
}

/// Breaks: RFC 9293 §3.10.5: abort in every state: whoever may have a connection gets a reset, others get
/// nothing.
#[test]
fn abort_in_every_state() {
    let established = |script: &str| {
        let mut s = Script::established(&plain(), 9000);
        s.run(script);
        s
    };
    let cases: [(Script, &str); 8] = [
        (Script::connect(&plain()), "0 > S 0\n 50 ! abort"),
        (Script::accept(&plain(), "S 0 win 5000"), "0 > S. 0 ack 1\n 50 ! abort\n 50 > R. 1 ack 1"),
        (established("20 ! close\n 20 > F. 1 ack 1"), "50 ! abort\n 50 > R. 2 ack 1"),
        (established("20 ! close\n 20 > F. 1 ack 1\n 30 < . 1 ack 2"), "50 ! abort\n 50 > R. 2 ack 1"),
        (established("20 < F. 1 ack 1\n 20 > . 1 ack 2"), "50 ! abort\n 50 > R. 1 ack 2"),
        (established("20 ! close\n 20 > F. 1 ack 1\n 30 < F. 1 ack 1\n 30 > . 2 ack 2"), "50 ! abort"),
        (established("20 < F. 1 ack 1\n 20 > . 1 ack 2\n 30 ! close\n 30 > F. 1 ack 2"), "50 ! abort"),
        (established("20 ! close\n 20 > F. 1 ack 1\n 30 < F. 1 ack 2\n 30 > . 2 ack 2"), "50 ! abort"),
    ];
    for (mut s, script) in cases {
        s.run(script);
        s.run("60 ! state Closed\n 60 ! event Closed(Aborted)\n 99999 ! quiet");
        assert_eq!(s.connection.deadline(), None);
    }
}

/// Breaks: RFC 9293 §3.6.1 (SHLD-3): an application that reads no more loses data; the peer has to know.
#[test]
fn data_that_nobody_will_read() {
    // It waits already.
    let mut s = Script::established(&plain(), 9000);
    s.run("20 < . 1+10 ack 1\n 30 ! stop_reading\n 30 > R. 1 ack 11\n 30 ! event Closed(Aborted)");
    // It comes later.
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20  ! stop_reading
         20  ! close
         20  > F. 1 ack 1
         30         < . 1 ack 2
         40         < . 1+10 ack 2
         40  > R. 2 ack 1
         40  ! event Closed(Aborted)",
    );
    // It never comes: an orderly end.
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20 ! stop_reading\n 20 ! close\n 20 > F. 1 ack 1\n 30 < F. 1 ack 2\n 30 > . 2 ack 2\n 30 ! state \
           TimeWait",
    );
}

/// Breaks: half-close: the side that has closed still receives, and the other still sends, for as long as it
/// likes.
#[test]
fn half_close_both_ways() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20     ! close
         20     > F. 1 ack 1
         30            < . 1 ack 2
         500000        < . 1+1000 ack 2
         500000        < . 1001+1000 ack 2
         500000 > . 2 ack 2001
         500000 ! read 2000
         500000        < F. 2001 ack 2
         500000 > . 2 ack 2002
         500000 ! state TimeWait",
    );
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20     < F. 1 ack 1
         20     > . 1 ack 2
         500000 ! write 1500
         500000 > . 1+1000 ack 2
         500000 ! close
         500000 > F. 1001+500 ack 2
         500010        < . 2 ack 1502
         500010 ! state Closed",
    );
}
