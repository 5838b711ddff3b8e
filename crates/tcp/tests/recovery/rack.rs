//! RFC 8985 §6: loss found by time.

use crate::{sending, settings, timestamped};
use farpace_tcp::config::Profile;

fn rack() -> farpace_tcp::config::Settings {
    settings(Profile::RackTlp)
}

/// Breaks: RFC 8985 §6.2 step 5: one SACK is enough, once the reordering window of a quarter round trip has
/// passed; the timer sees to it without any further ACK.
#[test]
fn the_reordering_timer() {
    let mut s = sending(&rack(), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         20  ! recovery Disorder
         22.5 > . 1+1000 ack 1 why fast_retransmit
         22.5 ! recovery Recovery",
    );
}

/// Breaks: RFC 8985 §6.2 step 4: without any sign of reordering three SACKed segments need no window.
#[test]
fn three_sacked_segments_are_proof() {
    let mut s = sending(&rack(), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         20         < . 1 ack 1 sack 1001-3001
         20         < . 1 ack 1 sack 1001-4001
         20  > . 1+1000 ack 1 why fast_retransmit",
    );
}

/// Breaks: RFC 8985 §6.2 step 3: reordering that was seen keeps segments from being sent again too early.
#[test]
fn reordering_is_learned() {
    let mut s = sending(&rack(), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         21         < . 1 ack 2001                # it was late, not lost
         21  ! recovery Open
         21         < . 1 ack 2001 sack 3001-4001
         21         < . 1 ack 2001 sack 3001-5001
         21         < . 1 ack 2001 sack 3001-6001 # three, but reordering was seen: 2.5 ms of grace
         22         < . 1 ack 6001                # late again
         22  ! recovery Open
         30         < . 1 ack 10001
         30  ! recovery Open",
    );
}

/// Breaks: the loss of a retransmission is found (what RFC 6675 never does): a segment sent after the copy
/// has arrived.
#[test]
fn a_lost_retransmission() {
    let mut s = sending(&rack(), 12_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         20  > . 10001+1000 ack 1
         20         < . 1 ack 1 sack 1001-3001
         20  > . 11001+1000 ack 1
         20         < . 1 ack 1 sack 1001-4001
         20  > . 1+1000 ack 1 why fast_retransmit
         21         < . 1 ack 1 sack 1001-10001
         30         < . 1 ack 1 sack 1001-11001   # sent before the copy, if at the same instant
         31         < . 1 ack 1 sack 1001-12001
         31  ! quiet",
    );
    // A probe of new data sent after the copy arrives: the copy is lost.
    s.run(
        "31  ! write 1000
         31  > . 12001+1000 ack 1
         41         < . 1 ack 1 sack 1001-13001
         41  > . 1+1000 ack 1 why lost_retransmission
         51         < . 1 ack 13001
         51  ! recovery Open",
    );
}

/// Breaks: the same at the end of the data, where only other retransmissions follow the lost one. What is
/// SACKed beyond a hole echoes the timestamp of a segment before it (RFC 7323 §4.3), which says nothing of
/// the segment: without this each lost retransmission of the last round trip waits for a timeout.
#[test]
fn a_lost_retransmission_at_the_end() {
    let mut s = timestamped(&rack());
    s.run(
        "10  ! write 7000
         10  > . 3001+1000 ack 1
         10  > . 4001+1000 ack 1
         10  > . 5001+1000 ack 1
         10  > . 6001+1000 ack 1
         10  > . 7001+1000 ack 1
         10  > . 8001+1000 ack 1
         10  > . 9001+1000 ack 1
         20         < . 1 ack 1 sack 1001-4001 ts 5010/10
         20  > . 1+1000 ack 1 why fast_retransmit
         22         < . 1 ack 1 sack 1001-7001,8001-10001 ts 5012/10
         22  > . 7001+1000 ack 1 why fast_retransmit
         32         < . 1 ack 1 sack 1001-10001 ts 5022/10
         32  > . 1+1000 ack 1 why lost_retransmission
         42         < . 1 ack 10001 ts 5032/32
         42  ! recovery Open",
    );
}

/// Breaks: RFC 2018 §8: a receiver that drops what it had SACKed gets it again.
#[test]
fn reneging_is_survived() {
    let mut s = sending(&rack(), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-3001
         21         < . 1 ack 1001                # the first hole is filled, and the rest forgotten
         21  ! recovery Loss
         21  > . 1001+1000 ack 1 why timeout_retransmit
         31         < . 1 ack 2001
         31  > . 2001+1000 ack 1 why loss_retransmit
         31  > . 3001+1000 ack 1
         41         < . 1 ack 10001
         41  ! recovery Open",
    );
}

/// Breaks: RFC 8985 §6.2 step 4: D-SACKs widen the reordering window by a quarter round trip each round.
#[test]
fn d_sack_widens_the_window() {
    let mut s = sending(&rack(), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         22.5 > . 1+1000 ack 1 why fast_retransmit
         23         < . 1 ack 2001                # the original was late
         24         < . 1 ack 2001 sack 1-1001    # and the copy came, too
         24         < . 1 ack 2001 sack 3001-4001
         28         < . 1 ack 4001                # 4 ms late, within two quarters
         28  ! recovery Open",
    );
}
