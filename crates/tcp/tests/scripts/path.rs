//! What the network reports, and segment sizes that follow the path.

use crate::script::{Script, linux, plain};
use farpace_tcp::config::{MtuProbing, Profile, Settings};
use farpace_units::{Packets, Rate, Span};
use farpace_wire::MultipathInfo;

fn windowed(initial: u32, settings: Settings) -> Settings {
    Settings { initial_window: Some(Packets::new(initial)), ..settings }
}

/// Breaks: RFC 1191: a report lowers the segment size at once; what was too big goes again in smaller pieces,
/// without a cut of the window, and new data is cut to the new size.
#[test]
fn packet_too_big() {
    let start = |settings| {
        let mut s = Script::established(&windowed(4, settings), 60_000);
        s.run(
            "10  ! write 4000
             10  > . 1+1000 ack 1
             10  > . 1001+1000 ack 1
             10  > . 2001+1000 ack 1
             10  > . 3001+1000 ack 1
             20  ! too_big 576 1001
             20  > . 1+536 ack 1                      # 576 less 40; four at a time, as the window says
             20  > . 537+464 ack 1
             20  > . 1001+536 ack 1
             20  > . 1537+464 ack 1
             20  ! mss 536
             20  ! cwnd 4",
        );
        s
    };
    start(linux()).run("20 ! recovery Loss");
    let mut s = start(Settings { profile: Some(Profile::RackTlp), ..plain() });
    s.run(
        "30         < . 1 ack 2001
         30  > . 2001+536 ack 1
         30  > . 2537+464 ack 1
         30  > . 3001+536 ack 1
         30  > . 3537+464 ack 1
         40         < . 1 ack 4001
         40  ! recovery Open
         40  ! ssthresh 4294967295",
    );
    start(plain()).run(
        "30         < . 1 ack 2001
             30  > . 2001+536 ack 1
             30  > . 2537+464 ack 1
             30  > . 3001+536 ack 1
             30  > . 3537+464 ack 1
             40         < . 1 ack 4001
             40  ! recovery Open
             41  ! write 1000
             41  > . 4001+536 ack 1
             50         < . 1 ack 4537
             50  > . 4537+464 ack 1",
    );
}

/// Breaks: RFC 5927 §4.1: a report about what is not outstanding comes from somebody who cannot see the
/// connection.
#[test]
fn reports_about_other_segments_are_ignored() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "10  ! write 2000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1 ack 1001
         21  ! too_big 576 0
         21  ! too_big 576 1000                       # acknowledged
         21  ! too_big 576 2001                       # not sent yet
         21  ! too_big 576 1000000
         21  ! unreachable 5000
         21  ! mss 1000
         22  ! too_big 5000 1001                      # says nothing new
         22  ! mss 1000
         30         < . 1 ack 2001",
    );
    assert_eq!(s.connection.poll_event().map(|e| format!("{e:?}")), Some("Connected".into()));
    assert!(!std::iter::from_fn(|| s.connection.poll_event()).any(|e| format!("{e:?}") == "SoftError"));
}

/// Breaks: the floor: no report makes segments so small that the connection drowns in headers; and a router
/// that does not tell its size gets the next of the sizes that links have.
#[test]
fn floor_and_plateaus() {
    let mut s = Script::established(&windowed(1, plain()), 60_000);
    s.run(
        "10  ! write 1000
         10  > . 1+1000 ack 1
         20  ! too_big 0 1                            # below 1000 + 40 there is 1006
         20  > . 1+966 ack 1
         20  ! mss 966
         30  ! too_big 68 1
         30  ! mss 256                                # 296 less 40
         30  > . 1+256 ack 1",
    );
}

/// Breaks: a limit: each report walks over all that is outstanding, so there are eight until something
/// arrives.
#[test]
fn reports_are_limited() {
    let mut s = Script::established(&windowed(1, plain()), 60_000);
    s.run("10 ! write 1000\n 10 > . 1+1000 ack 1\n 20 ! quiet");
    for mtu in (300..1000).rev() {
        s.connection.on_path_error(
            farpace_units::Instant::ZERO + Span::from_millis(20),
            farpace_tcp::PathError::TooBig { mtu },
            farpace_units::Seq::new(u32::MAX - 1_999),
        );
    }
    assert_eq!(s.connection.inspect().mss, 999 - 40 - 7);
    s.run("20 > . 1+952 ack 1");
}

