//! Peers that are silent: keep-alive, the user timeout, giving up, windows that stay closed.

use crate::script::{Script, plain};
use farpace_tcp::config::Settings;
use farpace_units::{ByteCount, Packets, Span};

/// Breaks: RFC 9293 §3.8.4: off unless asked for; then an idle connection is probed with an old number, and
/// lives as long as the peer answers.
#[test]
fn keep_alive() {
    let mut s = Script::established(&plain(), 9000);
    s.run("99999999 ! state Established");
    let settings = Settings {
        keep_alive: Some(Span::from_secs(10)),
        keep_alive_interval: Some(Span::from_secs(2)),
        keep_alive_count: Some(3),
        ..plain()
    };
    let mut s = Script::established(&settings, 9000);
    s.run(
        "10000        < . 1+5 ack 1
         10040 > . 1 ack 6
         20000 > . 0 ack 6 why keep_alive
         20010        < . 6 ack 1
         30010 > . 0 ack 6 why keep_alive
         32010 > . 0 ack 6
         34010 > . 0 ack 6
         36009 ! state Established
         36010 > R. 1 ack 6
         36010 ! event Closed(TimedOut)",
    );
}

/// Breaks: a probe that is waiting for data to be acknowledged would be answered by the retransmission timer
/// anyway.
#[test]
fn no_keep_alive_while_something_is_outstanding() {
    let mut s = Script::established(&Settings { keep_alive: Some(Span::from_millis(100)), ..plain() }, 9000);
    s.run("10 ! write 10\n 10 > . 1+10 ack 1\n 210 > . 1+10 ack 1 why timeout_retransmit");
    s.run("215 < . 1 ack 11\n 315 > . 10 ack 1 why keep_alive\n 316 < . 1 ack 11\n 400 ! quiet");
}

/// Breaks: RFC 5482: data that is not acknowledged for as long as the application allows ends the connection;
/// progress begins the time anew.
#[test]
fn user_timeout() {
    let mut s =
        Script::established(&Settings { user_timeout: Some(Span::from_millis(500)), ..plain() }, 9000);
    s.run(
        "10   ! write 2000
         10   > . 1+1000 ack 1
         10   > . 1001+1000 ack 1
         200         < . 1 ack 1001
         427.5 > . 1001+1000 ack 1                    # srtt 32.5 ms, four times rttvar 195 ms
         699  ! state Established
         700  > R. 2001 ack 1
         700  ! event Closed(TimedOut)",
    );
    let mut s = Script::connect(&Settings { user_timeout: Some(Span::from_millis(1500)), ..plain() });
    s.run("0 > S 0\n 1000 > S 0\n 1500 ! event Closed(TimedOut)");
}

/// Breaks: sockstress: a peer with a closed window would hold the connection and its data for ever. With a
/// user timeout it does not, however well it answers; without one it may (RFC 9293 §3.8.6.1, MUST-37).
#[test]
fn a_window_that_stays_closed() {
    let probes = |s: &mut Script, until: u64| {
        let (mut at, mut wait) = (20u64, 200u64);
        while at + wait < until {
            at += wait;
            wait = (wait * 2).min(120_000);
            s.run(&format!("{at} > . 1000 ack 1 why window_probe\n {at} < . 1 ack 1001 win 0"));
        }
    };
    let start = "10 ! write 3000\n 10 > . 1+1000 ack 1\n 20 < . 1 ack 1001 win 0";
    let mut s = Script::established(&plain(), 1000);
    s.run(start);
    probes(&mut s, 3_600_000);
    s.run("3600000 ! state Established");
    let mut s = Script::established(&Settings { user_timeout: Some(Span::from_secs(60)), ..plain() }, 1000);
    s.run(start);
    probes(&mut s, 60_020);
    s.run("60019 ! state Established\n 60020 > R. 1001 ack 1\n 60020 ! event Closed(TimedOut)");
}

/// Fifteen probes of a window that closed at 20 ms, each with what the peer says to it; then the time of the
/// sixteenth.
fn window_probes(s: &mut Script, answers: impl Fn(u32) -> bool) -> u64 {
    let (mut at, mut wait) = (20u64, 200u64);
    for n in 1..=15 {
        at += wait;
        wait = (wait * 2).min(120_000);
        s.run(&format!("{at} > . 1000 ack 1 why window_probe"));
        if n == 3 && !answers(n) {
            s.run(&format!("{at} ! event Unanswered"));
        }
        if answers(n) {
            s.run(&format!("{at} < . 1 ack 1001 win 0"));
        }
    }
    at + wait
}

