//! A limit on how often something is done: so many times per second, with a second's worth at once.

use farpace_units::{Instant, Span};

const SECOND: Span = Span::from_secs(1);

/// A token bucket without a clock of its own: it remembers when the bucket would be full again.
#[derive(Debug)]
pub(crate) struct Limiter {
    each: Span,
    full_at: Instant,
}

impl Limiter {
    /// `per_second` times.
    pub const fn new(per_second: u64) -> Self {
        Limiter { each: Span::from_nanos(SECOND.as_nanos() / per_second), full_at: Instant::ZERO }
    }

    /// Once more? Counts it if so.
    pub fn allows(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.each;
        let allowed = full_at.since(now) <= SECOND;
        if allowed {
            self.full_at = full_at;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::Limiter;
    use farpace_units::{Instant, Span};

    /// Breaks: the bound on answers to strangers, or their coming back after a rest.
    #[test]
    fn a_burst_then_the_rate() {
        let mut limiter = Limiter::new(100);
        let start = Instant::ZERO + Span::from_secs(9);
        let allowed = |limiter: &mut Limiter, at| (0..1_000).filter(|_| limiter.allows(at)).count();
        assert_eq!(allowed(&mut limiter, start), 100);
        assert_eq!(allowed(&mut limiter, start + Span::from_millis(50)), 5);
        assert_eq!(allowed(&mut limiter, start + Span::from_secs(60)), 100);
    }
}
