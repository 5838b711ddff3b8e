//! Where asking for acknowledgments, and answering, ends.

use crate::ack_requests::asking;
use crate::script::Script;
use farpace_tcp::config::{AckControlMode, MtuProbing, Profile, RequestRule, Rto, Settings};
use farpace_units::{Packets, Span};

/// Breaks: a path that drops SYNs with options it does not know: the third SYN has none.
#[test]
fn the_third_syn_offers_nothing() {
    let mut s = Script::connect(&asking(AckControlMode::Safe, &[]));
    s.run(
        "0    > S 0 can 11 tarr
         1000 > S 0 can 11 tarr
         3000 > S 0
         3010        < S. 0 ack 1 mss 1000 can 11
         3010 > . 1 ack 1",
    );
}

/// Breaks: a probe of the MTU has the size that is tried out; a request would make it smaller.
#[test]
fn a_probe_of_the_mtu_does_not_ask() {
    let settings = Settings {
        mtu_probing: Some(MtuProbing::Always),
        mss: Some(1400),
        initial_window: Some(Packets::new(9)),
        ..asking(AckControlMode::Safe, &[RequestRule::Everything])
    };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 can 11 tarr
         10         < S. 0 ack 1 win 60000 mss 1400 can 11
         10  > . 1 ack 1
         10         < . 1 ack 1
         10  ! write 12472
         10  > . 1+1320 ack 1 why mtu_probe
         10  > . 1321+1232 ack 1 asks",
    );
    for i in 1..8 {
        s.run(&format!("10 > . {}+1232 ack 1 asks", 1321 + i * 1232));
    }
}

/// Breaks: a loss that hits segments with and without ACK is none of the path's dislike of the latter:
/// however often, it does not end the asking.
#[test]
fn losses_of_all_kinds_are_no_strike() {
    let settings = Settings {
        profile: Some(Profile::Prr),
        sack: Some(true),
        ack_request_every: Some(Packets::new(2)),
        initial_window: Some(Packets::new(12)),
        ..asking(AckControlMode::ClassicLiteral, &[])
    };
    let mut s = Script::connect(&settings);
    s.run("0   > S 0 allow sackok\n 10  < S. 0 ack 1 mss 1000 allow sackok win 60000\n 10  > . 1 ack 1");
    let flight = |s: &mut Script, at: u32, first: u32, segments: u32| {
        s.run(&format!("{at} ! write {}", segments * 1000));
        for i in 0..segments {
            let flags = if i % 2 == 0 { "D" } else { "." };
            s.run(&format!("{at} > {flags} {}+1000 ack 1", first + i * 1000));
        }
    };
    // The first two of each flight are lost.
    flight(&mut s, 100, 1, 12);
    s.run(
        "120        < . 1 ack 1 sack 2001-12001
         120 > . 1+1000 ack 1
         120 > . 1001+1000 ack 1
         140        < . 1 ack 12001",
    );
    flight(&mut s, 200, 12_001, 6);
    s.run(
        "220        < . 1 ack 12001 sack 14001-18001
         220 > . 12001+1000 ack 1
         220 > . 13001+1000 ack 1
         240        < . 1 ack 18001",
    );
    flight(&mut s, 300, 18_001, 2);
}

/// Breaks: a segment without ACK and with FIN, which no stack takes for data.
#[test]
fn bare_segments_have_no_fin() {
    let settings =
        Settings { nagle: Some(true), ..asking(AckControlMode::ClassicLiteral, &[RequestRule::Everything]) };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 allow
         10         < S. 0 ack 1 mss 1000 allow
         10  > . 1 ack 1
         10  ! write 10
         10  > D 1+10 ack 1
         11  ! write 10
         12  ! close
         12  > F. 11+10 ack 1
         30         < .D 1 ack 22",
    );
}

/// Breaks: what is sent while something is missing has ACK: it is what finds the losses.
#[test]
fn nothing_is_bare_while_something_is_missing() {
    let settings = Settings {
        profile: Some(Profile::Prr),
        sack: Some(true),
        ..asking(AckControlMode::ClassicLiteral, &[RequestRule::Everything])
    };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 allow sackok
         10         < S. 0 ack 1 mss 1000 allow sackok
         10  > . 1 ack 1
         10  ! write 8000
         10  > D 1+1000
         10  > D 1001+1000
         10  > D 2001+1000
         10  > D 3001+1000
         30         < . 1 ack 1 sack 1001-4001
         30  > . 1+1000 ack 1
         30  > . 4001+1000 ack 1",
    );
}

