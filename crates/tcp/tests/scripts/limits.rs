//! What a stranger or a bad peer can do: little, and only so often.

use crate::full;
use crate::script::{Script, linux, plain};
use farpace_tcp::Pressure;
use farpace_tcp::config::Settings;
use farpace_units::{ByteCount, Packets, Span};

/// Breaks: RFC 5961 §5.2: an acknowledgment older than anything the peer can have under way is a guess; its
/// data is not taken.
#[test]
fn acknowledgments_from_before_the_window() {
    let mut s = Script::established(&plain(), 2000);
    s.run(
        "10  ! write 6000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1 ack 2001 win 2000
         20  > . 2001+1000 ack 1
         20  > . 3001+1000 ack 1
         30         < . 1 ack 3001 win 0
         31         < . 1+100 ack 1001 win 0           # 2000 behind: the greatest window
         71  > . 4001 ack 101
         80         < . 101+100 ack 1000 win 0         # one more
         80  > . 4001 ack 101 why ack_unacceptable
         81  ! read 100
         81         < . 101+100 ack 4001 win 0
         121 > . 4001 ack 201",
    );
}

/// Breaks: a peer whose data was refused for want of memory, and whose own window was closed, tells of its
/// room in vain, as its segments are older than those that were refused: nothing is sent for as long.
#[test]
fn a_window_counts_after_data_was_refused() {
    let mut s = Script::established(&plain(), 2000);
    s.connection.set_pressure(Pressure { frozen: true, share: ByteCount::new(1_500) });
    s.run(
        "20         < . 1+1000 ack 1 win 2000
         20         < . 1001+1000 ack 1 win 0          # no memory for this one, nor for the next
         20  > . 1 ack 1001 win 0
         20         < . 2001+1000 ack 1 win 0
         20  > . 1 ack 1001 win 0
         30  ! write 500
         40         < . 1001 ack 1 win 2000            # as far as it may send, and older than 2001
         40  > . 1+500 ack 1001",
    );
}

/// Breaks: a flood of unacceptable segments with data is not answered by a flood.
#[test]
fn answers_with_data_are_limited_as_well() {
    let mut s = Script::established(&plain(), 9000);
    for i in 0..100 {
        s.run(&format!("{0} < . 500000+10 ack 1\n {0} > . 1 ack 1 why ack_unacceptable", 20 + i));
    }
    for i in 0..300 {
        s.run(&format!("{} < . 500000+10 ack 1", 120 + i));
    }
    s.run("521 < . 500000+10 ack 1\n 521 > . 1 ack 1");
}

/// Breaks: RFC 7323 §3.2: once timestamps are agreed on, a segment without them is dropped in silence; a
/// reset is not.
#[test]
fn segments_without_timestamps() {
    let mut s = Script::connect(&full());
    s.run(
        "0   > S 0 mss 1000 sackok ts 0/0 ws 0
         10         < S. 0 ack 1 mss 1000 sackok ts 5000/0 ws 0
         10  > . 1 ack 1
         20         < . 1+100 ack 1
         30  ! read 0
         40         < R 1
         40  ! state Closed",
    );
}

/// Breaks: RFC 7323 §5.5: after 24 days of silence TS.Recent tells nothing, or the connection would be dead
/// for as long again.
#[test]
fn paws_forgets_after_24_days() {
    let start = "0   > S 0 mss 1000 sackok ts 0/0 ws 0
         10         < S. 0 ack 1 mss 1000 sackok ts 5000/0 ws 0
         10  > . 1 ack 1";
    let days = |n: u64| n * 86_400_000;
    let mut s = Script::connect(&full());
    s.run(start);
    // The peer's clock went on: 25 days are beyond half of the circle.
    let at = days(25);
    s.run(&format!("{at} < . 1+100 ack 1 ts {}/10\n {at} > . 1 ack 101", (5000 + days(25)) as u32));
    let mut s = Script::connect(&full());
    s.run(start);
    let at = days(23);
    s.run(&format!("{at} < . 1+100 ack 1 ts 4999/10\n {at} > . 1 ack 1 why ack_unacceptable"));
    // A clock of 1 us goes round in 71 minutes: 24 days of ticks are 34.56 minutes.
    for (seconds, fits) in [(2_073, false), (2_074, true)] {
        let mut s = Script::connect(&Settings { clock: Some(Span::from_micros(1)), ..full() });
        s.run(start);
        let (at, answer) = (seconds * 1_000, if fits { "101" } else { "1 why ack_unacceptable" });
        s.run(&format!("{at} < . 1+100 ack 1 ts 4999/10\n {at} > . 1 ack {answer}"));
    }
}

