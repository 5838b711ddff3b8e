//! RACK as Linux has it (RFC 8985 §6): a segment is lost when one that was sent later has arrived and the
//! reordering window has passed.
//!
//! Linux keeps all segments in the order in which they were last sent, and takes those that it finds lost off
//! that list until they are sent again. Here originals, which leave in the order of their numbers, have a
//! mark up to which they are off the list, and copies stand in a queue of their own.

use super::*;
use crate::rto::TcpClock;
use crate::segments::SegmentRow;
use std::collections::VecDeque;

/// Recoveries without D-SACK after which the reordering window shrinks again.
const PERSIST: u8 = 16;
const MAX_STEPS: u64 = 255;

/// When something was sent, and its end: the later of two that left at once is the one with the higher end.
type LinuxRackOrder = (Instant, Seq);

fn after(a: LinuxRackOrder, b: LinuxRackOrder) -> bool {
    a.0 > b.0 || (a.0 == b.0 && a.1.after(b.1))
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug)]
struct LinuxRackCopy {
    seq: Seq,
    sent_at: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LinuxRack {
    /// The segment sent last that has arrived.
    latest: Option<LinuxRackOrder>,
    /// Its round trip.
    pub rtt: Span,
    advanced: bool,
    pub reordering_seen: bool,
    pub dsack_seen: bool,
    /// The newest segment that the acknowledgment at hand told of was sent at.
    newest: Option<Instant>,
    adapted_at: Option<Instant>,
    /// Less one.
    steps: u64,
    persist: u8,
    /// Originals before this are off the list.
    judged: Option<Seq>,
    copies: VecDeque<LinuxRackCopy>,
}

/// The acknowledged segment was sent again in vain: the echo is older than that.
pub(super) fn is_spurious(row: &SegmentRow, tags: Tags, ack: &AckInput<'_>, clock: TcpClock) -> bool {
    let again = tags.any(Tags::EVER_RETRANSMITTED.with(Tags::RETRANSMITTED));
    let Some(age) = ack.rtt_by_timestamp.filter(|_| again && ack.tsecr != Some(0)) else { return false };
    let made = clock.ticks(ack.now).saturating_sub(age.as_nanos() / clock.tick().as_nanos());
    made < clock.ticks(row.sent_at)
}

impl LinuxRack {
    /// `row` has arrived.
    pub fn advance(&mut self, now: Instant, row: &SegmentRow, tags: Tags, min_rtt: Option<Span>) {
        self.newest = Some(self.newest.map_or(row.sent_at, |n| n.max(row.sent_at)));
        let rtt = now.since(row.sent_at);
        let again = tags.any(Tags::EVER_RETRANSMITTED.with(Tags::RETRANSMITTED));
        if again && min_rtt.is_some_and(|min| rtt < min) {
            return; // too soon for the copy: the original, or an earlier copy
        }
        self.advanced = true;
        self.rtt = rtt;
        let order = (row.sent_at, row.end());
        if self.latest.is_none_or(|latest| after(order, latest)) {
            self.latest = Some(order);
        }
    }

    /// The segment at `index` was sent again just now.
    pub fn on_retransmit(&mut self, now: Instant, index: usize, segments: &Segments) {
        let Some(row) = segments.row(index) else { return };
        self.copies.push_back(LinuxRackCopy { seq: row.seq, sent_at: now });
        if self.copies.len() > 64 + 2 * segments.len() {
            self.copies.retain(|c| Self::current(c, segments).is_some());
        }
    }

    /// What was judged before SND.UNA says nothing more: numbers come round again (RFC 9293 §3.4).
    pub fn forget_judged(&mut self, snd_una: Seq) {
        self.judged = self.judged.filter(|judged| judged.after(snd_una));
    }

    /// Nothing is outstanding.
    pub fn forget_copies(&mut self) {
        self.copies = VecDeque::new();
    }

    fn current(copy: &LinuxRackCopy, segments: &Segments) -> Option<usize> {
        let index = segments.index_at_or_after(copy.seq);
        let row = segments.row(index)?;
        (row.seq == copy.seq && row.sent_at == copy.sent_at).then_some(index)
    }

    /// Losses were taken back: what is out is to be looked at again.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// A D-SACK undid a reduction; or a recovery ended without.
    pub fn persist(&mut self, undone: bool) {
        self.persist = if undone { (self.persist + 1).min(PERSIST) } else { self.persist.saturating_sub(1) };
    }

