//! Labelled points, for example goodput over delay, one point per algorithm.

use crate::chart::{Chart, ChartSpec, Drawing, Panel, PanelSpec, SMALL, Size};
use crate::palette::{Style, Thing, known_style};
use crate::scale::Scale;
use crate::svg::{Colour, Px, text_width};
use crate::{Exploration, ExploreAxis, ExplorePanel, ExploreSeries, SeriesKind};

/// A point.
#[derive(Clone, Debug, PartialEq)]
pub struct Dot<'a> {
    /// Its label, written beside it.
    pub label: &'a str,
    /// Horizontal coordinate.
    pub x: f64,
    /// Vertical coordinate.
    pub y: f64,
    /// Least and largest of the horizontal and of the vertical coordinate, drawn as whiskers.
    pub ranges: [Option<(f64, f64)>; 2],
}

impl<'a> Dot<'a> {
    /// A point without ranges.
    pub const fn new(label: &'a str, x: f64, y: f64) -> Self {
        Dot { label, x, y, ranges: [None, None] }
    }
    /// The same point with whiskers.
    #[must_use]
    pub fn with_ranges(self, x: Option<(f64, f64)>, y: Option<(f64, f64)>) -> Self {
        Dot { ranges: [x, y], ..self }
    }
    /// That of an algorithm, or of all others.
    fn style(&self) -> Style {
        known_style(self.label).unwrap_or(Thing::Count.style())
    }
}

/// Labelled points in a plane from (0, 0). The labels are those of the axes, with units.
pub fn scatter(title: &str, x_label: &str, y_label: &str, dots: &[Dot<'_>]) -> Drawing {
    Drawing::of(|size| draw(size, title, x_label, y_label, dots))
        .explored(explore(title, x_label, y_label, dots))
}

/// The points that are drawn, and the ends of the axes.
fn drawable<'d, 'a>(dots: &'d [Dot<'a>]) -> (Vec<&'d Dot<'a>>, f64, f64) {
    let dots: Vec<&Dot<'_>> = dots.iter().filter(|d| d.x.is_finite() && d.y.is_finite()).take(MAX).collect();
    let [right, top] = [0, 1].map(|axis: usize| {
        let ends = dots.iter().map(|d| d.ranges[axis].map_or([d.x, d.y][axis], |(_, most)| most));
        ends.filter(|end| end.is_finite()).fold(0.0f64, f64::max)
    });
    (dots, right * 1.1, top * 1.08)
}

