//! Classes that always have packets, on a line: bandwidth per n packets and burstiness, as the paper's §4.4 has them.

use super::drive::{Source, drive};
use super::pace::{FRAME, LINE, Pace};
use anyhow::{Result, bail};
use farpace_link::pacing::{Burstiness, PacingInterval, layer_2};
use farpace_units::{ByteCount, RandomStream, Rate};
use std::fmt;

/// Ticks of the paper's clock in a second: 59.6 ns each.
const TICKS: u64 = 1 << 24;
/// Full frames of one scheduler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Which.
    pub pace: Pace,
    /// The classes' rates in bit/s.
    pub rates: Vec<u64>,
    /// About so many packets of all classes together, in all phases.
    pub packets: u64,
    /// But the line carries so much in each phase at most.
    pub most: ByteCount,
    /// In so many runs, in each of which the classes begin at other times: in the first one all at once.
    pub phases: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rates.as_slice() {
            [one] => write!(f, "{} at {one} bit/s", self.pace),
            many => write!(f, "{} with {} classes", self.pace, many.len()),
        }
    }
}

/// Least, greatest and mean, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// The mean of all.
    pub mean: f64,
}

/// What was measured of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its rate in bit/s.
    pub rate: u64,
    /// Its packets.
    pub packets: usize,
    /// Bandwidth per 1 and per 2 packets, of frames without check sequence, by the paper's clock.
    pub bandwidth: [Spread; 2],
    /// The greatest burstiness in MTU (full frames), by the exact times of the line, before a line of the rate that the scheduler is
    /// to give the class.
    pub burstiness: f64,
    /// The same before a line of the mean rate of what was sent, by the paper's clock, rounded up to packets as the paper's
    /// program did. A first frame that is early and a last one that is late make it greater by up to a packet.
    pub counted: f64,
    /// By how much the rate of layer 2 differs from the target, in millionths: at most, of all phases. The last frame of a phase
    /// may be early or late.
    pub error_ppm: f64,
}

impl Case {
    /// Measures all classes, in their order.
    ///
    /// # Errors
    /// Rates that do not fit, or a class that sent less than four packets.
    pub fn measure(&self) -> Result<Vec<Class>> {
        let end = self.end();
        let mut all: Vec<Class> = Vec::new();
        for phase in 0..self.phases {
            let mut starts: Vec<Vec<u64>> = vec![Vec::new(); self.rates.len()];
            drive(self.pace, &self.sources(phase), end, |class, at| starts[class].push(at))?;
            let classes =
                self.rates.iter().zip(&starts).map(|(rate, starts)| class(self.pace, *rate, starts));
            let classes = classes.collect::<Result<Vec<Class>>>()?;
            if all.is_empty() {
                all = classes;
            } else {
                all.iter_mut().zip(&classes).for_each(|(all, class)| all.join(class));
            }
        }
        Ok(all)
    }

    /// In all phases but the first one each class begins at some time within its interval.
    fn sources(&self, phase: u64) -> Vec<Source> {
        let mut dice = RandomStream::new(phase, "papers pacing phases");
        let source = |rate: &u64| {
            let interval =
                PacingInterval::new(Rate::from_bits_per_sec(*rate), LINE).after(layer_2(FRAME), &mut 0);
            let from = if phase == 0 { 0 } else { dice.below(interval.max(1)) };
            Source { rate: *rate, from, to: u64::MAX }
        };
        self.rates.iter().map(source).collect()
    }

    /// Bytes of the line that all packets of a phase take.
    fn end(&self) -> u64 {
        let all: u128 = self.rates.iter().map(|r| u128::from(*r)).sum();
        let bytes = u128::from(self.packets / self.phases.max(1))
            * u128::from(layer_2(FRAME).get())
            * u128::from(LINE.bits_per_sec())
            / all.max(1);
        u64::try_from(bytes).unwrap_or(u64::MAX).min(self.most.get())
    }
}

impl Class {
    /// The packets of `other` are this one's as well.
    pub fn join(&mut self, other: &Class) {
        let (ours, theirs) = (self.packets as f64, other.packets as f64);
        for (s, o) in self.bandwidth.iter_mut().zip(&other.bandwidth) {
            s.least = s.least.min(o.least);
            s.most = s.most.max(o.most);
            s.mean = (s.mean * ours + o.mean * theirs) / (ours + theirs);
        }
        self.packets += other.packets;
        self.burstiness = self.burstiness.max(other.burstiness);
        self.counted = self.counted.max(other.counted);
        if other.error_ppm.abs() > self.error_ppm.abs() {
            self.error_ppm = other.error_ppm;
        }
    }
}

