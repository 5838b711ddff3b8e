//! The handshake and its options.

use crate::full;
use crate::script::{Script, linux, plain, segment};
use farpace_tcp::config::{Profile, Settings};
use farpace_units::{ByteCount, Instant, Packets, Span};

/// Breaks: options are used only if both sides offered them. `(ours, the peer's SYN-ACK, our SYN, first
/// data)`.
#[test]
fn active_open_with_every_combination_of_options() {
    for bits in 0..64u32 {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let settings = Settings {
            sack: Some(on(0)),
            timestamps: Some(on(1)),
            window_scale: Some(on(2)),
            receive_buffer: Some(ByteCount::new(100_000)),
            ..linux()
        };
        let text = |when: bool, s: &'static str| if when { s } else { "" };
        let mut s = Script::connect(&settings);
        let (sack, ts, ws) = (on(0) && on(3), on(1) && on(4), on(2) && on(5));
        // 100000 bytes need a shift of 1; without scaling the window is at most 65535.
        let window = if ws { 50_000 } else { 65_535 };
        s.run(&format!(
            "0   > S 0 mss 1000 win 65535 {} {} {}
             10         < S. 0 ack 1 win 30000 mss 1000 {} {} {}
             10  > . 1 ack 1 win {window} {}
             10  ! write 2000
             10  > . 1+{} ack 1 {}",
            text(on(0), "sackok"),
            text(on(1), "ts 0/0"),
            text(on(2), "ws 1"),
            text(on(3), "sackok"),
            text(on(4), "ts 5000/0"),
            text(on(5), "ws 7"),
            text(ts, "ts 10/5000"),
            if ts { 988 } else { 1000 },
            text(ts, "ts 10/5000"),
        ));
        let (second, end) = if ts { ("989+988", 1977) } else { ("1001+1000", 2001) };
        s.run(&format!("10 > . {second} ack 1"));
        // With timestamps 24 bytes are held back by Nagle until everything else is acknowledged.
        s.run(&format!("20 < . 1 ack {end} {}", text(ts, "ts 5001/10")));
        if ts {
            s.run("20 > . 1977+24 ack 1 ts 20/5001");
        }
        // A hole: SACK only if it was agreed on.
        s.run(&format!(
            "21         < . 1001+100 ack 2001 {}
             21  > . 2001 ack 1 {}",
            text(ts, "ts 5002/20"),
            text(sack, "sack 1001-1101"),
        ));
    }
}

/// Breaks: a passive open answers with the options that both have, and is complete with the third segment.
#[test]
fn passive_open() {
    let mut s = Script::accept(&full(), "S 0 win 5000 mss 600 sackok ts 77/0 ws 3");
    s.run(
        "0   > S. 0 ack 1 mss 1000 sackok ts 0/77 ws 0 why syn
         0   ! state SynReceived
         30         < . 1 ack 1 win 100 ts 107/0
         30  ! state Established
         30  ! event Connected
         30  ! write 2000                    # the window is 100 << 3
         30  > . 1+588 ack 1 ts 30/107",
    );
}

/// Breaks: a peer without options gets none, and segments of 536 bytes.
#[test]
fn passive_open_with_a_bare_peer() {
    let mut s = Script::accept(&full(), "S 0 win 5000");
    s.run(
        "0   > S. 0 ack 1 mss 1000 win 20000
         10         < . 1 ack 1 win 5000
         10  ! write 600
         10  > . 1+536 ack 1",
    );
}

/// Breaks: both open at once (RFC 9293 §3.5, figure 8).
#[test]
fn simultaneous_open() {
    let mut s = Script::connect(&plain());
    s.run(
        "0   > S 0
         5          < S 0 win 9000 mss 1000
         5   > S. 0 ack 1
         5   ! state SynReceived
         15         < S. 0 ack 1 win 9000 mss 1000
         15  ! state Established
         15  > . 1 ack 1
         15  ! write 100
         15  > . 1+100 ack 1
         25         < . 1 ack 101
         500 ! quiet",
    );
}

