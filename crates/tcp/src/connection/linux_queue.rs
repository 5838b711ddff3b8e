//! The queue of what was written and not sent, in the buffers in which profile `linux` keeps it
//! (`tcp_sendmsg_locked`): where they end says where PSH stands, what leaves at once although more could
//! follow, and when an idle connection begins anew.

use super::Connection;
use super::transmit::Transmit;
use crate::segment::OutgoingSegment;
use farpace_units::Instant;
use std::collections::VecDeque;

/// A buffer of the queue. It begins where the one before it ends, or where what was sent does.
#[derive(Clone, Copy, Debug)]
struct SkBuff {
    /// Stream offset behind it.
    end: u64,
    /// It ends with PSH.
    push: bool,
}

/// A call of the program that has yet to be put into buffers.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// Stream offset behind what it has written.
    end: u64,
    /// The program says that more follows (MSG_MORE).
    more: bool,
    /// It is urgent (MSG_OOB).
    urgent: bool,
    /// Bytes of a full buffer, once it has begun.
    goal: Option<u64>,
}

/// What was written and not sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    buffers: VecDeque<SkBuff>,
    calls: VecDeque<Call>,
    /// Stream offset to which calls are in buffers.
    copied: u64,
    /// Stream offset of the last PSH.
    pushed: u64,
    /// A full buffer is being sent: this many bursts at most.
    pushing: Option<Bursts>,
}

/// How much leaves while a call is put into buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bursts {
    /// One, which waits for nothing else (`tcp_push_one`).
    One,
    /// All that may.
    All,
}

/// The buffer that is next to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Its bytes.
    pub len: u64,
    /// There is no other behind it.
    pub last: bool,
}

impl Queue {
    /// The buffer that is next, where `sent` has been sent: with as much of the one behind it as makes it
    /// `wanted` bytes (`tcp_grow_skb`).
    pub fn head(&mut self, sent: u64, wanted: u64) -> Head {
        let Some(head) = self.buffers.front().copied() else { return Head { len: 0, last: true } };
        let mut end = head.end;
        if end - sent < wanted
            && let Some(next) = self.buffers.get(1).copied()
        {
            end = next.end.min(sent + wanted);
            if end == next.end {
                self.buffers.pop_front();
                if let Some(joined) = self.buffers.front_mut() {
                    joined.push |= head.push;
                }
            } else if let Some(head) = self.buffers.front_mut() {
                head.end = end;
            }
        }
        Head { len: end - sent, last: self.buffers.len() == 1 }
    }

    /// What ends at `end` is sent. True: with PSH.
    pub fn send(&mut self, end: u64) -> bool {
        let mut push = false;
        while let Some(head) = self.buffers.front().copied().filter(|head| head.end <= end) {
            push |= head.push;
            self.buffers.pop_front();
        }
        push
    }

    /// What ends at `end` is sent by itself, with PSH, which the rest of its buffer has as well.
    pub fn cut(&mut self, end: u64) {
        let Some(head) = self.buffers.front_mut() else { return };
        head.push = true;
        self.pushed = self.pushed.max(head.end);
        if head.end > end {
            self.buffers.push_front(SkBuff { end, push: true });
        }
    }

    /// Buffers that wait.
    pub fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// The call that wrote last was urgent.
    pub fn mark_urgent(&mut self) {
        if let Some(call) = self.calls.back_mut() {
            call.urgent = true;
        }
    }

    fn tail_len(&self, sent: u64) -> Option<u64> {
        let tail = self.buffers.back()?;
        let start =
            self.buffers.len().checked_sub(2).and_then(|i| self.buffers.get(i)).map_or(sent, |b| b.end);
        Some(tail.end - start)
    }

    fn push_tail(&mut self) {
        self.pushed = self.copied;
        if let Some(tail) = self.buffers.back_mut() {
            tail.push = true;
        }
    }
}

impl Connection {
    /// A call has written something.
    pub(super) fn push_written(&mut self) {
        if !self.config.is_linux() {
            return;
        }
        let (end, more, opening) = (self.snd.buffer.end(), self.promises_more(), !self.is_open());
        let queue = self.linux.queue();
        let copied = queue.copied;
        match queue.calls.back_mut() {
            // Nothing can be sent yet: one record for all.
            Some(call) if opening && call.goal.is_none() && !call.urgent => {
                (call.end, call.more) = (end, more);
            }
            last if last.as_ref().map_or(copied, |call| call.end) < end => {
                queue.calls.push_back(Call { end, more, urgent: false, goal: None });
            }
            _ => {}
        }
        self.linux.looks_again();
    }

    /// Puts what was written into buffers, and sends full ones meanwhile. False: no more than `full` fits
    /// into `out`, and it is not done.
    pub(super) fn fill_queue(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, full: usize) -> bool {
        while let Some(call) = self.linux.queue().calls.front().copied() {
            if let Some(bursts) = self.linux.queue().pushing {
                if let Transmit::Sent(_) = self.push_queue(now, out, full, true, bursts) {
                    return false;
                }
                self.linux.queue().pushing = None;
            }
            let sent = self.snd.sent_offset();
            let goal = call.goal.unwrap_or(if call.urgent { u64::from(self.snd.mss) } else { self.piece() });
            let half = u64::from(self.snd.max_wnd / 2);
            let queue = self.linux.queue();
            queue.copied = queue.copied.max(sent);
            let is_forced = |queue: &Queue| queue.copied > queue.pushed + half;
            if queue.copied >= call.end {
                if !call.more || is_forced(queue) {
                    queue.push_tail();
                }
                queue.calls.pop_front();
                if !queue.calls.is_empty() {
                    queue.pushing = Some(Bursts::All);
                }
                continue;
            }
            let room = queue.tail_len(sent).map_or(0, |len| goal.saturating_sub(len));
            if room == 0 {
                let copied = queue.copied;
                queue.buffers.push_back(SkBuff { end: copied, push: false });
                if self.flight.segments.is_empty() {
                    self.restart_linux(now);
                }
            }
            let queue = self.linux.queue();
            let room = if room == 0 { goal.max(1) } else { room };
            let part = room.min(call.end - queue.copied);
            if let Some(tail) = queue.buffers.back_mut() {
                tail.end += part;
                tail.push &= call.goal.is_some(); // what a call adds first takes the PSH of the one before away
            }
            queue.copied += part;
            if let Some(call) = queue.calls.front_mut() {
                call.goal = Some(goal);
            }
            let is_full = part == room && !call.urgent;
            if queue.copied < call.end && is_full {
                if is_forced(queue) {
                    queue.push_tail();
                    queue.pushing = Some(Bursts::All);
                } else if queue.buffers.len() == 1 {
                    queue.pushing = Some(Bursts::One);
                }
            }
        }
        // A call that was not the last one has left something to be sent.
        if let Some(bursts) = self.linux.queue().pushing {
            if let Transmit::Sent(_) = self.push_queue(now, out, full, true, bursts) {
                return false;
            }
            self.linux.queue().pushing = None;
        }
        true
    }
}
