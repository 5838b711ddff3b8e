//! What the sender waited for between two segments.

use super::{DELAYED_ACK, Half, PeerState};
use crate::flow::acks::AT_ONCE;
use crate::flow::stall::Stall;
use crate::flow::timeline::{Slice, Wait};
use crate::frame::CapturedSegment;
use farpace_units::{Instant, Span};

/// A program that pauses does so for longer.
const MIN_PAUSE: Span = Span::from_micros(200);
/// Segments of a burst are closer to each other than this part of their mean distance.
const DENSE: f64 = 0.6;
/// A flight that takes no more than this part of a line's rate leaves it idle. Segments that come from the
/// line one by one are no farther apart than this many times their time on it.
const FASTER: f64 = 0.9;
const ON_LINE: f64 = 1.1;
/// A program that an ACK wakes writes within a quarter of the time between ACKs, in these bounds.
const RELEASED_WITHIN: [Span; 2] = [Span::from_micros(200), Span::from_micros(500)];
/// The least timers that senders have.
const MIN_TIMER: Span = Span::from_millis(5);

impl Half {
    /// Data that leaves at `now` was released by the ACK that reached the sender at `arrived`, if at most
    /// `within` lie between them. Far from the sender the time of arrival is known less exactly: the next ACK
    /// may be there already.
    fn is_released(&self, now: Instant, arrived: Instant, within: Span) -> bool {
        let next = self.log.next_after(now).filter(|_| self.log.distance() > within);
        next.map_or(now.since(arrived), |left| left.min(now.since(arrived))) <= within
    }

    /// How much of the `gap` before a segment counts as at once behind an ACK, for each of the times that do.
    fn chance_of_release(&self, gap: Span) -> [f64; AT_ONCE.len()] {
        let sides = AT_ONCE.map(|within| if self.log.distance() > within { 2.0 } else { 1.0 });
        let share = self.log.behind_acks.map(|time| time.as_secs_f64() / gap.as_secs_f64().max(1e-9));
        std::array::from_fn(|i| share[i] * sides[i])
    }

