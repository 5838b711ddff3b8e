//! Linux 2.6: quick ACKs at the start and after trouble, then a timer that follows the sender's pace.

use super::DataArrival;
use farpace_units::{Instant, Span};

const ATO_MIN: Span = Span::from_millis(40);
const DELAY_MAX: Span = Span::from_millis(200);
/// Most ACKs that are sent at once before delaying begins.
const MAX_QUICK: u32 = 16;

/// The quick-ACK counter and the delayed-ACK timeout (ato).
#[derive(Clone, Debug, Default)]
pub struct QuickAck26 {
    quick: u32,
    /// None before the first data.
    ato: Option<Span>,
    last: Instant,
}

impl QuickAck26 {
    /// Data has arrived: until when its ACK may wait; none: not at all.
    pub fn on_data(&mut self, a: &DataArrival, full_size: u32) -> Option<Instant> {
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
        let now = self.quick > 0 || a.unacknowledged > full_size;
        (!now).then(|| a.now + self.delay(a.srtt))
    }

    fn arm(&mut self, a: &DataArrival, full_size: u32) {
        let n = (a.window / (2 * full_size.max(1))).max(2);
        self.quick = self.quick.max(n.min(MAX_QUICK));
    }

    /// How long the next ACK may wait: ato, at most a round trip, between 40 and 200 ms.
    fn delay(&self, srtt: Span) -> Span {
        let most = if srtt.is_zero() { DELAY_MAX } else { srtt.max(ATO_MIN).min(DELAY_MAX) };
        self.ato.unwrap_or(ATO_MIN).max(ATO_MIN).min(most)
    }

    /// One quick ACK is spent.
    pub fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }
}
