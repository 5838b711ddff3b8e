//! A delay, with or without jitter. Packets do not queue in it, whatever their rate.

use crate::delay_queue::DelayQueue;
use crate::{Cx, Duplex, ElementDirection, Inspection, Port};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;

/// A delay in each direction.
pub type Delay = Duplex<DelayDirection>;

impl Delay {
    /// The same fixed delay in both directions.
    pub fn fixed(delay: Span) -> Self {
        Duplex::new(DelayDirection::new(delay, None), DelayDirection::new(delay, None))
    }
}

/// A random time added to the delay, drawn for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Uniform from 0 to this, inclusive.
    pub max: Span,
    /// A packet may overtake another. Otherwise it waits for those before it.
    pub reorders: bool,
}

/// One direction of a [`Delay`].
#[derive(Clone, Debug)]
pub struct DelayDirection {
    delay: Span,
    jitter: Option<Jitter>,
    latest: Instant,
    hold: DelayQueue,
}

impl DelayDirection {
    /// A delay of at least `delay`.
    pub fn new(delay: Span, jitter: Option<Jitter>) -> Self {
        DelayDirection { delay, jitter, latest: Instant::ZERO, hold: DelayQueue::default() }
    }
}

impl ElementDirection for DelayDirection {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let mut due = cx.now() + self.delay;
        if let Some(jitter) = self.jitter {
            due += Span::from_nanos(cx.rng().below(jitter.max.as_nanos().saturating_add(1)));
            if !jitter.reorders {
                self.latest = self.latest.max(due);
                due = self.latest;
            }
        }
        self.hold.push(due, packet);
        // A packet without delay leaves at once, after any that is due now.
        self.hold.release(out, cx);
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        self.hold.release(out, cx);
    }
    fn deadline(&self) -> Option<Instant> {
        self.hold.due()
    }
    fn held(&self) -> u64 {
        self.hold.len()
    }
    fn inspect(&self) -> Inspection {
        let mut readings =
            vec![("delay", self.delay.to_string()), ("in propagation", self.hold.len().to_string())];
        if let Some(jitter) = self.jitter {
            readings.push(("jitter", jitter.max.to_string()));
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};

    /// Breaks: the delay is wrong, or many packets at once delay each other.
    #[test]
    fn all_packets_of_one_instant_come_out_together() {
        let mut harness = Harness::new(Delay::fixed(Span::from_millis(5)));
        for n in 0..100 {
            harness.packet(Instant::from_nanos(7), Port(0), packet(n, 1_460));
        }
        harness.run();
        assert!(harness.emitted.iter().all(|(at, ..)| *at == Instant::from_nanos(5_000_007)));
        assert_eq!(harness.idents(Port(1)), (0..100).collect::<Vec<_>>());
    }

    /// Breaks: jitter leaves its range, or never lets a packet overtake.
    #[test]
    fn jitter_spreads_within_its_range_and_reorders() {
        let jitter = Some(Jitter { max: Span::from_micros(100), reorders: true });
        let mut harness = Harness::new(Delay::new(
            DelayDirection::new(Span::from_millis(1), jitter),
            DelayDirection::new(Span::ZERO, None),
        ));
        for n in 0..200 {
            harness.packet(Instant::ZERO, Port(0), packet(n, 0));
        }
        harness.run();
        let (first, last) = (harness.emitted[0].0.as_micros(), harness.emitted[199].0.as_micros());
        assert!((1_000..1_010).contains(&first) && (1_090..=1_100).contains(&last), "{first} to {last}");
        assert!(!harness.idents(Port(1)).is_sorted());
    }
}
