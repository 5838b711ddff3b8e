//! The congestion window: changed by congestion control and by recovery, owned by neither.

use crate::config::Abc;
use farpace_units::Packets;

/// Congestion window and slow-start threshold, counted in full-size segments as Linux counts them (RFC 5681
/// counts bytes; the difference is the segment size, which is fixed per connection).
///
/// `cwnd` is at least the floor, one segment unless a layer below needs more, and at most the clamp, whatever
/// is asked for.
#[derive(Clone, Debug)]
pub struct Window {
    cwnd: u32,
    ssthresh: u32,
    floor: u32,
    clamp: u32,
    /// ACKs counted towards the next change of `cwnd` (congestion avoidance, rate halving).
    pub cwnd_cnt: u32,
    /// Bytes acknowledged and not yet spent on slow start (RFC 3465).
    pub bytes_acked: u32,
    abc: Abc,
    mss: u32,
}

impl Window {
    /// A window of `initial` segments of `mss` bytes; no threshold means infinite.
    pub fn new(initial: Packets, ssthresh: Option<Packets>, clamp: Packets, abc: Abc, mss: u32) -> Self {
        let clamp = clamp.get().max(1);
        Window {
            cwnd: initial.get().clamp(1, clamp),
            ssthresh: ssthresh.unwrap_or(Packets::MAX).get(),
            floor: 1,
            clamp,
            cwnd_cnt: 0,
            bytes_acked: 0,
            abc,
            mss,
        }
    }
    /// The same with a window, and a threshold, of never less than `floor` segments, if the clamp allows
    /// them: a layer below that holds back up to S packets of a connection would wait for ever with less than
    /// S + 1 (Kato and Higaki).
    #[must_use]
    pub fn with_floor(mut self, floor: Packets) -> Self {
        self.floor = floor.get().clamp(1, self.clamp);
        self.set_cwnd(self.cwnd());
        self.set_ssthresh(self.ssthresh());
        self
    }
    /// Congestion window.
    pub fn cwnd(&self) -> Packets {
        Packets::new(self.cwnd)
    }
    /// Slow-start threshold; [`Packets::MAX`] while there is none.
    pub fn ssthresh(&self) -> Packets {
        Packets::new(self.ssthresh)
    }
    /// Sets the congestion window, within the floor and the clamp.
    pub fn set_cwnd(&mut self, cwnd: Packets) {
        self.cwnd = cwnd.get().clamp(self.floor, self.clamp);
    }
    /// Sets the slow-start threshold, at least two segments (RFC 5681 eq. 4), and the floor.
    pub fn set_ssthresh(&mut self, ssthresh: Packets) {
        self.ssthresh = ssthresh.get().max(2).max(self.floor);
    }
    /// cwnd <= ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd <= self.ssthresh
    }
    /// Maximum segment size in bytes.
    pub fn mss(&self) -> u32 {
        self.mss
    }
    /// The segment size has changed. The window keeps its count of segments: what goes out is less at once,
    /// and grows again as ACKs come.
    pub fn set_mss(&mut self, mss: u32) {
        self.mss = mss;
    }
    /// The byte-counting mode in force.
    pub fn abc(&self) -> Abc {
        self.abc
    }

    /// One ACK of slow start: one segment, or what byte counting (RFC 3465 §2.2) allows.
    pub fn slow_start(&mut self) {
        let mut step = 1;
        if self.abc != Abc::Off {
            if self.bytes_acked < self.mss {
                return;
            }
            if self.abc == Abc::Two && self.bytes_acked >= 2 * self.mss {
                step = 2;
            }
        }
        self.bytes_acked = 0;
        self.set_cwnd(Packets::new(self.cwnd.saturating_add(step)));
    }

    /// One ACK of congestion avoidance at one segment per `cnt` ACKs.
    pub fn count_towards(&mut self, cnt: u32) {
        if self.cwnd_cnt >= cnt {
            self.set_cwnd(Packets::new(self.cwnd.saturating_add(1)));
            self.cwnd_cnt = 0;
        } else {
            self.cwnd_cnt += 1;
        }
    }
}
