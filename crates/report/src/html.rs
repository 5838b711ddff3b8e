//! A report as one self-contained HTML file without network access. Figures are drawings, which print and
//! work without scripts; a browser that runs scripts makes them explorable.
//!
//! Start reading at [`Page`].

use crate::explore;
use crate::svg::{Colour, escape};
use crate::text_block::{TextBlock, TextParagraph, text};
use crate::{Figure, Reproduction, ReproductionClaim, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A page under construction. Everything given to it is text and is escaped; only figures are markup, and
/// they come from this crate.
///
/// The page also writes what it has for a terminal: see [`to_text`](Page::to_text).
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: Vec<PageBlock>,
    text: Vec<TextBlock>,
    /// All figures over time have one clock; else those under one heading.
    one_clock: bool,
    /// The latest heading, until something under it goes to the terminal too.
    heading: Option<String>,
    /// How many tables of each title it has.
    tables: BTreeMap<String, u32>,
}

#[derive(Clone, Debug)]
enum PageBlock {
    Html(String),
    /// It gets its anchor when the page is rendered.
    Heading(String),
    /// It gets its number when the page is rendered.
    Figure(Box<Figure>),
}

impl Page {
    /// A page with a title.
    pub fn new(title: &str) -> Self {
        Page {
            title: title.to_owned(),
            body: Vec::new(),
            text: Vec::new(),
            one_clock: false,
            heading: None,
            tables: BTreeMap::new(),
        }
    }

    /// Time 0 is the same in all figures, so that their time axes may move together across headings.
    pub fn one_clock(&mut self) -> &mut Self {
        self.one_clock = true;
        self
    }

    /// The page for a terminal: its findings, tables and claims under their headings.
    pub fn to_text(&self) -> String {
        text(&self.text, None)
    }

    /// The same for a terminal with `width` columns.
    pub fn to_text_within(&self, width: usize) -> String {
        text(&self.text, Some(width))
    }

