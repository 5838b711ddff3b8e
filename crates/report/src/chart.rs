//! The frame of a figure: title, legend, panels with axes, grid and labels.
//!
//! A figure has one or more panels above each other with a common horizontal axis. It is drawn twice, for
//! wide and for narrow screens, because a wide figure is illegible on a phone.

use crate::Exploration;
use crate::scale::Scale;
use crate::svg::{Colour, Px, escape, text_width, wrap};
use std::fmt::Write;
use std::sync::Arc;

/// A figure as SVG for two widths. Both are complete files.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// 900 pixels wide, for screens, print and files.
    pub wide: String,
    /// 420 pixels wide, for phones.
    pub narrow: String,
    /// The same to explore on a page; none for drawings that show all there is.
    pub explore: Option<Arc<Exploration>>,
}

impl Drawing {
    /// Draws both widths.
    pub(crate) fn of(draw: impl Fn(Size) -> String) -> Drawing {
        Drawing { wide: draw(Size::Wide), narrow: draw(Size::Narrow), explore: None }
    }
    /// The drawing with what it was made of, unless that is nothing.
    #[must_use]
    pub fn explored(self, exploration: Exploration) -> Drawing {
        Drawing { explore: (!exploration.is_empty()).then(|| Arc::new(exploration)), ..self }
    }
    /// The drawing with a caption, to be shown on a page.
    pub fn figure(self, file_name: &str, caption: &str) -> Figure {
        Figure {
            svg: self.wide,
            svg_narrow: self.narrow,
            explore: self.explore,
            caption: caption.to_owned(),
            file_name: file_name.to_owned(),
        }
    }
}

/// A drawing on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The wide drawing, which is also written to the file.
    pub svg: String,
    /// The narrow drawing.
    pub svg_narrow: String,
    /// The data, for readers with a browser that runs scripts.
    pub explore: Option<Arc<Exploration>>,
    /// The caption: what to look at.
    pub caption: String,
    /// The name of the file, `bandwidth.svg`.
    pub file_name: String,
}

/// The width of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Wide,
    Narrow,
}

impl Size {
    /// `wide` or `narrow`, according to the size.
    pub(crate) fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Size::Wide => wide,
            Size::Narrow => narrow,
        }
    }
    fn width(self) -> f64 {
        self.pick(900.0, 420.0)
    }
}

/// The sample of a legend entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LegendEntry {
    /// A line with an SVG dash pattern, empty for none.
    Line(Colour, &'static str),
    /// An area with this opacity.
    Area(Colour, f64),
    /// A square mark.
    Mark(Colour),
    /// A cross.
    Cross(Colour),
    /// A circle, hollow or filled.
    Circle(Colour, bool),
}

/// Description of a panel.
pub(crate) struct PanelSpec {
    /// Heading above the panel on the left, in small bold type. May be empty.
    pub heading: String,
    /// Label of the vertical axis, with its unit.
    pub y_label: String,
    /// Height of the plot in pixels.
    pub height: f64,
    /// The vertical axis; none for panels that label their rows.
    pub y: Option<Scale>,
}

/// Description of a figure.
pub(crate) struct ChartSpec<'a> {
    pub size: Size,
    pub title: &'a str,
    pub legend: Vec<(LegendEntry, String)>,
    pub panels: Vec<PanelSpec>,
    /// Label of the horizontal axis, with its unit.
    pub x_label: &'a str,
    pub x: Scale,
    /// Space left of the plots for labels.
    pub left: f64,
    /// Space right of the plots.
    pub right: f64,
}

/// Position of a panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    x: Scale,
    y: Scale,
}

impl Panel {
    pub(crate) fn px(&self, x: f64) -> f64 {
        self.left + self.x.position(x) * self.width
    }
    pub(crate) fn py(&self, y: f64) -> f64 {
        self.top + (1.0 - self.y.position(y)) * self.height
    }
    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }
    /// True for a value within the horizontal axis.
    pub(crate) fn shows(&self, x: f64) -> bool {
        x >= self.x.lo() && x <= self.x.hi()
    }
    /// True for a value within the vertical axis.
    pub(crate) fn shows_y(&self, y: f64) -> bool {
        y >= self.y.lo() && y <= self.y.hi()
    }
}

/// Size of small type.
pub(crate) const SMALL: f64 = 12.0;
const TITLE: f64 = 16.0;
/// Bold type is wider than the estimate by this factor, in the widest of the common fonts.
const BOLD: f64 = 1.2;
const MARGIN: f64 = 4.0;

/// A figure under construction.
pub(crate) struct Chart {
    svg: String,
    pub panels: Vec<Panel>,
}

