//! RFC 5681 §3.1, RFC 6298 §5, RFC 8985 §6.3: the retransmission timeout.

use crate::{sending, settings};
use farpace_tcp::config::{MtuProbing, Profile, Settings, TimeoutProcedure};

fn without_probe() -> Settings {
    Settings {
        tail_loss_probe: Some(false),
        timeout: Some(TimeoutProcedure::Conventional),
        mtu_probing: Some(MtuProbing::Off),
        ..settings(Profile::RackTlp)
    }
}

/// Breaks: slow start after a timeout, with what is SACKed passed over.
#[test]
fn slow_start_over_the_holes() {
    let mut s = sending(&without_probe(), 10_000, 10);
    s.run(
        "210 > . 1+1000 ack 1 why timeout_retransmit
         210 ! ssthresh 5
         210 ! cwnd 1
         220        < . 1 ack 1001 sack 3001-5001
         220 > . 1001+1000 ack 1 why loss_retransmit
         220 > . 2001+1000 ack 1 why loss_retransmit
         230        < . 1 ack 5001                # one for each ACK after a timeout (RFC 3465 §2.3)
         230 > . 5001+1000 ack 1
         230 > . 6001+1000 ack 1
         230 > . 7001+1000 ack 1
         230 ! recovery Loss
         240        < . 1 ack 10001
         240 ! recovery Open",
    );
}

/// Breaks: RFC 6298 §5.5: the timer backs off while nothing is heard, and the threshold is cut only once.
#[test]
fn timeouts_in_a_row() {
    let mut s = sending(&without_probe(), 10_000, 10);
    s.run(
        "210  > . 1+1000 ack 1 why timeout_retransmit
         610  > . 1+1000 ack 1 why timeout_retransmit
         610  ! ssthresh 5
         1410 > . 1+1000 ack 1 why timeout_retransmit
         1410 ! ssthresh 5
         1420       < . 1 ack 10001
         1420 ! recovery Open",
    );
}