    /// RFC 8985 §6.2 step 4: the window grows with D-SACKs, once in a round trip.
    pub fn adapt(&mut self, now: Instant, switches: &Linux) {
        let Some(newest) = self.newest.take().filter(|_| !switches.static_reordering_window) else { return };
        if self.adapted_at.is_some_and(|at| newest < at) {
            self.dsack_seen = false;
        }
        if std::mem::take(&mut self.dsack_seen) {
            self.steps = (self.steps + 1).min(MAX_STEPS - 1);
            self.persist = PERSIST;
            self.adapted_at = Some(now);
        } else if self.persist == 0 {
            self.steps = 0;
        }
    }
}

impl LinuxRecovery {
    fn reordering_window(&self, cx: &Context<'_>) -> Span {
        self.measured_window(cx).max(cx.min_rtt.reordering())
    }

    fn measured_window(&self, cx: &Context<'_>) -> Span {
        if !self.rack.reordering_seen {
            if self.state >= RecoveryState::Recovery {
                return Span::ZERO;
            }
            if cx.segments.sacked_out().get() >= self.reordering && !self.switches.no_duplicate_threshold {
                return Span::ZERO;
            }
        }
        let quarter = cx.min_rtt.get().unwrap_or(Span::ZERO) / 4;
        (quarter * (1 + self.rack.steps)).min(cx.rto.srtt())
    }

    /// How long until this segment counts as lost, if it is not already.
    pub(super) fn keep_alive(&self, now: Instant, row: &SegmentRow, window: Span) -> Option<Span> {
        let left = (self.rack.rtt + window).as_nanos().saturating_sub(now.since(row.sent_at).as_nanos());
        (left > 0).then(|| Span::from_nanos(left))
    }

    /// Marks what is lost. Gives how long the last of the others has.
    pub(super) fn detect(&mut self, now: Instant, cx: &mut Context<'_>) -> Option<Span> {
        let latest = self.rack.latest?;
        let window = self.reordering_window(cx);
        let mut wait = None;
        let segments = &mut *cx.segments;
        let again = Tags::EVER_RETRANSMITTED.with(Tags::RETRANSMITTED);
        let mut at = self.rack.judged.map_or(0, |seq| segments.index_at_or_after(seq));
        let mut off = true;
        while let Some(row) = segments.row(at).copied() {
            let tags = segments.tags(at);
            // Copies have their own place; what is SACKed, or lost and not sent again, has none.
            if !tags.any(again.with(Tags::SACKED).with(Tags::LOST)) {
                if !after(latest, (row.sent_at, row.end())) {
                    break;
                }
                match self.keep_alive(now, &row, window) {
                    Some(left) => {
                        wait = wait.max(Some(left));
                        off = false;
                    }
                    None => self.lose(at, segments),
                }
            } else if tags.any(Tags::LOST) && !tags.any(again) && off && !self.off_the_list(&row) {
                off = false; // a timeout has marked it: it stays on the list
            }
            at += 1;
            if off {
                self.rack.judged = segments.row(at).map(|r| r.seq).or_else(|| segments.end());
            }
        }
        let mut kept = 0;
        while let Some(copy) = self.rack.copies.get(kept).copied() {
            let Some(index) = LinuxRack::current(&copy, segments) else {
                self.rack.copies.remove(kept);
                continue;
            };
            let (Some(row), tags) = (segments.row(index).copied(), segments.tags(index)) else { break };
            let waits = tags.any(Tags::LOST) && !tags.any(Tags::RETRANSMITTED);
            if tags.any(Tags::SACKED) {
                self.rack.copies.remove(kept); // it is off the kernel's list, too
                continue;
            }
            if waits {
                kept += 1;
                continue;
            }
            if !after(latest, (row.sent_at, row.end())) {
                break;
            }
            match self.keep_alive(now, &row, window) {
                Some(left) => {
                    wait = wait.max(Some(left));
                    kept += 1;
                }
                None => {
                    self.lose(index, segments);
                    self.rack.copies.remove(kept);
                }
            }
        }
        wait
    }

    /// It was found lost here, and not by a timeout.
    fn off_the_list(&self, row: &SegmentRow) -> bool {
        self.rack.judged.is_some_and(|judged| row.seq.before(judged))
    }

    /// After an acknowledgment: marks what is lost. True: a timer waits for the rest.
    pub(super) fn find_lost(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        if !std::mem::take(&mut self.rack.advanced) {
            return false;
        }
        let Some(wait) = self.detect(now, cx) else { return false };
        self.timer.start(LinuxTimer::Reordering, now + timer::bounded(wait + timer::MIN, cx.rto.rto()));
        true
    }
}