/// Breaks: the window of a SYN-ACK that crosses ours counts as scaled (RFC 7323 §2.2), so that a small
/// receiver gets many times what it takes.
#[test]
fn the_window_of_a_crossing_syn_ack_is_not_scaled() {
    let mut s = Script::connect(&Settings { window_scale: Some(true), ..plain() });
    s.run(
        "0   > S 0 ws 0
         5          < S 0 win 2000 mss 1000 ws 7
         5   > S. 0 ack 1 ws 0
         15         < S. 0 ack 1 win 2000 mss 1000 ws 7
         15  > . 1 ack 1",
    );
    assert_eq!(s.connection.inspect().rwnd, ByteCount::new(2_000));
}

/// Breaks: data on a SYN-ACK that crosses our SYN loses its first byte: the SYN has a number of its own
/// (RFC 9293 §3.4).
#[test]
fn data_on_a_crossing_syn_ack_is_whole() {
    let mut s = Script::connect(&plain());
    s.run(
        "0   > S 0
         5          < S 0 win 9000 mss 1000
         5   > S. 0 ack 1
         6   ! quiet",
    );
    let mut answer = segment("S. 0+10 ack 1 win 9000 mss 1000");
    answer.payload = bytes::Bytes::from_static(b"0123456789");
    s.connection.on_segment(Instant::ZERO + Span::from_millis(6), answer);
    let mut got = Vec::new();
    s.connection.read(|bytes| got.extend_from_slice(&bytes));
    assert_eq!(got, b"0123456789");
    s.run("6   > . 1 ack 11");
}

/// Breaks: the SYN is repeated with doubling times, and not given up before three minutes (RFC 9293 §3.8.3,
/// R2).
#[test]
fn lost_syn() {
    let mut s = Script::connect(&plain());
    s.run(
        "0       > S 0 why syn
         1000    > S 0 why syn_retransmit
         3000    > S 0
         7000    > S 0
         15000   > S 0
         31000   > S 0
         63000   > S 0
         127000  > S 0
         127000  ! event Unanswered
         246999  ! state SynSent
         247000  ! state Closed
         247000  ! event Closed(TimedOut)",
    );
    let mut s = Script::connect(&linux());
    s.run("0 > S 0 sackok\n 3000 > S 0 sackok\n 9000 > S 0 sackok\n 21000 > S 0 sackok");
    s.run("45000 > S 0 sackok\n 93000 > S 0 sackok\n 188999 ! state SynSent\n 189000 ! state Closed");
}

/// Breaks: a SYN-ACK that is lost, or a SYN that comes again (RFC 9293 §3.10.7.4).
#[test]
fn lost_syn_ack() {
    let mut s = Script::accept(&plain(), "S 0 win 5000");
    s.run(
        "0      > S. 0 ack 1 why syn
         500           < S 0 win 5000
         500    > S. 0 ack 1 why syn_retransmit
         1000   > S. 0 ack 1 why syn_retransmit
         1010          < . 1 ack 1
         1010   ! state Established
         9000   ! quiet",
    );
}

/// Breaks: RFC 6298 §5.7: after a SYN that had to be repeated the timeout for data is 3 s.
#[test]
fn timeout_after_a_repeated_syn() {
    let mut s = Script::connect(&plain());
    s.run(
        "0      > S 0
         1000   > S 0
         1010          < S. 0 ack 1 mss 1000
         1010   > . 1 ack 1
         1010   ! rto 3000
         1010   ! write 1000
         1010   > . 1+1000 ack 1
         4010   > . 1+1000 ack 1 why timeout_retransmit",
    );
}

/// Breaks: a SYN-ACK for another SYN is reset (RFC 9293 §3.10.7.3), and the real one still counts.
#[test]
fn wrong_syn_ack() {
    let mut s = Script::connect(&plain());
    s.run(
        "0   > S 0
         10         < S. 0 ack 7
         10  > R 7
         20         < R. 0 ack 7                 # not for us either
         30         < S. 0 ack 1 mss 1000
         30  > . 1 ack 1
         30  ! state Established",
    );
    let mut s = Script::connect(&plain());
    s.run("0 > S 0\n 10 < R. 0 ack 1\n 10 ! state Closed\n 10 ! event Closed(Reset)");
}

/// Breaks: the window of a scaled connection is a whole number of its units, never less than the buffer.
#[test]
fn window_scale_rounds_up() {
    for (buffer, shift, window) in
        [(65_535, 0, 65_535), (65_536, 1, 32_768), (100_001, 1, 50_001), (4_000_000, 6, 62_500)]
    {
        let receive_buffer = Some(ByteCount::new(buffer));
        let settings = Settings { window_scale: Some(true), receive_buffer, ..plain() };
        let mut s = Script::connect(&settings);
        s.run(&format!(
            "0   > S 0 ws {shift} win {}
             10         < S. 0 ack 1 mss 1000 ws 2
             10  > . 1 ack 1 win {window}",
            buffer.min(65_535)
        ));
    }
}

