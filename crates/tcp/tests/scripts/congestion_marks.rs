//! Explicit congestion notification on a connection (RFC 3168, RFC 9768).

use crate::script::{Script, plain};
use farpace_tcp::config::{EcnMode, Settings};
use farpace_units::Packets;

fn ecn(mode: EcnMode) -> Settings {
    Settings { ecn: Some(mode), initial_window: Some(Packets::new(4)), ..plain() }
}

/// Breaks: RFC 3168 at the sender: what is offered, which segments may be marked, one cut for each round
/// trip, and CWR on the first new data after it.
#[test]
fn classic_sender() {
    let mut s = Script::connect(&ecn(EcnMode::On));
    s.run(
        "0   > SEW 0
         10         < S.E 0 ack 1 win 60000 mss 1000
         10  > . 1 ack 1 ecn none
         10  ! write 9000
         10  > . 1+1000 ack 1 ecn ect0
         10  > . 1001+1000 ack 1 ecn ect0
         10  > . 2001+1000 ack 1 ecn ect0
         10  > . 3001+1000 ack 1 ecn ect0
         20         < .E 1 ack 1001
         20  ! recovery Cwr
         20  ! cwnd 2
         20  ! ssthresh 2
         21         < .E 1 ack 2001                   # the same round trip: no further cut
         22         < .E 1 ack 3001
         22  > .W 4001+1000 ack 1 ecn ect0
         22  ! cwnd 2
         30         < . 1 ack 4001
         30  ! cwnd 3
         30  > . 5001+1000 ack 1 ecn ect0
         30  > . 6001+1000 ack 1 ecn ect0
         230 > . 4001+1000 ack 1 ecn none why timeout_retransmit",
    );
}

/// Breaks: RFC 3168 at the receiver: marks are echoed in every acknowledgment until the sender has reduced
/// its window.
#[test]
fn classic_receiver() {
    let mut s = Script::accept(&ecn(EcnMode::On), "SEW 0 win 9000 mss 1000");
    s.run(
        "0   > S.E 0 ack 1
         10         < . 1 ack 1
         20         < . 1+1000 ack 1 ecn ce
         21         < . 1001+1000 ack 1 ecn ect0
         21  > .E 1 ack 2001
         30         < . 2001+1000 ack 1 ecn ect0
         31         < . 3001+1000 ack 1 ecn ect0
         31  > .E 1 ack 4001
         40         < .W 4001+1000 ack 1 ecn ect0
         41         < . 5001+1000 ack 1 ecn ect0
         41  > . 1 ack 6001",
    );
}

/// Breaks: RFC 8257 §3.2: the echo is that of the data acknowledged: at a change what came before is
/// acknowledged on its own, the new at once, and neither CWR nor acknowledgments change anything.
#[test]
fn dctcp_receiver() {
    let mut s = Script::accept(&ecn(EcnMode::Dctcp), "SEW 0 win 9000 mss 1000");
    s.run(
        "0   > S.E 0 ack 1
         10         < . 1 ack 1
         20         < . 1+1000 ack 1 ecn ect0
         21         < . 1001+1000 ack 1 ecn ce
         21  > . 1 ack 1001                            # unmarked, though the next one has come
         21  > .E 1 ack 2001
         30         < .W 2001+1000 ack 1 ecn ce
         31         < . 3001 ack 1
         32         < . 3001+1000 ack 1 ecn ce
         32  > .E 1 ack 4001                           # delayed as usual
         40         < . 4001+1000 ack 1 ecn ect0
         40  > . 1 ack 5001                            # nothing waited: one is enough
         50         < . 5001+1000 ack 1 ecn ect0
         51         < . 6001+1000 ack 1 ecn ect0
         51  > . 1 ack 7001",
    );
}

/// Breaks: a peer that does not know ECN, one that reflects the flags, and a SYN that has to be repeated:
/// nothing is marked then, and the connection works.
#[test]
fn without_agreement() {
    for answer in ["S.", "S.EW"] {
        let mut s = Script::connect(&ecn(EcnMode::On));
        s.run(&format!("0 > SEW 0\n 10 < {answer} 0 ack 1 mss 1000\n 10 > . 1 ack 1"));
        s.run("10 ! write 10\n 10 > . 1+10 ack 1 ecn none");
    }
    let mut s = Script::connect(&ecn(EcnMode::On));
    s.run("0 > SEW 0\n 1000 > S 0\n 1010 < S.E 0 ack 1 mss 1000\n 1010 > . 1 ack 1");
    s.run("1010 ! write 10\n 1010 > . 1+10 ack 1 ecn none");
    let mut s = Script::accept(&ecn(EcnMode::Off), "SEW 0 win 9000");
    s.run("0 > S. 0 ack 1");
}

/// Breaks: the receiver's side of RFC 9768: the handshake reflects codepoints, every segment has the count of
/// marks, and a change is told at once.
#[test]
fn accurate_receiver() {
    let mut s = Script::accept(&ecn(EcnMode::Accurate), "SEWe 0 win 9000 mss 1000 ecn ect0");
    s.run(
        "0   > S.e 0 ack 1                             # 0b100: the SYN came with ECT(0)
         10         < .W 1 ack 1                       # 0b010: our SYN-ACK came without
         20         < . 1+1000 ack 1 ecn ect0
         60  > .Ee 1 ack 1001 why ack_delayed          # 5
         70         < . 1001+1000 ack 1 ecn ce
         70  > .We 1 ack 2001 why ack_now              # 6, at once
         80         < . 2001+1000 ack 1 ecn ce
         81         < . 3001+1000 ack 1 ecn ce
         81  > . 1 ack 4001 why ack_now                # 8",
    );
}

/// Breaks: the sender's side: a count that has grown is a mark, and the window is cut once for each round
/// trip.
#[test]
fn accurate_sender() {
    let mut s = Script::connect(&ecn(EcnMode::Accurate));
    s.run(
        "0   > SEWe 0
         10         < S.W 0 ack 1 win 60000 mss 1000 ecn ect0
         10  > .e 1 ack 1                              # reflects ECT(0)
         10  ! write 4000
         10  > .Ee 1+1000 ack 1 ecn ect0
         10  > .Ee 1001+1000 ack 1 ecn ect0
         10  > .Ee 2001+1000 ack 1 ecn ect0
         10  > .Ee 3001+1000 ack 1 ecn ect0
         20         < .Ee 1 ack 1001                   # 5: none so far
         20  ! recovery Open
         21         < .We 1 ack 2001                   # 6
         21  ! recovery Cwr
         21  ! cwnd 2",
    );
    // An accurate client and a classic server.
    let mut s = Script::connect(&ecn(EcnMode::Accurate));
    s.run(
        "0 > SEWe 0\n 10 < S.E 0 ack 1 mss 1000\n 10 > . 1 ack 1\n 10 ! write 10\n 10 > . 1+10 ack 1 ecn \
           ect0",
    );
}
