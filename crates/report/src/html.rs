//! A report as one self-contained HTML file: no scripts, fonts or network access.
//!
//! Start reading at [`Page`].

use crate::svg::{Colour, escape};
use crate::{Figure, Reproduction, ReproductionClaim, Table};
use std::fmt::Write;
use textwrap::Options;

/// Columns of the text for a terminal.
const TEXT_WIDTH: usize = 110;

/// A page under construction. Everything given to it is text and is escaped; only figures are markup, and
/// they come from this crate.
///
/// The page also writes what it has for a terminal: see [`to_text`](Page::to_text).
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: Vec<PageBlock>,
    text: String,
    /// The latest heading, until something under it goes to the terminal too.
    heading: Option<String>,
}

#[derive(Clone, Debug)]
enum PageBlock {
    Html(String),
    /// It gets its number when the page is rendered.
    Figure(Box<Figure>),
}

impl Page {
    /// A page with a title.
    pub fn new(title: &str) -> Self {
        Page { title: title.to_owned(), body: Vec::new(), text: String::new(), heading: None }
    }

    /// The page for a terminal: its findings, tables and claims under their headings.
    pub fn to_text(&self) -> &str {
        &self.text
    }

    /// The figures, in order.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.body.iter().filter_map(|block| match block {
            PageBlock::Html(_) => None,
            PageBlock::Figure(figure) => Some(figure.as_ref()),
        })
    }

    /// Adds everything of another page but its title.
    pub fn append(&mut self, page: &Page) -> &mut Self {
        self.body.extend(page.body.iter().cloned());
        self.add_text(&page.text);
        self
    }

    /// Adds a block of lines for a terminal, below the latest heading.
    fn add_text(&mut self, block: &str) {
        for part in
            self.heading.take().map(|heading| heading + "\n").iter().map(String::as_str).chain([block])
        {
            if !self.text.is_empty() && !part.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(part);
        }
    }

    fn add(&mut self, html: &str) -> &mut Self {
        self.body.push(PageBlock::Html(html.to_owned()));
        self
    }

    /// The result in one or two sentences, highlighted under the title. `good` selects its colour.
    pub fn verdict(&mut self, text: &str, good: bool) -> &mut Self {
        let class = if good { "good" } else { "bad" };
        self.add(&format!("<p class=\"verdict {class}\">{}</p>", escape(text)))
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.heading = Some(text.to_owned());
        self.add(&format!("<h2>{}</h2>", escape(text)))
    }

    /// A paragraph that explains. A terminal does not show it.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.add(&format!("<p>{}</p>", escape(text)))
    }

    /// A paragraph that says what came out. A terminal shows it too.
    pub fn finding(&mut self, text: &str) -> &mut Self {
        self.add_text(&(textwrap::fill(text, TEXT_WIDTH) + "\n"));
        self.paragraph(text)
    }

    /// A link to a file beside this one.
    pub fn link(&mut self, text: &str, path: &str) -> &mut Self {
        self.add(&format!("<p><a href=\"{}\">{}</a></p>", escape(path), escape(text)))
    }

    /// A table; nothing if it has no rows.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        if table.is_empty() {
            return self;
        }
        self.add_text(&table.to_text());
        self.wide_table(table)
    }

    /// A table that is too wide for a terminal.
    pub fn wide_table(&mut self, table: &Table) -> &mut Self {
        self.add(&table.to_html())
    }

    /// A numbered figure with its caption.
    pub fn figure(&mut self, figure: &Figure) -> &mut Self {
        self.body.push(PageBlock::Figure(Box::new(figure.clone())));
        self
    }

    /// Claims with verdicts and evidence.
    pub fn claims(&mut self, claims: &[ReproductionClaim]) -> &mut Self {
        let mut html = String::from("<ul class=\"claims\">");
        let mut text = String::new();
        for claim in claims {
            for (line, indents) in [
                (format!("{}  {}", claim.verdict(), claim.text), ["  ", "         "]),
                (claim.evidence.clone(), ["         "; 2]),
            ] {
                let [first, rest] = indents;
                let options = Options::new(TEXT_WIDTH).initial_indent(first).subsequent_indent(rest);
                text.push_str(&(textwrap::fill(&line, options) + "\n"));
            }
            let (class, sign) = if claim.holds { ("good", "✓") } else { ("bad", "✗") };
            let _ = write!(
                html,
                "<li class=\"{class}\"><span class=\"mark\">{sign} {}</span> <b>{}</b><br><span class=\"evidence\">{}</span></li>",
                claim.verdict(),
                escape(&claim.text),
                escape(&claim.evidence)
            );
        }
        html.push_str("</ul>");
        self.add_text(&text);
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
                let _ = write!(html, "<li>{}</li>", escape(note));
            }
            html.push_str("</ol>");
            self.add(&html);
        }
        self
    }

    /// Content added by `fill`, collapsed under a title.
    pub fn folded(&mut self, title: &str, fill: impl FnOnce(&mut Page)) -> &mut Self {
        self.add(&format!("<details><summary>{}</summary>", escape(title)));
        fill(self);
        self.add("</details>")
    }

    /// Preformatted text, such as a scenario, collapsed under a title.
    pub fn details(&mut self, title: &str, text: &str) -> &mut Self {
        let html =
            format!("<details><summary>{}</summary><pre>{}</pre></details>", escape(title), escape(text));
        self.add(&html)
    }

    /// A command to type.
    pub fn command(&mut self, line: &str) -> &mut Self {
        self.add(&format!("<pre class=\"command\">{}</pre>", escape(line)))
    }

    /// The whole file.
    pub fn render(&self) -> String {
        let title = escape(&self.title);
        let (mut body, mut figures) = (String::new(), 0);
        for block in &self.body {
            let _ = match block {
                PageBlock::Html(html) => writeln!(body, "{html}"),
                PageBlock::Figure(figure) => {
                    figures += 1;
                    writeln!(
                        body,
                        "<figure><div class=\"wide\">{}</div><div class=\"narrow\">{}</div><figcaption>\
                         <b>Figure {figures}.</b> {} <span class=\"file\">{}</span></figcaption></figure>",
                        inline(&figure.svg),
                        inline(&figure.svg_narrow),
                        escape(&figure.caption),
                        escape(&figure.file_name),
                    )
                }
            };
        }
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title>\n<style>{CSS}@media screen and (prefers-color-scheme: dark){{{DARK}{}}}</style></head>\n\
             <body><main>\n<h1>{title}</h1>\n{body}</main></body></html>\n",
            Colour::dark_css(),
        )
    }
}

