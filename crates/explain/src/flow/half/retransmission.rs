//! Data that had been sent before, or that fills a hole.

use super::{Half, ORIGIN};
use crate::flow::loss::{FlowLoss, Trigger};
use crate::flow::timeline::Wait;
use crate::frame::CapturedSegment;
use farpace_units::{Instant, Span};

/// Late within this of a hole, where no round trip is known yet: reordered.
const REORDERED_WITHIN: Span = Span::from_millis(3);
/// Work for a segment that was sent again, in ranges that are looked at.
const WORK_PER_LOSS: usize = 16;

impl Half {
    /// Something between SND.UNA and SND.NXT, or below, again.
    pub(super) fn again(&mut self, segment: &CapturedSegment, start: u64, end: u64, wait: Wait) {
        let now = segment.time;
        let tsval = segment.options.tsval();
        let (least, nxt, una) = (self.least_round(), self.nxt, self.una);
        let known = self.log.known;
        let trigger = match wait {
            Wait::Timer if end >= nxt && start > known.una => Trigger::Probe,
            Wait::Timer => Trigger::Timeout,
            _ if self.loss_until.is_some_and(|until| start < until) => Trigger::Timeout,
            _ => Trigger::Fast,
        };
        let silence = self.last_data.map_or(Span::ZERO, |d| now.since(d.0));
        let mut late = None;
        let mut resent = 0;
        let mut needless = 0;
        let mut added: Vec<FlowLoss> = Vec::new();
        let mut lost_again = 0;
        let mut overlooked = 0;
        let sack_high = self.sack_high;
        let (samples, far_least, far_last) =
            (std::mem::take(&mut self.far_by_sent), self.trips.far.min, self.far_last);
        let before = |sent: Instant, n: usize| {
            let at = samples.partition_point(|(time, _)| *time <= sent);
            at.checked_sub(n).and_then(|at| samples.get(at)).map(|(_, span)| *span)
        };
        // The ACK of the segment before it may be that which the receiver would have delayed, and which what
        // follows the loss has called for. In a run of losses it waits until the run is over.
        let far = |sent: Instant| before(sent, 1).min(before(sent, 2));
        let far_queue = |sent: Instant| {
            let first = samples.front().map(|(_, span)| *span);
            far(sent).or(before(sent, 1)).or(first).unwrap_or(far_last) - far_least
        };
        let mut most_sent = self.most_sent;
        let passed = self.counts.bytes - u64::from(segment.len);
        let full = u64::from(self.full());
        let mut sizes = [0u64; 2];
        self.out.each_within(start.max(una), end, WORK_PER_LOSS, |range| {
            if range.hole {
                let waited = now.since(range.first);
                let older = match (tsval, range.tsval) {
                    (Some(own), Some(shown)) if own != shown => Some((own.wrapping_sub(shown) as i32) < 0),
                    _ => None,
                };
                let newer_id = segment.ip_id.wrapping_sub(range.ip_id) as i16;
                let by_id = (segment.ip_id != 0 && range.ip_id != 0 && newer_id.unsigned_abs() < 2_000)
                    .then_some(newer_id < 0);
                let soon = waited < least.map_or(REORDERED_WITHIN, |r| r * 4 / 5);
                let reordered = older.or(by_id.filter(|_| soon)).unwrap_or(soon);
                range.hole = false;
                range.last = now;
                range.last_frame = segment.frame;
                if reordered {
                    range.first = now;
                    range.frame = segment.frame;
                    range.sent = 1;
                    range.tsval = tsval;
                    range.first_tsval = tsval;
                    late = Some((nxt - range.start, waited));
                    return;
                }
                range.sent = 2;
                range.nxt = nxt;
                range.tsval = tsval;
                resent += range.len();
                sizes[usize::from(range.len() * 2 > full)] += 1;
                added.push(FlowLoss {
                    id: 0,
                    sent: range.first,
                    before: range.before,
                    frame: range.frame,
                    resent: now,
                    resent_frame: segment.frame,
                    offset: range.start - ORIGIN,
                    len: range.len() as u32,
                    upstream: true,
                    trigger,
                    spurious: false,
                    times: 1,
                    queued: range.queued,
                    far: None,
                    burst: range.burst,
                    flight: range.flight,
                    passed: range.passed,
                    silence: range.silence,
                    sacked_above: true,
                    tail: false,
                    overlooked: false,
                    copy: false,
                });
                return;
            }
            resent += range.len();
            range.sent += 1;
            most_sent = most_sent.max(range.sent);
            let seen_lost = range.sent > 2 && range.loss > 0;
            if seen_lost {
                lost_again += 1;
                if trigger == Trigger::Timeout && wait == Wait::Timer && sack_high > range.nxt {
                    overlooked += 1;
                }
            }
            if range.sacked {
                needless += 1;
            }
            // What was lost is the transmission before this one: the first, or one of its copies.
            let copy = range.loss != 0;
            if !copy {
                sizes[usize::from(range.len() * 2 > full)] += 1;
            }
            added.push(FlowLoss {
                id: 0,
                sent: range.last,
                before: range.last,
                frame: range.last_frame,
                resent: now,
                resent_frame: segment.frame,
                offset: range.start - ORIGIN,
                len: range.len() as u32,
                upstream: false,
                trigger,
                spurious: range.sacked,
                times: range.sent - 1,
                far: far(range.last),
                queued: far_queue(range.last) + if copy { Span::ZERO } else { range.queued },
                burst: if copy { 0 } else { range.burst },
                flight: range.flight,
                passed: range.passed,
                silence,
                sacked_above: sack_high > range.end,
                tail: range.end >= nxt,
                overlooked: false,
                copy,
            });
            range.nxt = nxt;
            range.last = now;
            range.last_frame = segment.frame;
            range.tsval = tsval;
            range.passed = passed;
        });
        for (to, from) in self.by_size[1].iter_mut().zip(sizes) {
            *to += from;
        }
        self.most_sent = most_sent;
        self.counts.lost_again += lost_again;
        self.counts.overlooked += overlooked;
        if let Some((bytes, time)) = late {
            self.counts.reordered += 1;
            self.lateness = (self.lateness.0.max(bytes), self.lateness.1.max(time));
            self.first_late.get_or_insert((segment.frame, now));
            if resent == 0 {
                self.far_by_sent = samples;
                return;
            }
        }
        // What had been acknowledged already when it passed.
        let below = una.min(end).saturating_sub(start);
        self.counts.retransmissions += 1;
        self.counts.retransmitted_bytes += resent + below;
        if resent == 0 && below > 0 {
            needless += 1;
            let within = self.round() * 2;
            self.stalls.needless_after(start.saturating_sub(ORIGIN), now, within);
            let id = self.losses.add(FlowLoss {
                id: 0,
                sent: now,
                before: now,
                frame: segment.frame,
                resent: now,
                resent_frame: segment.frame,
                offset: start.saturating_sub(ORIGIN),
                len: below as u32,
                upstream: false,
                trigger,
                spurious: true,
                times: 1,
                queued: far_queue(now),
                far: None,
                burst: 0,
                flight: 0,
                passed: self.counts.bytes,
                silence,
                sacked_above: false,
                tail: false,
                overlooked: false,
                copy: false,
            });
            self.stalls_of(id, segment, wait);
            self.stalls.set_spurious(id);
        }
        self.far_by_sent = samples;
        if needless > 0 {
            self.counts.spurious += 1;
        }
        let lost = added.iter().filter(|l| !l.spurious).count() as u32;
        if let Some(slice) = self.timeline.last() {
            slice.resent += resent + below;
            slice.losses += lost;
        }
        for loss in added {
            let (offset, upstream) = (loss.offset + ORIGIN, loss.upstream);
            let end = offset + u64::from(loss.len);
            let id = self.losses.add(loss);
            self.stalls_of(id, segment, wait);
            if !upstream {
                self.out.each_within(offset, end, 0, |range| range.loss = id);
            }
        }
        if wait == Wait::Timer {
            match trigger {
                Trigger::Probe => self.counts.probes += 1,
                _ => {
                    self.counts.timeouts += 1;
                    if let Some(slice) = self.timeline.last() {
                        slice.timeouts += 1;
                    }
                    self.loss_until = Some(nxt);
                    self.after_timeout.since.get_or_insert(now);
                    self.after_timeout.sent = 0;
                    let frames = self.after_timeout.frames.get_or_insert((segment.frame, segment.frame));
                    frames.1 = segment.frame;
                }
            }
        }
    }

    fn stalls_of(&mut self, id: u64, segment: &CapturedSegment, wait: Wait) {
        if wait == Wait::Timer {
            self.stalls.end_by(segment.frame, id);
        }
    }

    /// A retransmission was needless.
    pub(super) fn needless(&mut self, id: u64) {
        let Some(loss) = self.losses.get_mut(id) else {
            self.counts.spurious += 1;
            return;
        };
        if loss.spurious {
            return;
        }
        loss.spurious = true;
        self.counts.spurious += 1;
        self.stalls.set_spurious(id);
        if let Some(slice) = self.timeline.last() {
            slice.losses = slice.losses.saturating_sub(1);
        }
    }
}
