//! Linux: srtt plus a variation that never falls below 200 ms, in scaled integers: of 1 ms in 2.6, of 1 us
//! today.

use farpace_units::{Seq, Span};

/// Floor of the variation, and so of (RTO - srtt), of 2.6.
const RTO_MIN: Span = Span::from_millis(200);

/// The kernel's estimator. `srtt` is kept times 8, the deviations times 4.
#[derive(Clone, Debug)]
pub struct Linux26Rto {
    /// What it counts in.
    unit: Span,
    floor: u64,
    /// Before the first sample, and if the SYN had to be repeated.
    initial: Span,
    initial_after_syn_timeout: Span,
    srtt8: u64,
    mdev4: u64,
    /// Greatest `mdev4` of the current round trip, at least the floor.
    mdev_max: u64,
    rttvar: u64,
    /// The round trip ends when this is acknowledged.
    rtt_seq: Seq,
}

impl Default for Linux26Rto {
    /// That of 2.6, with HZ = 1000.
    fn default() -> Self {
        let three = Span::from_secs(3);
        Self::counting(Span::from_millis(1), RTO_MIN, three, three)
    }
}

impl Linux26Rto {
    /// That of today, with this floor (`tcp_rto_min_us`).
    pub fn of_today(floor: Span) -> Self {
        // RFC 6298 §2.1 and §5.7.
        Self::counting(Span::from_micros(1), floor, Span::from_secs(1), Span::from_secs(3))
    }

    fn counting(unit: Span, floor: Span, initial: Span, initial_after_syn_timeout: Span) -> Self {
        let floor = floor.as_nanos() / unit.as_nanos();
        Linux26Rto {
            unit,
            floor,
            initial,
            initial_after_syn_timeout,
            srtt8: 0,
            mdev4: 0,
            mdev_max: 0,
            rttvar: 0,
            rtt_seq: Seq::default(),
        }
    }

    fn span(&self, units: u64) -> Span {
        self.unit * units
    }

    /// The variation falls no lower than this from now on.
    pub fn set_floor(&mut self, floor: Span) {
        self.floor = floor.as_nanos() / self.unit.as_nanos();
    }

    /// The SYN had to be repeated.
    pub fn restart_after_syn_timeout(&mut self) {
        self.initial = self.initial_after_syn_timeout;
    }

    /// Takes one sample in; `snd_una` and `snd_nxt` say when a round trip is over.
    pub fn sample(&mut self, rtt: Span, snd_una: Seq, snd_nxt: Seq) {
        let m = (rtt.as_nanos() / self.unit.as_nanos()).max(1);
        if self.srtt8 == 0 {
            self.srtt8 = m * 8;
            self.mdev4 = m * 2; // so that the first RTO is 3 RTT
            self.rttvar = self.mdev4.max(self.floor);
            self.mdev_max = self.rttvar;
            self.rtt_seq = snd_nxt;
            return;
        }
        let srtt = self.srtt8 / 8;
        self.srtt8 = self.srtt8 + m - srtt;
        let err = m.abs_diff(srtt);
        let mdev = self.mdev4 / 4;
        if err >= mdev {
            // A round trip that gets shorter says little about the next one: gain 1/32 instead of 1/4.
            let d = err - mdev;
            self.mdev4 += if m < srtt { d / 8 } else { d };
        } else {
            self.mdev4 -= mdev - err;
        }
        if self.mdev4 > self.mdev_max {
            self.mdev_max = self.mdev4;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if snd_una.after(self.rtt_seq) {
            self.rttvar -= self.rttvar.saturating_sub(self.mdev_max) / 4;
            self.rtt_seq = snd_nxt;
            self.mdev_max = self.floor;
        }
    }

    /// srtt + rttvar.
    pub fn rto(&self) -> Span {
        if self.srtt8 == 0 { self.initial } else { self.span(self.srtt8 / 8 + self.rttvar) }
    }

    /// Floor of the variation.
    pub fn floor(&self) -> Span {
        self.span(self.floor)
    }

    /// Deviation of late, as `TCP_INFO` tells it.
    pub fn deviation(&self) -> Span {
        self.span(self.mdev4 / 4)
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Span {
        Span::from_nanos(self.unit.as_nanos() / 8 * self.srtt8)
    }

    /// Four mean deviations, smoothed, at least 200 ms.
    pub fn rttvar(&self) -> Span {
        self.span(self.rttvar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32) -> Seq {
        Seq::new(n)
    }

    /// Breaks: the kernel's timeouts, which decide how often the paper's transfers stop.
    #[test]
    fn floor_first_sample_and_decay() {
        let mut e = Linux26Rto::default();
        assert_eq!(e.rto(), Span::from_secs(3));
        e.sample(Span::from_millis(10), at(0), at(100));
        assert_eq!(e.rto(), Span::from_millis(210), "10 ms and the floor");
        // A long one raises the variation at once ...
        e.sample(Span::from_millis(410), at(50), at(100));
        assert_eq!(e.srtt(), Span::from_millis(60));
        assert_eq!(e.rttvar(), Span::from_millis(415), "mdev4 = 20 + 400 - 5");
        // ... and it comes down by a quarter of the difference, once a round trip.
        e.sample(Span::from_millis(60), at(101), at(200));
        let after_one = e.rttvar();
        assert_eq!(after_one, Span::from_millis(415), "mdev_max still holds the long one");
        e.sample(Span::from_millis(60), at(201), at(300));
        assert!(e.rttvar() < after_one);
    }

    /// Breaks: a sample of zero must not stop the estimator.
    #[test]
    fn zero_counts_as_one_millisecond() {
        let mut e = Linux26Rto::default();
        e.sample(Span::ZERO, at(0), at(1));
        assert_eq!(e.srtt(), Span::from_millis(1));
    }
}
