//! What arrives: acknowledgments of it, its window, and what is refused.

use crate::full;
use crate::script::{Script, linux, plain};
use farpace_tcp::config::Settings;
use farpace_units::ByteCount;

/// Breaks: data both ways: slow start of the sender, every second segment acknowledged, PSH or not.
#[test]
fn data_both_ways() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "10  ! write 6000
         10  > . 1+1000 ack 1 why new_data
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1                  # RFC 3390: 4 segments of 1000 bytes
         20         < . 1 ack 2001
         20  > . 4001+1000 ack 1                  # two have left, one more for slow start
         20  > . 5001+1000 ack 1
         30         < . 1+500 ack 6001            # data and acknowledgment in one
         30  ! read 500
         40         < . 501+1000 ack 6001         # 1500 bytes are not two full segments
         45         < . 1501+1000 ack 6001
         45  > . 6001 ack 2501 why ack_now
         45  ! read 2000
         45  ! cwnd 5                             # the last 4 in flight did not fill the window of 5",
    );
}

/// Breaks: delayed acknowledgments of RFC 5681: 40 ms for the first segment, at once for the second.
#[test]
fn delayed_ack_rfc5681() {
    let mut s = Script::established(&plain(), 60_000);
    s.run(
        "100        < . 1+1000 ack 1
         140 > . 1 ack 1001 why ack_delayed
         200        < . 1001+1000 ack 1
         210        < . 2001+1000 ack 1
         210 > . 1 ack 3001 why ack_now
         300        < . 3001+1000 ack 1
         310 ! write 10
         310 > . 1+10 ack 4001                    # rides on data
         320        < . 4001 ack 11
         400 ! quiet",
    );
}

/// Breaks: delayed acknowledgments of Linux 2.6: quick at first, then a timer of at least 40 ms.
#[test]
fn delayed_ack_linux() {
    let mut s = Script::established(&linux(), 60_000);
    // The window of 20 segments allows 10 quick ACKs.
    for i in 0..10 {
        s.run(&format!("{0} < . {1}+1000 ack 1\n {0} > . 1 ack {2}", 100 + i, 1 + i * 1000, 1001 + i * 1000));
        s.run(&format!("{} ! read 1000", 100 + i));
    }
    s.run(
        "120        < . 10001+1000 ack 1
         160 > . 1 ack 11001 why ack_delayed
         170        < . 11001+1000 ack 1
         171        < . 12001+1000 ack 1
         171 > . 1 ack 13001 why ack_now",
    );
}

/// Breaks: a hole is acknowledged at once, again and again, and so is what fills it (RFC 5681 §4.2).
#[test]
fn out_of_order_data() {
    let mut s = Script::established(&linux(), 60_000);
    s.run(
        "20         < . 1001+1000 ack 1
         20  > . 1 ack 1 sack 1001-2001 why ack_out_of_order
         21         < . 3001+1000 ack 1
         21  > . 1 ack 1 sack 3001-4001,1001-2001
         22         < . 2001+1000 ack 1
         22  > . 1 ack 1 sack 1001-4001
         23  ! read 0
         23         < . 1+1000 ack 1
         23  > . 1 ack 4001
         23  ! read 4000",
    );
}

/// Breaks: a FIN that waits behind a hole is told of, so that a tail loss probe with FIN finds the hole, not
/// the timeout.
#[test]
fn out_of_order_fin() {
    let mut s = Script::established(&linux(), 60_000);
    s.run(
        "20         < F. 1001+1000 ack 1
         20  > . 1 ack 1 sack 1001-2002
         21         < F. 1001+1000 ack 1          # a duplicate, FIN and all
         21  > . 1 ack 1 sack 1001-2002,1001-2002
         22         < . 1+1000 ack 1
         22  > . 1 ack 2002
         23         < F. 1001+1000 ack 1
         23  > . 1 ack 2002 sack 1001-2002",
    );
    let mut s = Script::established(&linux(), 60_000);
    s.run(
        "20         < F. 1001 ack 1               # nothing but a FIN
         20  > . 1 ack 1 sack 1001-1002
         21         < . 1+1000 ack 1
         21  > . 1 ack 1002",
    );
}

/// Breaks: old duplicates are reported once, first among the blocks (RFC 2883).
#[test]
fn duplicate_data_and_dsack() {
    let mut s = Script::established(&linux(), 60_000);
    s.run(
        "20         < . 1+1000 ack 1
         20  > . 1 ack 1001
         30         < . 1+1000 ack 1              # all of it old
         30  > . 1 ack 1001 sack 1-1001
         31         < . 501+1000 ack 1            # old in its first half
         31  > . 1 ack 1501 sack 501-1001
         32         < . 2501+1000 ack 1
         32  > . 1 ack 1501 sack 2501-3501
         33         < . 3001+500 ack 1            # inside what waits
         33  > . 1 ack 1501 sack 3001-3501,2501-3501",
    );
}

