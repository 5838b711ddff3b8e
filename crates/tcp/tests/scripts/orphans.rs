//! Connections that their programs have left, and what is still said to a peer that has finished.

use crate::script::{Script, plain};
use farpace_tcp::config::Settings;
use farpace_units::Span;

const LEFT: &str = "20 ! stop_reading\n 20 ! close\n 20 > F. 1 ack 1";

/// Breaks: a peer that acknowledges our FIN and never sends its own holds a connection, a port and memory for
/// ever.
#[test]
fn a_peer_that_never_closes() {
    let mut s = Script::established(&plain(), 9000);
    s.run(LEFT);
    s.run(
        "30           < . 1 ack 2
         30    ! state FinWait2
         30000        < . 1 ack 2                     # it talks, but says nothing
         60029 ! state FinWait2
         60030 > R. 2 ack 1
         60030 ! event Closed(TimedOut)
         99999 ! quiet",
    );
    // As long as one likes.
    let mut s = Script::established(&Settings { fin_timeout: Some(Span::from_secs(3)), ..plain() }, 9000);
    s.run(LEFT);
    s.run("30 < . 1 ack 2\n 3029 ! state FinWait2\n 3030 > R. 2 ack 1\n 3030 ! state Closed");
    // In time.
    let mut s = Script::established(&plain(), 9000);
    s.run(LEFT);
    s.run(
        "30           < . 1 ack 2
         60000        < F. 1 ack 2
         60000 > . 2 ack 2
         60000 ! state TimeWait
         119999 ! state TimeWait
         120000 ! event Closed(Finished)",
    );
}

/// Breaks: half-close: a program that has closed only its own direction is still there, and its peer may take
/// hours.
#[test]
fn a_half_close_is_no_orphan() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20       ! close
         20       > F. 1 ack 1
         30              < . 1 ack 2
         30       ! end_orphan
         99999999 ! state FinWait2",
    );
}

/// Breaks: sockstress: a peer that closes its window and answers every probe keeps what a program that has
/// left had written; 100 s without progress are enough (R2 of RFC 9293 §3.8.3), however short the time for
/// FIN-WAIT-2 is.
#[test]
fn a_window_that_stays_closed_on_an_orphan() {
    let settings = Settings { fin_timeout: Some(Span::from_secs(1)), ..plain() };
    let mut s = Script::established(&settings, 1000);
    s.run("10 ! write 3000\n 10 > . 1+1000 ack 1\n 20 ! stop_reading\n 20 ! close\n 30 < . 1 ack 1001 win 0");
    let (mut at, mut wait) = (30u64, 200u64);
    while at + wait < 100_030 {
        at += wait;
        wait *= 2;
        s.run(&format!("{at} > . 1000 ack 1 why window_probe\n {at} < . 1 ack 1001 win 0"));
    }
    s.run("100029 ! state Established\n 100030 > R. 1001 ack 1\n 100030 ! event Closed(TimedOut)");
}

/// Breaks: a peer that has vanished before it acknowledged our FIN: in FIN-WAIT-1, CLOSING and LAST-ACK the
/// connection of a program that has left ends after 100 s; in the last two without a reset, as the peer has
/// closed as well.
#[test]
fn a_peer_that_vanishes() {
    let fins = |s: &mut Script, until: u64, ack: u32| {
        let (mut at, mut wait) = (20u64, 200u64);
        while at + wait < until {
            at += wait;
            wait *= 2;
            s.run(&format!("{at} > F. 1 ack {ack} why timeout_retransmit"));
        }
    };
    let mut s = Script::established(&plain(), 9000);
    s.run(LEFT);
    fins(&mut s, 100_020, 1);
    s.run("100019 ! state FinWait1\n 100020 > R. 2 ack 1\n 100020 ! event Closed(TimedOut)\n 999999 ! quiet");
    let mut s = Script::established(&plain(), 9000);
    s.run(LEFT);
    s.run("25 < F. 1 ack 1\n 25 > . 2 ack 2");
    fins(&mut s, 100_020, 2);
    s.run("100019 ! state Closing\n 100020 ! event Closed(TimedOut)\n 999999 ! quiet");
    let mut s = Script::established(&plain(), 9000);
    s.run("15 < F. 1 ack 1\n 15 > . 1 ack 2\n 20 ! stop_reading\n 20 ! close\n 20 > F. 1 ack 2");
    fins(&mut s, 100_020, 2);
    s.run("100019 ! state LastAck\n 100020 ! event Closed(TimedOut)\n 999999 ! quiet");
}

/// Breaks: a host with too many orphans ends one that is none, or leaves the peer in the dark.
#[test]
fn an_orphan_ends_before_its_time() {
    let mut s = Script::established(&plain(), 9000);
    s.run("20 ! end_orphan\n 21 ! state Established");
    s.run("21 ! stop_reading\n 21 ! close\n 21 > F. 1 ack 1\n 30 < . 1 ack 2");
    s.run("40 ! end_orphan\n 40 > R. 2 ack 1\n 40 ! event Closed(Aborted)\n 999999 ! quiet");
}

/// Breaks: a program that reads the last data late. The window that opens is announced to a peer that sends
/// again, but not to one whose FIN is here: it sends nothing more (RFC 9293 §3.8.6.2.2), and may be gone and
/// answer with a reset, which would turn an orderly end into an error.
#[test]
fn no_window_for_a_peer_that_has_finished() {
    let full = |script: &str| {
        let mut s = Script::established(&plain(), 9000);
        for from in (1..18_000).step_by(1000) {
            s.run(&format!("20 < . {from}+1000 ack 1"));
            if from % 2000 == 1001 {
                s.run(&format!("20 > . 1 ack {}", from + 1000));
            }
        }
        s.run(script);
        s
    };
    full("30 ! read 18000\n 30 > . 1 ack 18001 win 20000 why ack_window").run("40 ! quiet");
    // CLOSE-WAIT
    let s = &mut full("30 < F. 18001 ack 1\n 30 > . 1 ack 18002\n 30 ! state CloseWait");
    s.run("40 ! read 18000\n 9999 ! quiet");
    // LAST-ACK
    let s = &mut full("30 < F. 18001 ack 1\n 30 > . 1 ack 18002\n 40 ! close\n 40 > F. 1 ack 18002");
    s.run(
        "50 ! state LastAck\n 50 ! read 18000\n 60 < . 18002 ack 2\n 60 ! event Closed(Finished)\n 9999 ! \
           quiet",
    );
    // CLOSING
    let s = &mut full("30 ! close\n 30 > F. 1 ack 18001\n 40 < F. 18001 ack 1\n 40 > . 2 ack 18002");
    s.run("50 ! state Closing\n 50 ! read 18000\n 60 < . 18002 ack 2\n 60 ! state TimeWait\n 9999 ! quiet");
    // TIME-WAIT
    let s = &mut full("30 ! close\n 30 > F. 1 ack 18001\n 40 < F. 18001 ack 2\n 40 > . 2 ack 18002");
    s.run("50 ! state TimeWait\n 50 ! read 18000\n 60040 ! event Closed(Finished)");
    // FIN-WAIT-2: the peer may still send.
    let s = &mut full("30 ! close\n 30 > F. 1 ack 18001\n 40 < . 18001 ack 2\n 50 ! read 18000");
    s.run("50 > . 2 ack 18001 win 20000 why ack_window\n 9999 ! quiet");
}
