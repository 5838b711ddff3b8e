//! Asking for acknowledgments that are not held back, and answering (CDL §4.2 to 4.4 of the thesis, TARR).

use crate::script::{Script, plain};
use farpace_tcp::config::{AckControlMode, RequestRule, Settings};
use farpace_units::Packets;

/// A peer of ours that asks by `control` whenever a rule of `ack_requests` says so.
pub fn asking(control: AckControlMode, ack_requests: &[RequestRule]) -> Settings {
    Settings {
        ack_control: Some(control),
        ack_requests: Some(ack_requests.to_vec()),
        initial_window: Some(Packets::new(4)),
        ..plain()
    }
}

/// Breaks: classic CDL at the sender: CDL-Allow is offered, an asking segment has the CDL bit in place of ACK
/// and the acknowledgment number all the same, and only what is asked for differs.
#[test]
fn classic_literal_sender() {
    let mut s = Script::connect(&asking(AckControlMode::ClassicLiteral, &[RequestRule::Rtt]));
    s.run(
        "0   > S 0 allow
         10         < S. 0 ack 1 mss 1000 allow
         10  > . 1 ack 1
         10  ! write 5000
         10  > D 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         30         < .D 1 ack 1001
         30  > D 4001+1000 ack 1
         50         < . 1 ack 3001
         50         < . 1 ack 4001",
    );
    assert_eq!((s.connection.counters().asked, s.connection.counters().confirmed), (2, 1));
}

/// Breaks: a peer without CDL-Allow is never sent the bit.
#[test]
fn classic_needs_the_option_of_both() {
    for reply in ["", "can 15", "tarr"] {
        let mut s = Script::connect(&asking(AckControlMode::ClassicLiteral, &[RequestRule::Everything]));
        s.run(&format!(
            "0   > S 0 allow
             10         < S. 0 ack 1 mss 1000 {reply}
             10  > . 1 ack 1
             10  ! write 1000
             10  > . 1+1000 ack 1
             30         < . 1 ack 1001"
        ));
    }
    // Nor does a SYN-ACK have it if the SYN did not.
    let mut s = Script::accept(&asking(AckControlMode::Classic, &[]), "S 0 mss 1000 can 15 tarr");
    s.run("0 > S. 0 ack 1");
}

/// Breaks: classic CDL at the receiver: a CDL-only segment is taken, its acknowledgment number counts, and a
/// CDLACK answers at once; an ordinary one is held back.
#[test]
fn classic_receiver() {
    let mut s = Script::accept(&asking(AckControlMode::Classic, &[]), "S 0 mss 1000 allow");
    s.run(
        "0   > S. 0 ack 1 allow
         10         < . 1 ack 1
         10  ! write 100
         10  > . 1+100 ack 1
         20         < D 1+1000 ack 101
         20  > .D 101 ack 1001 why ack_requested
         30         < . 1001+1000 ack 101
         70  > . 101 ack 2001 why ack_delayed
         80         < D 2001+1000 ack 101
         80  > .D 101 ack 3001
         80  ! read 3000",
    );
    assert_eq!((s.connection.counters().requests, s.connection.counters().confirmations), (2, 2));
}

/// Breaks: nothing but the agreed form gets through: segments without ACK are dropped where CDL was not
/// agreed on, and with SYN, FIN, PSH or URG beside the bit also where it was.
#[test]
fn bare_segments_out_of_place() {
    let mut s = Script::accept(&plain(), "S 0 mss 1000 allow");
    s.run(
        "0   > S. 0 ack 1
         10         < . 1 ack 1
         20         < D 1+1000 ack 1
         21         < D 1 ack 1
         500 ! quiet",
    );
    assert_eq!(s.connection.counters().unacceptable, 2);
    let mut s = Script::accept(&asking(AckControlMode::Classic, &[]), "S 0 mss 1000 allow");
    s.run(
        "0   > S. 0 ack 1 allow
         10         < . 1 ack 1
         20         < DP 1+1000 ack 1
         21         < DF 1+1000 ack 1
         22         < DU 1+1000 ack 1
         23         < D 1 ack 1                        # no data: nothing to answer
         24         < - 1+1000 ack 1
         30         < R 1",
    );
    assert_eq!(s.connection.counters().unacceptable, 5);
    assert_eq!(s.connection.counters().requests, 0);
}

