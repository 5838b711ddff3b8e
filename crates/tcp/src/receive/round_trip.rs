//! The round trip as a receiver sees it, who sends nothing that could be timed.

use farpace_units::{Instant, Seq, Span};

/// A round-trip estimate from timestamps that come back on data, or else from the time that a full window
/// takes.
///
/// Both are upper bounds while the sender has nothing to send: the estimate is for autotuning, which errs
/// towards a larger window then.
#[derive(Clone, Debug, Default)]
pub struct ReceiverRtt {
    srtt: Span,
    /// The timestamp that the last sample was made of.
    last_echo: Option<u32>,
    /// The number that ends the window announced at this time.
    mark: Option<(Seq, Instant)>,
}

impl ReceiverRtt {
    /// The handshake was timed.
    pub fn on_handshake(&mut self, rtt: Span) {
        self.srtt = rtt;
    }
    /// Data has come that echoes our timestamp `echo`, `rtt` after it was sent.
    pub fn on_echo(&mut self, echo: u32, rtt: Span) {
        if self.last_echo.replace(echo) == Some(echo) {
            return; // later segments of a flight only tell how long it is
        }
        self.srtt = if self.srtt.is_zero() { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
    }
    /// Data up to `rcv_nxt` has come, and the window announced ends at `rcv_adv`. For connections without
    /// timestamps.
    pub fn on_data(&mut self, now: Instant, rcv_nxt: Seq, rcv_adv: Seq) {
        match self.mark {
            Some((mark, _)) if rcv_nxt.before(mark) => return,
            Some((_, since)) => self.srtt = self.srtt.max(now.since(since)),
            None => {}
        }
        self.mark = Some((rcv_adv, now));
    }
    /// The estimate; zero if there is none.
    pub fn get(&self) -> Span {
        self.srtt
    }
}
