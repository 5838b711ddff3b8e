//! RACK: a segment is lost when one that was sent later has arrived and the reordering window has passed
//! (RFC 8985 §6).
//!
//! The RFC walks all segments in the order in which they were last sent. Here that order is kept in two
//! parts: originals leave in the order of their sequence numbers, so one mark says up to where they have
//! been judged; retransmissions stand in a queue of their own. Each ACK then looks at what it changes only.

use crate::rto::TcpClock;
use crate::segments::{SegmentRow, Segments, Tags};
use farpace_units::{Instant, Seq, Span};
use std::collections::VecDeque;

/// SACKed segments that prove a loss while no reordering was seen (RFC 8985 DupThresh).
const DUP_THRESH: u32 = 3;
/// Recoveries without D-SACK after which the reordering window shrinks again.
const PERSIST: u32 = 16;

/// When a segment was last sent, among all others: what RFC 8985 calls xmit_ts and end_seq. Many segments may
/// leave at one instant; where the RFC lets the higher sequence number be the later one, this also knows
/// copies from originals: a copy left after all that had been sent by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RackOrder {
    xmit_ts: Instant,
    /// End of the original; of a copy, SND.NXT when it left.
    frontier: Seq,
    copy: bool,
    end_seq: Seq,
}

impl RackOrder {
    fn of(row: &SegmentRow, tags: Tags) -> Self {
        let copy = tags.any(Tags::EVER_RETRANSMITTED);
        let frontier = if copy { row.rtx_nxt } else { row.end() };
        RackOrder { xmit_ts: row.sent_at, frontier, copy, end_seq: row.end() }
    }

    /// RFC 8985 §6.2 RACK_sent_after.
    fn after(self, other: RackOrder) -> bool {
        if self.xmit_ts != other.xmit_ts {
            return self.xmit_ts > other.xmit_ts;
        }
        if self.frontier != other.frontier {
            return self.frontier.after(other.frontier);
        }
        if self.copy != other.copy {
            return self.copy;
        }
        self.end_seq.after(other.end_seq)
    }
}

/// A retransmission, in the order of sending. It is out of date when its row was sent again or has gone.
#[derive(Clone, Copy, Debug)]
struct RetransmittedCopy {
    seq: Seq,
    sent_at: Instant,
}

/// Variables of RFC 8985 §5.3 under their names there.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// The delivered segment that was sent last: RACK.segment.
    latest: Option<RackOrder>,
    rtt: Span,
    /// The segment of the ACK at hand that was sent last.
    newest: Option<RackOrder>,
    fack: Option<Seq>,
    reordering_seen: bool,
    dsack_round: Option<Seq>,
    reo_wnd_extra: u32,
    reo_wnd_persist: u32,
    /// Originals before this have been judged.
    judged: Option<Seq>,
    copies: VecDeque<RetransmittedCopy>,
    /// When all segments in the reordering window will count as lost.
    pub deadline: Option<Instant>,
}

/// What an ACK tells of the time when the segment it answers was sent.
#[derive(Clone, Copy, Debug)]
pub struct EchoedTimestamp {
    /// Arrival of the ACK.
    pub now: Instant,
    /// Age of the echoed timestamp, in whole ticks of its clock; none if the echo is not of the segment.
    pub age: Option<Span>,
    /// That clock.
    pub clock: TcpClock,
    /// Least round trip.
    pub min_rtt: Option<Span>,
    /// The length of a full segment, which that round trip belongs to.
    pub mss: u32,
}

impl EchoedTimestamp {
    /// The round trip that a segment of `len` bytes takes at least (RFC 8985 §6.2 step 2, condition 2). How
    /// much of that of a full one is the time of its bytes is not known: at most all of it. The end of the
    /// data, which a probe sends again, is faster than every full segment before it.
    fn least_for(&self, len: u32) -> Option<Span> {
        let mss = self.mss.max(1);
        self.min_rtt.map(|min| min * u64::from(len.min(mss)) / u64::from(mss))
    }
}

impl Rack {
    /// A segment was sent again.
    pub fn on_retransmit(&mut self, now: Instant, seq: Seq, segments: &Segments) {
        self.copies.push_back(RetransmittedCopy { seq, sent_at: now });
        // Entries behind the first one go out of date unseen; there is no need to keep them.
        if self.copies.len() > 64 + 2 * segments.retrans_out().get() as usize {
            self.copies.retain(|copy| Self::current(copy, segments).is_some());
        }
    }

    fn current(copy: &RetransmittedCopy, segments: &Segments) -> Option<usize> {
        let index = segments.index_at_or_after(copy.seq);
        let row = segments.row(index)?;
        let same = row.seq == copy.seq && row.sent_at == copy.sent_at;
        (same && segments.tags(index).any(Tags::RETRANSMITTED)).then_some(index)
    }

