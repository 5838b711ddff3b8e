//! Round-trip estimation and the retransmission timeout: how long to wait before a segment counts as lost.

mod linux26;
mod min_rtt;
mod rfc6298;
mod timed;

pub use linux26::Linux26;
pub use min_rtt::MinRtt;
pub use rfc6298::Rfc6298;
pub use timed::Timed;

use crate::config;
use farpace_units::{Instant, Seq, Span};

/// One measured round trip, and the ACK that ended it.
#[derive(Clone, Copy, Debug)]
pub struct RttSample {
    /// When the ACK arrived.
    pub now: Instant,
    /// From the sending of the first segment that it acknowledges, or told by a timestamp: what RFC 6298 takes.
    pub rtt: Span,
    /// From the sending of a segment that had asked for an ACK at once and got it; none if none did.
    pub undelayed: Option<Span>,
    /// SND.UNA.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
}

/// The estimators behind one front. Back-off (RFC 6298 §5.5) is kept here, because all have it: it doubles
/// at each expiry and ends with the next valid sample (Karn).
#[derive(Clone, Debug)]
pub struct RtoEstimator {
    kind: Kind,
    backoff: u32,
}

#[derive(Clone, Debug)]
enum Kind {
    Rfc6298(Rfc6298),
    Linux26(Linux26),
}

/// Longest retransmission timeout (RFC 6298 §2.5 asks for 60 s at least; Linux has 120 s).
pub const MAX_RTO: Span = Span::from_secs(120);

impl RtoEstimator {
    /// An estimator without a sample.
    pub fn new(kind: config::Rto, min_rto: Span) -> Self {
        let kind = match kind {
            config::Rto::Rfc6298 | config::Rto::Net2 | config::Rto::Cdl => {
                Kind::Rfc6298(Rfc6298::new(min_rto))
            }
            config::Rto::Linux26 => Kind::Linux26(Linux26::default()),
        };
        RtoEstimator { kind, backoff: 0 }
    }

    /// A valid sample: of a segment sent once, or told by a timestamp.
    pub fn sample(&mut self, s: &RttSample) {
        self.backoff = 0;
        match &mut self.kind {
            Kind::Rfc6298(e) => e.sample(s.rtt),
            Kind::Linux26(e) => e.sample(s.rtt, s.snd_una, s.snd_nxt),
        }
    }

    /// True for estimators that take their samples from timestamps wherever there are any.
    pub fn prefers_timestamps(&self) -> bool {
        matches!(self.kind, Kind::Linux26(_))
    }

    /// The timer fired: wait twice as long next time.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// The SYN had to be repeated, so nothing was measured: data begins with 3 s (RFC 6298 §5.7).
    pub fn restart_after_syn_timeout(&mut self) {
        self.backoff = 0;
        if let Kind::Rfc6298(e) = &mut self.kind {
            e.restart_after_syn_timeout();
        }
    }

    /// The timeout in force, back-off included.
    pub fn rto(&self) -> Span {
        let base = match &self.kind {
            Kind::Rfc6298(e) => e.rto(),
            Kind::Linux26(e) => e.rto(),
        };
        (base * (1u64 << self.backoff)).min(MAX_RTO)
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Span {
        match &self.kind {
            Kind::Rfc6298(e) => e.srtt(),
            Kind::Linux26(e) => e.srtt(),
        }
    }

    /// Its variation (for Linux 2.6: the part that is added to srtt, i.e. four deviations or the floor).
    pub fn rttvar(&self) -> Span {
        match &self.kind {
            Kind::Rfc6298(e) => e.rttvar(),
            Kind::Linux26(e) => e.rttvar(),
        }
    }
}
