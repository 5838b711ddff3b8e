//! Segments of the sender: new data, and numbers that were passed over.

use super::{Half, ORIGIN, PeerState};
use crate::flow::acks::TICKS;
use crate::flow::loss::Pass;
use crate::flow::outstanding::Range;
use crate::frame::{CapturedSegment, Flags};
use farpace_units::{Instant, Span};

/// Segments in a row that show a length that is full, and the least such length (RFC 9293, section 3.7.1).
const MIN_ROW: u32 = 40;
const MIN_FULL: u32 = 500;
/// Segments that pass before what was lost in a silence is seen to be missing.
const MAX_REPAIR: u64 = 10;

impl Half {
    /// A segment of this direction's sender.
    pub(in crate::flow) fn sent(&mut self, segment: &CapturedSegment, peer: &PeerState) {
        let now = segment.time;
        self.counts.segments += 1;
        self.out.earn();
        if segment.flags.has(Flags::SYN) {
            return;
        }
        self.ids.see(segment.ip_id);
        self.missing_ids = self.missing_ids.saturating_add(self.ids.missing());
        if self.first_seq.is_none() {
            self.begin_in_the_middle(segment);
        }
        // In two-way flows ACKs of the peer's data use up the echoes.
        let answers = peer.spoke.is_some() && self.first_data.is_some() && self.fin.is_none();
        if let Some(sample) = self.log.echoed(now, segment.options.timestamps)
            && (segment.len > 0 || answers)
        {
            self.trips.near.add(sample);
            if let Some(slice) = self.timeline.last() {
                slice.near.add(sample);
            }
        }
        if segment.damaged == Some(true) {
            self.counts.damaged += 1;
            self.first_damaged.get_or_insert(segment.frame);
            // It never reached the receiver's TCP, whatever it says.
            return;
        }
        if segment.flags.has(Flags::FIN) {
            self.fin.get_or_insert((now, segment.frame));
            let end = self.offset(segment.seq) + u64::from(segment.len);
            self.data_end.get_or_insert(end);
        }
        if segment.len > 0 {
            self.data(segment, peer);
        }
    }

    fn begin_in_the_middle(&mut self, segment: &CapturedSegment) {
        self.first_seq = Some(segment.seq);
        self.began = Some(segment.time);
        for place in [&mut self.nxt, &mut self.una, &mut self.delivered_to, &mut self.sack_high] {
            *place = ORIGIN;
        }
        self.edge = self.edge.max(ORIGIN);
        self.log.known.una = ORIGIN;
    }

