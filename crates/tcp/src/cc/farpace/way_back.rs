//! What ACKs wait on their way back, by the peer's timestamps (RFC 7323): a queue there holds no data back,
//! and is no reason for a smaller window.
//!
//! An ACK says by the peer's clock when it left. That clock is another than ours, so only changes mean
//! something: the way back took least when our clock was least ahead of it. Whenever the whole round trip is
//! that of the empty path, so is the way back; that keeps clocks together which run apart.

use farpace_units::{Instant, Span};

/// A clock of milliseconds, as systems of today have it. Others are not believed.
const TICK: u32 = 1_000;
/// It is known to be one when in this time ...
const MIN_CLOCK_TIME: Span = Span::from_millis(150);
/// ... it went at least this part of it, and at most so many times as far. An ACK may have waited for the
/// rest.
const CLOCK_RATIO: (u64, u64) = (2, 2);
/// What ACKs wait is the least of the means of so many round trips: after a loss each segment has an ACK, and
/// they wait longer for some time.
const WAIT_ROUNDS: usize = 8;
/// Less than a tick and one part of so many of the empty path's round trip says nothing.
const MIN_WAIT: (u32, u32) = (TICK, 256);

/// The way back of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct WayBack {
    /// The first ACK with a timestamp: when it came, and what it said.
    first: Option<(Instant, u32)>,
    /// Our clock less the peer's on the fastest way back, microseconds; they wrap.
    least: Option<u32>,
    /// What ACKs have waited in this round trip, microseconds, and how many there were.
    waited: (u64, u64),
    /// The mean of each of the last round trips, microseconds.
    waits: [u64; WAIT_ROUNDS],
}

impl WayBack {
    /// A round trip is over.
    pub fn end_round(&mut self) {
        let (waited, acks) = std::mem::take(&mut self.waited);
        if let Some(mean) = waited.checked_div(acks) {
            self.waits.rotate_right(1);
            self.waits[0] = mean;
        }
    }

    /// What each ACK waits, so that as much more is in flight.
    pub fn wait(&self) -> Span {
        Span::from_micros(self.waits.iter().copied().min().unwrap_or(0))
    }

    /// An ACK with the peer's timestamp, of a segment whose round trip was `rtt` where the empty path's is
    /// `base`, zero if that is not known. Returns the round trip without what the ACK has waited for.
    pub fn without_queue(&mut self, now: Instant, stamp: u32, rtt: Span, base: Span) -> Span {
        let data = self.data_round_trip(now, stamp, rtt, base);
        self.waited.0 += u64::from(micros(rtt - data));
        self.waited.1 += 1;
        data
    }

    fn data_round_trip(&mut self, now: Instant, stamp: u32, rtt: Span, base: Span) -> Span {
        let (rtt_us, base_us) = (micros(rtt), micros(base));
        let (first, said) = *self.first.get_or_insert((now, stamp));
        let back = ((now.as_nanos() / 1_000) as u32).wrapping_sub(stamp.wrapping_mul(TICK));
        let small = MIN_WAIT.0 + base_us / MIN_WAIT.1;
        let ahead = self.least.map_or(0, |least| back.wrapping_sub(least));
        let is_least = self.least.is_none() || ahead > u32::MAX / 2;
        if is_least || base_us == 0 || rtt_us <= base_us + small / 2 {
            self.least = Some(back);
            return rtt;
        }
        let passed = now.since(first);
        let told = u64::from(stamp.wrapping_sub(said)) * u64::from(TICK);
        let ours = passed.as_nanos() / 1_000;
        let is_known =
            passed >= MIN_CLOCK_TIME && told * CLOCK_RATIO.0 >= ours && told <= ours * CLOCK_RATIO.1;
        if !is_known || ahead <= small {
            return rtt;
        }
        // A queue of data that is shorter than what can be measured is none.
        let data = rtt_us.saturating_sub(ahead);
        let data = if data <= base_us + small { base_us.min(rtt_us) } else { data };
        Span::from_micros(u64::from(data))
    }
}

