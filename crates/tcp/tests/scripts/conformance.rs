//! Small requirements that no other script shows. docs/conformance.md says where each of the others is shown.

use crate::full;
use crate::script::{Script, plain, segment};
use farpace_tcp::config::{Congestion, Profile, Settings, TimeoutProcedure};
use farpace_tcp::{PathError, Segment};
use farpace_units::{ByteCount, Instant, Packets, Seq, Span};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn sent(s: &mut Script, ms: u64) -> Vec<Segment> {
    crate::common::drain(&mut s.connection, at(ms), 99).into_iter().map(|o| o.segment).collect()
}

/// Breaks: RFC 9293 MUST-1, REC-1: windows above 32767, and scaled ones above 65535, are windows and not
/// negative.
#[test]
fn windows_are_unsigned() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(99)), ..plain() }, 60_000);
    s.run("10 ! write 70000");
    for i in 0..60 {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    let mut s = Script::connect(&Settings { window_scale: Some(true), ..plain() });
    s.run("0 > S 0 ws 0\n 10 < S. 0 ack 1 ws 14\n 10 > . 1 ack 1\n 20 < . 1 ack 1 win 65535");
    assert_eq!(s.connection.inspect().rwnd, ByteCount::new(65_535 << 14));
}

/// Breaks: RFC 9293 MUST-5, MUST-65, RFC 7323 §2.2, §3.2: what belongs into a SYN, or was not agreed on, does
/// no harm elsewhere, and is not sent there.
#[test]
fn options_out_of_place() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20         < . 1+10 ack 1 win 2000 mss 100 ws 9 sackok ts 500/7
         30         < . 11+10 ack 1 win 2000 ts 1/7       # older, if it counted
         30  > . 1 ack 21
         30  ! mss 1000
         30  ! read 20",
    );
    assert_eq!(s.connection.inspect().rwnd, ByteCount::new(2000));
    s.run("40 ! quiet");
    s.connection.write(&mut bytes::Bytes::from(vec![1; 1500]));
    s.connection.close();
    let mut segments = sent(&mut s, 40);
    s.connection.abort();
    segments.extend(sent(&mut s, 40));
    assert_eq!(segments.len(), 3);
    for Segment { header, .. } in segments {
        let o = &header.options;
        assert!(o.mss.is_none() && o.window_scale.is_none() && !o.sack_permitted && o.timestamps.is_none());
    }
}

/// Breaks: RFC 9293 MUST-58, MUST-59: what arrives together is acknowledged together.
#[test]
fn one_acknowledgment_for_all_that_waits() {
    let mut s = Script::established(&plain(), 9000);
    s.run("20 ! quiet");
    for n in 0..6 {
        s.connection.on_segment(at(20), segment(&format!(". {}+1000 ack 1", 1 + n * 1000)));
    }
    s.run("20 > . 1 ack 6001\n 500 ! quiet");
}

/// Breaks: RFC 9293 SHLD-2: a reset that tells its reason in words is a reset.
#[test]
fn a_reset_with_data() {
    let mut s = Script::established(&plain(), 9000);
    s.run("20 < R 1+30 ack 1\n 20 ! event Closed(Reset)");
}

/// Breaks: RFC 9293 MUST-17: the application that wants each write to leave at once gets that.
#[test]
fn nagle_can_be_off() {
    let mut s = Script::established(&Settings { nagle: Some(false), ..plain() }, 9000);
    s.run("10 ! write 10\n 10 > . 1+10 ack 1\n 11 ! write 20\n 11 > . 11+20 ack 1");
}

/// Breaks: RFC 9293 MUST-56: a packet that a router threw away (time exceeded, parameter problem) ends no
/// connection.
#[test]
fn discarded_packets_end_nothing() {
    let mut s = Script::established(&plain(), 9000);
    s.run("10 ! write 10\n 10 > . 1+10 ack 1");
    s.connection.on_path_error(at(10), PathError::Discarded, Seq::new(u32::MAX - 1_999));
    s.run("10 ! event SoftError\n 10 ! state Established");
    let mut s = Script::connect(&plain());
    s.run("0 > S 0");
    s.connection.on_path_error(at(5), PathError::Discarded, Seq::new(u32::MAX - 2_000));
    s.run("5 ! event SoftError\n 5 ! state SynSent");
}