/// Breaks: RFC 6691: options come off the segment. A full one has no room for SACK blocks, which then go
/// alone.
#[test]
fn sack_blocks_do_not_make_segments_longer() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(2)), ..linux() }, 60_000);
    s.run(
        "10  ! write 2500
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1001+100 ack 2001
         20  > . 2001+500 ack 1 sack 1001-1101         # there is room
         21  ! write 3000
         21  > . 2501+1000 ack 1                       # there is none
         21  > . 3501+1000 ack 1
         30         < . 2001+100 ack 2501
         30  > . 4501+1000 ack 1
         30  > . 5501 ack 1 sack 2001-2101,1001-1101",
    );
}

/// Breaks: silence about optimistic acknowledgments, split acknowledgments and the like must not make the
/// window grow beyond what was sent: an acknowledgment of a single byte counts no segment.
#[test]
fn split_acknowledgments_do_not_grow_the_window() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(2)), ..plain() }, 60_000);
    s.run("10 ! write 20000\n 10 > . 1+1000 ack 1\n 10 > . 1001+1000 ack 1");
    for i in 1..500 {
        s.run(&format!("20 < . 1 ack {}", 1 + i));
    }
    s.run("20 ! cwnd 2\n 21 < . 1 ack 1001\n 21 > . 2001+1000 ack 1\n 21 > . 3001+1000 ack 1");
}

/// Breaks: tiny segments with holes (SegmentSmack): what waits is bounded, and the connection goes on.
#[test]
fn tiny_segments_with_holes() {
    let settings = Settings { receive_buffer: Some(ByteCount::new(60_000)), ..linux() };
    let mut s = Script::established(&settings, 60_000);
    s.run("11 ! quiet");
    let now = farpace_units::Instant::ZERO + farpace_units::Span::from_millis(11);
    for i in 0..5000 {
        s.connection.on_segment(now, crate::script::segment(&format!(". {}+1 ack 1", 3 + 2 * i)));
        crate::common::drain(&mut s.connection, now, 9);
    }
    let c = s.connection.counters();
    let kept = 1024 + 60_000 / 256;
    assert_eq!(c.out_of_order, kept, "of 5000");
}

/// Breaks: RFC 5961 §3.2: a reset just beyond the window is outside of it, and gets no answer to learn from.
#[test]
fn a_reset_at_the_right_edge() {
    let mut s = Script::established(&plain(), 9000);
    s.run("20 < R 20001\n 30 ! state Established\n 40 < R 20000\n 40 > . 1 ack 1 why ack_unacceptable");
}

/// Breaks: one segment, one answer: a SYN-ACK that acknowledges the wrong number in SYN-RECEIVED is reset.
#[test]
fn one_answer_to_a_wrong_syn_ack() {
    let mut s = Script::accept(&plain(), "S 0 win 5000");
    s.run("0 > S. 0 ack 1\n 10 < S. 0 ack 0\n 10 > R 0\n 20 ! quiet");
}

