//! Fast start: the window grows by more than a doubling while it is far below what the path holds.
//!
//! The first flight leaves as a burst. The bottleneck sets its segments apart, and their ACKs come at its
//! rate. This rate times the round trip of the empty path is an estimate of what the path holds. Below half
//! of it the window may quadruple in a round trip, as in SUSS (Arghavani et al., SIGCOMM 2024). Near it the
//! window grows by a quarter, so that the overshoot is a small part of the window also where the queue is too
//! short for a delay that HyStart++ can see. Well above it the estimate is disproved, and the window doubles
//! as without it.
//!
//! A paced sender sends a few segments at once, too, and the bottleneck sets them apart as it does a flight.
//! If the ACKs of some round trips tell the same rate as the first flight, slow start ends just below the
//! estimate, and nothing is lost. Other traffic, aggregation and merged ACKs make the rates differ; then only
//! the overshoot is smaller.
//!
//! Only for paced connections: a flight four times as large as what was acknowledged would leave as a burst
//! otherwise.

use super::AckSample;
use farpace_units::{Instant, Packets, Rate, Seq, Span};

/// Round trips shorter than this have no fast start, and no pacing by growth: a slow start takes little time
/// there.
pub const SHORT_RTT: Span = Span::from_millis(10);
/// Segments that the ACKs after the first of a flight must tell of.
const MIN_REPORTED: u32 = 6;
/// ACKs that they must be.
const MIN_INTERVALS: u32 = 2;
/// The longest time for a segment is at most so many times the shortest. Else several lines, a receiver that
/// puts segments in order, or a box that gathers ACKs have made the train, and not one bottleneck.
const EVEN: f64 = 3.0;
/// Flights that are looked at. Later ones are paced and no bursts.
const MAX_FLIGHTS: u32 = 3;
/// A path that holds fewer segments is full after two doublings, and windows as small are not paced.
const MIN_HOLDS: f64 = 32.0;
/// Below this part of the estimate the window quadruples. Pacing sends at twice the window a round trip then,
/// so no faster than the estimated rate.
const QUADRUPLES_BELOW: f64 = 0.5;
/// From this part on it grows by a quarter. Pacing that doubles sends at 1.5 windows a round trip.
const NEAR: f64 = 0.7;
/// From this part on the estimate was too low.
const DISPROVED: f64 = 1.5;

/// From this part on slow start is over, if the estimate is confirmed.
const FULL: f64 = 0.95;
/// Where the path holds fewer segments, slow start goes on: what it overshoots by is little, and where
/// several lines carry the connection, a flight may have told the rate of one of them.
const MIN_FULL: f64 = 5_000.0;
/// Below that, segments leave at this part of the estimated rate at most.
const MAX: f64 = 0.97;
/// A rate confirms the estimate if it differs by less than this part of it.
const SAME: f64 = 0.1;
/// Round trips in a row that must confirm it.
const CONFIRMING: u32 = 3;
/// Intervals between ACKs whose median is the rate of a round trip: so many at least, and the first so many.
const MIN_INTERVALS_OF_ROUND: usize = 16;
const MAX_INTERVALS_OF_ROUND: usize = 64;

/// How fast segments leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartPace {
    /// In percent of a window a round trip.
    pub percent: u64,
    /// But not faster than this.
    pub most: Option<Rate>,
}

impl StartPace {
    /// For a window that is not growing, or grows slowly.
    pub const STEADY: StartPace = StartPace { percent: 120, most: None };
    /// For one that doubles. ln 2 / (1 - 1/2) is 1.39.
    pub const DOUBLES: StartPace = StartPace { percent: 150, most: None };
    /// For one that becomes four times as large. ln 4 / (1 - 1/4) is 1.85.
    const QUADRUPLES: StartPace = StartPace { percent: 200, most: None };
    /// For one that fills the path: faster would fill the queue while it is not yet all in flight.
    const FULL: StartPace = StartPace { percent: 102, most: None };
}

/// How much larger the window is a round trip later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// By a quarter: near the end of slow start.
    Quarter,
    /// Twice: slow start.
    Double,
    /// Four times: far below what the path holds.
    Quadruple,
}

/// The ACKs of a flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// SND.NXT when its first ACK came.
    end: Seq,
    first: Instant,
    last: Instant,
    /// Segments that ACKs after the first told of, up to `last`.
    told: u32,
    intervals: u32,
    /// Shortest and longest time for a segment, seconds.
    gaps: (f64, f64),
    /// Most segments of one ACK. An ACK for fewer may have been held back.
    most: u32,
}

/// Do the ACKs of later round trips tell the same rate?
#[derive(Clone, Debug, Default)]
struct Confirmation {
    /// SND.NXT when the round trip began.
    end: Seq,
    last: Option<Instant>,
    /// Segments a second, one for each interval.
    rates: Vec<f64>,
    /// Round trips in a row that did.
    rounds: u32,
}

