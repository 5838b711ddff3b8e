//! Linux 2.6: quick ACKs at the start and after trouble, then a timer that follows the sender's pace.

use super::DataArrival;
use farpace_units::{Instant, Span};

const ATO_MIN: Span = Span::from_millis(40);
const DELAY_MAX: Span = Span::from_millis(200);
/// Most ACKs that are sent at once before delaying begins.
const MAX_QUICK: u32 = 16;

/// The quick-ACK counter and the delayed-ACK timeout (ato).
#[derive(Clone, Debug, Default)]
pub struct QuickAck {
    quick: u32,
    /// None before the first data.
    ato: Option<Span>,
    last: Instant,
}

impl QuickAck {
    /// Data has arrived; true while every segment is acknowledged at once.
    pub fn on_data(&mut self, a: &DataArrival, full_size: u32) -> bool {
        let since = a.now.since(self.last);
        self.last = a.now;
        match self.ato {
            None => {
                self.arm(a, full_size);
                self.ato = Some(ATO_MIN);
            }
            Some(ato) if since <= ATO_MIN / 2 => self.ato = Some(ato / 2 + ATO_MIN / 2),
            Some(ato) if since < ato => self.ato = Some((ato / 2 + since).min(a.rto)),
            Some(_) if since > a.rto => self.arm(a, full_size),
            Some(_) => {}
        }
        if a.duplicate {
            self.arm(a, full_size);
            self.ato = Some(ATO_MIN);
        }
        self.quick > 0
    }

    fn arm(&mut self, a: &DataArrival, full_size: u32) {
        let n = (a.window / (2 * full_size.max(1))).max(2);
        self.quick = self.quick.max(n.min(MAX_QUICK));
    }

    /// How long the next ACK may wait: ato, at most a round trip, between 40 and 200 ms.
    pub fn delay(&self, srtt: Span) -> Span {
        let most = if srtt.is_zero() { DELAY_MAX } else { srtt.max(ATO_MIN).min(DELAY_MAX) };
        self.ato.unwrap_or(ATO_MIN).max(ATO_MIN).min(most)
    }

    /// One quick ACK is spent.
    pub fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::{AckPolicy, Decision};
    use crate::config::DelayedAck;
    use farpace_trace::Cause;

    fn arrival(ms: u64, unacknowledged: u32) -> DataArrival {
        DataArrival {
            now: Instant::ZERO + Span::from_millis(ms),
            len: 1448,
            disorder: false,
            duplicate: false,
            unacknowledged,
            window: 1448 * 2500,
            rto: Span::from_millis(210),
            srtt: Span::from_millis(10),
        }
    }

    /// Breaks: the ACK clock of the first round trips, on which slow start depends.
    #[test]
    fn sixteen_quick_acks_then_every_second() {
        let mut p = AckPolicy::new(DelayedAck::Linux26);
        for i in 0..16 {
            assert_eq!(p.on_data(&arrival(i, 1448)), Decision::Now(Cause::AckNow), "quick ACK {i}");
            p.on_ack_sent();
        }
        let held = arrival(20, 1448);
        assert_eq!(p.on_data(&held), Decision::Hold(held.now + Span::from_millis(40)));
        assert_eq!(p.on_data(&arrival(20, 2896)), Decision::Now(Cause::AckNow));
        p.on_ack_sent();
        let duplicate = DataArrival { duplicate: true, ..arrival(21, 0) };
        assert_eq!(p.on_data(&duplicate), Decision::Now(Cause::AckOutOfOrder));
        p.on_ack_sent();
        assert_eq!(
            p.on_data(&arrival(21, 1448)),
            Decision::Now(Cause::AckNow),
            "quick again after a duplicate"
        );
    }

    /// Breaks: RFC 5681 §4.2, an ACK at least for every second full-size segment.
    #[test]
    fn rfc5681_every_second() {
        let mut p = AckPolicy::new(DelayedAck::Rfc5681);
        assert_eq!(p.on_data(&arrival(0, 1448)), Decision::Hold(Instant::ZERO + Span::from_millis(40)));
        assert_eq!(p.on_data(&arrival(0, 2896)), Decision::Now(Cause::AckNow));
    }
}