/// Breaks: RFC 1122 §4.2.3.9, RFC 5927 §4.2: soft trouble is told and remembered, not fatal; it is the reason
/// if nobody answers at last. A hard report ends only a connection that is being opened.
#[test]
fn unreachable() {
    let mut s = Script::established(&Settings { user_timeout: Some(Span::from_secs(1)), ..plain() }, 60_000);
    s.run(
        "10   ! write 10
         10   > . 1+10 ack 1
         20   ! unreachable 1
         21   ! unreachable-hard 1
         21   ! state Established
         21   ! event SoftError
         210  > . 1+10 ack 1
         610  > . 1+10 ack 1
         1010 > R. 11 ack 1
         1010 ! event Closed(Unreachable)",
    );
    let mut s = Script::connect(&plain());
    s.run(
        "0 > S 0\n 5 ! unreachable 0\n 6 ! state SynSent\n 7 ! unreachable-hard 0\n 7 ! event \
           Closed(Unreachable)",
    );
    // An answer ends the trouble.
    let mut s = Script::established(&Settings { user_timeout: Some(Span::from_secs(1)), ..plain() }, 60_000);
    s.run("10 ! write 20\n 10 > . 1+20 ack 1\n 20 ! unreachable 1\n 30 < . 1 ack 11");
    s.run("230 > . 11+10 ack 1\n 630 > . 11+10 ack 1\n 1030 > R. 21 ack 1\n 1030 ! event Closed(TimedOut)");
}

fn probing(initial: u32) -> Settings {
    let mtu_probing = Some(MtuProbing::BlackHole);
    windowed(initial, Settings { profile: Some(Profile::NewReno), mtu_probing, mss: Some(1400), ..plain() })
}

/// Breaks: a black hole ends in smaller segments, not in a stall (RFC 4821 §7.7): after three timeouts of
/// full-size segments smaller ones are tried.
#[test]
fn black_hole() {
    let mut s = Script::connect(&probing(2));
    s.run(
        "0    > S 0
         10          < S. 0 ack 1 win 60000 mss 1400
         10   > . 1 ack 1
         10   ! write 2800
         10   > . 1+1400 ack 1
         10   > . 1401+1400 ack 1
         210  > . 1+1400 ack 1 why timeout_retransmit
         610  > . 1+1400 ack 1 why timeout_retransmit
         1410 > . 1+1240 ack 1 why timeout_retransmit  # 1280 less 40
         1410 ! mss 1240
         1420        < . 1 ack 1241
         1420 > . 1241+160 ack 1
         1420 > . 1401+1240 ack 1
         1430        < . 1 ack 2641
         1430 > . 2641+160 ack 1
         1440        < . 1 ack 2801
         9999 ! quiet",
    );
    // It goes on downwards while nothing passes.
    let mut s = Script::connect(&probing(1));
    s.run(
        "0     > S 0
         10           < S. 0 ack 1 win 60000 mss 1400
         10    > . 1 ack 1
         10    ! write 1400
         10    > . 1+1400 ack 1
         210   > . 1+1400 ack 1
         610   > . 1+1400 ack 1
         1410  > . 1+1240 ack 1
         3010  > . 1+1240 ack 1
         6210  > . 1+536 ack 1
         12610 > . 1+536 ack 1
         25410 > . 1+256 ack 1
         25420        < . 1 ack 257
         25420 > . 257+256 ack 1
         25420 > . 513+24 ack 1
         25430        < . 1 ack 537
         25430 > . 537+256 ack 1
         25430 > . 793+256 ack 1
         25430 > . 1049+24 ack 1
         25435        < . 1 ack 1073
         25435 > . 1073+168 ack 1
         25435 > . 1241+160 ack 1
         25440        < . 1 ack 1401",
    );
}

/// A connection with segments of 1240 bytes that searches upwards: everything is acknowledged, the window is
/// 9, and enough is written.
fn searching() -> Script {
    let mut s = Script::connect(&Settings { mtu_probing: Some(MtuProbing::Always), ..probing(9) });
    s.run(
        "0   > S 0
         10         < S. 0 ack 1 win 60000 mss 1400
         10  > . 1 ack 1
         10         < . 1 ack 1
         10  ! mss 1240
         10  ! write 50000
         10  > . 1+1320 ack 1 why mtu_probe           # half of the way to 1400
         10  > . 1321+1240 ack 1 why new_data",
    );
    for i in 1..8 {
        s.run(&format!("10 > . {}+1240 ack 1", 1321 + i * 1240));
    }
    s
}

/// Breaks: the search upwards with real data (RFC 4821 §7): a probe that arrives raises the size.
#[test]
fn a_probe_that_arrives() {
    let mut s = searching();
    s.run(
        "20         < . 1 ack 1321
         20  ! mss 1320
         20  > . 11241+1360 ack 1 why mtu_probe       # half of the rest
         20  > . 12601+1320 ack 1 why new_data",
    );
}

