//! A window with its fraction of a segment, for algorithms that do not grow by whole segments.

use crate::window::Window;
use farpace_units::Packets;

/// What the window is worth beyond its whole segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fraction {
    /// In 0..1.
    part: f64,
    /// The window that `part` belongs to: if somebody else has set it since, the fraction is void, and if the
    /// window comes back to it, as after an undo, so does the fraction.
    whole: u32,
}

impl Fraction {
    /// The window in segments.
    pub fn cwnd(&self, window: &Window) -> f64 {
        let whole = window.cwnd().get();
        f64::from(whole) + if whole == self.whole { self.part } else { 0.0 }
    }

    /// Sets the window in segments.
    pub fn set_cwnd(&mut self, window: &mut Window, cwnd: f64) {
        // A cast from floating point saturates.
        window.set_cwnd(Packets::new(cwnd as u32));
        self.whole = window.cwnd().get();
        self.part = (cwnd - f64::from(self.whole)).clamp(0.0, 0.999_999);
    }

    /// Grows by `increment` segments for each window acknowledged, so by `increment / cwnd` for each of
    /// `acked` segments; a stretch ACK counts for one window at most.
    pub fn grow(&mut self, window: &mut Window, acked: Packets, increment: f64) {
        let cwnd = self.cwnd(window);
        let share = (f64::from(acked.get()) / cwnd).min(1.0);
        self.set_cwnd(window, cwnd + increment * share);
    }
}

/// `part` of what is in use of the window, at least two segments: a threshold after a loss. A window that was
/// not used must not count (RFC 5681 eq. 4).
pub fn part_of(window: &Window, flight: Packets, part: f64) -> Packets {
    let used = f64::from(window.cwnd().min(flight).get());
    Packets::new(((used * part) as u32).max(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::window;

    /// Breaks: growth of less than a segment, which would be lost or counted twice; what another has set.
    #[test]
    fn keeps_the_fraction_of_its_own_window() {
        let (mut fraction, mut w) = (Fraction::default(), window(10, 2));
        let mut grow = |w: &mut Window, acked, by| {
            fraction.grow(w, Packets::new(acked), by);
            fraction.cwnd(w)
        };
        assert_eq!(grow(&mut w, 5, 1.0), 10.5);
        assert_eq!(grow(&mut w, 1_000, 0.25), 10.75, "one window at most");
        w.set_cwnd(Packets::new(4));
        assert_eq!(fraction.cwnd(&w), 4.0);
        w.set_cwnd(Packets::new(10));
        assert_eq!(fraction.cwnd(&w), 10.75, "an undo");
        w.set_cwnd(Packets::new(20));
        fraction.grow(&mut w, Packets::new(10), 1e30);
        assert_eq!(w.cwnd(), Packets::MAX);
    }

    /// Breaks: the bounds of a cut: what was not used does not count, and two segments are left.
    #[test]
    fn parts() {
        let part = |flight, part| part_of(&window(100, 2), Packets::new(flight), part).get();
        assert_eq!([part(100, 0.7), part(200, 0.7), part(41, 0.5), part(3, 0.5)], [70, 70, 20, 2]);
    }
}
