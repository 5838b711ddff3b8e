//! Bytes from one leg to the other, with backpressure.

use bytes::Bytes;
use farpace_tcp::Connection;
use farpace_units::{ByteCount, Instant, Rate, Span};
use std::collections::VecDeque;

/// Over this time rates are measured.
const RATE_TIME: Span = Span::from_secs(1);

/// One direction of a split connection. It holds nothing itself: what the leg that sends has no room for
/// stays with the leg that received it, and closes the window of that leg.
#[derive(Debug, Default)]
pub(crate) struct LegPipe {
    /// What a leg has not taken though it had said that there was room; empty but for a moment.
    rest: VecDeque<Bytes>,
    moved: u64,
    /// The destination has had no room for something that waits.
    pub is_backed_up: bool,
    mark: Option<(Instant, u64)>,
    rate: Option<Rate>,
}

impl LegPipe {
    /// Moves what has arrived and fits. True if anything moved.
    pub fn run(&mut self, now: Instant, from: &mut Connection, to: &mut Connection) -> bool {
        let mut moved = 0;
        while let Some(mut data) = self.rest.pop_front() {
            moved += to.write(&mut data).get();
            if !data.is_empty() {
                self.rest.push_front(data);
                break;
            }
        }
        let room = to.write_room();
        if self.rest.is_empty() && !room.is_zero() && !from.readable().is_zero() {
            // The end of urgent data, from what is read next on.
            let urgent = from.urgent_ahead();
            let rest = &mut self.rest;
            let read = from.read_up_to(room, |mut data| {
                if rest.is_empty() {
                    to.write(&mut data);
                }
                if !data.is_empty() {
                    rest.push_back(data);
                }
            });
            if let Some(urgent) = urgent {
                to.mark_urgent(read - urgent.min(read));
            }
            moved += read.get();
        }
        self.moved += moved;
        self.is_backed_up = !self.rest.is_empty() || !from.readable().is_zero();
        self.measure(now);
        moved > 0
    }

    /// Nothing is on its way between the legs.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes moved so far.
    pub fn moved(&self) -> ByteCount {
        ByteCount::new(self.moved)
    }

    fn measure(&mut self, now: Instant) {
        let (since, before) = *self.mark.get_or_insert((now, self.moved));
        let time = now.since(since);
        if time >= RATE_TIME {
            self.rate = Some(Rate::of(ByteCount::new(self.moved - before), time));
            self.mark = Some((now, self.moved));
        }
    }

    /// Payload moved in the last second or more.
    pub fn rate(&self, now: Instant) -> Rate {
        let (since, before) = self.mark.unwrap_or((now, self.moved));
        let time = now.since(since);
        match self.rate {
            Some(rate) if time < RATE_TIME => rate,
            _ => Rate::of(ByteCount::new(self.moved - before), time),
        }
    }
}
