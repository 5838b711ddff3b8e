//! The machines, which the paper does not describe beyond "Pentium III, 1 GHz": what a frame costs them, worked out from the
//! speeds that it prints.
//!
//! Two numbers, two costs: UDP at 914 Mbit/s is a datagram of 1472 B each 12.9 us. TCP over the wide card alone at 689 Mbit/s
//! is a segment of 1448 B each 16.8 us: 3.9 us more, which is half of an ACK. While the program ran that observed
//! retransmissions, the best was 373 Mbit/s, a segment each 31.1 us: if it looks at each frame sent and each ACK, it takes
//! 9.5 us for each.

/// What frames cost a sender, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// A frame that is sent.
    pub send: f64,
    /// An ACK that is received.
    pub ack: f64,
}

/// Nobody observes.
pub const IDLE: Host = Host { send: 12.9, ack: 7.8 };
/// Retransmissions are observed, as in the paper's Figs. 9 and 10.
pub const OBSERVED: Host = IDLE.with_observer(9.5);

impl Host {
    /// An observing program takes so long for each frame.
    pub const fn with_observer(self, each: f64) -> Host {
        Host { send: self.send + each, ack: self.ack + each }
    }
    /// As settings of the paper's scenario.
    pub fn settings(self) -> [(String, String); 2] {
        let key = |key: &str, micros: f64| {
            (format!("hosts.a.processor.{key}"), format!("{} ns", (micros * 1e3).round() as u64))
        };
        [key("send", self.send), key("receive_ack", self.ack)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::nics::printed::{ALONE, BEST, UDP};

    /// What TCP can reach at best, with an ACK for every two segments, in Mbit/s.
    fn tcp_mbit(host: Host) -> f64 {
        1_448.0 * 8.0 / (host.send + host.ack / 2.0)
    }

    /// Breaks: costs that do not explain the speeds they are said to come from.
    #[test]
    fn costs_explain_the_printed_speeds() {
        assert!((tcp_mbit(IDLE) / ALONE - 1.0).abs() < 0.002, "{}", tcp_mbit(IDLE));
        assert!((1_472.0 * 8.0 / IDLE.send / UDP - 1.0).abs() < 0.002);
        assert!((tcp_mbit(OBSERVED) / BEST.mbit - 1.0).abs() < 0.002, "{}", tcp_mbit(OBSERVED));
        assert_eq!(OBSERVED.settings()[0].1, "22400 ns");
    }
}
