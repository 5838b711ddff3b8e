//! SACK blocks of the receiver (RFC 2018), and D-SACK blocks (RFC 2883).

use super::{Half, ORIGIN};
use crate::frame::CapturedSegment;
use farpace_units::{Instant, Span};

impl Half {
    /// Takes the blocks of an ACK.
    pub(super) fn take_sack(&mut self, segment: &CapturedSegment, ack: u64, una_before: u64) {
        if segment.options.sack.is_empty() {
            self.sack_cache.clear();
            return;
        }
        self.counts.sack_acks += 1;
        let now = segment.time;
        let blocks: Vec<(u64, u64)> =
            segment.options.sack.iter().map(|(s, e)| (self.offset(*s), self.offset(*e))).collect();
        let mut taken = Vec::with_capacity(blocks.len());
        let mut newest: Option<(Span, Instant)> = None;
        let last_timer = self.last_timer;
        let mut sacked = 0;
        for (at, (start, end)) in blocks.iter().copied().enumerate() {
            if start >= end || end > self.nxt + (1 << 30) {
                continue;
            }
            let inside = blocks.get(1).is_some_and(|(s, e)| *s <= start && end <= *e);
            if at == 0 && (end <= ack.max(una_before) || start < ack || inside) {
                self.dsack(segment, start, end);
                continue;
            }
            if start < ack {
                continue;
            }
            taken.push((start, end));
            self.sack_high = self.sack_high.max(end);
            // What the last ACK's blocks said already.
            let (mut from, mut to) = (start, end);
            for (s, e) in &self.sack_cache {
                if *s <= from && from < *e {
                    from = *e;
                }
                if *s < to && to <= *e {
                    to = *s;
                }
            }
            if from >= to {
                continue;
            }
            self.out.each_within(from, to, 1, |range| {
                if range.sacked {
                    return;
                }
                range.sacked = true;
                sacked += range.len();
                if range.sent == 1 && !range.hole && range.first >= last_timer {
                    newest = Some((now.since(range.first), range.first));
                }
            });
        }
        self.sacked += sacked;
        if let Some((span, sent)) = newest {
            self.far_sample(span, sent);
        }
        self.sack_cache = taken;
    }

    /// The receiver says what it had already (RFC 2883).
    fn dsack(&mut self, segment: &CapturedSegment, start: u64, end: u64) {
        self.counts.dsacks += 1;
        self.first_dsack.get_or_insert(segment.frame);
        let (start, end) = (start.saturating_sub(ORIGIN), end.saturating_sub(ORIGIN));
        let found = self
            .losses
            .kept()
            .iter()
            .rev()
            .take(256)
            .find(|l| l.offset < end && start < l.offset + u64::from(l.len) && !l.spurious)
            .map(|l| (l.id, l.upstream));
        if let Some((id, false)) = found {
            self.needless(id);
        }
    }
}
