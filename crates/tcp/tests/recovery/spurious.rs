//! RFC 5682, RFC 3522, RFC 4015, RFC 2883: what was sent again for nothing, and the window that comes back.

use crate::{sending, settings, timestamped};
use farpace_tcp::config::{EcnMode, Profile, Settings};

fn without_probe() -> Settings {
    Settings { tail_loss_probe: Some(false), ..settings(Profile::RackTlp) }
}

/// Breaks: RFC 5682 §3: after a delay, not a loss, nothing but the head is sent again and the window comes
/// back.
#[test]
fn f_rto_finds_a_delay() {
    let mut s = sending(&without_probe(), 20_000, 10);
    s.run(
        "210 > . 1+1000 ack 1 why timeout_retransmit
         220        < . 1 ack 1001                # the original's: two new segments ask again
         220 > . 10001+1000 ack 1 why new_data
         220 > . 11001+1000 ack 1 why new_data
         221        < . 1 ack 2001                # sent once, before the timeout: it was spurious
         221 ! recovery Open
         221 ! cwnd 11                            # what it was, and one acknowledged
         221 > . 12001+1000 ack 1
         222        < . 1 ack 10001",
    );
    for i in 13..20 {
        s.run(&format!("222 > . {}+1000 ack 1", 1 + i * 1000));
    }
    assert!(s.connection.inspect().ssthresh.get() > 1000, "the threshold is back");
}

/// Breaks: RFC 5682 §3 step 3 a: a loss is told from a delay; the rest goes again.
#[test]
fn f_rto_finds_a_loss() {
    let mut s = sending(&without_probe(), 20_000, 10);
    s.run(
        "210 > . 1+1000 ack 1 why timeout_retransmit
         220        < . 1 ack 1001
         220 > . 10001+1000 ack 1 why new_data
         220 > . 11001+1000 ack 1 why new_data
         230        < . 1 ack 1001 sack 10001-11001
         230 ! recovery Loss
         230 > . 1001+1000 ack 1 why loss_retransmit",
    );
}

/// Breaks: RFC 5682 §3 step 2 b: what Nagle's algorithm holds back cannot ask again, and waiting for it would
/// take one timeout for each loss.
#[test]
fn f_rto_does_not_wait_for_nagle() {
    let mut s = sending(&without_probe(), 10_500, 10);
    s.run(
        "210 > . 1+1000 ack 1 why timeout_retransmit
         220        < . 1 ack 1001
         220 > . 1001+1000 ack 1 why loss_retransmit
         220 > . 2001+1000 ack 1 why loss_retransmit",
    );
}

/// Breaks: RFC 3522: a timestamp older than the retransmission proves it wrong at the first ACK.
#[test]
fn eifel_undoes_a_timeout() {
    let mut s = timestamped(&without_probe());
    s.run(
        "210 > . 1+1000 ack 1 why timeout_retransmit
         211        < . 1 ack 1001 ts 5201/10     # an answer to what was sent at 10 ms
         211 ! recovery Open
         211 ! cwnd 10
         221        < . 1 ack 3001 ts 5211/10",
    );
}

/// Breaks: RFC 3522 §3.2: an echo of the retransmission itself proves nothing.
#[test]
fn eifel_wants_an_older_echo() {
    let mut s = timestamped(&without_probe());
    s.run(
        "210 > . 1+1000 ack 1 why timeout_retransmit
         220        < . 1 ack 1001 ts 5210/210
         220 ! recovery Loss
         220 ! cwnd 2
         220 > . 1001+1000 ack 1 why loss_retransmit
         220 > . 2001+1000 ack 1
         220 ! recovery Loss
         230        < . 1 ack 3001 ts 5220/220",
    );
}

/// Breaks: segments that were delayed, not lost, arrive one by one, and each ACK takes the reduction back and
/// makes it again: the window is never used, and shrinks with what is left of the flight.
#[test]
fn what_was_taken_back_is_not_lost_at_once_again() {
    let mut s = timestamped(&without_probe());
    s.run("10 ! write 9000");
    (3..10).for_each(|i| s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000)));
    s.run(
        "20         < . 1 ack 1 sack 7001-10001 ts 5010/10
         20  ! recovery Recovery
         20  > . 1+1000 ack 1 why fast_retransmit
         20  > . 1001+1000 ack 1 why fast_retransmit
         20  > . 2001+1000 ack 1 why fast_retransmit
         24         < . 1 ack 1001 sack 7001-10001 ts 5014/10
         24  ! recovery Disorder
         24  ! cwnd 11
         24  > . 10001+1000 ack 1 why new_data
         24  > . 11001+1000 ack 1 why new_data",
    );
}

/// Breaks: RFC 2883: one copy that was in vain does not make the other losses unreal.
#[test]
fn one_d_sack_of_two_undoes_nothing() {
    let mut s = sending(&without_probe(), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 2001-9001
         20  > . 1+1000 ack 1 why fast_retransmit
         20  > . 1001+1000 ack 1 why fast_retransmit
         30         < . 1 ack 10001
         30  ! cwnd 5
         31         < . 1 ack 10001 sack 1-1001
         31  ! cwnd 5
         32         < . 1 ack 10001 sack 1001-2001
         32  ! cwnd 10",
    );
}

/// Breaks: RFC 3168 §6.1.2: a mark and a loss in the same round trip are one cut, not two.
#[test]
fn a_mark_and_a_loss_are_one_cut() {
    let settings = Settings { ecn: Some(EcnMode::On), ..without_probe() };
    let mut s = crate::Script::connect(&settings);
    s.run(
        "0   > SEW 0 sackok
         10         < S.E 0 ack 1 win 60000 mss 1000 sackok
         10  > . 1 ack 1
         10         < . 1 ack 1 win 60000
         10  ! write 10000",
    );
    for i in 0..10 {
        s.run(&format!("10 > . {}+1000 ack 1", 1 + i * 1000));
    }
    s.run(
        "20         < .E 1 ack 1001
         20  ! recovery Cwr
         20  ! ssthresh 4                         # half of the nine in flight
         21         < .E 1 ack 1001 sack 2001-6001
         21  > . 1001+1000 ack 1 why fast_retransmit
         21  ! recovery Recovery
         21  ! ssthresh 4
         31         < . 1 ack 10001
         31  ! recovery Open",
    );
}

/// Breaks: RFC 2883: when every copy is reported as a duplicate, the reduction is taken back, even after the
/// recovery has ended.
#[test]
fn d_sacks_undo_a_recovery() {
    let mut s = sending(&without_probe(), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-4001
         20  > . 1+1000 ack 1 why fast_retransmit
         20  ! recovery Recovery
         20  ! ssthresh 5
         21         < . 1 ack 10001               # all of it was on its way
         21  ! recovery Open
         21  ! cwnd 5
         30         < . 1 ack 10001 sack 1-1001   # and so was the copy
         30  ! cwnd 10",
    );
}

/// Breaks: without the switch nothing is taken back (the profiles of RFC 6675 are to be what they say).
#[test]
fn undo_can_be_off() {
    let mut s = sending(&Settings { undo: Some(false), ..without_probe() }, 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-4001
         20  > . 1+1000 ack 1 why fast_retransmit
         21         < . 1 ack 10001
         30         < . 1 ack 10001 sack 1-1001
         30  ! cwnd 5",
    );
}
