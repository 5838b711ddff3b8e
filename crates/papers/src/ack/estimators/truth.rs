//! When a segment would have been acknowledged, had its ACK not been delayed.
//!
//! The line is first in, first out, nothing is lost, and ACKs meet no queue, so each segment's arrival
//! follows from what was sent before it. The truth is computed from the sender's own records, segment by
//! segment. A receiver that acknowledges everything at once agrees with it to the nanosecond.

use farpace_events::{Cause, Record, RecordDirection};
use farpace_units::{ByteCount, Rate, Seq, Serialiser, Span};
use std::collections::VecDeque;

/// Ethernet, IPv4 and TCP with timestamps; of a SYN, with all that it offers.
const HEADERS: u64 = 14 + 20 + 20 + 12;
const SYN_HEADERS: u64 = 14 + 20 + 40;
/// Payload of a full segment, and of one that asks by an option: its frame is as long.
const FULL: [u64; 2] = [1448, 1440];

/// A path between two hosts: one line, with the same rate and delay in both directions, and no overhead of
/// frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneLinePath {
    pub rate: Rate,
    /// One way.
    pub delay: Span,
}

impl OneLinePath {
    /// The round trip of a full segment and its ACK when nothing waits.
    pub fn empty(self) -> Span {
        let full = ByteCount::new(HEADERS + FULL[0]);
        self.rate.time_for(full) + self.rate.time_for(ByteCount::new(HEADERS)) + self.delay * 2
    }
}

/// The segments in flight on such a path.
pub struct TrueRoundTrips {
    path: OneLinePath,
    line: Serialiser,
    /// Of each connection by its number.
    outstanding: Vec<VecDeque<InFlight>>,
}

struct InFlight {
    end: Seq,
    /// None if it was sent twice (Karn).
    rtt: Option<Span>,
}

impl TrueRoundTrips {
    /// An idle path.
    pub fn new(path: OneLinePath) -> Self {
        TrueRoundTrips { path, line: Serialiser::new(path.rate), outstanding: Vec::new() }
    }

    fn connection(&mut self, number: u32) -> Option<&mut VecDeque<InFlight>> {
        let number = usize::try_from(number).ok()?;
        if self.outstanding.len() <= number {
            self.outstanding.resize_with(number + 1, VecDeque::new);
        }
        self.outstanding.get_mut(number)
    }

    /// Takes a record of the sender, in the order of time. For an ACK: the true round trips of the segments
    /// that it acknowledges, in order.
    pub fn on_record(&mut self, r: &Record) -> Vec<Span> {
        match r.direction {
            RecordDirection::Internal => {}
            RecordDirection::Sent => self.sent(r),
            RecordDirection::Received => {
                let Some(all) = self.connection(r.connection) else { return Vec::new() };
                let mut done = Vec::new();
                while all.front().is_some_and(|s| s.end.before_eq(r.snd_una))
                    && let Some(sent) = all.pop_front()
                {
                    done.extend(sent.rtt);
                }
                return done;
            }
        }
        Vec::new()
    }

    fn sent(&mut self, r: &Record) {
        let syn = matches!(r.cause, Some(Cause::Syn | Cause::SynRetransmit));
        let frame = match r.len.get() {
            _ if syn => SYN_HEADERS,
            len if FULL.contains(&len) => HEADERS + FULL[0],
            len => HEADERS + len,
        };
        let left = self.line.send(r.time, ByteCount::new(frame));
        let back = self.path.rate.time_for(ByteCount::new(HEADERS)) + self.path.delay;
        let rtt = (left + self.path.delay + back).since(r.time);
        let length = u32::try_from(r.len.get()).unwrap_or(u32::MAX).max(u32::from(syn));
        let end = r.seq + length;
        let Some(all) = self.connection(r.connection) else { return };
        if r.cause.is_some_and(Cause::is_retransmission) {
            let again = all.iter_mut().filter(|s| s.end.after(r.seq) && s.end.before_eq(end));
            again.for_each(|s| s.rtt = None);
        } else if length > 0 {
            all.push_back(InFlight { end, rtt: Some(rtt) });
        }
    }
}