    fn data(&mut self, segment: &CapturedSegment, peer: &PeerState) {
        let now = segment.time;
        let start = self.offset(segment.seq);
        let end = start + u64::from(segment.len);
        let len = segment.len;
        let full = u64::from(self.full());
        if self.trips.near.n == 0 && self.near() < self.far().map(|far| far / 8) {
            self.log.answered(now);
        }
        self.log.advance(now, self.nxt, u64::from(len).min(full), full);
        // Window probes of one byte and keep-alives are no data.
        if len <= 1 && (end <= self.una || self.edge <= start) {
            self.counts.keep_alives += 1;
            return;
        }
        self.fit_scale(end);
        if !self.mss_is_agreed {
            self.lengths.see(len);
            self.mss = self.lengths.get();
        }
        self.counts.data_segments += 1;
        self.unpushed += u64::from(!segment.flags.has(Flags::PSH));
        self.note_length(len, segment.flags.has(Flags::PSH));
        self.counts.bytes += u64::from(len);
        match segment.ecn {
            3 => {
                self.counts.marked += 1;
                self.counts.ecn_capable += 1;
            }
            1 | 2 => self.counts.ecn_capable += 1,
            _ => {}
        }
        let full = self.full();
        // Where large segments vanish, the largest that arrive are full.
        let messages = self.writes_messages(self.mss, self.counts.largest);
        let most =
            if self.largest_delivered > 0 && !messages { full.min(self.largest_delivered) } else { full };
        let short = !len.is_multiple_of(full) && !len.is_multiple_of(most) && !segment.flags.has(Flags::FIN);
        self.note_burst(now, len);
        let wait = self.attribute(segment, start, end, peer);
        self.last_excess = self.log.one_way.excess().unwrap_or_default();
        let round = self.round();
        let known = self.log.known;
        let flight = self.nxt.max(end).saturating_sub(known.una).saturating_sub(known.sacked);
        let window = known.edge.saturating_sub(known.una);
        let slice = self.timeline.at(now, round);
        if slice.first_frame == 0 {
            slice.first_frame = segment.frame;
        }
        slice.last_frame = segment.frame;
        slice.segments += 1;
        slice.short += u32::from(short);
        slice.flight = slice.flight.max(flight);
        if known.edge > 0 {
            slice.window = slice.window.min(window);
        }
        if short {
            self.counts.short_segments += 1;
        }
        let (passed, queued) = (self.counts.bytes - u64::from(len), self.queued());
        let tsval = segment.options.tsval();
        self.passes.add(Pass {
            time: now,
            frame: segment.frame,
            passed,
            burst: self.burst,
            queued,
            len,
            tsval,
        });
        let new_from = start.max(self.nxt);
        if start < self.nxt {
            self.again(segment, start, end.min(self.nxt), wait);
        } else if start > self.nxt && self.nxt > ORIGIN.min(self.una) {
            // What was under way when the capture began is not missing: ACKs or the first segment tell of it.
            if self.is_first_round(now) {
                self.nxt = start;
            } else {
                self.hole(segment, start);
            }
        }
        if end > new_from {
            self.last_new = Some((now, self.counts.bytes));
            self.counts.largest = self.counts.largest.max(len);
            // A segment may also be short because it fills the window.
            self.last_short = short && self.log.known.edge > end;
            self.ends += u64::from(self.last_short);
            if let Some(slice) = self.timeline.last() {
                slice.sent += end - new_from;
            }
            self.push_new(segment, new_from, end, flight);
        }
        if self.first_data.is_none() {
            self.asked = peer.spoke;
        }
        self.first_data.get_or_insert((now, segment.frame));
        self.last_data = Some((now, segment.frame));
        self.missing_ids = 0;
        self.after_timeout.sent += u64::from(len.div_ceil(full));
    }

    fn push_new(&mut self, segment: &CapturedSegment, start: u64, end: u64, flight: u64) {
        let now = segment.time;
        let tsval = segment.options.tsval();
        let long = u64::from(segment.len) * 2 > u64::from(self.full());
        self.by_size[0][usize::from(long)] += 1;
        let passed = self.counts.bytes - u64::from(segment.len);
        self.out.push(Range {
            start,
            end,
            first: now,
            last: now,
            frame: segment.frame,
            last_frame: segment.frame,
            sent: 1,
            hole: false,
            sacked: false,
            tsval,
            first_tsval: tsval,
            ip_id: segment.ip_id,
            burst: self.burst,
            nxt: end,
            passed,
            loss: 0,
            flight: u32::try_from(flight).unwrap_or(u32::MAX),
            silence: Span::ZERO,
            before: now,
            queued: self.near_queue(),
        });
        self.last_queue = self.near_queue();
        self.nxt = end;
    }

    /// Many segments in a row that have the same length and are no ends of writes are full.
    fn note_length(&mut self, len: u32, pushed: bool) {
        let (usual, mut row, mut within) = self.same_length;
        let fits = usual > 0 && len.is_multiple_of(usual);
        (row, within) = if fits { (row + 1, within + u32::from(!pushed)) } else { (1, u32::from(!pushed)) };
        let usual = if fits { usual } else { len };
        self.same_length = (usual, row, within);
        if usual < MIN_FULL {
            return;
        }
        if row >= MIN_ROW && within * 2 >= row {
            self.shorter = (usual < self.counts.largest).then_some(usual);
        } else if self.shorter.is_some_and(|shorter| len > shorter && !len.is_multiple_of(shorter)) {
            self.shorter = None;
        }
    }

    /// Delay in queues as the newest samples have it.
    fn queued(&self) -> Span {
        let far = self.far_last - self.trips.far.min;
        far + self.near_queue()
    }

