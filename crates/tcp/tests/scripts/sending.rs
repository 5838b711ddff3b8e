//! Windows, fast retransmit, timeouts, probes, Nagle.

use crate::script::{Script, linux, plain};
use farpace_tcp::config::{Profile, Settings};
use farpace_units::Packets;

/// Breaks: fast retransmit and fast recovery of RFC 5681 §3.2: the third duplicate, inflation, deflation.
#[test]
fn fast_retransmit_newreno() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(8)), ..plain() }, 60_000);
    s.run("10 ! write 14000");
    for i in 0..8 {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    s.run(
        "20         < . 1 ack 1 win 60000
         20  > . 8001+1000 ack 1 why new_data     # RFC 3042: one for each of the first two
         21         < . 1 ack 1
         21  > . 9001+1000 ack 1 why new_data
         21  ! recovery Disorder
         21  ! cwnd 8
         22         < . 1 ack 1
         22  > . 1+1000 ack 1 why fast_retransmit
         22  ! recovery Recovery
         22  ! ssthresh 4
         22  ! cwnd 7
         23         < . 1 ack 1                   # each further duplicate: one more
         23  ! cwnd 8
         24         < . 1 ack 1
         25         < . 1 ack 1
         26         < . 1 ack 1
         26  > . 10001+1000 ack 1 why new_data    # 10 in flight, the window is 11
         32         < . 1 ack 3001                # partial: the next hole, 3 gone, 1 added
         32  > . 3001+1000 ack 1 why fast_retransmit
         32  > . 11001+1000 ack 1                 # flight 8, window 9
         32  ! cwnd 9
         42         < . 1 ack 10001               # all that was out at the beginning
         42  > . 12001+1000 ack 1
         42  ! recovery Open
         42  ! cwnd 3",
    );
}

/// Breaks: RFC 6582 §3.2 step 1: duplicates at the very end of a recovery must not begin the next one.
#[test]
fn newreno_does_not_recover_twice() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(4)), ..plain() }, 60_000);
    s.run(
        "10  ! write 8000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         20         < . 1 ack 1
         20  > . 4001+1000 ack 1                  # limited transmit
         21         < . 1 ack 1
         21  > . 5001+1000 ack 1
         22         < . 1 ack 1
         22  > . 1+1000 ack 1 why fast_retransmit
         32         < . 1 ack 6001                # full acknowledgment
         32  ! recovery Open
         32  > . 6001+1000 ack 1
         32  > . 7001+1000 ack 1
         33         < . 1 ack 6001
         34         < . 1 ack 6001
         35         < . 1 ack 6001                # three duplicates of the old data
         35  ! recovery Disorder",
    );
}

/// Breaks: fast retransmit with SACK: what is far enough below the highest SACK goes again, the window comes
/// down by one for two ACKs.
#[test]
fn fast_retransmit_linux() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(8)), ..linux() }, 60_000);
    s.run("10 ! write 20000");
    for i in 0..8 {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         20  ! recovery Disorder
         20  > . 8001+1000 ack 1                  # one has left the network
         21         < . 1 ack 1 sack 1001-3001
         21  > . 9001+1000 ack 1
         22         < . 1 ack 1 sack 1001-4001
         22  > . 1+1000 ack 1 why fast_retransmit
         22  ! recovery Recovery
         22  ! cwnd 7
         22  ! ssthresh 4
         23         < . 1 ack 1 sack 1001-5001
         23  ! cwnd 6
         24         < . 1 ack 1 sack 1001-6001
         24  ! cwnd 6
         24  > . 10001+1000 ack 1                 # 5 in flight
         32         < . 1 ack 10001               # all that was out at the beginning
         32  ! recovery Disorder                  # an undo is still possible
         32  > . 11001+1000 ack 1
         32  > . 12001+1000 ack 1
         32  > . 13001+1000 ack 1                 # the window is ssthresh, 4
         40         < . 1 ack 12001
         40  ! recovery Open
         40  > . 14001+1000 ack 1
         40  > . 15001+1000 ack 1
         40  > . 16001+1000 ack 1                 # 4 is slow start still",
    );
}