/// Breaks: the peer's scale counts, but not in its SYN; a shift above 14 counts as 14 (RFC 7323 §2.3).
#[test]
fn peers_window_scale() {
    let settings = Settings { window_scale: Some(true), initial_window: Some(Packets::new(50)), ..plain() };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 ws 0
         10         < S. 0 ack 1 mss 1000 ws 5 win 2000
         10  > . 1 ack 1
         10  ! write 6000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1                  # 2000, unscaled
         20         < . 1 ack 2001 win 100
         20  > . 2001+1000 ack 1
         20  > . 3001+1000 ack 1
         20  > . 4001+1000 ack 1                  # 3200",
    );
    let mut s = Script::connect(&settings);
    s.run("0 > S 0 ws 0\n 10 < S. 0 ack 1 ws 200\n 10 > . 1 ack 1\n 20 < . 1 ack 1 win 2");
    assert_eq!(s.connection.inspect().rwnd, ByteCount::new(2 << 14));
}

/// Breaks: RFC 6928 in the modern profiles: ten segments, or what 14600 bytes make; RFC 3390 in the others.
#[test]
fn initial_window_of_ten() {
    for (profile, mss, first) in [
        (Profile::Modern, 1460, 10),
        (Profile::Modern, 1000, 10),
        (Profile::Modern, 4000, 3),
        (Profile::Modern, 8960, 2),
        (Profile::NewReno, 1000, 4),
        (Profile::AistFix, 1460, 3),
    ] {
        let settings = Settings { profile: Some(profile), mss: Some(mss), ..Settings::default() };
        let config = settings.resolve().expect("settings");
        assert_eq!(config.first_window(u32::from(mss)), Packets::new(first), "{profile:?} {mss}");
    }
}

/// Breaks: RFC 5681 §3.1, RFC 6928 §2: where the SYN was lost, something on the way may be full: one segment
/// to begin.
#[test]
fn a_lost_syn_leaves_one_segment() {
    let mut s = Script::connect(&plain());
    s.run("0 > S 0\n 1000 > S 0\n 1010 < S. 0 ack 1 mss 1000\n 1010 > . 1 ack 1\n 1010 ! cwnd 1");
    let mut s = Script::accept(&plain(), "S 0 win 5000 mss 1000");
    s.run("0 > S. 0 ack 1\n 1000 > S. 0 ack 1\n 1010 < . 1 ack 1\n 1010 ! cwnd 1");
}

/// Breaks: a layer below that holds packets of a connection back until there are enough of them waits for
/// ever: the window must have its floor at the start and after a timeout (Kato and Higaki, 3.2).
#[test]
fn the_window_has_its_floor_at_the_start_and_after_a_timeout() {
    let floor = Settings { cwnd_floor: Some(Packets::new(19)), ..plain() };
    let mut s = Script::connect(&floor);
    s.run("0 > S 0\n 10 < S. 0 ack 1 mss 1000\n 10 > . 1 ack 1\n 10 ! cwnd 19");
    // The SYN was lost: one segment to begin, if nothing asked for more.
    let mut s = Script::connect(&floor);
    s.run("0 > S 0\n 1000 > S 0\n 1010 < S. 0 ack 1 mss 1000\n 1010 > . 1 ack 1\n 1010 ! cwnd 19");
    let mut s = Script::established(&Settings { cwnd_floor: Some(Packets::new(3)), ..plain() }, 60_000);
    s.run(
        "10     ! write 3000
         10     > . 1+1000 ack 1
         10     > . 1001+1000 ack 1
         10     > . 2001+1000 ack 1
         210    > . 1+1000 ack 1 why timeout_retransmit
         210    > . 1001+1000 ack 1 why loss_retransmit
         210    > . 2001+1000 ack 1 why loss_retransmit
         210    ! cwnd 3",
    );
    let wrong = Settings { cwnd_clamp: Some(Packets::new(18)), ..floor };
    assert!(wrong.resolve().is_err(), "the floor is above the clamp");
}
