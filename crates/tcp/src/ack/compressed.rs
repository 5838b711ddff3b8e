//! Compressed SACKs of Linux (`tcp_comp_sack_delay_ns`, `_slack_ns` and `_nr`): from the fourth ACK of the
//! same number on, ACKs of data ahead of its turn wait for a timer, and one stands for all.
//!
//! Such ACKs come in bunches, and so does what they let the sender send.

use super::DataArrival;
use farpace_units::{Instant, Seq, Span};

/// Longest wait (`tcp_comp_sack_delay_ns`).
const MAX_DELAY: Span = Span::from_millis(1);
/// The wait is this part of the round trip, if that is shorter: 5 %.
const SHARE: u64 = 20;
/// How late the timer may be, and is on a host that nothing else wakes (`tcp_comp_sack_slack_ns`).
const SLACK: Span = Span::from_micros(100);
/// Most ACKs that wait (`tcp_comp_sack_nr`).
const MAX_HELD: u8 = 44;
/// ACKs of one number that are sent at once: fast retransmit of the peer counts three duplicates.
const AT_ONCE: u8 = 3;

/// Which ACKs of data ahead of its turn wait.
#[derive(Clone, Debug, Default)]
pub struct CompressedSacks {
    /// RCV.NXT, of which `at_once` counts the ACKs.
    number: Seq,
    at_once: u8,
    /// ACKs that wait.
    held: u8,
    /// None ever waits.
    off: bool,
}

impl CompressedSacks {
    /// Every ACK is sent at once.
    pub fn off() -> Self {
        CompressedSacks { off: true, ..CompressedSacks::default() }
    }

    /// Data has come, and some waits behind a hole: until when its ACK may wait, if none waits already; none:
    /// not at all.
    pub fn hold(&mut self, a: &DataArrival) -> Option<Instant> {
        if self.off || !a.sack || self.held >= MAX_HELD {
            return None;
        }
        if self.number != a.next {
            (self.number, self.at_once) = (a.next, 0);
        }
        if self.at_once < AT_ONCE {
            self.at_once += 1;
            return None;
        }
        self.held += 1;
        Some(a.now + delay(a))
    }

    /// An ACK went out: it stands for those that waited.
    pub fn on_ack_sent(&mut self) {
        self.held = 0;
    }

    /// ACKs wait.
    pub fn any(&self) -> bool {
        self.held > 0
    }
}

/// By the smaller of both estimates of the round trip; no estimate of the receiver is a round trip of zero.
fn delay(a: &DataArrival) -> Span {
    let rtt = if a.srtt.is_zero() { a.receive_rtt } else { a.receive_rtt.min(a.srtt) };
    (rtt / SHARE).min(MAX_DELAY) + SLACK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(at: u64, next: u32, rtt: u64) -> DataArrival {
        DataArrival {
            now: Instant::ZERO + Span::from_micros(at),
            next: Seq::new(next),
            receive_rtt: Span::from_millis(rtt),
            sack: true,
            ..DataArrival::default()
        }
    }

    /// Until when, in microseconds.
    fn waits(sacks: &mut CompressedSacks, at: u64, next: u32, rtt: u64) -> Option<u64> {
        let until = sacks.hold(&arrival(at, next, rtt));
        until.map(|until| until.since(Instant::ZERO).as_nanos() / 1000)
    }

    /// Breaks: the sender's fast retransmit waits for a timer of the receiver, or no ACK ever waits.
    #[test]
    fn three_of_each_number_leave_at_once() {
        let mut sacks = CompressedSacks::default();
        for number in [1000, 2000] {
            for at in 0..3 {
                assert_eq!(waits(&mut sacks, at, number, 100), None);
            }
        }
        assert_eq!(waits(&mut sacks, 10, 2000, 100), Some(1110));
        assert!(sacks.any());
        sacks.on_ack_sent();
        assert!(!sacks.any());
        assert_eq!(
            waits(&mut sacks, 1200, 2000, 100),
            Some(2300),
            "the number is the same: it waits at once"
        );
    }

    /// Breaks: on a LAN an ACK waits for longer than a round trip; or more wait than Linux holds.
    #[test]
    fn waits_are_bounded_by_the_round_trip_and_by_their_number() {
        let mut sacks = CompressedSacks { number: Seq::new(1), at_once: 3, ..CompressedSacks::default() };
        assert_eq!(waits(&mut sacks, 0, 1, 2), Some(200), "a twentieth of 2 ms, and the slack");
        for _ in 1..44 {
            assert!(waits(&mut sacks, 1, 1, 2).is_some());
        }
        assert_eq!(waits(&mut sacks, 1, 1, 2), None);
        let without = DataArrival { sack: false, ..arrival(0, 1, 2) };
        sacks.on_ack_sent();
        assert_eq!(sacks.hold(&without), None, "a duplicate ACK without SACK is all that the peer has");
        let mut sacks = CompressedSacks { at_once: 3, ..CompressedSacks::off() };
        assert_eq!(waits(&mut sacks, 0, 0, 2), None);
    }
}