/// Breaks: RFC 9293 MUST-34, MUST-35, SHLD-15, SHLD-16: a peer takes back what it offered: nothing new is
/// sent, what was sent and still fits goes again.
#[test]
fn a_window_that_shrinks() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(4)), ..plain() }, 4000);
    s.run(
        "10  ! write 9000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         20         < . 1 ack 1001 win 1000           # up to 2001 only
         220 > . 1001+1000 ack 1 why timeout_retransmit
         230        < . 1 ack 4001 win 1000
         230 > . 4001+1000 ack 1 why new_data",
    );
    // To nothing: the first segment goes again, and asks.
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(2)), ..plain() }, 4000);
    s.run(
        "10  ! write 3000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1 ack 1001 win 0
         220 > . 1001+1000 ack 1 why timeout_retransmit
         230        < . 1 ack 2001 win 1000
         230 > . 2001+1000 ack 1",
    );
}

/// Breaks: RFC 9293 MUST-11, §3.10.7.4: a reset in SYN-RECEIVED ends the connection, which hears of it,
/// however it got there.
#[test]
fn a_reset_in_syn_received() {
    let mut s = Script::connect(&plain());
    s.run("0 > S 0\n 5 < S 0\n 5 > S. 0 ack 1\n 10 < R. 1 ack 1\n 10 ! event Closed(Reset)");
    let mut s = Script::accept(&plain(), "S 0");
    s.run("0 > S. 0 ack 1\n 10 < R 1\n 10 ! event Closed(Reset)");
}

/// Breaks: RFC 5681 §3.2 step 1: with SACK an acknowledgment that tells nothing new lets nothing new leave.
#[test]
fn duplicates_without_news() {
    let settings =
        Settings { profile: Some(Profile::Rfc6675), initial_window: Some(Packets::new(2)), ..plain() };
    let mut s = Script::established(&settings, 60_000);
    s.run(
        "10  ! write 8000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1 ack 1
         21         < . 1 ack 1
         22         < . 1 ack 1
         23         < . 1 ack 1 sack 1001-2001
         23  > . 2001+1000 ack 1",
    );
}