/// Breaks: an acknowledgment beside the CDL bit is judged as any other: for data never sent it is challenged,
/// and a confirmation that nobody asked for measures nothing.
#[test]
fn false_confirmations() {
    let mut s = Script::connect(&asking(AckControlMode::ClassicLiteral, &[]));
    s.run(
        "0   > S 0 allow
         10         < S. 0 ack 1 mss 1000 allow
         10  > . 1 ack 1
         10  ! write 1000
         10  > . 1+1000 ack 1
         20         < .D 1 ack 5001
         20  > . 1001 ack 1 why ack_unacceptable
         25         < .D 1 ack 1
         26         < D 1+100 ack 5001                 # data without ACK that acknowledges too much
         26  > . 1001 ack 1 why ack_unacceptable
         30         < .D 1 ack 1001",
    );
    assert_eq!(s.connection.counters().confirmed, 0);
    let mut s = Script::connect(&asking(AckControlMode::Safe, &[]));
    s.run(
        "0   > S 0 can 11 tarr
         10         < S. 0 ack 1 mss 1000 can 11
         10  > . 1 ack 1
         10  ! write 1000
         10  > . 1+1000 ack 1
         20         < . 1 ack 5001 confirms 0
         20  > . 1001 ack 1 why ack_unacceptable
         30         < . 1 ack 1001 confirms 0",
    );
    assert_eq!(s.connection.counters().confirmed, 0);
}

/// Breaks: no data is risked on a path that may drop segments without ACK: an old byte goes first, and only
/// its answer lets data go so.
#[test]
fn classic_tries_the_path_first() {
    let mut s = Script::connect(&asking(AckControlMode::Classic, &[RequestRule::Everything]));
    s.run(
        "0   > S 0 allow
         10         < S. 0 ack 1 mss 1000 allow
         10  > . 1 ack 1
         10  ! write 3000
         10  > . 1+1000 ack 1
         10  > D 0+1 ack 1 why ack_probe
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         30         < .D 1 ack 1001
         31         < . 1 ack 3001
         40  ! write 2000
         40  > D 3001+1000 ack 1
         40  > D 4001+1000 ack 1
         60         < .D 1 ack 4001
         60         < .D 1 ack 5001",
    );
    assert_eq!(s.connection.counters().confirmed, 3);
}

/// Breaks: a path that drops segments without ACK, or clears the bit, costs four probes of one byte.
#[test]
fn classic_gives_up_on_a_path_that_does_not_answer() {
    let mut s = Script::connect(&asking(AckControlMode::Classic, &[RequestRule::Everything]));
    s.run("0   > S 0 allow\n 10  < S. 0 ack 1 mss 1000 allow\n 10  > . 1 ack 1");
    for i in 0..8 {
        let (at, seq) = (100 + 100 * i, 1 + 1000 * i);
        let probe = if i < 4 { format!("{at} > D {}+1 ack 1 why ack_probe", seq - 1) } else { String::new() };
        s.run(&format!(
            "{at} ! write 1000
             {at} > . {seq}+1000 ack 1
             {probe}
             {} < . 1 ack {}",
            at + 50,
            seq + 1000
        ));
    }
}

/// Breaks: a segment that goes out again has ACK set, and what comes back measures nothing (Karn); two
/// segments without ACK that are lost alone end the asking.
#[test]
fn lost_bare_segments_go_again_with_ack() {
    let settings =
        Settings { sack: Some(true), ..asking(AckControlMode::ClassicLiteral, &[RequestRule::Rtt]) };
    let settings = Settings { profile: Some(farpace_tcp::config::Profile::Prr), ..settings };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 allow sackok
         10         < S. 0 ack 1 mss 1000 allow sackok
         10  > . 1 ack 1
         10  ! write 4000
         10  > D 1+1000 ack 1
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         30         < . 1 ack 1 sack 1001-2001
         31         < . 1 ack 1 sack 1001-3001
         32         < . 1 ack 1 sack 1001-4001
         32  > . 1+1000 ack 1 why fast_retransmit
         52         < .D 1 ack 4001
         60  ! write 2000
         60  > D 4001+1000 ack 1
         60  > . 5001+1000 ack 1
         260 > . 4001+1000 ack 1 why timeout_retransmit
         310        < . 1 ack 6001
         320 ! write 1000
         320 > . 6001+1000 ack 1
         340        < . 1 ack 7001",
    );
    assert_eq!(s.connection.counters().confirmed, 0);
}

/// Breaks: the safe form at the sender: what is offered; the option comes off the payload; only its own
/// confirmation counts, less the time for which the peer has held it back.
#[test]
fn safe_sender() {
    let settings = Settings { rto: None, ..asking(AckControlMode::Safe, &[RequestRule::Rtt]) };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 can 11 tarr
         10         < S. 0 ack 1 mss 1000 can 11
         10  > . 1 ack 1
         10  ! write 4000
         10  > . 1+992 ack 1 asks
         10  > . 993+1000 ack 1
         10  > . 1993+1000 ack 1
         10  > . 2993+1000 ack 1
         40         < . 1 ack 993 confirms 10
         41         < . 1 ack 3993
         41  > . 3993+8 ack 1 asks
         60         < . 1 ack 4001 confirms 0",
    );
    assert_eq!((s.connection.counters().asked, s.connection.counters().confirmed), (2, 2));
}