    /// Says what the sender waited for since its last segment.
    pub(super) fn attribute(
        &mut self,
        segment: &CapturedSegment,
        start: u64,
        end: u64,
        peer: &PeerState,
    ) -> Wait {
        let now = segment.time;
        let Some((last, last_frame)) = self.last_data else { return Wait::Connect };
        let gap = now.since(last);
        let known = self.log.known;
        let near = self.log.distance();
        let arrived = known.time + near;
        let since_ack = now.since(arrived.max(last));
        // Since the first ACK that would have released something.
        let since_release = self.log.released.map_or(since_ack, |at| now.since(at.max(last)));
        // One that is still on its way to the sender releases nothing.
        let delayed = self.delayed == Some(known.time);
        let resent = start < self.nxt;
        let round = self.round();
        let outstanding = self.nxt.saturating_sub(known.una);
        if gap > round * 3 / 2 || now.since(self.silence_ended) > round * 2 {
            self.recent_silence = gap;
            self.silence_ended = now;
            self.passed_at_silence = self.counts.bytes;
        }
        // Most of the flight was acknowledged meanwhile. A full send buffer is filled again before that:
        // Linux wakes the program when a third of it is free.
        let recent = self.timeline.slices().iter().rev().take(2).map(|s| s.flight).max();
        let drained = outstanding * 5 < recent.unwrap_or_default() * 2;
        // Segments that follow each other more closely than on average belong to one burst.
        let spacing = round.as_secs_f64() * f64::from(segment.len) / (outstanding as f64).max(1.0);
        let dense = gap <= MIN_PAUSE || gap.as_secs_f64() <= DENSE * spacing;
        // Behind a slow line what left at once comes one by one, at the rate of the line.
        let alone = self.line * 1e-9 * f64::from(segment.len);
        let behind = near > self.far_recent && alone <= FASTER * spacing;
        let dense = dense || behind && gap.as_secs_f64() <= ON_LINE * alone;
        let apart = Span::from_nanos((self.line * 2.0 * f64::from(self.full())) as u64);
        let [least, most] = RELEASED_WITHIN;
        let within = (apart / 4).max(least).min(most);
        self.prompt = self.is_released(now, arrived, within) || dense && self.prompt;
        let soon = MIN_PAUSE.max(gap / 16);
        let mut by_acks = false;
        if !resent && self.last_short && outstanding > 0 {
            // A buffer of which a part is free still holds the rest; a program that waits for its own clock
            // may have let all of it go.
            let holds = outstanding * 8 >= recent.unwrap_or_default();
            let at_once = AT_ONCE.map(|within| holds && self.is_released(now, arrived.max(last), within));
            if !dense && (since_ack > soon || drained) {
                self.refills.refilled(at_once, self.chance_of_release(gap));
            }
            by_acks = at_once.contains(&true) && self.refills.by_acks();
        }
        let mut waits = [Span::ZERO; Wait::COUNT];

        let timer = MIN_TIMER.max(round * 3 / 5);
        // A lone segment's ACK may be delayed.
        let timeout = if outstanding <= 2 * u64::from(self.full()) { DELAYED_ACK[1] } else { DELAYED_ACK[0] };
        let shut =
            self.log.shut.filter(|s| !resent && known.edge > 0 && (s.zero || self.is_window_a_limit()));
        let closed = if shut.is_some_and(|s| s.zero) { Wait::ZeroWindow } else { Wait::Window };
        // The segment left early in the pause, or others left in it that did not come to the capture point.
        let pause = round * 3 / 2 + MIN_TIMER;
        let later = self.log.one_way.excess().unwrap_or_default() - self.last_excess;
        let held_on_path = gap > pause && later * 2 >= gap;
        let lost_before = outstanding == 0 && gap > pause && self.missing_ids > 0;
        let lost_before = lost_before && !shut.is_some_and(|s| s.zero);
        let shut_for = shut.map_or(Span::ZERO, |s| s.until.unwrap_or(now).since(last)).min(gap);
        if held_on_path {
            waits[Wait::Ack as usize] += gap;
        } else if lost_before {
            waits[Wait::Timer as usize] += gap;
        } else if shut.is_some() {
            // Until the window opened; then as long as the sender took.
            waits[closed as usize] += shut_for;
            waits[Wait::Sender as usize] += gap - shut_for;
        } else if outstanding == 0 && !resent {
            // All was acknowledged when this left.
            let mut idle = now.since((self.log.advanced + near).max(last));
            // Who had more to send would have sent it when the ACK came: nothing was there since the last
            // segment.
            if idle > near / 4 + MIN_PAUSE {
                idle = gap;
            }
            // The other side spoke, with the ACK or after it: that is what was waited for.
            let spoke = peer.spoke.filter(|t| *t + near > last).map(|t| (t + near).since(last).min(gap));
            if let Some(span) = spoke {
                self.turns.add(span);
            }
            let peer_time = spoke.unwrap_or_default();
            idle = if spoke.is_some() { gap - peer_time } else { idle };
            waits[Wait::Peer as usize] += peer_time;
            waits[Wait::Program as usize] += idle;
            waits[if delayed { Wait::DelayedAck } else { Wait::Ack } as usize] += gap - peer_time - idle;
        } else if resent && since_ack >= timer && (start <= known.una.max(self.una) || end >= self.nxt) {
            waits[Wait::Timer as usize] += gap;
        } else if !resent
            && self.last_short
            && !dense
            && !by_acks
            && (since_ack > soon || drained && since_release > soon)
        {
            // The last segment was short, and ACKs released nothing: there was nothing more to send.
            waits[Wait::Program as usize] += gap;
        } else if !resent && !self.far_recent.is_zero() && since_ack >= round * 3 / 2 + timeout {
            // No ACK for what is outstanding, for so long: what goes out now is a probe. As long as no round
            // trip is known, it may as well be what the program wrote next.
            waits[Wait::Timer as usize] += gap;
        } else {
            // The window is full once this is sent.
            let pressed =
                known.edge.saturating_sub(self.nxt + u64::from(segment.len)) < u64::from(self.full());
            let pressed = pressed && self.is_window_a_limit();
            let waited_for_ack = gap - since_ack;
            let kind = if !resent && known.edge > 0 && pressed {
                Wait::Window
            } else if delayed && waited_for_ack >= DELAYED_ACK[0] {
                Wait::DelayedAck
            } else {
                Wait::Ack
            };
            waits[kind as usize] += waited_for_ack;
            waits[Wait::Sender as usize] += since_ack;
        }
        if !waits[Wait::Timer as usize].is_zero() {
            self.last_timer = now;
        }
        let mut most = 0;
        for (at, span) in waits.iter().enumerate() {
            if *span > waits[most] {
                most = at;
            }
        }
        let wait = Wait::ALL[most];
        // With many segments under way, nothing for more than a round trip is a pause; with few, ACKs may
        // be delayed.
        let many = outstanding >= 8 * u64::from(self.full());
        let threshold = if many { round * 6 / 5 + Span::from_millis(10) } else { round * 2 };
        if gap > threshold.max(Span::from_millis(20)) {
            let head = self.out.front();
            self.stalls.add(Stall {
                start: last,
                end: now,
                first_frame: last_frame,
                last_frame: segment.frame,
                wait,
                outstanding,
                round,
                sacked: known.sacked,
                segments: self.out.len() as u32,
                head_sent: head.map_or(0, |r| r.sent),
                spurious: false,
                heard: known.time > last,
                overlooked: head.is_some_and(|r| r.sent > 1 && self.sack_high > r.nxt),
                loss: 0,
                tail: lost_before || end >= self.nxt && start > known.una,
                unseen: if lost_before { self.missing_ids } else { 0 },
                offset: start.saturating_sub(super::ORIGIN),
                late_acks: 0,
                len: segment.len,
                upstream: head.is_some_and(|r| r.hole),
            });
        }
        let slice: &mut Slice = self.timeline.at(last, Span::MAX);
        for (to, from) in slice.waits.iter_mut().zip(waits) {
            *to += from;
        }
        slice.prompt += u32::from(self.prompt);
        if by_acks {
            slice.short = slice.short.saturating_sub(1);
        }
        slice.end = slice.end.max(now);
        wait
    }
}