/// Breaks: the window that is announced: it closes as data waits, and opens by useful steps only
/// (RFC 9293 §3.8.6.2.2).
#[test]
fn receive_window_closes_and_opens() {
    let mut s =
        Script::established(&Settings { receive_buffer: Some(ByteCount::new(3000)), ..plain() }, 9000);
    s.run(
        "20         < . 1+1000 ack 1
         21         < . 1001+1000 ack 1
         21  > . 1 ack 2001 win 1000
         22         < . 2001+1000 ack 1
         62  > . 1 ack 3001 win 0
         70         < . 3001+1000 ack 1           # beyond the window
         70  > . 1 ack 3001 win 0 why ack_unacceptable
         80  ! read 3000
         80  > . 1 ack 3001 win 3000 why ack_window",
    );
}

/// Breaks: what a probe of a closed window acknowledges is not taken (RFC 9293 §3.10.7.4), so that two ends
/// whose windows are both closed hear nothing of each other; or its data is taken; or a FIN, which needs no
/// room, waits until the program reads.
#[test]
fn a_closed_window_takes_acknowledgments_and_fin() {
    let mut s =
        Script::established(&Settings { receive_buffer: Some(ByteCount::new(3000)), ..plain() }, 9000);
    s.run(
        "20         < . 1+1000 ack 1
         21         < . 1001+1000 ack 1
         21  > . 1 ack 2001 win 1000
         22         < . 2001+1000 ack 1
         62  > . 1 ack 3001 win 0
         63  ! write 1000
         63  > . 1+1000 ack 3001
         70         < . 3001+1 ack 1001 win 1000
         70  > . 1001 ack 3001 win 0 why ack_unacceptable
         71  ! write 2000
         71  > . 1001+1000 ack 3001
         80         < . 3002+1 ack 2001           # not where the window is
         80  > . 2001 ack 3001 win 0 why ack_unacceptable
         90         < F. 3001 ack 2001
         90  > . 2001+1000 ack 3002
         90  ! state CloseWait",
    );
}

/// Breaks: PAWS (RFC 7323 §5): a segment from the past is answered, not taken, not even its acknowledgment.
#[test]
fn paws() {
    let mut s = Script::connect(&full());
    s.run(
        "0   > S 0 mss 1000 sackok ts 0/0 ws 0
         10         < S. 0 ack 1 mss 1000 sackok ts 5000/0 ws 0
         10  > . 1 ack 1
         20         < . 1+100 ack 1 ts 5010/10
         20  > . 1 ack 101 ts 20/5010
         20  ! write 10
         20  > . 1+10 ack 101
         30         < . 101+100 ack 11 ts 4999/20
         30  > . 11 ack 101 ts 30/5010 why ack_unacceptable
         30  ! read 100
         40         < . 101+100 ack 11 ts 5010/20
         40  > . 11 ack 201 ts 40/5010
         50         < R 201 ts 1/0                # a reset is believed without
         50  ! state Closed",
    );
}

/// Breaks: an acknowledgment of what was never sent is answered and dropped, its data too.
#[test]
fn ack_for_unsent_data() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20         < . 1+100 ack 500
         20  > . 1 ack 1 why ack_unacceptable
         20  ! read 0
         30         < . 1+100 ack 1
         70  > . 1 ack 101",
    );
}

/// Breaks: acknowledgments that overtake each other must not be answered by ever more acknowledgments: what
/// has no data is answered twice a second at most (RFC 5961 §7); a window probe still gets its answer in
/// time.
#[test]
fn answers_without_data_are_limited() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "20         < . -5 ack 1
         20  > . 1 ack 1 why ack_unacceptable
         21         < . -5 ack 1
         519        < . -5 ack 1
         519        < . 1 ack 999
         520        < . 0 ack 1                   # a probe
         520 > . 1 ack 1
         530        < . -9+10 ack 1               # data is answered each time
         530 > . 1 ack 1
         531        < . -9+10 ack 1
         531 > . 1 ack 1",
    );
}

/// Breaks: an acknowledgment from a peer that has filled our window stands at its right edge; it counts even
/// while a hole is open, or two such peers lose each other's acknowledgments and answer them for ever.
#[test]
fn acknowledgment_at_the_right_edge() {
    let mut s =
        Script::established(&Settings { receive_buffer: Some(ByteCount::new(2000)), ..plain() }, 9000);
    s.run(
        "10  ! write 1000
         10  > . 1+1000 ack 1
         20         < . 1001+1000 ack 1           # the first half was lost
         20  > . 1001 ack 1
         30         < . 2001 ack 1001
         30  ! quiet
         30  ! write 500
         30  > . 1001+500 ack 1",
    );
}