    fn near_queue(&self) -> Span {
        let least =
            if self.trips.near.n > 0 { self.trips.near.min } else { self.log.base.unwrap_or_default() };
        // The segment's own timestamp tells more of the moment than the echoes of the last ones.
        let late = self.log.one_way.excess().unwrap_or_default() - TICKS;
        let counts = late > self.base_rtt().unwrap_or_default() / 4;
        (self.log.distance() - least).max(if counts { late } else { Span::ZERO })
    }

    /// Counts packets that leave back to back: at more than twice the rate at which the bottleneck takes
    /// them.
    fn note_burst(&mut self, now: Instant, len: u32) {
        if let Some((last, _)) = self.last_data {
            let gap = now.since(last).as_nanos() as f64;
            let per_byte = gap / f64::from(len.max(1));
            let round = self.round().as_nanos() as f64;
            // Behind the bottleneck, trains have its rate; before it, they are faster. What is missing was
            // lost before this point, by the bottleneck as a rule; without timestamps no queue would tell
            // that from chance.
            let behind = self.counts.holes > 0 && self.clock().is_some();
            let before = !behind && self.log.distance() < self.far_recent;
            let faster = if before { 0.5 } else { 1.5 };
            let close = if self.line > 0.0 { per_byte < self.line * faster } else { gap * 32.0 < round };
            self.burst_before = self.burst;
            // A super-segment is a burst by itself.
            let more = (len / self.full().max(1)).clamp(1, 255) as u8;
            self.burst = if close { self.burst.saturating_add(more) } else { more - 1 };
        }
        let at = (8 - self.burst.leading_zeros()).min(8) as usize;
        self.bursts[at] += 1;
    }

    /// Numbers were passed over.
    fn hole(&mut self, segment: &CapturedSegment, start: u64) {
        let now = segment.time;
        let tsval = segment.options.tsval();
        let full = u64::from(self.full());
        // What was sent again meanwhile was sent after what is missing.
        let (before, passed) = self.last_new.unwrap_or((now, self.counts.bytes - u64::from(segment.len)));
        let missing = start - self.nxt;
        self.counts.holes += missing.div_ceil(full);
        // Much has passed since the silence: it was not lost in it. A timer sends few segments again.
        let since = passed.saturating_sub(self.passed_at_silence);
        let silence = if since > MAX_REPAIR * full { Span::ZERO } else { self.recent_silence };
        // What shows the hole may have come long after what is missing, which followed the segment before it.
        let queued = self.near_queue().max(self.last_queue);
        let mut at = self.nxt;
        // A range for each segment that must be missing, so that each can come by itself; a long hole stays
        // one.
        let step = if missing > full * 256 { missing } else { full };
        while at < start {
            let end = (at + step).min(start);
            self.out.push(Range {
                start: at,
                end,
                first: now,
                last: now,
                frame: segment.frame,
                last_frame: segment.frame,
                sent: 0,
                hole: true,
                sacked: false,
                tsval,
                first_tsval: None,
                ip_id: segment.ip_id,
                // After a packet that came alone, it came alone.
                burst: if self.burst_before > 0 { self.burst_before.saturating_add(1) } else { 0 },
                nxt: start,
                passed,
                loss: 0,
                flight: u32::try_from(self.nxt.saturating_sub(self.log.known.una)).unwrap_or(u32::MAX),
                silence,
                before,
                queued,
            });
            at = end;
        }
        self.nxt = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: when the path takes shorter segments from some time on, all later ones count as ends of
    /// writes, and the program as what limits; or a program that writes short messages makes them full.
    #[test]
    fn segments_that_became_shorter_are_full() {
        let mut half = Half::default();
        half.counts.largest = 1_448;
        let mut see = |n: u32, len: u32, pushed: bool| {
            (0..n).for_each(|_| half.note_length(len, pushed));
            half.shorter
        };
        assert_eq!(see(100, 1_448, false), None);
        assert_eq!(see(100, 1_200, true), None, "each ends a write");
        assert_eq!(see(100, 1_248, false), Some(1_248));
        assert_eq!(see(10, 2_496, false), Some(1_248), "super-segments of them");
        assert_eq!(see(1, 300, true), Some(1_248), "the end of a write");
        assert_eq!(see(1, 1_448, false), None, "a probe has found that the path takes more again");
    }
}