/// Breaks: RFC 4821 §7.6.2: a probe that is lost is no sign of congestion. It goes again in smaller pieces,
/// and window and threshold are what they were.
#[test]
fn a_probe_that_is_lost() {
    let mut s = searching();
    s.run(
        "20         < . 1 ack 1
         20  > . 11241+1240 ack 1                     # limited transmit
         21         < . 1 ack 1
         21  > . 12481+1240 ack 1
         22         < . 1 ack 1
         22  ! recovery Disorder
         22  ! cwnd 9
         22  > . 1+1240 ack 1 why fast_retransmit
         22  > . 1241+80 ack 1
         30         < . 1 ack 13721
         30  ! recovery Open
         30  ! mss 1240
         30  ! cwnd 10
         30  > . 13721+1320 ack 1 why mtu_probe       # the size gets a second chance",
    );
    for i in 0..9 {
        s.run(&format!("30 > . {}+1240 ack 1", 15_041 + i * 1240));
    }
    s.run("30 ! ssthresh 4294967295");
}

/// Breaks: what is cut was acknowledged in part: pieces below SND.UNA would be sent without a byte, for ever.
#[test]
fn a_report_after_an_acknowledgment_in_the_middle() {
    let mut s = Script::established(&windowed(1, plain()), 60_000);
    s.run(
        "10  ! write 1000
         10  > . 1+1000 ack 1
         20         < . 1 ack 701
         30  ! too_big 296 1                          # not outstanding any more
         30  ! too_big 296 701
         30  > . 701+256 ack 1
         40         < . 1 ack 957
         40  > . 957+44 ack 1
         50         < . 1 ack 1001
         999 ! quiet",
    );
}

/// Breaks: a black hole for what is shorter than the first fallback size: the next one that is smaller than
/// what is outstanding has to be tried.
#[test]
fn black_hole_for_a_short_segment() {
    let mut s = Script::established(&probing(1), 60_000);
    s.run(
        "10   ! write 600
         10   > . 1+600 ack 1
         210  > . 1+600 ack 1
         610  > . 1+600 ack 1
         1410 > . 1+536 ack 1
         1420        < . 1 ack 537
         1420 > . 537+64 ack 1
         1430        < . 1 ack 601",
    );
}

/// Breaks: the same with RACK: the reduction for a lost probe is taken back.
#[test]
fn a_lost_probe_with_rack() {
    let settings =
        Settings { mtu_probing: Some(MtuProbing::Always), profile: Some(Profile::RackTlp), ..probing(9) };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 sackok
         10         < S. 0 ack 1 win 60000 mss 1400 sackok
         10  > . 1 ack 1
         10  ! write 11240
         10  > . 1+1320 ack 1 why mtu_probe",
    );
    for i in 0..8 {
        s.run(&format!("10 > . {}+1240 ack 1", 1321 + i * 1240));
    }
    s.run(
        "20         < . 1 ack 1 sack 1321-11241
         20  > . 1+1240 ack 1 why loss_retransmit
         20  > . 1241+80 ack 1
         20  ! mss 1240
         30         < . 1 ack 11241
         30  ! recovery Open
         30  ! ssthresh 4294967295",
    );
    assert!(s.connection.inspect().cwnd >= Packets::new(9));
}

/// Breaks: a layer with several paths moves packets to one that holds far more, and the window creeps there
/// from what the path before held; or each move makes it double, to a path that holds less as well.
#[test]
fn packets_move_to_another_path() {
    let mut s = Script::established(&windowed(4, plain()), 60_000);
    s.run(
        "10  ! write 20000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         20         < . 1 ack 1
         20  > . 4001+1000 ack 1
         21         < . 1 ack 1
         21  > . 5001+1000 ack 1
         22         < . 1 ack 1
         22  > . 1+1000 ack 1 why fast_retransmit
         22  ! ssthresh 2
         32         < . 1 ack 6001
         32  > . 6001+1000 ack 1
         32  > . 7001+1000 ack 1
         32  ! recovery Open",
    );
    let path = |rtt, rate, moves| {
        let info = MultipathInfo::new(Span::from_millis(rtt), Span::ZERO);
        Some(info.with_paths(1, Rate::from_mbit(rate), moves))
    };
    s.connection.set_paths(path(1, 1, 1));
    s.run(
        "42         < . 1 ack 7001
         42  > . 8001+1000 ack 1
         42  > . 9001+1000 ack 1
         42  ! ssthresh 2",
    );
    let before = s.connection.inspect().cwnd;
    s.connection.set_paths(path(200, 100, 2));
    s.run(
        "43         < . 1 ack 8001
         43  > . 10001+1000 ack 1
         43  > . 11001+1000 ack 1
         43  ! ssthresh 4294967295",
    );
    assert_eq!(s.connection.inspect().cwnd, before + Packets::new(1), "slow start from the window of before");
    assert!(s.connection.inspect().rto > Span::from_millis(200), "the timer waits for the longer path");
}
