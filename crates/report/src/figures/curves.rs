//! A value over a few named cases, one curve per algorithm, for example throughput over bit error rates.

use super::ComparedEstimate;
use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, PanelSpec, SMALL, Size};
use crate::palette::{Style, styles};
use crate::scale::Scale;
use crate::svg::{Colour, Px, escape};
use crate::{Exploration, ExploreAxis, ExplorePanel, ExploreSeries, SeriesKind};

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve<'a> {
    /// Its name.
    pub label: &'a str,
    /// One estimate per case; none without a measurement.
    pub points: Vec<Option<ComparedEstimate>>,
}

/// Curves over evenly spaced `cases`. Whiskers show the range of each estimate. The labels are those of the
/// axes, with units.
pub fn curves(title: &str, x_label: &str, y_label: &str, cases: &[&str], curves: &[Curve<'_>]) -> Drawing {
    Drawing::of(|size| draw(size, title, x_label, y_label, cases, curves))
        .explored(explore(title, x_label, y_label, cases, curves))
}

/// The largest value, with some space above.
fn top(curves: &[Curve<'_>]) -> f64 {
    let all = curves.iter().flat_map(|c| c.points.iter().flatten());
    let top = all.map(|e| e.range.map_or(e.mean, |r| r.1.max(e.mean))).filter(|v| v.is_finite());
    top.fold(0.0f64, f64::max) * 1.06
}

fn explore(title: &str, x_label: &str, y_label: &str, cases: &[&str], curves: &[Curve<'_>]) -> Exploration {
    let cases = cases.get(..MAX_CURVES).unwrap_or(cases);
    let curves = curves.get(..MAX_CURVES).unwrap_or(curves);
    let middle = curves.len().saturating_sub(1) as f64 / 2.0;
    let mut series = Vec::new();
    for (i, (curve, style)) in curves.iter().zip(styles(curves.iter().map(|c| c.label))).enumerate() {
        let aside = (i as f64 - middle) * ASIDE;
        let mut line = ExploreSeries::new(curve.label, SeriesKind::Line, style);
        let points = curve.points.iter().enumerate().take(cases.len());
        for (n, e) in points.filter_map(|(n, p)| Some((n, p.filter(|e| e.mean.is_finite())?))) {
            line.push(n as f64 + aside, e.mean);
            let known = e.range.filter(|(low, high)| low.is_finite() && high.is_finite());
            line.ranges.push(known.unwrap_or((e.mean, e.mean)));
        }
        series.push(line);
    }
    let top = top(curves);
    Exploration {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        x: ExploreAxis::Cases(cases.iter().map(|c| (*c).to_owned()).collect()),
        panels: vec![ExplorePanel {
            heading: String::new(),
            y_label: y_label.to_owned(),
            y: (0.0, if top > 0.0 { top } else { 1.0 }),
            log: false,
            fit: false,
            series,
        }],
        events: Vec::new(),
        remote: None,
    }
}

/// Offset between curves, relative to the width of a case, so that whiskers do not cover each other.
const ASIDE: f64 = 0.05;
/// Maximum number of curves and cases; further ones are omitted.
pub const MAX_CURVES: usize = 40;

fn draw(
    size: Size,
    title: &str,
    x_label: &str,
    y_label: &str,
    cases: &[&str],
    curves: &[Curve<'_>],
) -> String {
    let cases = cases.get(..MAX_CURVES).unwrap_or(cases);
    let curves = curves.get(..MAX_CURVES).unwrap_or(curves);
    let styles = styles(curves.iter().map(|c| c.label));
    let legend = curves
        .iter()
        .zip(&styles)
        .map(|(c, Style { colour, dash })| (LegendEntry::Line(*colour, dash), c.label.to_owned()));
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend: legend.collect(),
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: y_label.to_owned(),
            height: size.pick(280.0, 250.0),
            y: Some(Scale::linear(0.0, top(curves))),
        }],
        x_label,
        x: Scale::cases(cases.len()),
        left: 48.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    for (i, case) in cases.iter().enumerate() {
        chart.raw(&format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"{SMALL}\">{}</text>",
            Px(panel.px(i as f64)),
            Px(panel.bottom() + 16.0),
            escape(case)
        ));
    }
    let middle = curves.len().saturating_sub(1) as f64 / 2.0;
    for (i, (curve, Style { colour, dash })) in curves.iter().zip(styles.iter().copied()).enumerate() {
        let aside = (i as f64 - middle) * ASIDE;
        let (mut path, mut whiskers, mut dots) = (String::new(), String::new(), String::new());
        for (n, point) in curve.points.iter().enumerate().take(cases.len()) {
            let Some(e) = point.filter(|e| e.mean.is_finite()) else { continue };
            let (x, y) = (Px(panel.px(n as f64 + aside)), Px(panel.py(e.mean)));
            path.push_str(&format!("{}{x} {y}", if path.is_empty() { 'M' } else { 'L' }));
            dots.push_str(&format!("<circle {} cx=\"{x}\" cy=\"{y}\" r=\"3\"/>", colour.fill()));
            if let Some((low, high)) = e.range {
                whiskers.push_str(&format!("M{x} {}V{}", Px(panel.py(low)), Px(panel.py(high))));
            }
        }
        chart.line(&path, colour, 1.6, dash);
        chart.line(&whiskers, colour, 1.2, "");
        chart.raw(&dots);
    }
    if curves.is_empty() || cases.is_empty() {
        chart.note(panel.left + 8.0, panel.top + 20.0, "start", Colour::Grey, "no data");
    }
    chart.finish()
}