/// Breaks: RTO times: 200 ms at least here, doubled each time, and one segment per timeout.
#[test]
fn timeout_and_back_off() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "10     ! write 2000
         10     > . 1+1000 ack 1
         10     > . 1001+1000 ack 1
         10     ! rto 200
         210    > . 1+1000 ack 1 why timeout_retransmit
         210    ! recovery Loss
         210    ! cwnd 1
         610    > . 1+1000 ack 1 why timeout_retransmit
         1410   > . 1+1000 ack 1
         3010   > . 1+1000 ack 1
         3020          < . 1 ack 1001
         3020   > . 1001+1000 ack 1 why loss_retransmit
         3020   ! rto 3200                        # Karn: still doubled, nothing valid was measured
         3030          < . 1 ack 2001
         3030   ! recovery Open
         9999   ! quiet",
    );
    let mut s = Script::established(&linux(), 60_000);
    s.run(
        "10     ! write 1000
         10     > . 1+1000 ack 1
         10     ! rto 210
         220    > . 1+1000 ack 1 why timeout_retransmit
         640    > . 1+1000 ack 1 why timeout_retransmit",
    );
}

/// Breaks: with timestamps a retransmission gives a valid sample, so back-off ends at once (RFC 7323 §4.1).
#[test]
fn timestamps_end_the_back_off() {
    let settings = Settings { timestamps: Some(true), ..plain() };
    let mut s = Script::connect(&settings);
    s.run(
        "0      > S 0 ts 0/0
         10            < S. 0 ack 1 mss 1000 ts 500/0
         10     > . 1 ack 1 ts 10/500
         10     ! write 988
         10     > . 1+988 ack 1
         210    > . 1+988 ack 1 ts 210/500
         610    > . 1+988 ack 1 ts 610/500
         620           < . 1 ack 989 ts 1110/610
         620    ! rto 200",
    );
}

/// Breaks: zero window: data stops, probes go out with doubling times, and data flows when it opens.
#[test]
fn zero_window_probe_and_reopening() {
    let mut s = Script::established(&plain(), 2000);
    s.run(
        "10     ! write 5000
         10     > . 1+1000 ack 1
         10     > . 1001+1000 ack 1
         20            < . 1 ack 2001 win 0
         220    > . 2000 ack 1 why window_probe
         230           < . 1 ack 2001 win 0
         620    > . 2000 ack 1 why window_probe
         630           < . 1 ack 2001 win 0
         1420   > . 2000 ack 1 why window_probe
         1430          < . 1 ack 2001 win 1500
         1430   > . 2001+1000 ack 1
         1440          < . 1 ack 3001 win 3000
         1440   > . 3001+1000 ack 1
         1440   > . 4001+1000 ack 1",
    );
}

/// Breaks: data that is written only after the window has closed must be probed for, or nothing ever happens.
#[test]
fn zero_window_and_a_late_write() {
    let mut s = Script::established(&plain(), 1000);
    s.run(
        "10     ! write 1000
         10     > . 1+1000 ack 1
         20            < . 1 ack 1001 win 0
         100    ! write 500
         300    > . 1000 ack 1 why window_probe
         310           < . 1 ack 1001 win 1000
         310    > . 1001+500 ack 1",
    );
}

/// Breaks: a FIN has a place in the window as well: it waits, and is probed for.
#[test]
fn zero_window_and_fin() {
    let mut s = Script::established(&plain(), 1000);
    s.run(
        "10     ! write 1000
         10     > . 1+1000 ack 1
         20            < . 1 ack 1001 win 0
         100    ! close
         300    > . 1000 ack 1 why window_probe
         310           < . 1 ack 1001 win 1000
         310    > F. 1001 ack 1",
    );
}

/// Breaks: Nagle: less than a full segment waits while something is outstanding, but not the last before a
/// FIN.
#[test]
fn nagle() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "10  ! write 10
         10  > . 1+10 ack 1
         11  ! write 20
         12  ! write 30
         20         < . 1 ack 11
         20  > . 11+50 ack 1
         21  ! write 7
         22  ! close
         22  > F. 61+7 ack 1",
    );
}