/// Breaks: a segment that acknowledges what was never sent must not set the clock of PAWS: the peer's own
/// segments would be old from then on.
#[test]
fn timestamps_of_forged_segments_are_not_believed() {
    let mut s = Script::connect(&full());
    s.run(
        "0   > S 0 mss 1000 sackok ts 0/0 ws 0
         10         < S. 0 ack 1 mss 1000 sackok ts 5000/0 ws 0
         10  > . 1 ack 1
         20         < . 1+10 ack 999 ts 2147488000/10
         20  > . 1 ack 1 ts 20/5000 why ack_unacceptable
         30         < . 1+10 ack 1 ts 5020/10
         30  > . 1 ack 11 ts 30/5020",
    );
}

/// Breaks: RFC 5681 §3.2 step 4: forged duplicates inflate the window by no more than what was outstanding.
#[test]
fn forged_duplicates_do_not_inflate_the_window() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(4)), ..plain() }, 60_000);
    s.run("10 ! write 100000");
    for i in 0..4 {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    s.run("20 < . 1 ack 1\n 20 > . 4001+1000 ack 1\n 21 < . 1 ack 1\n 21 > . 5001+1000 ack 1");
    s.run("22 < . 1 ack 1\n 22 > . 1+1000 ack 1 why fast_retransmit\n 22 ! cwnd 5");
    s.run("23 < . 1 ack 1\n 24 < . 1 ack 1\n 24 > . 6001+1000 ack 1");
    for _ in 0..5000 {
        s.run("26 < . 1 ack 1");
    }
    s.run("26 ! cwnd 7                               # five of six segments can have arrived");
}

/// Breaks: the queue of events is bounded whatever a peer does: each kind waits once.
#[test]
fn events_do_not_pile_up() {
    let mut s = Script::established(&plain(), 9000);
    let now = farpace_units::Instant::ZERO + farpace_units::Span::from_millis(20);
    s.run("20 ! quiet");
    for i in 0..1000 {
        let text = format!("U. {}+1 ack 1 urg 60", 1 + i);
        s.connection.on_segment(now, crate::script::segment(&text));
        crate::common::drain(&mut s.connection, now, 9);
    }
    assert_eq!(s.connection.memory().events, 4, "connected, writable, urgent, readable");
    assert_eq!(s.connection.memory().readable_bytes, ByteCount::new(1000));
}

/// Breaks: RFC 9293 §3.7.1 (MUST-15): a peer that tells no MSS gets segments that every host takes.
#[test]
fn no_mss_option() {
    for (header, mss) in [(20, 536), (40, 1220)] {
        let mut config = plain().resolve().expect("settings");
        (config.network_header, config.mss) = (header, 1400);
        let (now, ports) = (farpace_units::Instant::ZERO, farpace_tcp::Ports { local: 1, remote: 2 });
        let syn = crate::script::segment("S 0 win 5000");
        let c = farpace_tcp::Connection::accept(now, &config, ports, farpace_units::Seq::new(5), &syn);
        assert_eq!(c.inspect().mss, mss);
    }
}

/// Breaks: RFC 9293 §3.10.7.4 (MUST-66): a closed window does not make us deaf for resets and urgent
/// pointers.
#[test]
fn closed_windows_hear_resets_and_urgent_data() {
    let mut s =
        Script::established(&Settings { receive_buffer: Some(ByteCount::new(1000)), ..plain() }, 9000);
    s.run(
        "20         < . 1+1000 ack 1
         60  > . 1 ack 1001 win 0
         70         < U. 1001 ack 1 urg 50
         70  ! event Urgent
         80         < R 1001
         80  ! event Closed(Reset)",
    );
}

/// Breaks: an echo of our clock that is older than the connection is none: believed, it would make the
/// timeout minutes.
#[test]
fn impossible_echoes_are_not_measured() {
    let mut s = Script::connect(&full());
    s.run(
        "0   > S 0 mss 1000 sackok ts 0/0 ws 0
         10         < S. 0 ack 1 mss 1000 sackok ts 5000/0 ws 0
         10  > . 1 ack 1
         10  ! write 10
         10  > . 1+10 ack 1 ts 10/5000
         20         < . 1 ack 11 ts 5010/-90000000",
    );
    assert!(s.connection.inspect().rto < farpace_units::Span::from_secs(1));
}