    /// The figures, in order.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.body.iter().filter_map(|block| match block {
            PageBlock::Html(_) | PageBlock::Heading(_) => None,
            PageBlock::Figure(figure) => Some(figure.as_ref()),
        })
    }

    /// Adds everything of another page but its title.
    pub fn append(&mut self, page: &Page) -> &mut Self {
        self.body.extend(page.body.iter().cloned());
        self.add_text(page.text.iter().cloned());
        self
    }

    /// Adds blocks for a terminal, below the latest heading.
    fn add_text(&mut self, blocks: impl IntoIterator<Item = TextBlock>) {
        self.text.extend(self.heading.take().map(TextBlock::Heading));
        self.text.extend(blocks);
    }

    fn add(&mut self, html: &str) -> &mut Self {
        self.body.push(PageBlock::Html(html.to_owned()));
        self
    }

    /// The result in one or two sentences, highlighted under the title. `good` selects its colour.
    pub fn verdict(&mut self, text: &str, good: bool) -> &mut Self {
        let class = if good { "good" } else { "bad" };
        self.add(&format!("<p class=\"verdict {class}\">{}</p>", prose(text)))
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.heading = Some(text.to_owned());
        self.body.push(PageBlock::Heading(text.to_owned()));
        self
    }

    /// A paragraph that explains. A terminal does not show it.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.add(&format!("<p>{}</p>", prose(text)))
    }

    /// A paragraph that says what came out. A terminal shows it too.
    pub fn finding(&mut self, text: &str) -> &mut Self {
        let paragraph = TextParagraph { text: text.to_owned(), indents: [""; 2] };
        self.add_text([TextBlock::Paragraphs(vec![paragraph])]);
        self.paragraph(text)
    }

    /// A link to a file beside this one.
    pub fn link(&mut self, text: &str, path: &str) -> &mut Self {
        self.add(&format!("<p><a href=\"{}\">{}</a></p>", escape(path), escape(text)))
    }

    /// A sentence that leads to a place in a figure, `from` to `to` in seconds with `around` seconds visible
    /// (0 for what suits it). The figure is named by its file.
    pub fn place(&mut self, text: &str, file_name: &str, from: f64, to: f64, around: f64) -> &mut Self {
        self.add(&format!(
            "<p><a href=\"#{}\" data-at=\"{from}\" data-to=\"{to}\" data-around=\"{around}\">{}</a></p>",
            figure_id(file_name),
            escape(text)
        ))
    }

    /// A table; nothing if it has no rows.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        if table.is_empty() {
            return self;
        }
        self.add_text([TextBlock::Table(table.clone())]);
        self.wide_table(table)
    }

    /// A table that is too wide for a terminal; nothing if it has no rows.
    pub fn wide_table(&mut self, table: &Table) -> &mut Self {
        if table.is_empty() {
            return self;
        }
        let count = self.tables.entry(table.title.clone()).or_insert(0);
        *count += 1;
        let count = *count;
        self.add(&table.to_html(count))
    }

    /// A numbered figure with its caption.
    pub fn figure(&mut self, figure: &Figure) -> &mut Self {
        self.body.push(PageBlock::Figure(Box::new(figure.clone())));
        self
    }

    /// Claims with verdicts and evidence.
    pub fn claims(&mut self, claims: &[ReproductionClaim]) -> &mut Self {
        let mut html = String::from("<ul class=\"claims\">");
        let mut paragraphs = Vec::new();
        for claim in claims {
            for (text, indents) in [
                (format!("{}  {}", claim.verdict(), claim.text), ["  ", "         "]),
                (claim.evidence.clone(), ["         "; 2]),
            ] {
                paragraphs.push(TextParagraph { text, indents });
            }
            let (class, sign) = if claim.holds { ("good", "✓") } else { ("bad", "✗") };
            let _ = write!(
                html,
                "<li class=\"{class}\"><span class=\"mark\">{sign} {}</span> <b>{}</b><br><span \
                 class=\"evidence\">{}</span></li>",
                claim.verdict(),
                prose(&claim.text),
                prose(&claim.evidence)
            );
        }
        html.push_str("</ul>");
        self.add_text([TextBlock::Paragraphs(paragraphs)]);
        self.add(&html)
    }

    /// Values, assumptions and claims of a paper, with headings.
    pub fn reproduction(&mut self, reproduction: &Reproduction) -> &mut Self {
        self.heading("Claims").claims(&reproduction.claims);
        self.heading("Numbers").table(&reproduction.table());
        let notes = reproduction.assumptions();
        if !notes.is_empty() {
            let mut html = String::from(
                "<p>Assumptions where the paper does not specify a detail:</p><ol class=\"notes\">",
            );
            for note in notes {
                let _ = write!(html, "<li>{}</li>", prose(note));
            }
            html.push_str("</ol>");
            self.add(&html);
        }
        self
    }

    /// Content added by `fill`, collapsed under a title.
    pub fn folded(&mut self, title: &str, fill: impl FnOnce(&mut Page)) -> &mut Self {
        self.add(&format!("<details><summary>{}</summary>", prose(title)));
        fill(self);
        self.add("</details>")
    }

    /// Preformatted text, such as a scenario, collapsed under a title.
    pub fn details(&mut self, title: &str, text: &str) -> &mut Self {
        let html =
            format!("<details><summary>{}</summary><pre>{}</pre></details>", prose(title), escape(text));
        self.add(&html)
    }

    /// A command to type.
    pub fn command(&mut self, line: &str) -> &mut Self {
        self.add(&format!("<pre class=\"command\">{}</pre>", escape(line)))
    }

    /// The whole file.
    pub fn render(&self) -> String {
        let title = escape(&self.title);
        let served = self.figures().any(|f| f.explore.as_ref().is_some_and(|e| e.remote.is_some()));
        let explorable = self.figures().any(|figure| figure.explore.is_some());
        let (mut body, mut figures, mut headings) = (String::new(), 0, 0);
        let mut ids = BTreeSet::new();
        for block in &self.body {
            let _ = match block {
                PageBlock::Html(html) => writeln!(body, "{html}"),
                PageBlock::Heading(text) => {
                    headings += 1;
                    if headings == 1 {
                        body.push_str(&self.contents());
                    }
                    writeln!(
                        body,
                        "<h2 id=\"s{headings}\">{}<a class=\"anchor\" href=\"#s{headings}\" \
                         aria-label=\"Link to this section\">#</a></h2>",
                        escape(text)
                    )
                }
                PageBlock::Figure(figure) => {
                    figures += 1;
                    let id = figure_id(&figure.file_name);
                    let clock = if self.one_clock { 0 } else { headings };
                    // Two figures of one name: the first has the name.
                    let id = if ids.insert(id.clone()) { id } else { format!("figure-{figures}") };
                    writeln!(
                        body,
                        "<figure id=\"{id}\" data-clock=\"{clock}\"><div class=\"static\"><div \
                        class=\"wide\">{}</div><div class=\"narrow\">{}</div>\
                         </div><figcaption><b>Figure {figures}.</b> {} <span \
                         class=\"file\">{}</span></figcaption>{}</figure>",
                        inline(&figure.svg),
                        inline(&figure.svg_narrow),
                        prose(&figure.caption),
                        escape(&figure.file_name),
                        data(figure),
                    )
                }
            };
        }
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title>\n<style>:root{{{LIGHT}{}}}\n{CSS}\
             @media screen and (prefers-color-scheme: dark){{:root{{{DARK}{}}}{DARK_DRAWINGS}{}}}</style>\
             </head>\n\
             <body><main>\n<h1>{title}</h1>\n{body}</main>\n{}</body></html>\n",
            explore::csp(explorable, served),
            Colour::variables(false),
            Colour::variables(true),
            Colour::dark_css(),
            if explorable { explore::scripts() } else { String::new() },
        )
    }

    /// Links to the headings, if there are enough of them.
    fn contents(&self) -> String {
        let headings = self.body.iter().filter_map(|block| match block {
            PageBlock::Heading(text) => Some(text),
            PageBlock::Html(_) | PageBlock::Figure(_) => None,
        });
        let links: Vec<String> = (1..)
            .zip(headings)
            .map(|(n, text)| format!("<li><a href=\"#s{n}\">{}</a></li>", escape(text)))
            .collect();
        if links.len() < MIN_CONTENTS {
            return String::new();
        }
        format!(
            "<nav class=\"contents\" aria-label=\"Contents\"><b>Contents</b><ol>{}</ol></nav>\n",
            links.concat()
        )
    }
}

