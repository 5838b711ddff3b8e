//! TCP-STAR's acknowledgement error notification: what a timeout was about, in both forms.

use crate::{sending, settings, timestamped};
use farpace_events::Cause;
use farpace_tcp::config::{Profile, Settings, TimeoutProcedure};

fn probing(timeout: TimeoutProcedure) -> Settings {
    Settings { timeout: Some(timeout), ..settings(Profile::Rfc6675) }
}

fn verdicts(s: &crate::Script, cause: Cause) -> u64 {
    s.connection.counters().window_changes.of(cause)
}

/// At this time all of the second ten segments leave.
fn expect_new_data(s: &mut crate::Script, ms: u32) {
    for i in 10..20 {
        s.run(&format!("{ms} > . {}+1000 ack 1 why new_data", 1 + i * 1000));
    }
}

/// Breaks: the paper's cure: after a timeout that only lost ACKs caused, the newest segment alone goes again,
/// and its answer opens the whole window for new data.
#[test]
fn acks_were_lost() {
    for form in [TimeoutProcedure::Aen, TimeoutProcedure::AenLiteral] {
        let mut s = sending(&probing(form), 20_000, 10);
        s.run(
            "210 > . 9001+1000 ack 1 why aen_probe
             210 ! cwnd 10
             220        < . 1 ack 10001 sack 9001-10001
             220 ! recovery Open
             220 ! cwnd 20",
        );
        expect_new_data(&mut s, 220);
        assert_eq!(verdicts(&s, Cause::AenAcksLost), 1);
        assert_eq!(verdicts(&s, Cause::CutTimeout), 0);
    }
}

/// Breaks: ACKs that were late: they move SND.UNA, nothing is sent, and the probe still decides.
#[test]
fn acks_were_late() {
    let mut s = sending(&probing(TimeoutProcedure::Aen), 20_000, 10);
    s.run(
        "210 > . 9001+1000 ack 1 why aen_probe
         212        < . 1 ack 1001               # room for new data, which waits for the verdict
         213        < . 1 ack 9001
         214        < . 1 ack 10001
         214 ! recovery Open",
    );
    expect_new_data(&mut s, 214);
    assert_eq!(verdicts(&s, Cause::AenAcksLost), 1);
}

/// Breaks: the literal form: an ACK that was late and stays below the probe counts as its answer, so that the
/// window is lost.
#[test]
fn literally_a_late_ack_is_the_answer() {
    let mut s = sending(&probing(TimeoutProcedure::AenLiteral), 10_000, 10);
    s.run(
        "210 > . 9001+1000 ack 1 why aen_probe
         212        < . 1 ack 1001
         212 ! recovery Loss
         212 > . 1001+1000 ack 1 why timeout_retransmit
         212 > . 2001+1000 ack 1 why loss_retransmit",
    );
    assert_eq!(verdicts(&s, Cause::AenDataLost), 1);
}

/// Breaks: repair, a round trip later than without the probe, where data was lost; what the probe's ACK SACKs
/// is not sent again.
#[test]
fn data_was_lost() {
    for form in [TimeoutProcedure::Aen, TimeoutProcedure::AenLiteral] {
        let mut s = sending(&probing(form), 10_000, 10);
        s.run(
            "210 > . 9001+1000 ack 1 why aen_probe
             220        < . 1 ack 1 sack 9001-10001
             220 ! recovery Loss
             220 ! ssthresh 5
             220 > . 1+1000 ack 1 why timeout_retransmit
             230        < . 1 ack 1001 sack 9001-10001
             230 > . 1001+1000 ack 1 why loss_retransmit
             230 > . 2001+1000 ack 1",
        );
        assert_eq!(verdicts(&s, Cause::AenDataLost), 1);
        assert_eq!(verdicts(&s, Cause::CutTimeout), 1);
    }
}

/// Breaks: a probe that is not answered: at twice the timeout the head goes, as without it.
#[test]
fn the_probe_was_lost() {
    let mut s = sending(&probing(TimeoutProcedure::Aen), 10_000, 10);
    s.run(
        "210 > . 9001+1000 ack 1 why aen_probe
         610 > . 1+1000 ack 1 why timeout_retransmit
         610 ! recovery Loss
         610 ! cwnd 1",
    );
    assert_eq!(verdicts(&s, Cause::AenProbeLost), 1);
}

/// Breaks: the repair after a probe that was lost: each further timeout would ask again, while the head waits
/// twice as long. The paper asks each time.
#[test]
fn the_repair_was_lost_too() {
    let mut s = sending(&probing(TimeoutProcedure::Aen), 10_000, 10);
    s.run(
        "210 > . 9001+1000 ack 1 why aen_probe
         610 > . 1+1000 ack 1 why timeout_retransmit
         1410 > . 1+1000 ack 1 why timeout_retransmit
         3010 > . 1+1000 ack 1 why timeout_retransmit",
    );
    assert_eq!(verdicts(&s, Cause::AenProbeLost), 1);
    let mut s = sending(&probing(TimeoutProcedure::AenLiteral), 10_000, 10);
    s.run(
        "210 > . 9001+1000 ack 1 why aen_probe
         610 > . 1+1000 ack 1 why timeout_retransmit
         1410 > . 9001+1000 ack 1 why aen_probe",
    );
}

/// Breaks: an answer known before it is asked: the newest segment was SACKed, so there are holes.
#[test]
fn holes_need_no_probe() {
    let mut s = sending(&probing(TimeoutProcedure::Aen), 3_000, 3);
    s.run(
        "20         < . 1 ack 1 sack 2001-3001
         210 > . 1+1000 ack 1 why timeout_retransmit",
    );
    assert_eq!(verdicts(&s, Cause::AenDataLost), 1);
}

/// Breaks: the newest segment alone was lost: the probe repairs it, and the loss costs what one loss costs.
#[test]
fn the_tail_was_lost() {
    let mut s = timestamped(&probing(TimeoutProcedure::Aen));
    s.run(
        "20         < . 1 ack 2001 ts 5010/10
         220 > . 2001+1000 ack 1 why aen_probe
         230        < . 1 ack 3001 ts 5220/220
         230 ! recovery Open
         230 ! ssthresh 2",
    );
    assert_eq!(verdicts(&s, Cause::AenTailLost), 1);
    assert_eq!(verdicts(&s, Cause::CutTailLoss), 1);
}

/// Breaks: the answer by timestamp, from a receiver whose SACK says nothing of the probe.
#[test]
fn the_echo_of_the_probe_is_its_answer() {
    let mut s = timestamped(&probing(TimeoutProcedure::Aen));
    s.run(
        "210 > . 2001+1000 ack 1 why aen_probe
         212        < . 1 ack 1001 ts 5202/10     # late, and says nothing
         213        < . 1 ack 1001 ts 5203/210
         213 > . 1001+1000 ack 1 why timeout_retransmit",
    );
    assert_eq!(verdicts(&s, Cause::AenDataLost), 1);
}