impl Chart {
    /// Draws the title, the legend and the axes.
    pub(crate) fn new(spec: ChartSpec<'_>) -> Chart {
        let width = spec.size.width();
        let mut body = String::new();
        let mut y = 8.0;
        for line in wrap(spec.title, TITLE * BOLD, width - 2.0 * MARGIN) {
            y += TITLE + 4.0;
            let _ = write!(
                body,
                "<text x=\"{MARGIN}\" y=\"{}\" font-size=\"{TITLE}\" font-weight=\"600\">{}</text>",
                Px(y),
                escape(&line)
            );
        }
        y = draw_legend(&mut body, &spec.legend, y + 8.0, width);
        let mut panels = Vec::new();
        let last = spec.panels.len().saturating_sub(1);
        for (i, p) in spec.panels.iter().enumerate() {
            y = draw_labels(&mut body, p, y + 6.0, width);
            let panel = Panel {
                left: spec.left,
                top: y,
                width: (width - spec.left - spec.right).max(50.0),
                height: p.height,
                x: spec.x,
                y: p.y.unwrap_or(Scale::linear(0.0, 1.0)),
            };
            draw_grid(&mut body, &panel, p.y.is_some(), i == last, spec.size);
            y = panel.bottom() + 4.0;
            panels.push(panel);
        }
        y += 30.0;
        let _ = write!(
            body,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"{SMALL}\">{}</text>",
            Px(spec.left + (width - spec.left - spec.right) / 2.0),
            Px(y),
            escape(spec.x_label)
        );
        let height = y + 10.0;
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {h}\" width=\"{width}\" \
             height=\"{h}\" \
             role=\"img\" font-family=\"system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif\" \
             class=\"f-ink\" fill=\"{ink}\"><title>{}</title>\
             <rect class=\"paper\" width=\"{width}\" height=\"{h}\" fill=\"#ffffff\"/>{body}",
            escape(spec.title),
            h = Px(height),
            ink = Colour::Ink.hex(),
        );
        Chart { svg, panels }
    }

    /// Adds SVG elements.
    pub(crate) fn raw(&mut self, elements: &str) {
        self.svg.push_str(elements);
        self.svg.push('\n');
    }

    /// Adds a line along `path`; nothing for an empty path.
    pub(crate) fn line(&mut self, path: &str, colour: Colour, width: f64, dash: &str) {
        if path.is_empty() {
            return;
        }
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        self.raw(&format!(
            "<path {} stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash} d=\"{path}\"/>",
            colour.stroke()
        ));
    }

    /// Adds a filled area along `path`.
    pub(crate) fn area(&mut self, path: &str, colour: Colour, opacity: f64) {
        if !path.is_empty() {
            self.raw(&format!("<path {} fill-opacity=\"{opacity}\" d=\"{path}\"/>", colour.fill()));
        }
    }

    /// Shades a panel between two values of the horizontal axis, at least 1.5 pixels wide.
    pub(crate) fn shade(
        &mut self,
        panel: &Panel,
        from: f64,
        to: f64,
        colour: Colour,
        opacity: f64,
        tip: &str,
    ) {
        let (a, b) = (panel.px(from), panel.px(to));
        self.raw(&format!(
            "<rect {} fill-opacity=\"{opacity}\" x=\"{}\" y=\"{}\" width=\"{}\" \
             height=\"{}\"><title>{}</title></rect>",
            colour.fill(),
            Px(a),
            Px(panel.top),
            Px((b - a).max(1.5)),
            Px(panel.height),
            escape(tip)
        ));
    }

    /// Writes `text` with a halo, so that it is legible on top of lines.
    pub(crate) fn note(&mut self, x: f64, y: f64, anchor: &str, colour: Colour, text: &str) {
        // The halo is a separate text, because not every viewer supports `paint-order`.
        let (at, text) = (
            format!("x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" font-size=\"{SMALL}\"", Px(x), Px(y)),
            escape(text),
        );
        self.raw(&format!(
            "<text class=\"halo\" aria-hidden=\"true\" {at} fill=\"#ffffff\" stroke=\"#ffffff\" \
             stroke-width=\"3\" stroke-linejoin=\"round\">{text}</text><text {} {at}>{text}</text>",
            colour.fill(),
        ));
    }

    /// Writes into each panel that there is no data.
    pub(crate) fn nothing(&mut self, text: &str) {
        for panel in self.panels.clone() {
            let (x, y) = (panel.left + panel.width / 2.0, panel.top + panel.height / 2.0);
            self.note(x, y, "middle", Colour::Grey, text);
        }
    }

    /// The finished file.
    pub(crate) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Draws the legend in rows, starting at `y`. Returns where it ends.