/// State of the fast start.
#[derive(Clone, Debug, Default)]
pub struct FastStart {
    flight: Option<Flight>,
    flights: u32,
    /// Segments that the path holds; none: not known.
    holds: Option<f64>,
    /// Segments a second.
    rate: f64,
    confirmation: Confirmation,
    /// Quarters of a segment that no growth was given for yet.
    credit: u32,
}

impl FastStart {
    /// An ACK of slow start. True: it ends the flight that gave the estimate.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        if self.holds.is_some() {
            self.confirm(ack);
            return false;
        }
        if self.flights >= MAX_FLIGHTS || ack.min_rtt.is_none_or(|rtt| rtt < SHORT_RTT) {
            return false;
        }
        // A flight tells the rate of the path that it took, and the window is to fill all of them.
        if ack.several_paths {
            return false;
        }
        let acked = ack.acked.get();
        let Some(flight) = &mut self.flight else {
            self.flight = Some(Flight {
                end: ack.snd_nxt,
                first: ack.now,
                last: ack.now,
                told: 0,
                intervals: 0,
                gaps: (f64::INFINITY, 0.0),
                most: acked,
            });
            return false;
        };
        if acked >= flight.most {
            let gap = ack.now.since(flight.last).as_secs_f64() / f64::from(acked.max(1));
            flight.gaps = (flight.gaps.0.min(gap), flight.gaps.1.max(gap));
            flight.told = flight.told.saturating_add(acked);
            flight.intervals += 1;
            flight.last = ack.now;
            flight.most = acked;
        }
        if ack.snd_una.before(flight.end) {
            return false;
        }
        let time = flight.last.since(flight.first);
        let even = flight.gaps.1 <= EVEN * flight.gaps.0;
        let enough =
            flight.told >= MIN_REPORTED && flight.intervals >= MIN_INTERVALS && !time.is_zero() && even;
        if let Some(rtt) = ack.min_rtt.filter(|_| enough) {
            self.rate = f64::from(flight.told) / time.as_secs_f64();
            self.holds = Some(self.rate * rtt.as_secs_f64()).filter(|holds| *holds >= MIN_HOLDS);
            self.confirmation.end = ack.snd_nxt;
        }
        self.flight = None;
        self.flights = if enough { MAX_FLIGHTS } else { self.flights + 1 };
        self.holds.is_some()
    }

    fn confirm(&mut self, ack: &AckSample) {
        let c = &mut self.confirmation;
        if let Some(last) = c.last.replace(ack.now)
            && c.rates.len() < MAX_INTERVALS_OF_ROUND
        {
            let gap = ack.now.since(last).as_secs_f64();
            c.rates.push(f64::from(ack.acked.get()) / gap.max(1e-9));
        }
        if ack.snd_una.before(c.end) {
            return;
        }
        c.end = ack.snd_nxt;
        c.last = None;
        if c.rates.len() >= MIN_INTERVALS_OF_ROUND {
            c.rates.sort_unstable_by(f64::total_cmp);
            let median = c.rates[c.rates.len() / 2];
            c.rounds = if (median - self.rate).abs() <= SAME * self.rate { c.rounds + 1 } else { 0 };
        }
        c.rates.clear();
    }

    /// The window fills the path: slow start is over.
    pub fn is_full(&self, cwnd: Packets) -> bool {
        self.confirmation.rounds >= CONFIRMING
            && self.holds.is_some_and(|holds| holds >= MIN_FULL && f64::from(cwnd.get()) >= FULL * holds)
    }

    /// How fast segments of `mss` bytes leave while slow start lasts.
    pub fn pace(&self, cwnd: Packets, mss: u32) -> StartPace {
        let pace = match self.growth(cwnd) {
            Growth::Quadruple => StartPace::QUADRUPLES,
            Growth::Double => StartPace::DOUBLES,
            Growth::Quarter => StartPace::STEADY,
        };
        let below = self.holds.is_some_and(|holds| f64::from(cwnd.get()) < FULL * holds);
        let most = below.then(|| Rate::from_bytes_per_sec_f64(MAX * self.rate * f64::from(mss)));
        StartPace { most, ..pace }
    }

    /// The same after slow start has ended because the window [fills the path](Self::is_full), until the
    /// first loss.
    pub fn full_pace() -> StartPace {
        StartPace::FULL
    }

    /// The flight that told the rate was doubled already; true if it may be quadrupled.
    pub fn may_double_again(&self, cwnd: Packets) -> bool {
        self.growth(cwnd) == Growth::Quadruple
    }

    /// What a window of `cwnd` may grow by.
    fn growth(&self, cwnd: Packets) -> Growth {
        let (Some(holds), cwnd) = (self.holds, f64::from(cwnd.get())) else { return Growth::Double };
        if cwnd < QUADRUPLES_BELOW * holds {
            Growth::Quadruple
        } else if cwnd < NEAR * holds || cwnd >= DISPROVED * holds {
            Growth::Double
        } else {
            Growth::Quarter
        }
    }

    /// Segments by which an ACK for `acked` segments raises a window of `cwnd`.
    pub fn step(&mut self, cwnd: Packets, acked: Packets) -> Packets {
        match self.growth(cwnd) {
            Growth::Quadruple => Packets::new(acked.get().saturating_mul(3)),
            Growth::Double => acked,
            Growth::Quarter => {
                let credit = self.credit.saturating_add(acked.get());
                self.credit = credit % 4;
                Packets::new(credit / 4)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Span;

    /// A flight of ten in ACKs of `each` segments, `gap` apart, on a path of 100 ms. Returns what it told.
    fn flight(fast: &mut FastStart, each: &[u32], gap: Span) -> bool {
        let mut told = false;
        let (mut una, end) = (Seq::default(), Seq::default() + each.iter().sum::<u32>());
        for (n, acked) in each.iter().enumerate() {
            una += *acked;
            let mut ack = AckSample::of(Instant::ZERO + gap * n as u64, Packets::new(*acked));
            (ack.snd_una, ack.snd_nxt) = (una, if n == 0 { end } else { end + 2 * n as u32 });
            ack.min_rtt = Some(Span::from_millis(100));
            told |= fast.on_ack(&ack);
        }
        told
    }

    /// Breaks: the estimate of what the path holds, and the growth that it allows.
    #[test]
    fn the_first_flight_tells_what_the_path_holds() {
        let mut fast = FastStart::default();
        assert_eq!(fast.growth(Packets::new(10)), Growth::Double, "nothing is known yet");
        // Two segments in 200 us: 10,000 a second, 1,000 in 100 ms.
        assert!(flight(&mut fast, &[2, 2, 2, 2, 2], Span::from_micros(200)));
        let table = [(10, Growth::Quadruple), (490, Growth::Quadruple), (510, Growth::Double)];
        let near = [(690, Growth::Double), (710, Growth::Quarter), (1490, Growth::Quarter)];
        for (cwnd, growth) in table.into_iter().chain(near).chain([(1510, Growth::Double)]) {
            assert_eq!(fast.growth(Packets::new(cwnd)), growth, "{cwnd}");
        }
        assert_eq!(fast.step(Packets::new(10), Packets::new(2)).get(), 6);
        let quarter: u32 = (0..8).map(|_| fast.step(Packets::new(1000), Packets::new(1)).get()).sum();
        assert_eq!(quarter, 2);
    }

    /// Pairs after 0, 200, 400, 4,000 and 4,200 us.
    fn uneven(fast: &mut FastStart) -> bool {
        let mut una = Seq::default();
        [0u64, 200, 400, 4_000, 4_200].into_iter().any(|us| {
            una += 2;
            let mut ack = AckSample::of(Instant::ZERO + Span::from_micros(us), Packets::new(2));
            (ack.snd_una, ack.snd_nxt) = (una, Seq::default() + 10);
            ack.min_rtt = Some(Span::from_millis(100));
            fast.on_ack(&ack)
        })
    }

    /// Breaks: estimates from ACKs that tell nothing: one for the whole flight, or one that was held back.
    #[test]
    fn some_flights_tell_nothing() {
        let mut fast = FastStart::default();
        assert!(!flight(&mut fast, &[10], Span::from_micros(200)));
        let mut fast = FastStart::default();
        assert!(!flight(&mut fast, &[5, 5], Span::from_micros(200)));
        // Two lines: two pairs come together, the others later.
        let mut fast = FastStart::default();
        assert!(!uneven(&mut fast));
        // The last segment of an odd flight waits for 40 ms: it does not count.
        let mut fast = FastStart::default();
        let gap = Span::from_micros(200);
        let mut una = Seq::default();
        for (n, acked) in [2u32, 2, 2, 2, 2, 1].into_iter().enumerate() {
            una += acked;
            let at = if acked == 1 {
                Instant::ZERO + Span::from_millis(40)
            } else {
                Instant::ZERO + gap * n as u64
            };
            let mut ack = AckSample::of(at, Packets::new(acked));
            (ack.snd_una, ack.snd_nxt) = (una, Seq::default() + 11);
            ack.min_rtt = Some(Span::from_millis(100));
            fast.on_ack(&ack);
        }
        assert_eq!(fast.growth(Packets::new(490)), Growth::Quadruple);
    }
}