/// Breaks: RFC 5681 §4.1: after a pause longer than the timeout the window begins anew.
#[test]
fn idle_restart() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(2)), ..plain() }, 60_000);
    s.run(
        "10  ! write 4000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1 ack 2001
         20  > . 2001+1000 ack 1
         20  > . 3001+1000 ack 1
         20  ! cwnd 3
         30         < . 1 ack 4001
         215 ! write 1000                         # within the timeout of the last sending at 20
         215 > . 4001+1000 ack 1
         215 ! cwnd 3
         225        < . 1 ack 5001
         500 ! write 4000
         500 > . 5001+1000 ack 1
         500 > . 6001+1000 ack 1
         500 ! cwnd 2",
    );
}

/// Breaks: a peer may acknowledge in the middle of a segment; what goes again begins there.
#[test]
fn ack_in_the_middle_of_a_segment() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "10  ! write 2000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1 ack 301
         220 > . 301+700 ack 1 why timeout_retransmit
         230        < . 1 ack 1501
         230 > . 1501+500 ack 1 why loss_retransmit
         240        < . 1 ack 2001
         999 ! quiet",
    );
}

/// Breaks: a receiver may forget what it has SACKed (RFC 2018 §8); we must send it again.
#[test]
fn reneging() {
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(4)), ..linux() }, 60_000);
    s.run(
        "10  ! write 4000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         20         < . 1 ack 1 sack 1001-4001
         20  > . 1+1000 ack 1 why fast_retransmit # 4 segments above the hole
         30         < . 1 ack 1001                # the rest is gone
         30  ! recovery Loss
         30  > . 1001+1000 ack 1
         40         < . 1 ack 2001
         40  > . 2001+1000 ack 1
         40  > . 3001+1000 ack 1",
    );
    // It is found at a timeout, too.
    let mut s = Script::established(&Settings { initial_window: Some(Packets::new(2)), ..linux() }, 60_000);
    s.run(
        "10  ! write 2000
         10  > . 1+1000 ack 1
         10  > . 1001+1000 ack 1
         20         < . 1 ack 1 sack 1-2001       # nonsense, or reneged at once
         20  > . 1+1000 ack 1
         20  ! recovery Loss",
    );
}

/// Breaks: D-SACK for a needless retransmission takes the reduction back (undo).
#[test]
fn dsack_undoes_the_reduction() {
    let (initial_window, initial_ssthresh) = (Some(Packets::new(8)), Some(Packets::new(50)));
    let mut s = Script::established(&Settings { initial_window, initial_ssthresh, ..linux() }, 60_000);
    s.run("10 ! write 8000");
    for i in 0..8 {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    s.run(
        "20         < . 1 ack 1 sack 1001-4001
         20  > . 1+1000 ack 1 why fast_retransmit
         20  ! ssthresh 4
         22         < . 1 ack 8001                # the first one was only late
         22  ! recovery Disorder                  # an undo is still possible
         25  ! write 1000
         25  > . 8001+1000 ack 1
         30         < . 1 ack 8001 sack 1-1001    # the copy has arrived as well
         30  ! recovery Open
         30  ! ssthresh 50",
    );
}

/// Breaks: 2.6.17 sends one segment per round trip after a timeout, 2.6.22 doubles (the first defect, end to
/// end).
#[test]
fn byte_counting_after_a_timeout() {
    let settings =
        |profile| Settings { profile: Some(profile), initial_window: Some(Packets::new(6)), ..linux() };
    let until_timeout = |profile| {
        let mut s = Script::established(&settings(profile), 60_000);
        s.run("10 ! write 6000");
        for i in 0..6 {
            s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
        }
        s.run("220 > . 1+1000 ack 1 why timeout_retransmit");
        s
    };
    until_timeout(Profile::Linux2617).run(
        "230        < . 1 ack 1001
         230 > . 1001+1000 ack 1
         240        < . 1 ack 2001
         240 > . 2001+1000 ack 1
         250        < . 1 ack 3001
         250 > . 3001+1000 ack 1",
    );
    until_timeout(Profile::Linux2622).run(
        "230        < . 1 ack 1001
         230 > . 1001+1000 ack 1
         230 > . 2001+1000 ack 1
         240        < . 1 ack 2001
         240 > . 3001+1000 ack 1
         240 > . 4001+1000 ack 1",
    );
}
