//! RFC 8985 §7: the tail is probed before it times out.

use crate::{sending, settings};
use farpace_tcp::config::{Profile, Settings};

fn rack() -> Settings {
    settings(Profile::RackTlp)
}

/// Breaks: RFC 8985 §7.2, §7.3: after two round trips the last segment goes again; its SACK shows the rest
/// lost.
#[test]
fn a_lost_tail_is_repaired_without_a_timeout() {
    let mut s = sending(&rack(), 3000, 3);
    s.run(
        "20         < . 1 ack 1001                # the other two are lost
         40  > . 2001+1000 ack 1 why tail_loss_probe
         50         < . 1 ack 1001 sack 2001-3001
         50  > . 1001+1000 ack 1 why fast_retransmit
         60         < . 1 ack 3001
         60  ! recovery Open",
    );
    assert_eq!(s.connection.counters().timeouts, 0);
}

/// Breaks: RFC 8985 §6.2 step 2: the last segment is short, so that its copy is answered faster than all full
/// segments were. That answer counts, and a timeout is not waited for.
#[test]
fn a_short_end_of_the_data_shows_what_is_lost() {
    let mut s = sending(&Settings { nagle: Some(false), ..rack() }, 2000, 2);
    s.run(
        "20         < . 1 ack 2001
         20  ! write 2200
         20  > . 2001+1000 ack 1
         20  > . 3001+1000 ack 1
         20  > P. 4001+200 ack 1
         30         < . 1 ack 3001                # the other two are lost
         50  > . 4001+200 ack 1 why tail_loss_probe
         57         < . 1 ack 3001 sack 4001-4201 # 3 ms less than a full segment takes
         57  > . 3001+1000 ack 1 why fast_retransmit
         67         < . 1 ack 4201
         67  ! recovery Open",
    );
    assert_eq!(s.connection.counters().timeouts, 0);
}

/// Breaks: RFC 8985 §7.3: a probe of new data where there is some, although the window is full.
#[test]
fn new_data_is_the_better_probe() {
    let mut s = sending(&rack(), 11_000, 10);
    s.run(
        "30  > . 10001+1000 ack 1 why new_data
         30  ! cwnd 10",
    );
}

/// Breaks: RFC 8985 §7.4.2: if the probe itself repaired the loss, the window comes down all the same.
#[test]
fn a_repair_by_the_probe_counts_as_loss() {
    let mut s = sending(&rack(), 10_000, 10);
    s.run(
        "20         < . 1 ack 9001
         20  ! write 1000
         20  > . 10001+1000 ack 1",
    );
    s.run(
        "40  > . 10001+1000 ack 1 why tail_loss_probe
         41         < . 1 ack 10001               # the original of the one before was late, say
         50         < . 1 ack 11001
         50  ! write 1000
         50  > . 11001+1000 ack 1
         60         < . 1 ack 12001               # beyond the probe, and no D-SACK: one was lost
         60  ! ssthresh 2",
    );
}

/// Breaks: the same with a D-SACK: both arrived, nothing was lost, nothing is cut.
#[test]
fn a_needless_probe_costs_nothing() {
    let mut s = sending(&rack(), 2000, 2);
    s.run(
        "30  > . 1001+1000 ack 1 why tail_loss_probe
         31         < . 1 ack 2001
         40         < . 1 ack 2001 sack 1001-2001
         40  ! write 1000
         40  > . 2001+1000 ack 1
         50         < . 1 ack 3001
         50  ! cwnd 10",
    );
    assert!(s.connection.inspect().ssthresh.get() > 1000, "never cut");
}

/// Breaks: RFC 8985 §7.3 condition 1: one probe at a time; then the retransmission timeout.
#[test]
fn one_probe_then_the_timeout() {
    let mut s = sending(&rack(), 2000, 2);
    s.run(
        "30  > . 1001+1000 ack 1 why tail_loss_probe
         230 > . 1+1000 ack 1 why timeout_retransmit
         230 ! recovery Loss",
    );
}
