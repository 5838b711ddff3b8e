//! Axes: positions of values, and ticks.

/// Type of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScaleKind {
    /// Linear.
    Linear,
    /// Logarithmic. Values below the lower end are drawn at it.
    Log,
    /// Linear, for named cases without ticks.
    Cases,
}

/// An axis with values `lo` to `hi`, always with `lo < hi`, and above zero if logarithmic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    lo: f64,
    hi: f64,
    kind: ScaleKind,
}

impl Scale {
    /// An axis from `lo` to `hi`. A range that is empty or not finite is widened.
    pub(crate) fn linear(lo: f64, hi: f64) -> Scale {
        let lo = if lo.is_finite() { lo } else { 0.0 };
        let min_range = (lo.abs() * 1e-9).max(1e-9);
        let hi = if hi.is_finite() && hi - lo >= min_range { hi } else { lo + min_range.max(1.0) };
        Scale { lo, hi, kind: ScaleKind::Linear }
    }
    /// A logarithmic axis from `lo` (at least a billionth) to `hi`.
    pub(crate) fn log(lo: f64, hi: f64) -> Scale {
        let lo = if lo.is_finite() { lo.max(1e-9) } else { 1.0 };
        let hi = if hi.is_finite() && hi >= lo * 2.0 { hi } else { lo * 10.0 };
        Scale { lo, hi, kind: ScaleKind::Log }
    }
    /// An axis for `n` cases at 0, 1, ...
    pub(crate) fn cases(n: usize) -> Scale {
        Scale { lo: -0.5, hi: n.max(1) as f64 - 0.5, kind: ScaleKind::Cases }
    }
    pub(crate) fn lo(&self) -> f64 {
        self.lo
    }
    pub(crate) fn hi(&self) -> f64 {
        self.hi
    }

    /// The position of `value`: 0 at the lower end and 1 at the upper. Values beyond an end are drawn at it.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let at = match self.kind {
            ScaleKind::Linear | ScaleKind::Cases => (value - self.lo) / (self.hi - self.lo),
            ScaleKind::Log => libm::log(value.max(self.lo) / self.lo) / libm::log(self.hi / self.lo),
        };
        if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) }
    }

    /// About `wanted` round values with labels.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        match self.kind {
            ScaleKind::Linear => self.linear_ticks(wanted.clamp(1, 50)),
            ScaleKind::Log => self.log_ticks(wanted),
            ScaleKind::Cases => Vec::new(),
        }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let raw = (self.hi - self.lo) / wanted as f64;
        let exponent = libm::floor(libm::log10(raw));
        let unit = libm::pow(10.0, exponent);
        let step =
            [1.0, 2.0, 5.0].into_iter().map(|m| m * unit).find(|s| *s >= raw * 0.75).unwrap_or(10.0 * unit);
        let decimals = (-libm::floor(libm::log10(step) + 1e-9)).clamp(0.0, 9.0) as usize;
        let first = libm::ceil(self.lo / step - 1e-6);
        let mut ticks = Vec::new();
        for i in 0..=2 * wanted {
            let value = (first + i as f64) * step;
            if value > self.hi + step * 1e-6 {
                break;
            }
            ticks.push((value, plain(value, decimals, if self.hi < 1e4 { 0.0 } else { step })));
        }
        ticks
    }

    fn log_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let decades = libm::log10(self.hi / self.lo);
        let multiples: &[f64] = match wanted as f64 / decades {
            per if per >= 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let low = libm::floor(libm::log10(self.lo) + 1e-9) as i32;
        let high = libm::ceil(libm::log10(self.hi)) as i32;
        // A step above one decade keeps the labels apart.
        let step = (libm::ceil(decades / wanted.max(1) as f64) as usize).max(1);
        let mut ticks = Vec::new();
        // Counted from exponent 0, so that 1 has a tick.
        for exponent in (low..=high).filter(|e| (e.unsigned_abs() as usize).is_multiple_of(step)) {
            for m in multiples {
                let value = m * libm::pow(10.0, f64::from(exponent));
                if value >= self.lo * 0.999 && value <= self.hi * 1.001 {
                    ticks.push((
                        value,
                        plain(
                            value,
                            exponent.min(0).unsigned_abs() as usize,
                            if value < 1e4 { 0.0 } else { value },
                        ),
                    ));
                }
            }
        }
        ticks
    }
}

/// The label of a tick: with fixed decimals, or with the largest prefix k, M or G that `step` reaches.
fn plain(value: f64, decimals: usize, step: f64) -> String {
    let value = value + 0.0; // no "-0"
    for (unit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if step >= unit * 0.999 && value != 0.0 {
            return format!("{:.0}{name}", value / unit);
        }
    }
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(scale: Scale, wanted: usize) -> Vec<String> {
        scale.ticks(wanted).into_iter().map(|t| t.1).collect()
    }

    /// Breaks: ticks are at round numbers with short labels.
    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(Scale::linear(0.0, 1000.0), 5), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!(labels(Scale::linear(1.441, 1.478), 4), ["1.45", "1.46", "1.47"]);
        assert_eq!(labels(Scale::linear(0.0, 0.3), 3), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(Scale::log(1.0, 2500.0), 6), ["1", "10", "100", "1000"]);
        assert_eq!(labels(Scale::log(1.0, 50.0), 6), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(Scale::linear(0.0, 3e6), 3), ["0", "1M", "2M", "3M"]);
    }

    proptest! {
        /// Breaks: absurd data cause no panic, no endless loop, and no points outside the figure.
        #[test]
        fn any_axis_works(lo in prop::num::f64::ANY, hi in prop::num::f64::ANY, v in prop::num::f64::ANY) {
            for scale in [Scale::linear(lo, hi), Scale::log(lo, hi)] {
                prop_assert!((0.0..=1.0).contains(&scale.position(v)));
                prop_assert!(scale.ticks(6).len() <= 40);
            }
        }
    }
}
