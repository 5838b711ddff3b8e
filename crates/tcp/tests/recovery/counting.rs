//! RFC 6675: detection by counting, the pipe, NextSeg; RFC 9937 on top of it.

use crate::{sending, settings};
use farpace_tcp::config::{Profile, Settings};

/// Breaks: RFC 6675 §4 IsLost by bytes, §5 steps 4.1 to 4.3 and the pipe: half of the flight at once, the
/// first segment whatever the window says, new data when the pipe has room again.
#[test]
fn more_than_two_segments_above_the_hole() {
    let mut s = sending(&settings(Profile::Rfc6675), 40_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         20  > . 10001+1000 ack 1                 # limited transmit: one has left the network
         20  ! recovery Disorder
         21         < . 1 ack 1 sack 1001-3001
         21  > . 11001+1000 ack 1
         22         < . 1 ack 1 sack 1001-4001    # 3000 bytes above the hole
         22  > . 1+1000 ack 1 why fast_retransmit
         22  ! recovery Recovery
         22  ! ssthresh 5                         # half of ten: limited transmit does not count (RFC 5681 \
         §3.2)
         22  ! cwnd 5
         23         < . 1 ack 1 sack 1001-5001    # pipe: 12 - 4 - 1 + 1 = 8
         24         < . 1 ack 1 sack 1001-6001
         25         < . 1 ack 1 sack 1001-7001
         26         < . 1 ack 1 sack 1001-8001    # 5
         27         < . 1 ack 1 sack 1001-9001    # 4: room
         27  > . 12001+1000 ack 1 why new_data
         32         < . 1 ack 9001                # the retransmission: four out, room for one
         32  > . 13001+1000 ack 1
         32  ! recovery Recovery
         33         < . 1 ack 11001
         33  ! recovery Recovery
         33  > . 14001+1000 ack 1
         33  > . 15001+1000 ack 1
         34         < . 1 ack 12001               # all that was out when recovery began
         34  ! recovery Open
         34  ! cwnd 5
         34  > . 16001+1000 ack 1",
    );
}

/// Breaks: RFC 6675 §4 IsLost by runs: three separate runs above a segment prove it lost, however small they
/// are.
#[test]
fn three_runs_above_the_hole() {
    let mut s = sending(&settings(Profile::Rfc6675), 10_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 2001-3001
         21         < . 1 ack 1 sack 4001-5001,2001-3001
         21  ! recovery Disorder
         22         < . 1 ack 1 sack 6001-7001,4001-5001,2001-3001
         22  > . 1+1000 ack 1 why fast_retransmit
         22  ! recovery Recovery
         22  ! ssthresh 5",
    );
}

/// Breaks: RFC 6675 §5 step 1: three duplicates are enough where segments are too small to count by bytes.
#[test]
fn three_duplicates_of_small_segments() {
    let settings = Settings { nagle: Some(false), ..settings(Profile::Rfc6675) };
    let mut s = crate::Script::established(&settings, 60_000);
    for i in 0..5 {
        s.run(&format!("10 ! write 100\n10 > . {}+100 ack 1", 1 + i * 100));
    }
    s.run(
        "20         < . 1 ack 1 sack 101-201
         21         < . 1 ack 1 sack 101-301
         21  ! recovery Disorder
         22         < . 1 ack 1 sack 101-401
         22  > . 1+100 ack 1 why fast_retransmit",
    );
}

/// Breaks: RFC 6675 NextSeg rules 3 and 4: with nothing new to send, the holes that are not proved lost go
/// again, and then the last segment, once per recovery.
#[test]
fn forward_and_rescue_retransmission() {
    let mut s = sending(&settings(Profile::Rfc6675), 8000, 8);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         21         < . 1 ack 1 sack 1001-3001
         22         < . 1 ack 1 sack 1001-4001
         22  > . 1+1000 ack 1 why fast_retransmit
         22  ! cwnd 4
         23         < . 1 ack 1 sack 5001-6001,1001-4001      # a hole at 4001, 1000 bytes above it
         24         < . 1 ack 1 sack 5001-7001,1001-4001      # pipe 3: room
         24  > . 4001+1000 ack 1 why forward_retransmit
         32         < . 1 ack 4001 sack 5001-7001
         32  > . 7001+1000 ack 1 why forward_retransmit
         33         < . 1 ack 7001
         33  ! write 1000
         33  > . 8001+1000 ack 1 why new_data     # there is room, but no second rescue
         33  ! quiet
         34         < . 1 ack 8001
         34  ! recovery Open
         35         < . 1 ack 9001",
    );
}

/// Breaks: RFC 9937 §6.2: the window comes down in proportion to what arrives, not at once, and ends at the
/// threshold.
#[test]
fn proportional_rate_reduction() {
    let mut s = sending(&settings(Profile::Prr), 40_000, 10);
    s.run(
        "20         < . 1 ack 1 sack 1001-2001
         20  > . 10001+1000 ack 1
         21         < . 1 ack 1 sack 1001-3001
         21  > . 11001+1000 ack 1
         22         < . 1 ack 1 sack 1001-4001    # RecoverFS 12 - 3 + 1, target 5: half a segment for each
         22  ! ssthresh 5
         22  > . 1+1000 ack 1 why fast_retransmit
         23         < . 1 ack 1 sack 1001-5001    # ceil(2 * 0.5) - 1 sent
         24         < . 1 ack 1 sack 1001-6001    # ceil(3 * 0.5) - 1
         24  > . 12001+1000 ack 1 why new_data
         25         < . 1 ack 1 sack 1001-7001    # ceil(4 * 0.5) - 2
         26         < . 1 ack 1 sack 1001-8001    # ceil(5 * 0.5) - 2
         26  > . 13001+1000 ack 1
         27         < . 1 ack 1 sack 1001-9001    # 5 in flight: what arrives may be replaced from here
         32         < . 1 ack 12001
         32  ! recovery Open
         32  ! cwnd 5
         32  > . 14001+1000 ack 1
         32  > . 15001+1000 ack 1
         32  > . 16001+1000 ack 1",
    );
}
