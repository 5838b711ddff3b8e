//! Urgent data, and PUSH.

use crate::script::{Script, plain};
use farpace_units::ByteCount;

/// Breaks: RFC 9293 §3.8.5: what is urgent is pointed at by every segment up to its end, the pointer being
/// the distance to the byte after it (RFC 6093 §3).
#[test]
fn sending_urgent_data() {
    let mut s = Script::established(&plain(), 9000);
    s.run(
        "10  ! write 1000
         10  > . 1+1000 ack 1
         11  ! write_urgent 1500
         11  > U. 1001+1000 ack 1 urg 1500
         20         < . 1 ack 2001
         20  > U. 2001+500 ack 1 urg 500
         30         < . 1 ack 2501
         31  ! write 10
         31  > . 2501+10 ack 1",
    );
}

/// Breaks: RFC 9293 §3.8.6.1: a peer whose window is closed learns of urgent data all the same.
#[test]
fn urgent_data_and_a_closed_window() {
    let mut s = Script::established(&plain(), 1000);
    s.run(
        "10     ! write 1000
         10     > . 1+1000 ack 1
         20            < . 1 ack 1001 win 0
         30     ! write_urgent 5
         30     > U. 1001 ack 1 urg 5
         230    > U. 1000 ack 1 urg 6 why window_probe",
    );
}

/// Breaks: RFC 9293 §3.8.5: the application hears of urgent data when the pointer first comes and when it
/// advances, and can ask how much is ahead; the bytes stay in line.
#[test]
fn receiving_urgent_data() {
    let mut s = Script::established(&plain(), 9000);
    s.run("20 < . 1+100 ack 1");
    assert_eq!(s.connection.urgent_ahead(), None);
    s.run("30 < U. 101+100 ack 1 urg 300\n 30 ! event Urgent\n 30 > . 1 ack 201");
    assert_eq!(s.connection.urgent_ahead(), Some(ByteCount::new(400)));
    s.run("61 ! read 200");
    assert_eq!(s.connection.urgent_ahead(), Some(ByteCount::new(200)));
    // The same pointer again tells nothing; one that advances does.
    s.run("70 < U. 201+100 ack 1 urg 200");
    assert!(!std::iter::from_fn(|| s.connection.poll_event()).any(|e| format!("{e:?}") == "Urgent"));
    s.run("71 < U. 301+1 ack 1 urg 150\n 71 ! event Urgent");
    s.run("110 > . 1 ack 302\n 111 ! read 101");
    assert_eq!(s.connection.urgent_ahead(), Some(ByteCount::new(149)));
    s.run("120 < . 302+149 ack 1\n 160 > . 1 ack 451\n 161 ! read 149");
    assert_eq!(s.connection.urgent_ahead(), None);
    // A pointer to what was read already is none.
    s.run("170 < U. 400+1 ack 1 urg 10\n 170 > . 1 ack 451");
    assert_eq!(s.connection.urgent_ahead(), None);
}

/// Breaks: RFC 9293 §3.9.1 (MUST-61): the last segment of what was written is pushed.
#[test]
fn the_last_segment_is_pushed() {
    use farpace_wire::tcp::TcpFlags;
    let mut s = Script::established(&plain(), 9000);
    s.run("10 ! quiet");
    let mut data = bytes::Bytes::from(vec![0; 2500]);
    s.connection.write(&mut data);
    s.connection.close();
    let now = farpace_units::Instant::ZERO + farpace_units::Span::from_millis(10);
    let pushed: Vec<_> = crate::common::drain(&mut s.connection, now, 9)
        .iter()
        .map(|o| o.segment.header.flags.contains(TcpFlags::PSH))
        .collect();
    assert_eq!(pushed, [false, false, true]);
}