/// The SVG of a figure for inline use in HTML, which needs no namespace.
fn inline(svg: &str) -> String {
    svg.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1)
}

const CSS: &str = "
:root{--ink:#1a1a1a;--soft:#5f5f5f;--line:#dcdcdc;--paper:#ffffff;--wash:#f5f5f3;--good:#00694d;--bad:#b04a00}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;break-after:avoid}
p{max-width:44rem;overflow-wrap:anywhere}
.verdict{font-size:1.1rem;border-left:4px solid;padding:.4rem 0 .4rem .9rem}
.verdict.good{border-color:var(--good)}.verdict.bad{border-color:var(--bad)}
.scroll{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:0 0 .4rem;max-width:calc(100vw - 2.5rem);break-after:avoid}
th,td{padding:.3rem .6rem;text-align:left;vertical-align:bottom;border-bottom:1px solid var(--line)}
th:first-child{padding-left:0}
th.n,td.n{text-align:right}
td.n{white-space:nowrap}
tbody th{font-weight:400}
tbody th,tbody td{vertical-align:top}
tr{break-inside:avoid}
thead th{border-bottom:2px solid var(--soft)}
.unit{display:block;font-weight:400;color:var(--soft)}
figure{margin:1.6rem 0 2.2rem;break-inside:avoid}
figure svg{display:block;width:100%;height:auto}
figcaption{font-size:.92rem;max-width:46rem;margin-top:.3rem}
.file{color:var(--soft);font-size:.85em;white-space:nowrap}
.narrow{display:none}
.claims{list-style:none;padding:0}
.claims li{margin:.7rem 0;padding-left:.9rem;border-left:4px solid var(--line);overflow-wrap:anywhere;break-inside:avoid}
.claims li.good{border-color:var(--good)}.claims li.bad{border-color:var(--bad)}
.mark{font-weight:700}.good .mark{color:var(--good)}.bad .mark{color:var(--bad)}
.evidence,.notes{color:var(--soft);font-size:.92rem}
pre{background:var(--wash);padding:.8rem;overflow-x:auto;font-size:.85rem;line-height:1.4;border-radius:4px}
a{color:inherit}
pre.command{white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;padding:.4rem 0}
@media screen and (max-width:40rem){.wide{display:none}.narrow{display:block}main{padding:1rem .75rem 2rem}h1{font-size:1.35rem}}
@media print{main{max-width:none;padding:0}body{font-size:10.5pt}pre{white-space:pre-wrap}.scroll{overflow:visible}
details::details-content{content-visibility:visible;block-size:auto}}
";

const DARK: &str = "
:root{--ink:#ececec;--soft:#a8a8a8;--line:#3c3c3c;--paper:#161616;--wash:#222222;--good:#2fcf9f;--bad:#ff8a3d}
.paper,.hollow{fill:#161616}.grid{stroke:#303030}.halo{stroke:#161616;fill:#161616}
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Drawing, TableCell, TableColumn};

    /// Breaks: input such as scenario names cannot run scripts in the browser.
    #[test]
    fn all_input_is_escaped() {
        let evil = "<script>alert(1)</script>\"'&";
        let claim =
            ReproductionClaim { id: evil.into(), text: evil.into(), holds: false, evidence: evil.into() };
        let mut table = Table::new(evil, vec![TableColumn::number(evil, evil)]);
        table.row(vec![evil.into()]);
        let drawing = Drawing { wide: "<svg/>".into(), narrow: "<svg/>".into() };
        let mut page = Page::new(evil);
        page.verdict(evil, false).heading(evil).paragraph(evil).table(&table).claims(&[claim]);
        page.figure(&drawing.figure(evil, evil)).details(evil, evil).command(evil).link(evil, evil).folded(
            evil,
            |page| {
                page.paragraph(evil);
            },
        );
        let html = page.render();
        assert!(!html.contains("<script"));
        assert!(html.contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;</title>"));
    }

    /// Breaks: `farpace papers` on a terminal: a finding, a table or a claim is missing, or has another heading.
    #[test]
    fn a_terminal_shows_findings_tables_and_claims() {
        let mut table = Table::with("", "a");
        table.row([TableCell::from("1")]);
        let claim =
            ReproductionClaim { id: "c".into(), text: "a < b".into(), holds: true, evidence: "1".into() };
        let mut page = Page::new("Title");
        page.heading("Only explained").paragraph("Why.").heading("Found").finding("So it is.");
        page.table(&table).table(&Table::with("empty", "a")).heading("Claims").claims(&[claim]);
        let expected = "Found\n\nSo it is.\n\na\n─\n1\n\nClaims\n\n  holds  a < b\n         1\n";
        assert_eq!(page.to_text(), expected);
        let mut whole = Page::new("Whole");
        whole.append(&page).append(&page);
        assert!(page.render().contains("Why.") && page.figures().next().is_none());
        assert_eq!(whole.render().matches("Why.").count(), 2);
    }
}
