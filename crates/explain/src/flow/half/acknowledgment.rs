//! Segments of the other side, which acknowledge, and the round trips that they tell of.

use super::{DELAYED_ACK, Half, ORIGIN};
use crate::flow::acks::Ack;
use crate::frame::{CapturedSegment, Flags};
use farpace_units::{Instant, Span};

/// Samples of round trips that are kept for the question how long queues were when a segment was lost.
const MAX_SAMPLES: usize = 512;

/// How much later than two round trips the ACK of a lone segment comes where no timer was waited for.
const MAX_LATE: Span = Span::from_millis(50);

impl Half {
    /// A segment of the other side, which acknowledges.
    pub(in crate::flow) fn acked(&mut self, segment: &CapturedSegment, has_data: bool) {
        let now = segment.time;
        if !segment.flags.has(Flags::ACK) || segment.flags.has(Flags::RST) {
            return;
        }
        if segment.damaged == Some(true) {
            return;
        }
        if self.first_seq.is_none() {
            // Data was never seen: begin where the ACK says.
            self.first_seq = Some(segment.ack);
            self.began = Some(now);
            for place in [&mut self.nxt, &mut self.una, &mut self.delivered_to, &mut self.sack_high] {
                *place = ORIGIN;
            }
            self.log.known.una = ORIGIN;
        }
        let ack = self.offset(segment.ack);
        let syn = segment.flags.has(Flags::SYN);
        let window = u64::from(segment.window) << if syn { 0 } else { self.scale };
        // An old ACK says nothing new.
        if ack + (1 << 30) < self.una || ack > self.nxt + (1 << 30) {
            return;
        }
        self.counts.acks += 1;
        self.out.earn();
        self.counts.pure_acks += u64::from(!has_data);
        if segment.flags.has(Flags::ECE) && !syn {
            self.counts.echoes += 1;
            if let Some(slice) = self.timeline.last() {
                slice.echoes += 1;
            }
        }
        self.note_ack_id(segment.ip_id, !has_data);
        if window == 0 && !syn {
            self.counts.zero_windows += 1;
            self.first_zero_window.get_or_insert(segment.frame);
        }
        self.largest_window = self.largest_window.max(window);
        let edge = ack + window;
        let before = self.una;
        let advanced = ack.saturating_sub(before);
        if ack > self.nxt {
            // Acknowledged, and never seen. A FIN takes a number of its own.
            let unseen = ack - self.nxt;
            if unseen > 1 && self.counts.data_segments > 0 && !self.is_first_round(now) {
                self.counts.unseen += unseen.div_ceil(u64::from(self.full()));
                self.counts.unseen_bytes += unseen;
            }
            self.nxt = ack;
        }
        let sacked_before = self.sacked;
        if advanced > 0 {
            self.advance_una(segment, ack, advanced);
        } else if advanced == 0
            && ack == before
            && self.nxt > self.una
            && !has_data
            && edge == self.edge
            && !syn
        {
            self.counts.duplicate_acks += 1;
        }
        // Across a loss much is acknowledged at once, which was read before.
        if advanced > 0 && self.sacked == 0 {
            let unread = advanced - edge.saturating_sub(self.edge).min(advanced);
            self.counts.unread_bytes += unread;
            if let Some(slice) = self.timeline.last() {
                slice.unread += unread;
            }
        }
        self.edge = if advanced > 0 || ack == before { edge } else { self.edge };
        self.take_sack(segment, ack, before);
        let advanced = self.data_end.map_or(advanced, |end| ack.min(end).saturating_sub(before.min(end)));
        let gained = advanced
            .saturating_sub(sacked_before.saturating_sub(self.sacked))
            .max(self.sacked.saturating_sub(sacked_before));
        if let Some(slice) = self.timeline.last() {
            slice.delivered += gained;
            let goes_on = self.nxt > self.una || gained > 0;
            slice.end = slice.end.max(if goes_on { now } else { slice.end });
        }
        // What was sent before the capture began is acknowledged in it, and that releases data as well.
        if ack >= before || before == ORIGIN {
            let tsval = segment.options.tsval();
            let una = self.una;
            self.log.push(
                Ack {
                    time: now,
                    una,
                    edge: self.edge,
                    window: u64::from(segment.window),
                    sacked: self.sacked,
                },
                tsval,
            );
        }
    }

