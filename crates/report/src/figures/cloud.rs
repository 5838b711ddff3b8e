//! Many points without labels, for example the samples of a study, one colour per algorithm.

use crate::chart::{Chart, ChartSpec, Drawing, LegendEntry, PanelSpec, Size};
use crate::palette::{Style, styles};
use crate::scale::Scale;
use crate::svg::Px;
use crate::{Exploration, ExploreAxis, ExplorePanel, ExploreSeries, SeriesKind};

/// Points of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud<'a> {
    /// Its name; empty where there is only one.
    pub label: &'a str,
    /// Horizontal and vertical coordinates.
    pub points: Vec<(f64, f64)>,
}

/// Clouds of points. The labels are those of the axes, with units. The horizontal axis begins at 0. It is
/// logarithmic if `logarithmic` is set and all coordinates are above 0, and begins at the first point then.
pub fn clouds(title: &str, x_label: &str, y_label: &str, logarithmic: bool, all: &[Cloud<'_>]) -> Drawing {
    let frame = Frame::of(logarithmic, all);
    Drawing::of(|size| draw(size, title, x_label, y_label, frame, all))
        .explored(explore(title, x_label, y_label, frame, all))
}

/// Radius of a point.
const RADIUS: f64 = 2.5;

/// The ends of the axes.
#[derive(Clone, Copy)]
struct Frame {
    x: (f64, f64),
    top: f64,
    logarithmic: bool,
}

impl Frame {
    fn of(logarithmic: bool, all: &[Cloud<'_>]) -> Frame {
        let points = || all.iter().flat_map(drawable);
        let least = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let most = points().map(|p| p.0).fold(0.0f64, f64::max);
        let top = points().map(|p| p.1).fold(0.0f64, f64::max) * 1.08;
        let logarithmic = logarithmic && least > 0.0 && least.is_finite() && most > 2.0 * least;
        let x = if logarithmic { (least / 1.1, most * 1.1) } else { (0.0, most * 1.1) };
        let x = if x.1 > x.0 { x } else { (0.0, 1.0) };
        Frame { x, top: if top > 0.0 { top } else { 1.0 }, logarithmic }
    }
}

fn drawable<'c>(cloud: &'c Cloud<'_>) -> impl Iterator<Item = (f64, f64)> + 'c {
    cloud.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
}

fn explore(title: &str, x_label: &str, y_label: &str, frame: Frame, all: &[Cloud<'_>]) -> Exploration {
    let mut series = Vec::new();
    for (cloud, style) in all.iter().zip(styles(all.iter().map(|c| c.label))) {
        let label = if cloud.label.is_empty() { "measured" } else { cloud.label };
        let mut dots = ExploreSeries::new(label, SeriesKind::Dots, style);
        let mut points: Vec<(f64, f64)> = drawable(cloud).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.iter().for_each(|(x, y)| dots.push(*x, *y));
        series.push(dots);
    }
    Exploration {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        x: ExploreAxis::Values(frame.x.0, frame.x.1, frame.logarithmic),
        panels: vec![ExplorePanel {
            heading: String::new(),
            y_label: y_label.to_owned(),
            y: (0.0, frame.top),
            log: false,
            fit: false,
            series,
        }],
        events: Vec::new(),
        remote: None,
    }
}

fn draw(size: Size, title: &str, x_label: &str, y_label: &str, frame: Frame, all: &[Cloud<'_>]) -> String {
    let styles = styles(all.iter().map(|c| c.label));
    let named = all.iter().zip(&styles).filter(|(cloud, _)| !cloud.label.is_empty());
    let legend = named.map(|(c, Style { colour, .. })| (LegendEntry::Area(*colour, 1.0), c.label.to_owned()));
    let (from, to) = frame.x;
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend: legend.collect(),
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: y_label.to_owned(),
            height: size.pick(280.0, 250.0),
            y: Some(Scale::linear(0.0, frame.top)),
        }],
        x_label,
        x: if frame.logarithmic { Scale::log(from, to) } else { Scale::linear(from, to) },
        left: 48.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if all.iter().all(|cloud| drawable(cloud).next().is_none()) {
        chart.nothing("no data");
    }
    for (cloud, Style { colour, .. }) in all.iter().zip(styles.iter().copied()) {
        for (x, y) in drawable(cloud) {
            let (x, y) = (Px(panel.px(x)), Px(panel.py(y)));
            chart.raw(&format!("<circle {} cx=\"{x}\" cy=\"{y}\" r=\"{RADIUS}\"/>", colour.fill()));
        }
    }
    chart.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(svg: &str) -> Vec<f64> {
        let circles = svg.split("<circle ").skip(1);
        circles.filter_map(|c| c.split("cx=\"").nth(1)?.split('"').next()?.parse().ok()).collect()
    }

    /// Breaks: a sample of many points is drawn in part, without colours of its algorithms, or a logarithmic
    /// axis shows its values at linear distances.
    #[test]
    fn every_point_is_drawn_at_its_place() {
        let many = Cloud { label: "cubic", points: (0..900).map(|n| (f64::from(n), 1.0)).collect() };
        let decades =
            Cloud { label: "bbr3", points: vec![(1.0, 2.0), (10.0, 2.0), (100.0, 2.0), (f64::NAN, 1.0)] };
        let linear = clouds("t", "x", "y", false, &[many.clone(), decades.clone()]).wide;
        assert_eq!(places(&linear).len(), 903);
        assert!(linear.contains(">cubic<") && linear.contains(">bbr3<"), "a legend of both");
        let log = places(&clouds("t", "x", "y", true, std::slice::from_ref(&decades)).wide);
        let [first, second, third] = log[..] else { panic!("{log:?}") };
        assert!(((second - first) - (third - second)).abs() < 0.5, "equal ratios, equal distances: {log:?}");
        let zero = places(&clouds("t", "x", "y", true, &[many, decades]).wide);
        assert!((zero[2] - zero[1] - (zero[1] - zero[0])).abs() < 0.5, "zero is on no logarithmic axis");
    }
}