/// Breaks: an ACK from before the trial of the path answers it; or trials that nobody answers follow each
/// other as closely as those that are answered.
#[test]
fn an_old_answer_proves_nothing() {
    let mut s = Script::connect(&asking(AckControlMode::Classic, &[RequestRule::Everything]));
    s.run(
        "0   > S 0 allow
         10         < S. 0 ack 1 mss 1000 allow
         10  > . 1 ack 1
         10  ! write 1000
         10  > . 1+1000 ack 1
         10  > D 0+1 ack 1 why ack_probe
         12         < .D 1 ack 0
         20         < . 1 ack 1001
         25  ! write 1000
         25  > . 1001+1000 ack 1
         31  ! write 1000
         31  > . 2001+1000 ack 1
         31  > D 1000+1 ack 1 why ack_probe",
    );
    assert_eq!(s.connection.counters().confirmed, 0);
}

/// Breaks: without SACK the answer to an old byte looks like a duplicate ACK, and is none; two ACKs for one
/// probe measure once.
#[test]
fn the_answer_to_an_old_byte_is_no_duplicate() {
    let mut s = Script::connect(&asking(AckControlMode::Unilateral, &[RequestRule::Everything]));
    s.run(
        "0   > S 0
         10         < S. 0 ack 1 mss 1000
         10  > . 1 ack 1
         10  ! write 3000
         10  > . 1+1000 ack 1
         10  > . 0+1 ack 1 why ack_probe
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         20         < . 1 ack 1001
         20         < . 1 ack 1001
         20  ! recovery Open",
    );
    assert_eq!(s.connection.counters().confirmed, 1);
}

/// Breaks: two ends that answer each other's ACKs, for ever.
#[test]
fn an_ack_without_data_is_not_answered() {
    for (control, peer, flags) in
        [(AckControlMode::Safe, "can 3", "."), (AckControlMode::Flag, "can 7", ".D")]
    {
        let mut s = Script::accept(&asking(control, &[]), &format!("S 0 mss 1000 {peer}"));
        s.run(&format!("0 > S. 0 ack 1 can {}", if flags == "." { 11 } else { 15 }));
        s.run(&format!("10 < . 1 ack 1\n 20 < {flags} 1 ack 1 asks\n 500 ! quiet"));
        assert_eq!(s.connection.counters().requests, 0);
    }
}

/// Breaks: an answer is a segment of its own though short data leaves at the same moment.
#[test]
fn an_answer_rides_on_short_data() {
    let settings = Settings { nagle: Some(true), ..asking(AckControlMode::Safe, &[]) };
    let mut s = Script::accept(&settings, "S 0 mss 1000 can 3");
    s.run(
        "0   > S. 0 ack 1 can 11
         10         < . 1 ack 1
         20  ! write 10
         20  > . 1+10 ack 1
         21  ! write 10
         30         < . 1+500 ack 11 asks
         30  > . 11+10 ack 501 confirms 0
         40         < . 501 ack 21
         500 ! quiet",
    );
}

/// Breaks: a rate that was not agreed on is heeded.
#[test]
fn a_rate_needs_the_agreement() {
    let mut s = Script::accept(&asking(AckControlMode::Safe, &[]), "S 0 mss 1000 can 3");
    s.run(
        "0   > S. 0 ack 1 can 11
         10         < . 1 ack 1
         20         < . 1+1000 ack 1 rate 100
         21         < . 1001+1000 ack 1
         21  > . 1 ack 2001 why ack_now",
    );
}

