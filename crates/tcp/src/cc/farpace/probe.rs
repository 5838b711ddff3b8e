//! Probes: for one round trip the window is a few segments less, or more. If a queue of this connection
//! stands, the next round trip is shorter, or longer, by the time that these segments take at the bottleneck.
//! A longer path, jitter, and the queues of others do not change with it.

use super::Farpace;
use super::path::PathModel;
use farpace_units::Span;

/// Round trips between two dips.
const DIP_INTERVAL: u32 = 30;
/// The least number of round trips between a probe and a dip because of a queue that is larger than wanted.
const MIN_DIP_INTERVAL: u32 = 4;
/// Round trips after a probe until the next rise, where the window does not grow.
const RISE_INTERVAL: u32 = 5;
/// What a dip takes besides the queue that this connection seems to have, in alphas: as much as a few others
/// keep there.
const DIP_ALPHAS: f64 = 2.0;
/// The largest part of the window that a probe takes or adds.
const MAX_MOVE: f64 = 0.25;
/// Queue there is if a dip shortens the round trip by this part of what its segments take.
const MIN_FALL: f64 = 0.25;
/// None there is if a rise lengthens the round trip by less than this part ...
const MAX_RISE: f64 = 0.25;
/// ... or by no more than so many times what it moves by itself, but then at most by this part.
const RISE_NOISE: (f64, f64) = (2.0, 0.4);
/// A rise shows if it is so many times what round trips move by.
const MIN_RISE_MOVEMENTS: f64 = 4.0;
/// Rises are made where it is at least this part of alpha.
const MIN_JITTER: f64 = 0.5;
/// After a longer path was found the window grows to what it holds, at most by this.
const MAX_STRETCH: f64 = 1.5;
/// A queue that is so many times alpha is larger than wanted.
const LARGE_QUEUE: f64 = 1.5;

/// A probe under way.
#[derive(Clone, Copy, Debug)]
pub struct QueueProbe {
    /// Round trips since it began.
    age: u32,
    /// The window before it.
    w: f64,
    /// What it adds to the window; below 0 it takes.
    by: f64,
    /// The round trip before it.
    rtt: Span,
}

/// What a probe has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeVerdict {
    /// Segments wait in a queue, or nothing was shown.
    Queue,
    /// What looked like a queue is the path.
    Path,
    /// What looked like a queue is that of others.
    Others,
    /// What a rise added has not waited.
    Room,
}

impl Farpace {
    /// A round trip is over. True: a probe is under way, and the window is its business.
    pub(super) fn probe(&mut self, limited: bool) -> bool {
        self.since_dip = self.since_dip.saturating_add(1);
        self.since_probe = self.since_probe.saturating_add(1);
        let Some(rtt) = self.path.latest() else { return false };
        let Some(mut probe) = self.probe else {
            let by = if limited { self.due() } else { 0.0 };
            if by == 0.0 {
                return false;
            }
            self.probe = Some(QueueProbe { age: 0, w: self.w, by, rtt });
            self.w += by;
            self.path.disturb();
            return true;
        };
        probe.age += 1;
        if probe.age == 1 {
            self.w = probe.w;
            self.probe = Some(probe);
            return true;
        }
        self.probe = None;
        self.since_probe = 0;
        match probe.verdict(rtt, &self.path, self.alpha()) {
            ProbeVerdict::Queue => self.room = 0.0,
            ProbeVerdict::Path => self.adopt_path(rtt, probe.w),
            ProbeVerdict::Others => self.path.suspect_others(),
            ProbeVerdict::Room => {
                self.w = probe.w + probe.by;
                // The next one at once, and twice as far.
                (self.room, self.since_probe) = (probe.by * 2.0, RISE_INTERVAL);
                return true;
            }
        }
        false
    }

    /// The path has become as long as a round trip of `rtt` with the window `w`.
    pub(super) fn adopt_path(&mut self, rtt: Span, w: f64) {
        let stretch = rtt.as_secs_f64() / self.path.base().as_secs_f64().max(1e-9);
        self.path.adopt(rtt);
        self.w = w * stretch.clamp(1.0, MAX_STRETCH);
        self.limit = 0.0;
        self.probe = None;
    }

    /// What has kept the window from growing was perhaps no queue: a rise is to tell, some round trips from
    /// now.
    pub(super) fn expect_room(&mut self) {
        (self.room, self.since_probe) = (self.alpha(), 0);
    }

    /// By how much the window should be moved now; 0: not at all.
    fn due(&mut self) -> f64 {
        let (alpha, own) = (self.alpha(), self.path.own());
        let most = self.w * MAX_MOVE;
        let large = own > LARGE_QUEUE * alpha && self.path.is_steady();
        if self.since_dip >= DIP_INTERVAL || large && self.since_probe >= MIN_DIP_INTERVAL {
            self.since_dip = 0;
            return if self.w > 2.0 * alpha { -(own + DIP_ALPHAS * alpha).min(most) } else { 0.0 };
        }
        if self.since_probe >= RISE_INTERVAL && self.calm == 0 {
            let shows =
                MIN_RISE_MOVEMENTS * self.path.movement() / self.path.base().as_secs_f64().max(1e-9) * self.w;
            // Where round trips do not move, what looks like a queue is one.
            let needed = shows >= MIN_JITTER * alpha || self.room > 0.0;
            return if needed { alpha.max(shows).max(self.room).min(most) } else { 0.0 };
        }
        0.0
    }
}

impl QueueProbe {
    fn verdict(&self, rtt: Span, path: &PathModel, alpha: f64) -> ProbeVerdict {
        let expected = self.by.abs() / self.w.max(1.0) * self.rtt.as_secs_f64();
        if self.by > 0.0 {
            let rose = (rtt - self.rtt).as_secs_f64();
            let noise = (RISE_NOISE.0 * path.movement()).min(RISE_NOISE.1 * expected);
            return if rose <= (MAX_RISE * expected).max(noise) {
                ProbeVerdict::Room
            } else {
                ProbeVerdict::Queue
            };
        }
        let fell = (self.rtt - rtt).as_secs_f64();
        if path.own() <= LARGE_QUEUE * alpha || fell > MIN_FALL * expected {
            ProbeVerdict::Queue
        } else if path.is_steady() && !path.may_be_others() && !path.has_grown() {
            ProbeVerdict::Path
        } else {
            ProbeVerdict::Others
        }
    }
}
