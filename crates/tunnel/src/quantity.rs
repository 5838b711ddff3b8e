//! Sizes and rates as people read them, and the rates of tunnels.

use crate::outage::SILENT;
use farpace_live::device::udp_tunnel::TunnelStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes in the unit that suits them, with four digits at most.
pub fn size(bytes: u64) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = units.iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or(format!("{bytes} B"), |(unit, name)| {
        format!("{} {name}", farpace_report::number(bytes as f64 / *unit as f64))
    })
}

/// A rate in the unit that suits it.
pub fn speed(bytes: u64, time: Duration) -> String {
    let bits = bytes as f64 * 8.0 / time.as_secs_f64().max(1e-9);
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let unit = units.iter().find(|(unit, _)| bits >= *unit);
    unit.map_or(format!("{bits:.0} bit/s"), |(unit, name)| {
        format!("{} {name}", farpace_report::number(bits / unit))
    })
}

/// What each tunnel carries, from one reading to the next.
pub struct LinkRates {
    links: Vec<(String, TunnelStatus)>,
    last: Mutex<(Duration, Vec<u64>)>,
}

impl LinkRates {
    /// Nothing is known yet.
    pub fn new(links: &[(String, TunnelStatus)]) -> Self {
        LinkRates { links: links.to_vec(), last: Mutex::new((Duration::ZERO, vec![0; links.len()])) }
    }
    /// Rates since the last reading, `elapsed` after the start; empty where there is one tunnel at most.
    pub fn text(&self, elapsed: Duration) -> String {
        if self.links.len() < 2 {
            return String::new();
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, bytes) = &mut *last;
        let time = elapsed.saturating_sub(*before);
        *before = elapsed;
        let mut text = String::new();
        for ((name, status), last) in self.links.iter().zip(bytes) {
            let peers = status.peers();
            let now = peers.iter().fold(0_u64, |all, peer| all + peer.sent + peer.received);
            let rtt = peers.first().and_then(|peer| peer.rtt);
            let rtt = rtt.map_or(String::new(), |rtt| {
                format!(" {} ms", farpace_report::number(rtt.as_secs_f64() * 1e3))
            });
            // What a link without an answer carries is lost.
            let silent = peers.first().and_then(|peer| peer.unanswered).filter(|silent| *silent >= SILENT);
            text += &match silent {
                Some(silent) => format!("; {name} no answer for {} s", silent.as_secs()),
                None => format!("; {name} {}{rtt}", speed(now.saturating_sub(*last), time)),
            };
            *last = now;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: sizes and rates in wrong units.
    #[test]
    fn sizes_have_units() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(2_500_000), "2.50 MB");
        assert_eq!(speed(12_500_000, Duration::from_secs(1)), "100 Mbit/s");
    }
}
