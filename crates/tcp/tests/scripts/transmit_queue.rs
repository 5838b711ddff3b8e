//! A full transmit queue of the own host is no loss.

use crate::script::{Script, plain};
use farpace_events::{Cause, RecoveryState};
use farpace_tcp::config::{Profile, Settings};
use farpace_tcp::{Blocked, Reason, Transmit};
use farpace_units::{Instant, Span};

/// Each recovery scheme.
fn schemes() -> [Settings; 4] {
    let of = |profile| Settings { profile: Some(profile), ..plain() };
    [plain(), of(Profile::Rfc6675), of(Profile::Linux2624), of(Profile::Linux)]
}

/// Breaks: what the queue refuses counts as sent, and is repaired as a loss; or the sender goes on as if
/// nothing had happened, or cuts its window more than once.
#[test]
fn a_refused_segment_is_kept_and_the_window_comes_down() {
    for settings in schemes() {
        let mut s = Script::established(&settings, 9000);
        s.run("10 ! room 1\n 10 ! write 3000\n 10 > . 1+1000 ack 1\n 10 ! quiet");
        let connection = &s.connection;
        assert_eq!(connection.inspect().recovery, RecoveryState::Cwr, "{settings:?}");
        assert_eq!(connection.inspect().in_flight.get(), 1);
        let cuts = |s: &Script| s.connection.counters().window_changes.of(Cause::CutTransmitQueue);
        assert_eq!((connection.transmit_queue_full(), cuts(&s)), (1, 1), "{settings:?}");
        // Refused again in the same round trip.
        s.run("11 ! room 0\n 11 ! quiet");
        assert_eq!((s.connection.transmit_queue_full(), cuts(&s)), (2, 1), "{settings:?}");
        s.run("20 ! room 1\n 20 > . 1001+1000 ack 1 why new_data\n 50 < . 1 ack 2001");
        s.run("60 ! room 9\n 60 > P. 2001+1000 ack 1 why new_data\n 90 < . 1 ack 3001");
        assert_eq!(s.connection.counters().timeouts, 0);
        assert_eq!(s.connection.inspect().recovery, RecoveryState::Open, "{settings:?}");
    }
}

/// Breaks: with nothing outstanding no ACK comes, and the connection stands still for ever; or it asks a full
/// queue all the time.
#[test]
fn an_idle_connection_tries_again_after_half_a_second() {
    for settings in schemes() {
        let mut s = Script::established(&settings, 9000);
        s.run("10 ! room 0\n 10 ! write 1000\n 10 ! quiet");
        let at = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        assert_eq!(s.connection.deadline(), Some((at(510), Reason::TransmitQueue)), "{settings:?}");
        s.run("600 ! quiet");
        assert_eq!(s.connection.deadline(), Some((at(1010), Reason::TransmitQueue)), "{settings:?}");
        let blocked = s.connection.poll_transmit(at(600), &mut Vec::new(), 9);
        assert_eq!(blocked, Transmit::Blocked(Blocked::TransmitQueue));
        s.run("700 ! room 3\n 700 > P. 1+1000 ack 1 why new_data\n 800 < . 1 ack 1001\n 9000 ! quiet");
    }
}

/// Breaks: a retransmission that the queue refuses counts as sent, and nobody sends it.
#[test]
fn a_refused_retransmission_is_kept() {
    for settings in schemes() {
        let mut s = Script::established(&settings, 9000);
        s.run("10 ! room 9\n 10 ! write 2000\n 10 > . 1+1000 ack 1");
        s.run("10 > P. 1001+1000 ack 1\n 11 ! room 0");
        let again = |s: &Script| s.connection.counters().sent[Cause::TimeoutRetransmit as usize];
        s.run("3000 ! quiet");
        assert!(s.connection.counters().timeouts > 0 && again(&s) == 0, "{settings:?}");
        s.run("3000 ! room 9\n 3000 > . 1+1000 ack 1 why timeout_retransmit\n 3010 < . 1 ack 2001");
    }
}
