//! When the receiver acknowledges: at once, or after a while.
//!
//! What all forms share stands here: duplicates, and what fills a hole are acknowledged at once, and so is
//! what is out of order, but for what Linux compresses (RFC 5681 §4.2). The rest is one file for each form.

mod bsd;
mod compressed;
mod linux;
mod linux26;
mod nth;
#[cfg(test)]
mod tests;

use crate::config::DelayedAck;
use farpace_events::Cause;
use farpace_units::{Instant, Packets, Seq, Span};

/// A decision about one arrival of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Acknowledge now.
    Now(Cause),
    /// Not later than this.
    Hold(Instant),
}

/// What an arrival of data looked like to the receiver. What comes after `unacknowledged` only matters to
/// policies that [look closely](AckPolicy::looks_closely).
#[derive(Clone, Copy, Debug, Default)]
pub struct DataArrival {
    /// When.
    pub now: Instant,
    /// Payload bytes.
    pub len: u32,
    /// Payload bytes of each segment: less than `len` where a device has put several together.
    pub segment: u32,
    /// It was out of order, or filled a hole, or there are holes left.
    pub disorder: bool,
    /// It was all there already.
    pub duplicate: bool,
    /// Bytes received and not acknowledged, this segment included.
    pub unacknowledged: u32,
    /// Payload of the largest segment that the peer may send.
    pub most: u32,
    /// Bytes of options in its header.
    pub all_options: u32,
    /// Those that every segment of the connection has.
    pub usual_options: u32,
    /// It had PSH.
    pub push: bool,
    /// It had PSH, FIN or URG: it need not be full.
    pub ends: bool,
    /// Receive window in bytes.
    pub window: u32,
    /// The window that would be announced now is not smaller than the last one (Linux).
    pub steady: bool,
    /// It opens a receive window of Linux (tcp_grow_window).
    pub opens: bool,
    /// Payload of a full segment of our own.
    pub mss: u32,
    /// Our own retransmission timeout and smoothed round trip.
    pub rto: Span,
    /// Smoothed round-trip time; zero if unknown.
    pub srtt: Span,
    /// The round trip by what is received; zero if unknown.
    pub receive_rtt: Span,
    /// RCV.NXT, this segment included.
    pub next: Seq,
    /// Data still waits behind a hole.
    pub holes: bool,
    /// SACK was agreed on.
    pub sack: bool,
}

/// The receiver's acknowledgment policy.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    form: AckForm,
    /// Largest payload seen: what "a full-size segment" means (RFC 5681 §4.2).
    full_size: u32,
}

#[derive(Clone, Debug)]
enum AckForm {
    AtOnce,
    Nth(nth::EveryNth),
    Bsd(bsd::FastTimer),
    Linux26(linux26::QuickAck26),
    Linux(linux::QuickAck),
}

impl AckPolicy {
    /// The policy that was chosen; `delay` and `every` change it where it can be changed.
    pub fn new(kind: DelayedAck, delay: Option<Span>, every: Option<Packets>) -> Self {
        let form = match kind {
            DelayedAck::None => AckForm::AtOnce,
            DelayedAck::Rfc5681 => AckForm::Nth(nth::EveryNth::second(delay)),
            DelayedAck::Stretch => AckForm::Nth(nth::EveryNth::stretch(delay, every)),
            DelayedAck::Bsd => AckForm::Bsd(bsd::FastTimer::new(delay)),
            DelayedAck::Linux26 => AckForm::Linux26(linux26::QuickAck26::default()),
            DelayedAck::Linux => AckForm::Linux(linux::QuickAck::default()),
            DelayedAck::Linux417 => AckForm::Linux(linux::QuickAck::without_compression()),
        };
        AckPolicy { form, full_size: 0 }
    }

    /// It asks for all of a [`DataArrival`], as the kernels do.
    #[inline]
    pub fn looks_closely(&self) -> bool {
        matches!(self.form, AckForm::Bsd(_) | AckForm::Linux26(_) | AckForm::Linux(_))
    }

    /// Data has arrived: when is it acknowledged?
    pub fn on_data(&mut self, a: &DataArrival) -> Decision {
        self.full_size = self.full_size.max(a.segment);
        let hold = match &mut self.form {
            AckForm::AtOnce => None,
            AckForm::Nth(form) => form.on_data(a, self.full_size),
            AckForm::Bsd(form) => form.on_data(a),
            AckForm::Linux26(form) => form.on_data(a, self.full_size),
            AckForm::Linux(form) => form.on_data(a),
        };
        match hold {
            _ if a.disorder || a.duplicate => Decision::Now(Cause::AckOutOfOrder),
            Some(until) => Decision::Hold(until),
            None => Decision::Now(Cause::AckNow),
        }
    }