/// Breaks: the safe form at the receiver: the answer leaves at once and says that it does; an ordinary ACK
/// does not.
#[test]
fn safe_receiver() {
    let mut s = Script::accept(&asking(AckControlMode::Safe, &[]), "S 0 mss 1000 can 3");
    s.run(
        "0   > S. 0 ack 1 can 11
         10         < . 1 ack 1
         20         < . 1+992 ack 1 asks
         20  > . 1 ack 993 confirms 0 why ack_requested
         30         < . 993+1000 ack 1
         70  > . 1 ack 1993 why ack_delayed
         80         < . 2993+992 ack 1 asks            # out of order: an ACK, but none for this segment
         80  > . 1 ack 1993
         90         < . 1993+1000 ack 1
         90  > . 1 ack 3985
         95         < . 1+992 ack 1 asks               # a copy
         95  > . 1 ack 3985 confirms 0",
    );
}

/// Breaks: an answer rides on short data that is to be sent anyway, and goes before data that has no room for
/// it.
#[test]
fn answers_on_data() {
    let mut s = Script::accept(&asking(AckControlMode::Safe, &[]), "S 0 mss 1000 can 3");
    s.run(
        "0   > S. 0 ack 1 can 11
         10         < . 1 ack 1
         20  ! write 3000
         20  > . 1+1000 ack 1
         20  > . 1001+1000 ack 1
         20  > . 2001+1000 ack 1
         21  ! write 3000
         21  > . 3001+1000 ack 1
         30         < . 1+500 ack 1001 asks
         30  > . 4001 ack 501 confirms 0
         30  > . 4001+1000 ack 501
         30  > . 5001+1000 ack 501
         50         < . 501 ack 6001
         60  ! write 10
         60  > . 6001+10 ack 501
         70         < . 501+500 ack 6011 asks
         70  > . 6011 ack 1001 confirms 0",
    );
}

/// Breaks: an option that is stripped ends the requests after four; a peer that confirms none is sent no
/// more.
#[test]
fn safe_gives_up_after_four() {
    let mut s = Script::connect(&asking(AckControlMode::Safe, &[RequestRule::Everything]));
    s.run("0   > S 0 can 11 tarr\n 10  < S. 0 ack 1 mss 1000 can 11\n 10  > . 1 ack 1");
    for i in 0..6 {
        let (at, seq) = (100 + 100 * i, 1 + 500 * i);
        let asks = if i < 4 { "asks" } else { "" };
        s.run(&format!(
            "{at} ! write 500
             {at} > . {seq}+500 ack 1 {asks}
             {} < . 1 ack {}",
            at + 50,
            seq + 500
        ));
    }
}

/// Breaks: the bit beside ACK, its answer, and the option in its place where the bit is cleared on the way.
#[test]
fn flag_form_and_its_fallback() {
    let mut s = Script::connect(&asking(AckControlMode::Flag, &[RequestRule::Everything]));
    s.run(
        "0   > S 0 can 15 tarr
         10         < S. 0 ack 1 mss 1000 can 15
         10  > . 1 ack 1
         10  ! write 1000
         10  > .D 1+1000 ack 1
         20         < .D 1 ack 1001",
    );
    assert_eq!(s.connection.counters().confirmed, 1);
    let mut s = Script::connect(&asking(AckControlMode::Flag, &[RequestRule::Everything]));
    s.run("0   > S 0 can 15 tarr\n 10  < S. 0 ack 1 mss 1000 can 15\n 10  > . 1 ack 1");
    for i in 0..9 {
        let (at, seq) = (100 + 100 * i, 1 + 500 * i);
        let (flags, option) = if i < 4 { (".D", "") } else { (".", if i < 8 { "asks" } else { "" }) };
        s.run(&format!(
            "{at} ! write 500
             {at} > {flags} {seq}+500 ack 1 {option}
             {} < . 1 ack {}",
            at + 50,
            seq + 500
        ));
    }
    let mut s = Script::accept(&asking(AckControlMode::Flag, &[]), "S 0 mss 1000 can 7");
    s.run(
        "0   > S. 0 ack 1 can 15
         10         < . 1 ack 1
         20         < .D 1+1000 ack 1
         20  > .D 1 ack 1001
         30         < . 1001+1000 ack 1 asks           # the bit has not come through
         30  > . 1 ack 2001 confirms 0",
    );
}

