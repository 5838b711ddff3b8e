//! Proportional rate reduction (RFC 9937), counted in segments.

use farpace_units::Packets;

/// Variables of RFC 9937 §6.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    delivered: u32,
    out: u32,
    recover_fs: u32,
}

impl Prr {
    /// §6.1: an episode begins. `recover_fs` is what may still be delivered during it: outstanding and not
    /// SACKed, with what the ACK at hand delivers.
    pub fn new(recover_fs: Packets) -> Self {
        Prr { delivered: 0, out: 0, recover_fs: recover_fs.get().max(1) }
    }

    /// §6.2: the window after an ACK that delivered so many segments. `safe`: SND.UNA has advanced and no
    /// further loss was found.
    pub fn on_ack(
        &mut self,
        delivered: Packets,
        in_flight: Packets,
        ssthresh: Packets,
        safe: bool,
    ) -> Option<Packets> {
        let (d, flight, target) = (delivered.get(), in_flight.get(), ssthresh.get());
        if d == 0 {
            return None;
        }
        self.delivered = self.delivered.saturating_add(d);
        let mut count = if flight > target {
            let out = (u64::from(self.delivered) * u64::from(target)).div_ceil(u64::from(self.recover_fs));
            out.saturating_sub(u64::from(self.out)) as u32
        } else {
            // Packet conservation, and one segment more when all goes well.
            let conserve = self.delivered.saturating_sub(self.out).max(d);
            (target - flight).min(conserve + u32::from(safe))
        };
        if self.out == 0 && count == 0 {
            count = 1; // the fast retransmit itself
        }
        Some(Packets::new(flight.saturating_add(count)))
    }

    /// §6.3: a segment was sent.
    pub fn on_sent(&mut self) {
        self.out = self.out.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(n: u32) -> Packets {
        Packets::new(n)
    }

    /// Breaks: the whole point of RFC 9937: one loss in a window of twenty, ten as the target: every second
    /// ACK lets one segment go, and at the end ten are in flight.
    #[test]
    fn one_loss_comes_down_evenly() {
        let mut prr = Prr::new(p(20));
        // 20 outstanding, 1 lost; each ACK takes one out of flight.
        let (mut flight, mut sent) = (19 - 3, Vec::new());
        for d in 1..=19u32 {
            if d > 3 {
                flight -= 1;
            }
            let delivered = if d <= 3 { p(0) } else { p(1) };
            let Some(cwnd) = prr.on_ack(delivered, p(flight), p(10), false) else { continue };
            let n = cwnd.get() - flight;
            (0..n).for_each(|_| prr.on_sent());
            flight += n;
            sent.push(n);
        }
        assert_eq!(flight, 10, "{sent:?}");
        assert!(sent.iter().all(|n| *n <= 1), "no bursts: {sent:?}");
    }

    /// Breaks: the reduction bounds below the target: conservation when losses go on, one more when all is
    /// well, never above the target. `(delivered, in flight, target, safe, window)` of a first ACK.
    #[test]
    fn the_bounds() {
        let table = [
            (1, 4, 10, false, 5),
            (1, 4, 10, true, 6),
            (8, 4, 10, true, 10),
            (2, 10, 10, false, 11), // nothing sent yet: the fast retransmit itself
            (0, 4, 10, true, 0),
        ];
        for (delivered, flight, target, safe, window) in table {
            let got = Prr::new(p(20)).on_ack(p(delivered), p(flight), p(target), safe);
            assert_eq!(got.map_or(0, Packets::get), window, "{:?}", (delivered, flight, target, safe));
        }
    }
}
