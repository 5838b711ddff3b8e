//! What profile `linux` does as the kernel does, where the RFCs leave it open: PSH, probes of what is held
//! back, what makes it look at unsent data, bursts that are sent again, and what is counted.

use crate::script::{Script, plain};
use farpace_tcp::config::{Profile, Settings};
use farpace_units::Span;

fn today() -> Settings {
    Settings { profile: Some(Profile::Linux), ..plain() }
}

fn start() -> Script {
    Script::established(&today(), 60_000)
}

/// Breaks: the lab, whose programs write before the SYN-ACK comes, has one packet less than the kernel, so
/// that random losses hit other segments.
#[test]
fn a_syn_ack_is_acknowledged_before_data() {
    Script::connect(&today()).run(
        "0   > S 0 sackok
         5   ! write 500
         10        < S. 0 ack 1 win 30000 mss 1000
         10  > . 1 ack 1
         10  > P. 1+500 ack 1",
    );
}

/// Breaks: what MSG_MORE held leaves without PSH, or never: the timer that probes windows sends it.
#[test]
fn what_was_held_is_probed() {
    start().run(
        "10  ! more
         10  ! write 200
         10  ! quiet
         220 > P. 1+200 ack 1
         230        < . 1 ack 201",
    );
}

/// Breaks: segments that left in one burst, and were made smaller by a report of the network, are cut where
/// they were before: the kernel keeps them in one buffer.
#[test]
fn a_burst_is_cut_anew_when_it_is_sent_again() {
    start().run(
        "10  ! write 3000
         10  > . 1+1000 ack 1
         10  > P. 1001+1000 ack 1
         10  > P. 2001+1000 ack 1
         20  ! too_big 576 1
         20  > . 1+536 ack 1
         20  > . 537+536 ack 1
         20  > . 1073+536 ack 1
         20  > . 1609+392 ack 1
         20  > . 2001+536 ack 1
         20  > P. 2537+464 ack 1",
    );
}

/// Ten segments leave at 10 ms, and the first three are lost. From 20 ms on a segment takes 10 ms.
fn paced_loss() -> Script {
    let mut s = Script::connect(&Settings { sack: Some(true), ..today() });
    s.run(
        "0   > S 0 sackok
         10  < S. 0 ack 1 mss 1000 sackok win 60000
         10  > . 1 ack 1
         10  ! write 12000",
    );
    for at in 0..10 {
        s.run(&format!("10  > . {}+1000 ack 1", at * 1000 + 1));
    }
    s.run(
        "20  ! rate 800000                    # 10 ms for a segment, two at once
         30         < . 1 ack 1 sack 3001-10001
         30  > . 1+1000 ack 1
         30  > . 1001+1000 ack 1",
    );
    s
}

/// Breaks: new data leaves at the pacing timer before what was found lost, and a recovery lasts for as long
/// as there is new data (tcp_tsq_write); or more leaves at one instant than a burst, or a burst that is late
/// makes up for more than half of its time.
#[test]
fn what_was_lost_goes_first_at_the_pacing_timer() {
    paced_loss().run(
        "40  > . 2001+1000 ack 1              # half of the time since 10 is made up for
         50  > . 10001+1000 ack 1
         50  > P. 11001+1000 ack 1",
    );
}

/// Breaks: a program that writes while lost segments wait for the pacing timer stops that timer, and they
/// wait for the retransmission timeout.
#[test]
fn a_write_leaves_the_pacing_timer_alone() {
    paced_loss().run(
        "35  ! write 1000
         35  ! quiet
         40  > . 2001+1000 ack 1
         50  > . 10001+1000 ack 1
         50  > . 11001+1000 ack 1
         70  > P. 12001+1000 ack 1",
    );
}

/// Breaks: an acknowledgment of what was never sent makes profile `linux` send what it had put off.
#[test]
fn what_is_refused_lets_nothing_go() {
    start().run(
        "10  ! more
         10  ! write 200
         20         < . 1 ack 900                 # challenged; MSG_MORE holds on
         20  > . 1 ack 1
         220 > P. 1+200 ack 1
         230        < . 1 ack 201",
    );
}

/// Breaks: an old acknowledgment from before the connection's own first byte is taken for one (RFC 5961 §5.2,
/// with what was acknowledged so far as the bound).
#[test]
fn an_acknowledgment_of_less_than_was_ever_acknowledged() {
    start().run(
        "10  ! write 1000
         10  > P. 1+1000 ack 1
         20         < . 1 ack 1001
         30         < . 1 ack 901                 # old, and possible
         30  ! quiet
         40         < . 1 ack -99                 # before the SYN
         40  > . 1001 ack 1",
    );
}

/// Breaks: a reset at the end of what the peer knows to have arrived (SACK) is only challenged, and the
/// connection stays.
#[test]
fn a_reset_behind_what_was_sacked() {
    start().run(
        "10         < . 1001+100 ack 1
         10  > . 1 ack 1 sack 1001-1101
         20         < R. 1101 ack 1
         20  ! state Closed",
    );
}

/// Breaks: data in order that reaches into what waited is not told of as a duplicate (tcp_ofo_queue).
#[test]
fn an_overlap_with_what_waited_is_a_duplicate() {
    start().run(
        "10         < . 501+500 ack 1
         10  > . 1 ack 1 sack 501-1001
         20         < . 1+700 ack 1
         20  > . 1 ack 1001 sack 501-701",
    );
}

/// Breaks: a timeout of the program ends what it has sent at once, without a repetition, or with a reset.
#[test]
fn the_user_timeout_is_looked_at_by_the_timer() {
    let settings = Settings { user_timeout: Some(Span::from_millis(1)), ..today() };
    Script::established(&settings, 60_000).run(
        "10  ! write 100
         10  > P. 1+100 ack 1
         220 > P. 1+100 ack 1
         230 ! quiet",
    );
}

/// Breaks: a connection stands still for ever where the peer's window is smaller than a segment, but no
/// smaller than half of what it ever was: nothing is outstanding, nothing fits, and no timer runs.
#[test]
fn what_fits_no_longer_into_a_small_window_is_probed() {
    Script::established(&today(), 500).run(
        "10  ! write 500
         10  > P. 1+500 ack 1
         20         < . 1 ack 501 win 450
         20  ! write 500
         230 > P. 501+450 ack 1
         240        < . 1 ack 951 win 500
         240 > P. 951+50 ack 1",
    );
}