fn class(pace: Pace, rate: u64, starts: &[u64]) -> Result<Class> {
    let ([first, .., last], 4..) = (starts, starts.len()) else {
        bail!("a class of {rate} bit/s sent {} packets only", starts.len());
    };
    let bytes = last - first;
    let intervals = (starts.len() - 1) as u64;
    let ticks: Vec<u64> = starts.iter().map(|at| tick(*at)).collect();
    let frame = layer_2(FRAME);
    let line = match pace {
        Pace::Edf => Burstiness::new(ByteCount::new(rate), LINE.bits_per_sec()),
        // It cuts the time between two frames to whole bytes of the line.
        Pace::Psp => {
            let interval = PacingInterval::new(Rate::from_bits_per_sec(rate), LINE);
            Burstiness::new(frame, interval.after(frame, &mut 0))
        }
        _ => Burstiness::new(ByteCount::new(intervals * frame.get()), bytes),
    };
    let exact = burstiness(line, starts, frame).get() as f64 / frame.get() as f64;
    let mean = Burstiness::new(ByteCount::new(intervals * FRAME.get()), tick(*last) - tick(*first));
    // Fractions of a byte are not counted, or nothing would ever be a single packet.
    let counted = burstiness(mean, &ticks, FRAME).get().saturating_sub(1).div_ceil(FRAME.get());
    let of_layer_2 = (intervals * layer_2(FRAME).get()) as f64 / bytes as f64 * LINE.bits_per_sec() as f64;
    Ok(Class {
        rate,
        packets: starts.len(),
        bandwidth: [per(&ticks, 1), per(&ticks, 2)],
        burstiness: exact,
        counted: counted as f64,
        error_ppm: (of_layer_2 / rate as f64 - 1.0) * 1e6,
    })
}

/// What the paper's clock says when the line has carried so many bytes.
fn tick(bytes: u64) -> u64 {
    let ticks = u128::from(bytes) * 8 * u128::from(TICKS) / u128::from(LINE.bits_per_sec());
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Bandwidth per `n` packets: their bytes over the time from the first one to the one after the last.
fn per(ticks: &[u64], n: usize) -> Spread {
    let bits = n as f64 * FRAME.get() as f64 * 8.0;
    let rates = ticks.windows(n + 1).filter_map(|w| {
        let [first, .., last] = w else { return None };
        Some(bits * TICKS as f64 / (last - first).max(1) as f64)
    });
    let (mut least, mut most, mut sum, mut count) = (f64::INFINITY, 0.0f64, 0.0, 0u64);
    for rate in rates {
        (least, most, sum, count) = (least.min(rate), most.max(rate), sum + rate, count + 1);
    }
    Spread { least, most, mean: sum / count as f64 }
}

/// The greatest queue before `line` of frames that come at `times`.
fn burstiness(mut line: Burstiness, times: &[u64], frame: ByteCount) -> ByteCount {
    let first = times.first().copied().unwrap_or_default();
    times.iter().for_each(|at| line.arrive(at - first, frame));
    line.peak()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: Tables 2 to 4: bandwidth per n packets. Frames at 0, 1, 3 and 4 ticks.
    #[test]
    fn bandwidth_per_n_packets_is_worked_by_hand() {
        let one = FRAME.get() as f64 * 8.0 * TICKS as f64;
        let single = per(&[0, 1, 3, 4], 1);
        assert_eq!((single.least, single.most), (one / 2.0, one));
        assert!((single.mean / one - (1.0 + 0.5 + 1.0) / 3.0).abs() < 1e-12);
        let double = per(&[0, 1, 3, 4], 2);
        assert_eq!((double.least, double.most), (one * 2.0 / 3.0, one * 2.0 / 3.0));
    }

    /// Breaks: the measure of what is precise: even frames have one packet, two at once have two.
    #[test]
    fn even_frames_are_one_packet() {
        let even: Vec<u64> = (0..50).map(|n| n * 3_000).collect();
        let measured = class(Pace::None, 506_000_000, &even).unwrap();
        assert_eq!(measured.burstiness, 1.0);
        let mut uneven = even.clone();
        uneven[20] = uneven[19] + 1_538;
        let measured = class(Pace::Edf, 506_000_000, &uneven).unwrap();
        assert!((1.4..1.6).contains(&measured.burstiness), "{measured:?}");
        assert_eq!(measured.counted, 2.0);
        assert!(class(Pace::Psp, 1, &even[..3]).is_err());
    }

    /// Breaks: Table 4: what several phases have in common.
    #[test]
    fn phases_are_joined() {
        let rates = vec![500_000_000, 300_000_000, 100_000_000];
        let one = Case { pace: Pace::Psp, rates, packets: 900, phases: 1, most: ByteCount::new(u64::MAX) };
        let many = Case { packets: 9_000, phases: 10, ..one.clone() };
        let (one, many) = (one.measure().unwrap(), many.measure().unwrap());
        for (one, many) in one.iter().zip(&many) {
            assert!(many.packets.abs_diff(one.packets * 10) < 100);
            for (one, many) in one.bandwidth.iter().zip(&many.bandwidth) {
                assert!(many.least <= one.least && many.most >= one.most);
                assert!((many.mean / one.mean - 1.0).abs() < 0.1);
            }
            assert!(many.burstiness >= one.burstiness && many.counted >= one.counted);
        }
        assert!(one.iter().zip(&many).any(|(one, many)| many.burstiness > one.burstiness));
    }

    /// Breaks: the column of errors: 1518 B of layer 2 in each 3,036 B of a line of 1 Gbit/s are 500 Mbit/s.
    #[test]
    fn the_rate_is_that_of_layer_2() {
        let starts: Vec<u64> = (0..10).map(|n| n * 3_036).collect();
        assert!(class(Pace::Edf, 500_000_000, &starts).unwrap().error_ppm.abs() < 1e-6);
        assert!((class(Pace::Edf, 499_500_000, &starts).unwrap().error_ppm - 1_001.0).abs() < 0.1);
    }
}