    /// Data has arrived ahead of its turn: when is it acknowledged? It tells how long segments are (Linux).
    pub fn on_early(&mut self, a: &DataArrival) -> Decision {
        let hold = match &mut self.form {
            AckForm::Linux(form) => form.on_early(a),
            AckForm::AtOnce | AckForm::Nth(_) | AckForm::Bsd(_) | AckForm::Linux26(_) => None,
        };
        hold.map_or(Decision::Now(Cause::AckOutOfOrder), Decision::Hold)
    }

    /// ACKs of data that arrived ahead of its turn are held back.
    pub fn holds_sacks(&self) -> bool {
        matches!(&self.form, AckForm::Linux(form) if form.holds_sacks())
    }

    /// The peer's FIN has arrived in order, perhaps with data: when is it acknowledged?
    pub fn on_fin(&mut self, a: &DataArrival) -> Decision {
        let hold = match &mut self.form {
            AckForm::Linux(form) => form.on_fin(a),
            AckForm::AtOnce | AckForm::Nth(_) | AckForm::Bsd(_) | AckForm::Linux26(_) => None,
        };
        hold.map_or(Decision::Now(Cause::AckNow), Decision::Hold)
    }

    /// A segment without data has come while an ACK waits; `srtt` is our own. True: the ACK should go now.
    pub fn on_other(&self, now: Instant, srtt: Span) -> bool {
        matches!(&self.form, AckForm::Linux(form) if form.on_other(now, srtt))
    }

    /// The peer asks for one ACK for so many segments from now on (TARR).
    pub fn set_rate(&mut self, segments: Packets) {
        self.form = AckForm::Nth(nth::EveryNth::stretch(None, Some(segments.max(Packets::new(1)))));
    }

    /// The bytes that have an ACK of their own, however they arrive; none: before there was data, and where
    /// segments that arrive as one have one ACK, as in the kernels.
    pub fn part(&self) -> Option<u32> {
        match &self.form {
            AckForm::Nth(form) if self.full_size > 0 => Some(form.part(self.full_size)),
            _ => None,
        }
    }

    /// Largest payload of a segment so far, in bytes.
    pub fn full_size(&self) -> u32 {
        self.full_size
    }

    /// An acknowledgment went out, alone or with data; `owed`: one was due, now or later.
    pub fn on_ack_sent(&mut self, owed: bool) {
        match &mut self.form {
            AckForm::Linux26(form) => form.on_ack_sent(),
            AckForm::Linux(form) => form.on_ack_sent(owed),
            AckForm::AtOnce | AckForm::Nth(_) | AckForm::Bsd(_) => {}
        }
    }

    /// Data of our own went out.
    pub fn on_data_sent(&mut self, now: Instant) {
        if let AckForm::Linux(form) = &mut self.form {
            form.on_data_sent(now);
        }
    }

    /// The time for which an acknowledgment was held back is over; `rto` is our own timeout. Why it is sent
    /// now.
    pub fn on_timer(&mut self, rto: Span) -> Cause {
        match &mut self.form {
            AckForm::Linux(form) => form.on_timer(rto),
            AckForm::AtOnce | AckForm::Nth(_) | AckForm::Bsd(_) | AckForm::Linux26(_) => Cause::AckDelayed,
        }
    }

    /// The handshake is complete.
    pub fn begin(&mut self, now: Instant, mss: u32, window: u32) {
        if let AckForm::Linux(form) = &mut self.form {
            form.begin(now, mss, window);
        }
    }
    /// For how long an ACK would be held back; zero where there is no such estimate.
    pub fn timeout(&self) -> Span {
        if let AckForm::Linux(form) = &self.form { form.timeout() } else { Span::ZERO }
    }
    /// What counts as a full-size segment of the peer, where full ones of our own have `mss` bytes of
    /// payload.
    pub fn segment(&self, mss: u32, window: u32) -> u32 {
        match &self.form {
            AckForm::Linux(form) => form.segment(mss, window),
            _ if self.full_size > 0 => self.full_size,
            _ => mss,
        }
    }

    /// ACKs leave at once for a while, or wait as in a conversation (TCP_QUICKACK).
    pub fn set_quick(&mut self, quick: bool) {
        match &mut self.form {
            AckForm::Linux(form) => form.set_quick(quick),
            AckForm::Nth(form) => form.set_quick(quick),
            AckForm::AtOnce | AckForm::Bsd(_) | AckForm::Linux26(_) => {}
        }
    }

    /// ACKs do not wait as in a conversation.
    pub fn is_quick(&self) -> bool {
        match &self.form {
            AckForm::Linux(form) => form.is_quick(),
            AckForm::Nth(form) => form.is_quick(),
            AckForm::AtOnce | AckForm::Bsd(_) | AckForm::Linux26(_) => true,
        }
    }

    /// The application has read all there is. True: an acknowledgment that waits should go now.
    pub fn on_all_read(&self) -> bool {
        matches!(&self.form, AckForm::Linux(form) if form.on_all_read())
    }
}