/// Breaks: sockstress with a peer that is gone: a closed window that nobody answers for is probed for ever.
/// Fifteen probes without an answer are enough (15 minutes, as in Linux); the next timer ends the connection,
/// and says so to the peer.
#[test]
fn a_closed_window_of_a_silent_peer() {
    let start = "10 ! write 3000\n 10 > . 1+1000 ack 1\n 20 < . 1 ack 1001 win 0";
    let mut s = Script::established(&plain(), 1000);
    s.run(start);
    let end = window_probes(&mut s, |_| false);
    assert_eq!(end, 924_620);
    s.run(&format!(
        "{} ! state Established\n {end} > R. 1001 ack 1\n {end} ! event Closed(TimedOut)",
        end - 1
    ));
    s.run("9999999 ! quiet");
    // One answer is enough to be asked fifteen times more, now two minutes apart.
    let mut s = Script::established(&plain(), 1000);
    s.run(start);
    let mut at = window_probes(&mut s, |n| n == 15);
    for _ in 0..15 {
        s.run(&format!("{at} > . 1000 ack 1 why window_probe"));
        at += 120_000;
    }
    s.run(&format!("{} ! state Established\n {at} > R. 1001 ack 1\n {at} ! event Closed(TimedOut)", at - 1));
}

/// Breaks: whoever sees neither side keeps a dead connection alive with segments of guessed numbers, or a
/// live one's data counts as the peer's voice when its numbers are impossible.
#[test]
fn a_stranger_is_not_the_peer() {
    let settings = Settings {
        keep_alive: Some(Span::from_secs(10)),
        keep_alive_interval: Some(Span::from_secs(2)),
        keep_alive_count: Some(2),
        ..plain()
    };
    let mut s = Script::established(&settings, 9000);
    s.run(
        "9000         < . 700000+10 ack 1              # beyond the window
         9000  > . 1 ack 1
         9500         < . 1 ack 77777                 # of what was never sent
         9500  > . 1 ack 1
         9900         < . 1 ack -77777                # of long ago
         10010 > . 0 ack 1 why keep_alive
         12010 > . 0 ack 1 why keep_alive
         13000        < R 500 ack 1                   # inside the window, not at its edge
         13000 > . 1 ack 1
         14010 > R. 1 ack 1
         14010 ! event Closed(TimedOut)",
    );
}

/// Breaks: a peer that has taken its window back and is there is given up because one of its answers was
/// lost, or for what was counted while its window was closed; one that is gone is not given up.
#[test]
fn a_window_that_was_taken_back_and_lost_answers() {
    let start = "10 ! write 2000\n 10 > . 1+1000 ack 1\n 10 > . 1001+1000 ack 1\n 20 < . 1 ack 1 win 0";
    let mut s = Script::established(&plain(), 4000);
    s.run(start);
    let (mut at, mut wait) = (10u64, 200u64);
    let mut expire = |s: &mut Script, answer: Option<&str>| {
        at += wait;
        wait = (wait * 2).min(120_000);
        s.run(&format!("{at} > . 1+1000 ack 1 why timeout_retransmit"));
        if let Some(answer) = answer {
            s.run(&format!("{at} < {answer}"));
        }
        at + wait
    };
    for n in 0..40 {
        expire(&mut s, (n % 10 == 9).then_some(". 1 ack 1 win 0"));
    }
    // It opens again, and what is lost then is counted from one.
    let mut end = expire(&mut s, Some(". 1 ack 1 win 4000"));
    for _ in 0..15 {
        end = expire(&mut s, None);
    }
    s.run(&format!("{} ! state Established\n {end} ! event Closed(TimedOut)", end - 1));
    let mut s = Script::established(&plain(), 4000);
    s.run(start);
    let (mut at, mut wait) = (10u64, 200u64);
    for _ in 0..15 {
        at += wait;
        wait = (wait * 2).min(120_000);
        s.run(&format!("{at} > . 1+1000 ack 1 why timeout_retransmit"));
    }
    s.run(&format!("{0} ! state Established\n {1} ! event Closed(TimedOut)", at + wait - 1, at + wait));
}

/// Breaks: RFC 9293 §3.8.3: three unanswered retransmissions are told (R1), and the connection is not given
/// up before 100 s (R2) however small the timeout is.
#[test]
fn r1_and_r2() {
    let mut s = Script::established(&Settings { min_rto: Some(Span::from_millis(1)), ..plain() }, 9000);
    s.run("10 ! write 10\n 10 > . 1+10 ack 1");
    // The handshake took 10 ms: srtt + 4 rttvar = 30 ms.
    let (mut at, mut wait) = (10u64, 30u64);
    for i in 0..15 {
        at += wait;
        wait = (wait * 2).min(120_000);
        s.run(&format!("{at} > . 1+10 ack 1"));
        if i == 2 {
            s.run(&format!("{at} ! event Unanswered"));
        }
    }
    assert!(at > 100_000);
    s.run(&format!("{} ! event Closed(TimedOut)", at + wait));
}

