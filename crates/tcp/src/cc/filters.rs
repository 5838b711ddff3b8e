//! Low-pass filters for bandwidth samples, in whatever unit the samples have. The first sample seeds each of
//! them.

/// Weight of the last estimate in Tustin's filter.
const MEMORY: f64 = 0.9;

/// b\[k\] = 0.9 b\[k-1\] + 0.1 (s\[k\] + s\[k-1\]) / 2: Tustin's filter, as in Westwood (ns-3's form).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tustin {
    /// s\[k-1\] and b\[k-1\].
    state: Option<(f64, f64)>,
}

impl Tustin {
    /// The estimate; none before the first sample.
    pub fn get(&self) -> Option<f64> {
        self.state.map(|(_, b)| b)
    }

    /// The estimate with this sample.
    pub fn take(&mut self, sample: f64) -> f64 {
        let b = match self.state {
            Some((previous, b)) => MEMORY * b + (1.0 - MEMORY) * (sample + previous) / 2.0,
            None => sample,
        };
        self.state = Some((sample, b));
        b
    }
}

/// n\[k\] = 7/8 n\[k-1\] + 1/8 s\[k\], b\[k\] = 7/8 b\[k-1\] + 1/8 n\[k\]: the low-pass of the second order
/// of Westwood+.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TwoStages {
    /// n and b.
    state: Option<(f64, f64)>,
}

impl TwoStages {
    /// The estimate; none before the first sample.
    pub fn get(&self) -> Option<f64> {
        self.state.map(|(_, b)| b)
    }

    /// The estimate with this sample.
    pub fn take(&mut self, sample: f64) -> f64 {
        let low_pass = |old: f64, new: f64| (7.0 * old + new) / 8.0;
        let (n, b) = self.state.map_or((sample, sample), |(n, b)| {
            let n = low_pass(n, sample);
            (n, low_pass(b, n))
        });
        self.state = Some((n, b));
        b
    }
}
