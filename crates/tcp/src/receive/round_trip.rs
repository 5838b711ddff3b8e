//! The round trip as a receiver sees it, who sends nothing that could be timed.

use farpace_units::{Instant, Seq, Span};

/// A round-trip estimate from timestamps that come back on data, or else from the time that a full window
/// takes.
///
/// Both are upper bounds while the sender has nothing to send. The estimate is for autotuning. As a mean and
/// as a maximum it errs towards a larger window.
#[derive(Clone, Debug, Default)]
pub struct ReceiverRtt {
    srtt: Span,
    /// A shorter sample replaces the estimate, and the time of a window counts only then.
    seeks_least: bool,
    /// The last timestamp that came back, whether it made a sample or not.
    last_echo: Option<u32>,
    /// The number that ends a window, and when that was announced. A flag of its own: an option takes 8 bytes
    /// more of each connection.
    mark: Seq,
    marked_at: Instant,
    is_marked: bool,
}

impl ReceiverRtt {
    /// The estimator of Linux 6.18 (tcp_rcv_rtt_update): a shorter sample replaces the estimate.
    pub fn linux() -> Self {
        ReceiverRtt { seeks_least: true, ..ReceiverRtt::default() }
    }
    /// The handshake was timed.
    pub fn on_handshake(&mut self, rtt: Span) {
        self.srtt = rtt;
    }
    /// A segment echoes our timestamp `echo`, `rtt` after it was sent; none: the segment does not tell.
    /// `unread`: data waits to be read, so a longer round trip may be the program's fault.
    pub fn on_echo(&mut self, echo: u32, rtt: Option<Span>, unread: bool) {
        if self.last_echo.replace(echo) == Some(echo) {
            return; // later segments of a flight only tell how long it is
        }
        let Some(rtt) = rtt else { return };
        if self.seeks_least && rtt.is_zero() {
            return; // less than a tick
        }
        let replaces = self.srtt.is_zero() || (self.seeks_least && rtt < self.srtt);
        if !replaces && self.seeks_least && unread {
            return;
        }
        self.srtt = if replaces { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
    }
    /// Data up to `rcv_nxt` has come, and the window announced ends at `rcv_adv`. Linux asks
    /// this beside timestamps, the others only without them.
    pub fn on_data(&mut self, now: Instant, rcv_nxt: Seq, rcv_adv: Seq) {
        if self.is_marked && rcv_nxt.before(self.mark) {
            return;
        }
        let rtt = now.since(self.marked_at);
        match (self.is_marked, self.seeks_least) {
            (true, true) => {
                let rtt = rtt.max(Span::from_micros(1));
                self.srtt = if self.srtt.is_zero() { rtt } else { self.srtt.min(rtt) };
            }
            (true, false) => self.srtt = self.srtt.max(rtt),
            (false, _) => {}
        }
        (self.mark, self.marked_at, self.is_marked) = (rcv_adv, now, true);
    }
    /// The estimate; zero if there is none.
    pub fn get(&self) -> Span {
        self.srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    /// Breaks: profile `linux` tells of a longer round trip than the kernel, and autotunes its receive buffer
    /// later.
    #[test]
    fn linux_takes_the_shorter_sample_at_once() {
        let mut linux = ReceiverRtt::linux();
        for (echo, rtt, estimate) in [(1, 8, 8), (2, 16, 9), (3, 2, 2), (4, 0, 2), (4, 1, 2), (5, 10, 3)] {
            linux.on_echo(echo, Some(ms(rtt)), false);
            assert_eq!(linux.get(), ms(estimate), "echo {echo} after {rtt} ms");
        }
        linux.on_echo(6, None, false);
        linux.on_echo(6, Some(ms(1)), false);
        assert_eq!(linux.get(), ms(3), "an ACK without data has brought this echo before");
        linux.on_echo(7, Some(ms(11)), true);
        assert_eq!(linux.get(), ms(3), "the program has not read");
        linux.on_echo(8, Some(ms(11)), false);
        assert_eq!(linux.get(), ms(4));
        let mut mean = ReceiverRtt::default();
        for (echo, rtt, estimate) in [(1, 8, 8), (2, 16, 9), (3, 1, 8)] {
            mean.on_echo(echo, Some(ms(rtt)), false);
            assert_eq!(mean.get(), ms(estimate), "echo {echo} after {rtt} ms");
        }
    }

    /// Breaks: without timestamps a pause of the sender counts as a round trip of profile `linux`.
    #[test]
    fn linux_takes_the_shortest_window_without_timestamps() {
        let (mut linux, mut most) = (ReceiverRtt::linux(), ReceiverRtt::default());
        for (at, next) in [(0, 0), (20, 1_000), (25, 2_000), (90, 3_000)] {
            for rtt in [&mut linux, &mut most] {
                rtt.on_data(Instant::ZERO + ms(at), Seq::new(next), Seq::new(next + 1_000));
            }
        }
        assert_eq!((linux.get(), most.get()), (ms(5), ms(65)));
    }
}