fn micros(span: Span) -> u32 {
    u32::try_from(span.as_nanos() / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the window behind a narrow way back. The peer's clock ticks once a millisecond, so a full
    /// queue of ACKs leaves up to a tick that looks like a queue of data, and a large window would hold its
    /// share of segments in that.
    #[test]
    fn less_than_a_tick_is_no_queue_of_data() {
        let base = Span::from_millis(60);
        let mut back = WayBack::default();
        let mut longest = Span::ZERO;
        for ack in 0..4_000u64 {
            // ACKs come every 2.3 ms. The last one that does not wait left late in a tick.
            let left = Instant::ZERO + Span::from_micros(2_300 * ack);
            let wait = if ack > 1_303 { Span::from_millis(200) } else { Span::ZERO };
            let arrives = left + base / 2 + wait;
            let stamp = (left.as_nanos() / 1_000_000) as u32;
            let data = back.without_queue(arrives, stamp, base + wait, base);
            if ack > 1_303 {
                longest = longest.max(data);
            }
        }
        assert_eq!(longest, base);
        let mut with_data = Span::MAX;
        for ack in 4_000..4_100u64 {
            let left = Instant::ZERO + Span::from_micros(2_300 * ack);
            let (wait, queue) = (Span::from_millis(200), Span::from_millis(5));
            let arrives = left + base / 2 + wait;
            let stamp = (left.as_nanos() / 1_000_000) as u32;
            with_data = with_data.min(back.without_queue(arrives, stamp, base + wait + queue, base));
        }
        assert!(with_data >= base + Span::from_millis(3), "a queue of data is seen: {with_data:?}");
    }

    /// Breaks: a queue of ACKs that another transfer makes ends the start, which takes less than a second; or
    /// a clock that is none of milliseconds is believed.
    #[test]
    fn a_queue_of_acks_is_seen_during_the_start() {
        let base = Span::from_millis(60);
        let longest_after = |tick_ms: u64, from_ms: u64| {
            let (mut back, mut longest) = (WayBack::default(), Span::ZERO);
            for ack in 0..200u64 {
                // From 50 ms on each ACK waits 0.4 ms longer than the one before.
                let left = Instant::ZERO + Span::from_millis(ack);
                let wait = Span::from_micros(400 * ack.saturating_sub(50));
                let stamp = (left.as_nanos() / (1_000_000 * tick_ms)) as u32;
                let data = back.without_queue(left + base / 2 + wait, stamp, base + wait, base);
                if ack >= from_ms {
                    longest = longest.max(data);
                }
            }
            longest
        };
        assert!(longest_after(1, 150) < base + Span::from_millis(2));
        assert_eq!(longest_after(10, 150), base + Span::from_micros(400 * 149));
    }

    /// Breaks: a reduction behind a narrow way back: it leaves what the path holds, but not what ACKs tell of
    /// that wait, and the next window is that much too small. Or a loss: ACKs wait longer after it, and the
    /// next window is too large.
    #[test]
    fn the_wait_of_acks_is_known() {
        let base = Span::from_millis(60);
        let mut back = WayBack::default();
        let mut known = Vec::new();
        for round in 0..40u64 {
            let wait = match round {
                0..4 => Span::ZERO,
                20 => Span::from_millis(500),
                _ => Span::from_millis(200),
            };
            for ack in 0..30 {
                let left = Instant::ZERO + Span::from_millis(60 * round + 2 * ack);
                let stamp = (left.as_nanos() / 1_000_000) as u32;
                back.without_queue(left + base / 2 + wait, stamp, base + wait, base);
            }
            back.end_round();
            known.push(back.wait());
        }
        assert_eq!(known[10], Span::ZERO, "seven of eight");
        assert_eq!(known[11..], [Span::from_millis(200); 29]);
    }
}