/// Breaks: RFC 9293 §3.8.6.2.1: a small window is not filled with a small segment at once, but when it is
/// half of what the peer ever had, or when the persist timer fires.
#[test]
fn the_sender_avoids_silly_windows() {
    let mut s = Script::established(&plain(), 4000);
    s.run(
        "10   ! write 6000
         10   > . 1+1000 ack 1
         10   > . 1001+1000 ack 1
         10   > . 2001+1000 ack 1
         10   > . 3001+1000 ack 1
         20         < . 1 ack 4001 win 300
         220  > . 4001+300 ack 1 why new_data
         230         < . 1 ack 4301 win 900
         430  > . 4301+900 ack 1
         440         < . 1 ack 5201 win 4000
         440  > . 5201+800 ack 1",
    );
    let mut s = Script::established(&plain(), 1000);
    s.run("10 ! write 3000\n 10 > . 1+1000 ack 1\n 20 < . 1 ack 1001 win 500\n 20 > . 1001+500 ack 1");
}

/// Breaks: RFC 9293 §3.8.6.2.2: the receiver does not tell of small gains: the edge of the window moves by a
/// segment or by half of the buffer.
#[test]
fn the_receiver_avoids_silly_windows() {
    let mut s =
        Script::established(&Settings { receive_buffer: Some(ByteCount::new(2000)), ..plain() }, 9000);
    s.run(
        "20         < . 1+400 ack 1
         25  ! read 400
         60  > . 1 ack 401 win 1600
         70         < . 401+400 ack 1
         75  ! read 400
         110 > . 1 ack 801 win 1200
         120        < . 801+400 ack 1
         125 ! read 400
         125 > . 1 ack 1201 win 2000 why ack_window",
    );
}

/// Breaks: RFC 6298: the strict minimum of one second.
#[test]
fn strict_minimum() {
    let mut s = Script::established(&Settings { min_rto: Some(Span::from_secs(1)), ..plain() }, 9000);
    s.run("10 ! write 10\n 10 > . 1+10 ack 1\n 10 ! rto 1000\n 1010 > . 1+10 ack 1 why timeout_retransmit");
    s.run("3010 > . 1+10 ack 1 why timeout_retransmit");
}

/// Breaks: RFC 7661: a window that is never used does not last: half of it goes after five minutes.
#[test]
fn a_window_that_is_not_used_decays() {
    let settings =
        Settings { initial_window: Some(Packets::new(4)), min_rto: Some(Span::from_secs(60)), ..plain() };
    let mut s = Script::established(&settings, 60_000);
    // Up to 16, and then one segment every 50 s, so that it never counts as idle.
    let (mut at, mut seq) = (20u64, 1u32);
    for cwnd in 4..16u32 {
        s.run(&format!("{at} ! cwnd {cwnd}\n {at} ! write {}", cwnd * 1000));
        for i in 0..cwnd {
            s.run(&format!("{at} > . {}+1000 ack 1", seq + i * 1000));
        }
        seq += cwnd * 1000;
        at += 10;
        s.run(&format!("{at} < . 1 ack {seq}"));
    }
    s.run(&format!("{at} ! cwnd 16"));
    for i in 1..=7u64 {
        let t = at + i * 50_000;
        s.run(&format!("{t} ! write 1000\n {t} > . {seq}+1000 ack 1"));
        seq += 1000;
        s.run(&format!("{} < . 1 ack {seq}\n {0} ! cwnd {}", t + 10, if i < 6 { 16 } else { 8 }));
    }
    s.run("999999 ! ssthresh 4294967295");
}

/// Breaks: RFC 9293 §3.8.6 (SHLD-15 to SHLD-17): a peer that takes its window back gets nothing new, what it
/// has been sent goes again at its times, and the connection lives as long as the peer answers.
#[test]
fn a_window_that_is_taken_back() {
    let mut s = Script::established(&plain(), 4000);
    s.run(
        "10   ! write 3000
         10   > . 1+1000 ack 1
         10   > . 1001+1000 ack 1
         10   > . 2001+1000 ack 1
         20         < . 1 ack 1 win 0
         30   ! write 1000",
    );
    let (mut at, mut wait) = (10u64, 200u64);
    for _ in 0..30 {
        at += wait;
        wait = (wait * 2).min(120_000);
        s.run(&format!("{at} > . 1+1000 ack 1 why timeout_retransmit\n {at} < . 1 ack 1 win 0"));
    }
    s.run(&format!("{at} ! state Established\n {at} < . 1 ack 1001 win 9000\n {at} > . 1001+1000 ack 1"));
    s.run(&format!("{at} > . 2001+1000 ack 1"));
}