/// Text in which what stands between backticks is a command or a name.
pub(crate) fn prose(text: &str) -> String {
    let text = escape(text);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // One backtick is without its other one.
        return text;
    }
    let code =
        |(n, part): (usize, &str)| if n % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() };
    parts.into_iter().enumerate().map(code).collect()
}

/// A page with fewer headings has no table of contents.
const MIN_CONTENTS: usize = 3;

/// The anchor of a figure, from the name of its file: `figures/up-window.svg` is `up-window`.
fn figure_id(file_name: &str) -> String {
    let name = file_name.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".svg").unwrap_or(name);
    let id: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("figure-{id}")
}

/// What a reader explores, for the script of the page. It is data, which no browser runs.
fn data(figure: &Figure) -> String {
    let Some(exploration) = &figure.explore else { return String::new() };
    // Nothing in it can end the element.
    let json = exploration.to_json().to_string().replace('<', "\\u003c");
    format!("<script type=\"application/json\">{json}</script>")
}

/// The SVG of a figure for inline use in HTML, which needs no namespace.
fn inline(svg: &str) -> String {
    svg.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1)
}

/// Layout.
const CSS: &str = include_str!("page.css");
/// Colours by day.
const LIGHT: &str = "--ink:#1a1a1a;--soft:#5f5f5f;--line:#dcdcdc;--edge:#8a8a8a;--grid:#e8e8e8;\
--paper:#ffffff;--wash:#f5f5f3;\
--good:#00694d;--bad:#b04a00;";
/// Colours by night.
const DARK: &str = "--ink:#ececec;--soft:#a8a8a8;--line:#3c3c3c;--edge:#767676;--grid:#2c2c2c;\
--paper:#161616;--wash:#222222;\
--good:#2fcf9f;--bad:#ff8a3d;";
/// Drawings by night.
const DARK_DRAWINGS: &str =
    ".paper,.hollow{fill:#161616}.grid{stroke:#303030}.halo{stroke:#161616;fill:#161616}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Drawing, Exploration, ExplorePanel, ExploreSeries, TableCell, TableColumn, Thing};

    /// Breaks: input such as scenario names cannot run scripts in the browser.
    #[test]
    fn all_input_is_escaped() {
        let evil = "<script>alert(1)</script>\"'&";
        let claim =
            ReproductionClaim { id: evil.into(), text: evil.into(), holds: false, evidence: evil.into() };
        let mut table = Table::new(evil, vec![TableColumn::number(evil, evil)]);
        table.row(vec![evil.into()]);
        let mut exploration = Exploration::over_time(evil, 0.0, 1.0);
        exploration.panels.push(ExplorePanel {
            heading: evil.into(),
            y_label: evil.into(),
            y: (0.0, 1.0),
            log: false,
            fit: false,
            series: vec![ExploreSeries::level(evil, Thing::Level.style(), 1.0)],
        });
        let drawing =
            Drawing { wide: "<svg/>".into(), narrow: "<svg/>".into(), explore: None }.explored(exploration);
        let mut page = Page::new(evil);
        page.verdict(evil, false).heading(evil).paragraph(evil).table(&table).claims(&[claim]);
        page.figure(&drawing.figure(evil, evil)).details(evil, evil).command(evil).link(evil, evil).folded(
            evil,
            |page| {
                page.paragraph(evil);
            },
        );
        page.place(evil, evil, 0.0, 1.0, 0.0);
        let html = page.render();
        // The two of the page, and the data of the figure.
        assert_eq!(html.matches("<script").count(), 3);
        assert_eq!(html.matches("</script").count(), 3);
        assert!(!html.contains("<script>alert"));
        assert!(html.contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;</title>"));
    }

    /// Breaks: `farpace papers` on a terminal: a finding, a table or a claim is missing, or has another
    /// heading.
    #[test]
    fn a_terminal_shows_findings_tables_and_claims() {
        let mut table = Table::with("", "a");
        table.row([TableCell::from("1")]);
        let claim =
            ReproductionClaim { id: "c".into(), text: "a < b".into(), holds: true, evidence: "1".into() };
        let mut page = Page::new("Title");
        assert_eq!(prose("run `a <b>` or `c`"), "run <code>a &lt;b&gt;</code> or <code>c</code>");
        assert_eq!(prose("one ` alone"), "one ` alone");
        page.heading("Only explained").paragraph("Why.").heading("Found").finding("So it is.");
        page.wide_table(&Table::with("without `rows`", "a"));
        page.table(&table).table(&Table::with("empty", "a")).heading("Claims").claims(&[claim]);
        let expected = "Found\n\nSo it is.\n\na\n─\n1\n\nClaims\n\n  holds  a < b\n         1\n";
        assert_eq!(page.to_text(), expected);
        let mut whole = Page::new("Whole");
        whole.append(&page).append(&page);
        assert!(page.render().contains("Why.") && page.figures().next().is_none());
        assert!(!page.render().contains("without"), "a table without rows has a head");
        assert_eq!(whole.render().matches("Why.").count(), 2);
    }
}
