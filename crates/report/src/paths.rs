//! Paths of bounded length for any number of points.

use crate::chart::Panel;
use crate::svg::Px;
use std::fmt::Write;

/// A step line: each value holds until the next. Points in one pixel column are reduced to first, minimum,
/// maximum and last. So the path has at most a few commands per column, and no peak is lost. Points must be
/// in order of x.
pub(crate) struct StepLine {
    path: String,
    column: Option<PixelColumn>,
    end: Option<f64>,
}

struct PixelColumn {
    x: f64,
    first: f64,
    min: f64,
    max: f64,
    last: f64,
}

impl StepLine {
    pub(crate) fn new() -> Self {
        StepLine { path: String::new(), column: None, end: None }
    }

    /// Adds a point, in pixels.
    pub(crate) fn point(&mut self, x: f64, y: f64) {
        if !x.is_finite() || !y.is_finite() {
            return;
        }
        let x = x.round();
        match &mut self.column {
            Some(c) if x <= c.x => {
                c.min = c.min.min(y);
                c.max = c.max.max(y);
                c.last = y;
            }
            _ => {
                self.flush();
                self.column = Some(PixelColumn { x, first: y, min: y, max: y, last: y });
            }
        }
    }

    fn flush(&mut self) {
        let Some(c) = self.column.take() else { return };
        let _ = match self.end {
            None => write!(self.path, "M{} {}", Px(c.x), Px(c.first)),
            Some(y) if y == c.first => write!(self.path, "H{}", Px(c.x)),
            Some(_) => write!(self.path, "H{}V{}", Px(c.x), Px(c.first)),
        };
        let mut at = c.first;
        for y in [c.min, c.max, c.last] {
            if y != at {
                let _ = write!(self.path, "V{}", Px(y));
                at = y;
            }
        }
        self.end = Some(at);
    }

    /// The path, with the last value held until `x` (pixels).
    pub(crate) fn finish(mut self, x: f64) -> String {
        self.flush();
        if self.end.is_some() {
            let _ = write!(self.path, "H{}", Px(x));
        }
        self.path
    }
}

/// Marks on a grid of pixels. Each run of covered pixels is drawn as one vertical stroke, however many marks
/// there are.
pub(crate) struct PathMarks {
    panel: Panel,
    columns: usize,
    rows: usize,
    covered: Vec<bool>,
}

impl PathMarks {
    pub(crate) fn new(panel: &Panel) -> Self {
        // The width of a panel is bounded by that of a figure.
        let (columns, rows) = (panel.width.ceil() as usize + 1, panel.height.ceil() as usize + 1);
        PathMarks { panel: *panel, columns, rows, covered: vec![false; columns * rows] }
    }

    /// Covers the pixels from `low` to `high` (values) at `x` (value). Values outside the panel are ignored.
    pub(crate) fn cover(&mut self, x: f64, low: f64, high: f64) {
        if !self.panel.shows(x) {
            return;
        }
        let column = (self.panel.px(x) - self.panel.left).round() as usize;
        let top = (self.panel.py(high) - self.panel.top).round() as usize;
        let bottom = (self.panel.py(low) - self.panel.top).round() as usize;
        for row in top..=bottom.min(self.rows - 1) {
            if let Some(pixel) = self.covered.get_mut(column * self.rows + row) {
                *pixel = true;
            }
        }
    }

    /// The path, for the stroke width `thickness`. A single mark is half as high again, so that it is
    /// visible.
    pub(crate) fn finish(self, thickness: f64) -> String {
        let mut path = String::new();
        for column in 0..self.columns {
            let mut run = 0;
            for row in 0..=self.rows {
                let on =
                    row < self.rows && self.covered.get(column * self.rows + row).copied().unwrap_or(false);
                if on {
                    run += 1;
                } else if run > 0 {
                    let length = (run as f64).max(thickness * 1.5);
                    let _ = write!(
                        path,
                        "M{} {}v{}",
                        Px(self.panel.left + column as f64),
                        Px(self.panel.top + (row - run) as f64 - (length - run as f64) / 2.0 - 0.5),
                        Px(length)
                    );
                    run = 0;
                }
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a short peak among many points stays visible, and the size of a figure is bounded.
    #[test]
    fn a_step_line_keeps_peaks_and_stays_short() {
        let mut line = StepLine::new();
        for i in 0..1_000_000u32 {
            line.point(f64::from(i) / 5_000.0, if i == 500_002 { 7.0 } else { f64::from(i % 2) + 100.0 });
        }
        let path = line.finish(210.0);
        assert!(path.contains("V7V101"), "the peak is drawn");
        assert!(path.ends_with("H210"));
        assert!(path.len() < 6_000, "{}", path.len());
    }

    /// Breaks: a step line has the right commands, and an empty line draws nothing.
    #[test]
    fn a_step_line_is_a_staircase() {
        let mut line = StepLine::new();
        for (x, y) in [(0.0, 5.0), (10.0, 5.0), (20.0, 9.0), (f64::NAN, 1.0)] {
            line.point(x, y);
        }
        assert_eq!(line.finish(30.0), "M0 5H10H20V9H30");
        assert_eq!(StepLine::new().finish(30.0), "");
    }
}
