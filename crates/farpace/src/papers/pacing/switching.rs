//! Five classes that begin and end one after the other (Fig. 7).

use super::drive::{Source, drive};
use super::pace::{FRAME, LINE, Pace};
use super::printed::FIVE;
use anyhow::Result;
use farpace_units::{ByteCount, Rate, Span};

/// Bins of the figure.
pub const BIN: Span = Span::from_millis(10);
/// The figure ends here.
const END: Span = Span::from_secs(70);

/// When the class with this place in [`FIVE`] has packets: all of them from 25 to 45 s, as in the paper. The fastest one begins
/// first and ends last.
pub fn active(class: usize) -> (Span, Span) {
    let behind = (FIVE.len() - class) as u64;
    (Span::from_secs(5 * behind), Span::from_secs(70 - 5 * behind))
}

/// Frames that each class began to send in each bin.
pub type Bins = Vec<Vec<u32>>;

/// Runs the classes of [`FIVE`].
///
/// # Errors
/// A frame that is refused.
pub fn measure(pace: Pace) -> Result<Bins> {
    let mut bins: Bins = vec![vec![0; (END.as_nanos() / BIN.as_nanos()) as usize]; FIVE.len()];
    let sources: Vec<Source> = FIVE
        .iter()
        .enumerate()
        .map(|(class, rate)| {
            let (from, to) = active(class);
            Source { rate: *rate, from: LINE.bytes_in(from).get(), to: LINE.bytes_in(to).get() }
        })
        .collect();
    let width = LINE.bytes_in(BIN).get();
    drive(pace, &sources, LINE.bytes_in(END).get(), |class, at| {
        if let Some(frames) = bins[class].get_mut((at / width) as usize) {
            *frames += 1;
        }
    })?;
    Ok(bins)
}

/// The rate in a bin with so many frames, in Mbit/s.
pub fn mbit(frames: u32) -> f64 {
    Rate::of(ByteCount::new(FRAME.get() * u64::from(frames)), BIN).as_mbit_f64()
}

/// By how many frames the whole bins of a class's time differ from its rate at most.
pub fn worst(bins: &Bins, class: usize) -> f64 {
    let (from, to) = active(class);
    let bin = |at: Span| (at.as_nanos() / BIN.as_nanos()) as usize;
    let due = Rate::from_bits_per_sec(FIVE[class]).bytes_in(BIN).get() as f64
        / farpace_link::pacing::layer_2(FRAME).get() as f64;
    let whole = bins[class].get(bin(from)..bin(to)).unwrap_or_default();
    whole.iter().map(|frames| (f64::from(*frames) - due).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: Fig. 7: a class sends outside of its time, or not at its rate, or the others are not left alone.
    #[test]
    fn each_class_has_its_time_and_its_rate() {
        assert_eq!(active(4), (Span::from_secs(5), Span::from_secs(65)));
        assert_eq!(active(0), (Span::from_secs(25), Span::from_secs(45)));
        let bins = measure(Pace::Edf).unwrap();
        for (class, rate) in FIVE.iter().enumerate() {
            let (from, to) = active(class);
            let outside = |at: Span| at < from || at > to;
            let at = |n: usize| BIN * n as u64;
            assert!(bins[class].iter().enumerate().all(|(n, frames)| *frames == 0 || !outside(at(n))));
            let all: u64 = bins[class].iter().map(|f| u64::from(*f)).sum();
            let mean = all as f64 * 1518.0 * 8.0 / (to.as_secs_f64() - from.as_secs_f64());
            assert!((mean / *rate as f64 - 1.0).abs() < 1e-3, "{class}: {mean}");
            assert!(worst(&bins, class) < 3.0, "{class}: {}", worst(&bins, class));
        }
        assert_eq!(mbit(10), 12.112);
    }
}