/// Breaks: TARR as the draft has it: R = 0 asks for one ACK, its own echo is the answer; R = n changes the
/// ratio until told otherwise, and disorder is acknowledged at once all the same.
#[test]
fn tarr_both_ways() {
    let settings = Settings { timestamps: Some(true), ..asking(AckControlMode::Tarr, &[RequestRule::Rtt]) };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 ts 0/0 tarr
         10         < S. 0 ack 1 mss 1012 ts 500/0 tarr
         10  > . 1 ack 1 ts 10/500
         10  ! write 2956
         10  > . 1+980 ack 1 ts 10/500 rate 0
         10  > . 981+988 ack 1 ts 10/500
         10  > . 1969+988 ack 1 ts 10/500
         30         < . 1 ack 981 ts 520/10
         40         < . 1 ack 2957 ts 530/10",
    );
    assert_eq!((s.connection.counters().asked, s.connection.counters().confirmed), (1, 1));
    let mut s = Script::accept(&asking(AckControlMode::Safe, &[]), "S 0 mss 1000 tarr");
    s.run(
        "0   > S. 0 ack 1 tarr
         10         < . 1 ack 1
         20         < . 1+1000 ack 1 rate 0
         20  > . 1 ack 1001 why ack_requested
         21         < . 1001+1000 ack 1 rate 3
         22         < . 2001+1000 ack 1
         23         < . 3001+1000 ack 1
         23  > . 1 ack 4001 why ack_now
         24         < . 5001+1000 ack 1
         24  > . 1 ack 4001 why ack_out_of_order
         30         < . 4001+1000 ack 1
         30  > . 1 ack 6001
         31         < . 90000000+1000 ack 1 rate 1     # from anywhere, and it changes nothing
         31  > . 1 ack 6001 why ack_unacceptable
         40         < . 6001+1000 ack 1
         80  > . 1 ack 7001 why ack_delayed",
    );
}

/// Breaks: asking a peer that knows nothing of it: an old byte after the data, one a round trip; the answer
/// is no duplicate ACK, and its D-SACK undoes nothing.
#[test]
fn unilateral_asks_with_an_old_byte() {
    let settings = Settings {
        profile: Some(farpace_tcp::config::Profile::Prr),
        sack: Some(true),
        undo: Some(true),
        ..asking(AckControlMode::Unilateral, &[RequestRule::Rtt])
    };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 sackok
         10         < S. 0 ack 1 mss 1000 sackok
         10  > . 1 ack 1
         10  ! write 4000
         10  > . 1+1000 ack 1
         10  > . 0+1 ack 1 why ack_probe
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         20         < . 1 ack 1001 sack 0-1
         20  ! recovery Open
         21         < . 1 ack 3001
         30         < . 1 ack 4001
         31  ! write 1000
         31  > . 4001+1000 ack 1
         31  > . 4000+1 ack 1 why ack_probe
         41         < . 1 ack 5001 sack 4000-4001",
    );
    assert_eq!(s.connection.counters().confirmed, 2);
}

/// Breaks: RFC 6691: request, answer and SACK blocks in one header fit, and a full segment does not become
/// longer by them.
#[test]
fn options_side_by_side() {
    let settings = Settings {
        profile: Some(farpace_tcp::config::Profile::Prr),
        sack: Some(true),
        timestamps: Some(true),
        ..asking(AckControlMode::Safe, &[RequestRule::Everything])
    };
    let mut s = Script::accept(&settings, "S 0 mss 1012 sackok ts 500/0 can 3");
    s.run(
        "0   > S. 0 ack 1 sackok ts 0/500 can 11
         10         < . 1 ack 1 ts 510/0
         20         < . 1001+1000 ack 1 ts 520/0
         20  > . 1 ack 1 sack 1001-2001
         21         < . 3001+1000 ack 1 ts 521/0
         21  > . 1 ack 1 sack 3001-4001,1001-2001
         22         < . 5001+1000 ack 1 ts 522/0
         22  > . 1 ack 1 sack 5001-6001,3001-4001,1001-2001
         30         < . 1+1 ack 1 ts 530/0 asks        # fills nothing up, but is next in order
         30  > . 1 ack 2 sack 5001-6001,3001-4001,1001-2001",
    );
    s.run(
        "40  ! write 2000
         40  > . 1+980 ack 2 asks
         40  > . 981+980 ack 2 asks
         50         < . 2 ack 1961 ts 550/40 confirms 0
         50  > . 1961+40 ack 2 asks sack 5001-6001,3001-4001
         60         < . 2 ack 2001 ts 560/50 confirms 0",
    );
}