/// Breaks: with TARR nobody says which segment an ACK answers: one for more than the segment that asked, or
/// for an earlier sending, measures nothing.
#[test]
fn tarr_answers_are_inferred_with_care() {
    let settings = Settings { timestamps: Some(true), ..asking(AckControlMode::Tarr, &[RequestRule::Rtt]) };
    for (ack, confirmed) in [("981 ts 520/10", 1), ("1969 ts 520/10", 0), ("981 ts 520/9", 0)] {
        let mut s = Script::connect(&settings);
        s.run(&format!(
            "0   > S 0 ts 0/0 tarr
             10         < S. 0 ack 1 mss 1012 ts 500/0 tarr
             10  > . 1 ack 1 ts 10/500
             10  ! write 1968
             10  > . 1+980 ack 1 rate 0
             10  > . 981+988 ack 1
             30         < . 1 ack {ack}"
        ));
        assert_eq!(s.connection.counters().confirmed, confirmed, "{ack}");
    }
}

/// Breaks: the round trip of a segment that asked is without the time for which the peer says to have held
/// the ACK; more than the round trip cannot be, and counts for nothing.
#[test]
fn the_hold_time_comes_off() {
    for (held, undelayed) in [(0, 30), (10, 20), (40, 30)] {
        let settings =
            Settings { rto: Some(Rto::Cdl), ..asking(AckControlMode::Safe, &[RequestRule::Everything]) };
        let mut s = Script::connect(&settings);
        s.run(&format!(
            "0   > S 0 can 11 tarr
             10         < S. 0 ack 1 mss 1000 can 11
             10  > . 1 ack 1
             10  ! write 992
             10  > . 1+992 ack 1 asks
             40         < . 1 ack 993 confirms {held}"
        ));
        let expected = Some(Span::from_millis(undelayed));
        assert_eq!(s.connection.inspect().undelayed_srtt, expected, "held for {held} ms");
    }
}

/// Breaks: after a timeout an ACK confirms a segment of which a copy may be under way (Karn).
#[test]
fn a_timeout_voids_all_requests() {
    let settings =
        Settings { nagle: Some(false), ..asking(AckControlMode::Safe, &[RequestRule::Everything]) };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 can 11 tarr
         10         < S. 0 ack 1 mss 1000 can 11
         10  > . 1 ack 1
         10  ! write 1984
         10  > . 1+992 ack 1 asks
         10  > . 993+992 ack 1 asks
         210 > . 1+992 ack 1 why timeout_retransmit
         220        < . 1 ack 1985 confirms 0",
    );
    assert_eq!(s.connection.counters().confirmed, 0);
}

/// Breaks: the D-SACK that answers an old byte is taken for one that answers a retransmission, and undoes the
/// cut for a loss that was one.
#[test]
fn the_answer_to_an_old_byte_undoes_nothing() {
    let settings = Settings {
        profile: Some(Profile::Prr),
        sack: Some(true),
        undo: Some(true),
        initial_window: Some(Packets::new(6)),
        ..asking(AckControlMode::Unilateral, &[RequestRule::Everything])
    };
    let mut s = Script::connect(&settings);
    s.run(
        "0   > S 0 sackok
         10         < S. 0 ack 1 mss 1000 sackok
         10  > . 1 ack 1
         10  ! write 9000
         10  > . 1+1000 ack 1
         10  > . 0+1 ack 1 why ack_probe
         10  > . 1001+1000 ack 1
         10  > . 2001+1000 ack 1
         10  > . 3001+1000 ack 1
         10  > . 4001+1000 ack 1
         10  > . 5001+1000 ack 1
         20         < . 1 ack 1 sack 0-1
         21         < . 1 ack 1 sack 3001-6001,1001-2001
         21  > . 1+1000 ack 1 why fast_retransmit
         21  > . 2001+1000 ack 1 why fast_retransmit
         21  > . 6001+1000 ack 1
         21  > . 0+1 ack 1 why ack_probe
         30         < . 1 ack 1 sack 0-1,3001-6001,1001-2001
         32         < . 1 ack 2001 sack 3001-6001
         32  > . 7001+1000 ack 1
         32  > . 2000+1 ack 1 why ack_probe
         42         < . 1 ack 2001 sack 2000-2001,3001-6001
         55         < . 1 ack 2001 sack 3001-7001
         55  > . 8001+1000 ack 1
         55  > . 2000+1 ack 1 why ack_probe
         65         < . 1 ack 2001 sack 2000-2001,3001-7001
         65  ! recovery Recovery",
    );
}