    fn advance_una(&mut self, segment: &CapturedSegment, ack: u64, advanced: u64) {
        let now = segment.time;
        let echo = segment.options.timestamps.map(|(_, echo)| echo);
        let far_least = self.far();
        let full = u64::from(self.full());
        // Nothing but a FIN is acknowledged, which may be long after the data.
        let ends = self.data_end.is_some_and(|end| self.una >= end);
        let mut sample: Option<(Span, Instant)> = None;
        // What follows a repair had waited for it.
        let mut repaired = false;
        let mut unseen = 0;
        let mut unseen_bytes = 0;
        let mut needless = Vec::new();
        let mut ranges = 0;
        let mut sacked = 0;
        let (mut largest, agreed) = (self.largest_delivered, self.mss);
        let last_timer = self.last_timer;
        // The newest transmission of what is acknowledged, if all of it was sent before the timer fired.
        let mut late: Option<Instant> = Some(Instant::ZERO);
        self.out.acknowledge(ack, |range| {
            ranges += 1;
            // Too soon after a retransmission for it to be what is acknowledged.
            let soon = far_least.is_some_and(|least| now.since(range.last) < least * 4 / 5);
            let once = (range.sent == 1 || soon) && !range.sacked && !range.hole && range.first < last_timer;
            late = late.filter(|_| once).map(|newest| newest.max(range.first));
            if range.sacked {
                sacked += range.len();
            }
            repaired |= range.hole || range.sent > 1;
            if range.hole {
                unseen += 1;
                unseen_bytes += range.len();
                return;
            }
            // Super-segments of whole segments were cut into such.
            let len = range.len() as u32;
            if agreed == 0 || len <= agreed {
                largest = largest.max(len);
            } else if len.is_multiple_of(agreed) {
                largest = largest.max(agreed);
            }
            if range.sent == 1 {
                // A sample across a timeout tells of the timeout, not of queues.
                if !repaired && !range.sacked && range.end <= ack && range.first >= last_timer {
                    sample = Some((now.since(range.first), range.first));
                }
            } else if range.loss > 0 && !range.sacked {
                let by_echo = match (echo, range.tsval, range.first_tsval) {
                    (Some(echo), Some(last), Some(first)) if first != last => {
                        (echo.wrapping_sub(last) as i32) < 0
                            && (echo.wrapping_sub(first) as i32) >= 0
                            && range.end == ack.min(range.end)
                    }
                    _ => false,
                };
                if soon || by_echo {
                    needless.push(range.loss);
                }
            }
        });
        if let Some(sent) = late.filter(|_| ranges > 0) {
            self.stalls.late_ack(last_timer, sent);
        }
        self.largest_delivered = largest;
        self.sacked = self.sacked.saturating_sub(sacked);
        self.una = ack;
        self.delivered_to = self.delivered_to.max(ack);
        self.counts.unseen += unseen;
        self.counts.unseen_bytes += unseen_bytes;
        for id in needless {
            self.needless(id);
        }
        self.delayed = None;
        if let Some((span, sent)) = sample {
            self.far_recent = if self.far_recent.is_zero() { span } else { (self.far_recent * 7 + span) / 8 };
            let late = span - self.far().unwrap_or_default();
            let alone = ranges <= 1 && advanced <= full && late >= DELAYED_ACK[0] && late <= DELAYED_ACK[1];
            self.delayed = (alone && self.nxt <= ack).then_some(now);
            // What the receiver waited is not the path's: the odd segment at the end of a train.
            let last = self.last_ack.map(|(time, _)| now.since(time));
            if !(self.delayed.is_some() || alone && last.is_some_and(|gap| gap >= DELAYED_ACK[0])) {
                self.far_sample(span, sent);
            }
        }
        let segments = advanced.div_ceil(full.max(1));
        let bucket = match segments {
            0 | 1 => 0,
            2 => 1,
            3..=4 => 2,
            5..=8 => 3,
            _ => 4,
        };
        self.counts.ack_sizes[bucket] += 1;
        if ends {
            return;
        }
        let before_this = self.last_ack.map(|(time, _)| time);
        if let Some((before, _)) = self.last_ack
            && advanced >= full
        {
            let per_byte = now.since(before).as_nanos() as f64 / advanced as f64;
            // The lower tenth.
            let gain = if per_byte < self.line { 0.1 } else { 0.011 };
            self.line += (per_byte - self.line) * if self.line == 0.0 { 1.0 } else { gain };
        }
        self.last_ack = Some((now, segment.frame));
        let round = self.base_rtt().unwrap_or_default();
        if let Some(until) = self.loss_until {
            let after = &mut self.after_timeout;
            after.acks += 1;
            after.bytes += advanced;
            // One segment goes out, and its ACK comes a round trip later. What takes longer waited for a
            // timer.
            let took = before_this.map(|t| now.since(t));
            if after.sent <= 1
                && took.is_some_and(|took| took * 10 >= round * 7 && took <= round * 2 + MAX_LATE)
            {
                after.single += 1;
            }
            after.sent = 0;
            if let Some(frames) = &mut after.frames {
                frames.1 = segment.frame;
            }
            if ack >= until {
                self.loss_until = None;
                if let Some(since) = after.since.take() {
                    after.time += now.since(since);
                }
            }
        }
    }

    /// A round trip between the capture point and the receiver, of a segment that passed at `sent`.
    pub(super) fn far_sample(&mut self, span: Span, sent: Instant) {
        self.trips.far.add(span);
        self.far_last = span;
        self.round_trips.add(span);
        if let Some(slice) = self.timeline.last() {
            slice.far.add(span);
        }
        if self.far_by_sent.back().is_none_or(|(last, _)| *last <= sent) {
            if self.far_by_sent.len() >= MAX_SAMPLES {
                self.far_by_sent.pop_front();
            }
            self.far_by_sent.push_back((sent, span));
        }
    }

    fn note_ack_id(&mut self, id: u16, pure: bool) {
        let after_pure = std::mem::replace(&mut self.pure_ack_before, pure);
        // Identifications that jump about say nothing. Beside data the missing packets may have been data.
        if let Some(step @ 1..=64) = self.ack_ids.see(id)
            && pure
        {
            self.counts.numbered_acks += 1;
            if after_pure {
                self.counts.missing_acks += u64::from(step) - 1;
            }
        }
    }
}