fn draw_legend(body: &mut String, legend: &[(LegendEntry, String)], mut y: f64, width: f64) -> f64 {
    const ROW: f64 = 18.0;
    const SWATCH: f64 = 24.0;
    if legend.is_empty() {
        return y;
    }
    y += ROW - 4.0;
    let mut x = MARGIN;
    for (key, label) in legend {
        let need = SWATCH + text_width(label, SMALL) + 20.0;
        if x > MARGIN && x + need > width {
            x = MARGIN;
            y += ROW;
        }
        let (mid, end) = (y - 4.0, x + SWATCH - 6.0);
        let _ = match key {
            LegendEntry::Line(colour, dash) => write!(
                body,
                "<path {} stroke-width=\"2\" stroke-dasharray=\"{}\" d=\"M{} {}H{}\"/>",
                colour.stroke(),
                if dash.is_empty() { "none" } else { dash },
                Px(x),
                Px(mid),
                Px(end)
            ),
            LegendEntry::Area(colour, opacity) => write!(
                body,
                "<rect {} fill-opacity=\"{opacity}\" x=\"{}\" y=\"{}\" width=\"18\" height=\"11\"/>",
                colour.fill(),
                Px(x),
                Px(mid - 5.5)
            ),
            LegendEntry::Mark(colour) => write!(
                body,
                "<rect {} x=\"{}\" y=\"{}\" width=\"8\" height=\"8\"/>",
                colour.fill(),
                Px(x + 5.0),
                Px(mid - 4.0)
            ),
            LegendEntry::Cross(colour) => write!(
                body,
                "<path {} stroke-width=\"1.8\" d=\"M{} {}l7 7m0 -7l-7 7\"/>",
                colour.stroke(),
                Px(x + 5.5),
                Px(mid - 3.5)
            ),
            LegendEntry::Circle(colour, full) => {
                let paint = if *full { colour.fill() } else { colour.stroke() };
                write!(
                    body,
                    "<circle {paint} stroke-width=\"2\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/>",
                    Px(x + 9.0),
                    Px(mid)
                )
            }
        };
        let _ = write!(
            body,
            "<text x=\"{}\" y=\"{}\" font-size=\"{SMALL}\">{}</text>",
            Px(x + SWATCH),
            Px(y),
            escape(label)
        );
        x += need;
    }
    y + 4.0
}

/// Draws the heading and the axis label above a panel. Returns where the plot begins.
fn draw_labels(body: &mut String, p: &PanelSpec, mut y: f64, width: f64) -> f64 {
    let room = width - 2.0 * MARGIN;
    for line in wrap(&p.heading, SMALL * BOLD, room) {
        y += SMALL + 4.0;
        let _ = write!(
            body,
            "<text x=\"{MARGIN}\" y=\"{}\" font-size=\"{SMALL}\" font-weight=\"600\">{}</text>",
            Px(y),
            escape(&line)
        );
    }
    for line in wrap(&p.y_label, SMALL, room) {
        y += SMALL + 4.0;
        let _ = write!(
            body,
            "<text class=\"f-grey\" fill=\"{}\" x=\"{MARGIN}\" y=\"{}\" font-size=\"{SMALL}\">{}</text>",
            Colour::Grey.hex(),
            Px(y),
            escape(&line)
        );
    }
    y + 9.0
}

fn draw_grid(body: &mut String, panel: &Panel, y_axis: bool, x_labels: bool, size: Size) {
    let mut grid = String::new();
    for (value, label) in panel.x.ticks(size.pick(10, 5)) {
        let x = Px(panel.px(value)).to_string();
        let _ = write!(grid, "M{x} {}V{}", Px(panel.top), Px(panel.bottom()));
        if x_labels {
            let _ = write!(
                body,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"{SMALL}\">{}</text>",
                Px(panel.bottom() + 16.0),
                escape(&label)
            );
        }
    }
    if y_axis {
        for (value, label) in panel.y.ticks((panel.height / 34.0) as usize) {
            let y = panel.py(value);
            let _ = write!(grid, "M{} {}H{}", Px(panel.left), Px(y), Px(panel.right()));
            let _ = write!(
                body,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"{SMALL}\">{}</text>",
                Px(panel.left - 6.0),
                Px(y + 4.0),
                escape(&label)
            );
        }
    }
    let _ = writeln!(
        body,
        "<path class=\"grid\" fill=\"none\" stroke=\"#e3e3e3\" stroke-width=\"1\" d=\"{grid}\"/>\
         <path {} stroke-width=\"1\" d=\"M{} {}V{}H{}\"/>",
        Colour::Grey.stroke(),
        Px(panel.left),
        Px(panel.top),
        Px(panel.bottom()),
        Px(panel.right())
    );
}