/// Breaks: RFC 6675 §5.1, RFC 5681 §3.1 (FlightSize): what SACK tells is used after a timeout, and nothing
/// begins another recovery before all that was out is acknowledged.
#[test]
fn sack_after_a_timeout() {
    let settings =
        Settings { profile: Some(Profile::Rfc6675), initial_window: Some(Packets::new(6)), ..plain() };
    let mut s = Script::established(&settings, 60_000);
    s.run("10 ! write 6000");
    for i in 0..6 {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    s.run(
        "20         < . 1 ack 1 sack 3001-5001
         210 > . 1+1000 ack 1 why timeout_retransmit
         210 ! cwnd 1
         210 ! ssthresh 3
         220        < . 1 ack 1001 sack 3001-5001
         220 > . 1001+1000 ack 1 why loss_retransmit
         220 > . 2001+1000 ack 1 why loss_retransmit
         221        < . 1 ack 1001 sack 3001-6001
         221 ! recovery Loss
         221 ! ssthresh 3
         230        < . 1 ack 6001
         230 ! recovery Open",
    );
}

/// Breaks: RFC 7323 §4.3: the timestamp that is echoed is that of the oldest segment not acknowledged yet;
/// one beyond a hole does not count, one that fills it does.
#[test]
fn which_timestamp_is_echoed() {
    let mut s = Script::connect(&Settings { timestamps: Some(true), ..plain() });
    s.run(
        "0   > S 0 ts 0/0
         10         < S. 0 ack 1 mss 1000 ts 5000/0
         10  > . 1 ack 1 ts 10/5000
         20         < . 1+500 ack 1 ts 5010/10
         25         < . 501+500 ack 1 ts 5015/10
         25  > . 1 ack 1001 ts 25/5010
         30         < . 1501+500 ack 1 ts 5020/25
         30  > . 1 ack 1001 ts 30/5010
         35         < . 1001+500 ack 1 ts 5025/25
         35  > . 1 ack 2001 ts 35/5025",
    );
}

/// Breaks: RFC 7323 §3.2, §5.2: where timestamps are in use a reset of ours has them as well.
#[test]
fn resets_have_timestamps() {
    let mut s = Script::connect(&full());
    s.run(
        "0   > S 0 mss 1000 sackok ts 0/0 ws 0
         10         < S. 0 ack 1 mss 1000 sackok ts 5000/0 ws 0
         10  > . 1 ack 1
         20  ! abort
         20  > R. 1 ack 1 ts 20/5000",
    );
}

/// Breaks: RFC 8985 §7.3: a probe needs a round trip that was measured since the last one, or probes would
/// keep the estimate from following the path.
#[test]
fn no_probe_without_a_new_sample() {
    let settings = Settings {
        profile: Some(Profile::RackTlp),
        congestion: Some(Congestion::Reno),
        timeout: Some(TimeoutProcedure::Conventional),
        ..plain()
    };
    let mut s = Script::established(&settings, 60_000);
    s.run(
        "10  ! write 1000
         10  > . 1+1000 ack 1
         210 > . 1+1000 ack 1 why tail_loss_probe
         220        < . 1 ack 1001                    # of which of the two nobody knows
         221        < . 1 ack 1001                    # both have arrived
         230 ! write 1000
         230 > . 1001+1000 ack 1
         430 > . 1001+1000 ack 1 why timeout_retransmit",
    );
}

/// Breaks: RFC 6675 §5: duplicates are counted since the last acknowledgment of something new.
#[test]
fn duplicates_are_counted_anew() {
    let settings = Settings {
        profile: Some(Profile::Rfc6675),
        nagle: Some(false),
        initial_window: Some(Packets::new(6)),
        ..plain()
    };
    let mut s = Script::established(&settings, 60_000);
    for i in 0..6 {
        s.run(&format!("10 ! write 100\n10 > . {}+100 ack 1", 1 + i * 100));
    }
    s.run(
        "20         < . 1 ack 1 sack 101-201
         21         < . 1 ack 1 sack 101-301
         22         < . 1 ack 301
         23         < . 1 ack 301 sack 401-501
         24         < . 1 ack 301 sack 401-601
         24  ! recovery Disorder",
    );
}

/// Breaks: RFC 6298 §3, §4: every acknowledgment is a sample, and where they do not vary the timeout is still
/// above the round trip.
#[test]
fn the_timeout_exceeds_the_round_trip() {
    let mut s = Script::established(&Settings { min_rto: Some(Span::from_millis(1)), ..plain() }, 60_000);
    for n in 0..40u64 {
        let (at, seq) = (10 + 10 * n, 1 + 100 * n);
        s.run(&format!("{at} ! write 100\n{at} > . {seq}+100 ack 1\n{} < . 1 ack {}", at + 10, seq + 100));
    }
    // SRTT + 3/8 of it, where the minimum is next to nothing.
    assert_eq!(s.connection.inspect().rto, Span::from_micros(13_750));
}

/// Breaks: RFC 5681 eq. 4 at a timeout: half of what was in flight, not of a window that nobody used.
#[test]
fn a_timeout_of_newreno_halves_the_flight() {
    let settings = Settings { initial_window: Some(Packets::new(20)), ..plain() };
    let mut s = Script::established(&settings, 60_000);
    s.run(
        "10  ! write 4000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         210 > . 1+1000 ack 1 why timeout_retransmit
         210 ! ssthresh 2",
    );
}

/// Breaks: RFC 9293 §3.10.7.4, MUST-66: a reset that carries data must be heard through a closed window.
#[test]
fn a_reset_with_data_passes_a_closed_window() {
    let settings = Settings { receive_buffer: Some(farpace_units::ByteCount::new(2000)), ..plain() };
    let mut s = Script::established(&settings, 60_000);
    s.run(
        "20         < . 1+1000 ack 1
         20         < . 1001+1000 ack 1
         20  > . 1 ack 2001 win 0
         30         < R 2001+10
         30  ! state Closed",
    );
}