fn explore(title: &str, x_label: &str, y_label: &str, dots: &[Dot<'_>]) -> Exploration {
    let (mut dots, right, top) = drawable(dots);
    dots.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut others = ExploreSeries::new("measured", SeriesKind::Dots, Thing::Count.style());
    let mut all = Vec::new();
    for dot in dots {
        let mut own = known_style(dot.label).map(|s| ExploreSeries::new(dot.label, SeriesKind::Dots, s));
        let series = own.as_mut().unwrap_or(&mut others);
        series.push(dot.x, dot.y);
        series.labels.push(dot.label.to_owned());
        all.extend(own);
    }
    all.insert(0, others);
    let end = |end: f64| if end > 0.0 { end } else { 1.0 };
    Exploration {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        x: ExploreAxis::Values(0.0, end(right), false),
        panels: vec![ExplorePanel {
            heading: String::new(),
            y_label: y_label.to_owned(),
            y: (0.0, end(top)),
            log: false,
            fit: false,
            series: all,
        }],
        events: Vec::new(),
        remote: None,
    }
}

/// Maximum number of points; further ones are omitted.
const MAX: usize = 200;
/// Radius of a point.
const RADIUS: f64 = 4.0;

fn draw(size: Size, title: &str, x_label: &str, y_label: &str, dots: &[Dot<'_>]) -> String {
    let (dots, right, top) = drawable(dots);
    let mut chart = Chart::new(ChartSpec {
        size,
        title,
        legend: Vec::new(),
        panels: vec![PanelSpec {
            heading: String::new(),
            y_label: y_label.to_owned(),
            height: size.pick(420.0, 380.0),
            y: Some(Scale::linear(0.0, top)),
        }],
        x_label,
        x: Scale::linear(0.0, right),
        left: 48.0,
        right: 20.0,
    });
    let Some(panel) = chart.panels.first().copied() else { return chart.finish() };
    if dots.is_empty() {
        chart.nothing("no data");
    }
    let positions: Vec<(f64, f64)> = dots.iter().map(|d| (panel.px(d.x), panel.py(d.y))).collect();
    let mut occupied: Vec<Area> = positions.iter().map(|p| Area::around(*p)).collect();
    for (dot, at) in dots.iter().zip(&positions) {
        let finite = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite();
        let [across, up] = dot.ranges.map(|range| range.filter(finite));
        let across = across.map(|(a, b)| format!("M{} {}H{}", Px(panel.px(a)), Px(at.1), Px(panel.px(b))));
        let up = up.map(|(a, b)| format!("M{} {}V{}", Px(at.0), Px(panel.py(a)), Px(panel.py(b))));
        let whiskers: String = across.into_iter().chain(up).collect();
        if !whiskers.is_empty() {
            chart.line(&whiskers, dot.style().colour, 1.2, "");
        }
        chart.raw(&format!(
            "<circle {} cx=\"{}\" cy=\"{}\" r=\"{RADIUS}\"/>",
            dot.style().colour.fill(),
            Px(at.0),
            Px(at.1)
        ));
        let area = place_label(&panel, *at, text_width(dot.label, SMALL), &occupied);
        let (x, y) = (area.left, area.bottom - 3.0);
        let near = Area::around(*at).grown(4.0).intersects(&area);
        if !near {
            let (nx, ny) = area.nearest(*at);
            let path = format!("M{} {}L{} {}", Px(at.0), Px(at.1), Px(nx), Px(ny));
            chart.line(&path, Colour::Grey, 0.8, "");
        }
        chart.note(x, y, "start", Colour::Ink, dot.label);
        occupied.push(area);
    }
    chart.finish()
}

/// The area of a label or a point, in pixels.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn around((x, y): (f64, f64)) -> Area {
        Area { left: x - RADIUS, top: y - RADIUS, right: x + RADIUS, bottom: y + RADIUS }
    }
    fn grown(self, by: f64) -> Area {
        Area { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }
    fn intersects(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
    fn nearest(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (x.clamp(self.left, self.right), y.clamp(self.top, self.bottom))
    }
}

/// The nearest free position of a label: right, left, above, below, in increasing distance. If none is free,
/// the right.
fn place_label(panel: &Panel, (x, y): (f64, f64), width: f64, occupied: &[Area]) -> Area {
    let height = SMALL + 3.0;
    let at = |left: f64, middle: f64| Area {
        left,
        top: middle - height / 2.0,
        right: left + width,
        bottom: middle + height / 2.0,
    };
    let ring = |r: f64| {
        let (beside, over) = (RADIUS + 2.0 + r, RADIUS + height / 2.0 + r);
        [
            at(x + beside, y),
            at(x - beside - width, y),
            at(x - width / 2.0, y - over),
            at(x - width / 2.0, y + over),
            at(x + beside, y - over),
            at(x + beside, y + over),
            at(x - beside - width, y - over),
            at(x - beside - width, y + over),
        ]
    };
    let inside = |a: &Area| {
        a.left >= panel.left && a.right <= panel.right() && a.top >= panel.top && a.bottom <= panel.bottom()
    };
    let free = |a: &Area| inside(a) && !occupied.iter().any(|t| t.intersects(a));
    let rings = (0..24).map(|n| f64::from(n) * 8.0);
    rings.flat_map(ring).find(free).unwrap_or_else(|| at(x + RADIUS + 2.0, y))
}
