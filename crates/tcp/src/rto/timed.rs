//! The one segment whose round trip is being timed.

use farpace_units::{Instant, Seq};

/// BSD's way of measuring: one segment at a time, and none that was sent twice (Karn).
#[derive(Clone, Copy, Debug, Default)]
pub struct Timed(Option<(Seq, Instant)>);

impl Timed {
    /// A segment that begins at `seq` is sent for the first time. True: it is timed from now on.
    pub fn on_sent(&mut self, seq: Seq, now: Instant) -> bool {
        let free = self.0.is_none();
        if free {
            self.0 = Some((seq, now));
        }
        free
    }

    /// The next new segment will be timed.
    pub fn is_free(&self) -> bool {
        self.0.is_none()
    }

    /// Everything before `ack` has arrived: when the timed segment was sent, if it is among that.
    pub fn on_ack(&mut self, ack: Seq) -> Option<Instant> {
        let (_, at) = self.0.take_if(|(seq, _)| ack.after(*seq))?;
        Some(at)
    }

    /// Something was sent again: an ACK would tell nothing.
    pub fn cancel(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Span;

    /// Breaks: one measurement at a time, and none of what was sent twice.
    #[test]
    fn one_at_a_time() {
        let (at, ms) = (|n| Instant::ZERO + Span::from_millis(n), Seq::new);
        let mut t = Timed::default();
        assert!(t.on_sent(ms(100), at(1)));
        assert!(!t.on_sent(ms(200), at(2)), "one is under way");
        assert_eq!(t.on_ack(ms(100)), None, "its first byte is not acknowledged");
        assert_eq!(t.on_ack(ms(300)), Some(at(1)));
        assert_eq!(t.on_ack(ms(400)), None);
        assert!(t.on_sent(ms(300), at(3)));
        t.cancel();
        assert_eq!(t.on_ack(ms(400)), None);
    }
}