    /// Steps 2 and 3: `row` was newly acknowledged or SACKed; `tags` are those it had.
    pub fn on_delivered(&mut self, row: &SegmentRow, tags: Tags, echo: &EchoedTimestamp) {
        let retransmitted = tags.any(Tags::EVER_RETRANSMITTED);
        let end = row.end();
        match self.fack {
            Some(fack) if !end.after(fack) => {
                self.reordering_seen |= end != fack && !retransmitted;
            }
            _ => self.fack = Some(end),
        }
        let rtt = echo.now.since(row.sent_at);
        if retransmitted {
            // The echo is older than the copy: the original has arrived. Both count whole ticks.
            let tick = echo.clock.tick().as_nanos();
            let made = echo.age.map(|age| echo.clock.ticks(echo.now).saturating_sub(age.as_nanos() / tick));
            let before_copy = made.is_some_and(|made| made < echo.clock.ticks(row.sent_at));
            if before_copy || echo.least_for(row.len).is_some_and(|least| rtt < least) {
                return;
            }
        }
        // The RFC goes through the segments in the order of sending, so the last one sent has the last word.
        let order = RackOrder::of(row, tags);
        if self.newest.is_none_or(|newest| order.after(newest)) {
            self.newest = Some(order);
            self.rtt = rtt;
        }
        if self.latest.is_none_or(|latest| order.after(latest)) {
            self.latest = Some(order);
        }
    }

    /// Step 4, the part that D-SACKs drive: the window grows once per round trip that sees one.
    pub fn on_ack(&mut self, snd_una: Seq, snd_nxt: Seq, dsack: bool) {
        self.newest = None;
        if self.dsack_round.is_some_and(|round| snd_una.after_eq(round)) {
            self.dsack_round = None;
        }
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(snd_nxt);
            self.reo_wnd_extra = self.reo_wnd_extra.saturating_add(1);
            self.reo_wnd_persist = PERSIST;
        }
    }

    /// Segments have arrived out of order.
    pub fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// A retransmission proved to be in vain: segments do arrive out of order here.
    pub fn on_spurious(&mut self) {
        self.reordering_seen = true;
    }

    /// A recovery ends.
    pub fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_extra = 0;
        }
    }

    /// Step 4: the reordering window.
    pub fn reo_wnd(&self, in_recovery: bool, min_rtt: Option<Span>, srtt: Span, segments: &Segments) -> Span {
        if !self.reordering_seen && (in_recovery || segments.sacked_out().get() >= DUP_THRESH) {
            return Span::ZERO;
        }
        let quarter = min_rtt.unwrap_or(Span::ZERO) / 4;
        (quarter * (1 + u64::from(self.reo_wnd_extra))).min(srtt)
    }

    /// Step 5: marks what is lost, says how many segments that were, and sets the deadline for the rest.
    pub fn detect(&mut self, now: Instant, reo_wnd: Span, segments: &mut Segments) -> u32 {
        self.deadline = None;
        let Some(latest) = self.latest else { return 0 };
        let due = |sent_at: Instant| sent_at + self.rtt + reo_wnd;
        let mut lost = 0;
        let mut waiting = false;
        let mut at = self.judged.map_or(0, |seq| segments.index_at_or_after(seq));
        while let Some(index) = segments.find(at, segments.len(), Tags::COUNTED, Tags::NONE) {
            at = index;
            let Some(row) = segments.row(index) else { break };
            if !latest.after(RackOrder::of(row, segments.tags(index))) {
                break;
            }
            if due(row.sent_at) > now {
                waiting = true;
                break;
            }
            segments.mark_lost(index);
            lost += 1;
            at = index + 1;
        }
        self.judged = segments.row(at).map(|row| row.seq).or_else(|| segments.end());
        while let Some(copy) = self.copies.front() {
            let Some(index) = Self::current(copy, segments) else {
                self.copies.pop_front();
                continue;
            };
            let Some(row) = segments.row(index) else { break };
            if !latest.after(RackOrder::of(row, segments.tags(index))) {
                break;
            }
            if due(row.sent_at) > now {
                waiting = true;
                break;
            }
            segments.mark_retransmission_lost(index);
            self.copies.pop_front();
            lost += 1;
        }
        // Nothing that waits was sent after the reference, so by then all of it will count as lost.
        self.deadline = waiting.then(|| due(latest.xmit_ts));
        lost
    }

    /// §6.3: at a retransmission timeout the head is lost, and what was sent long enough ago.
    pub fn mark_at_timeout(&mut self, now: Instant, reo_wnd: Span, segments: &mut Segments) {
        for index in 0..segments.len() {
            let Some(row) = segments.row(index) else { break };
            if segments.tags(index).any(Tags::SACKED) || (index > 0 && row.sent_at + self.rtt + reo_wnd > now)
            {
                continue;
            }
            segments.clear_retransmitted(index);
            segments.mark_lost(index);
        }
        self.reset();
    }

    /// Tags were taken back or rewritten: everything is judged anew.
    pub fn reset(&mut self) {
        self.judged = None;
        self.deadline = None;
    }
}

#[cfg(test)]
mod tests;
