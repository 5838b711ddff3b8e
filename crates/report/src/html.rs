//! A report as one self-contained HTML file: no scripts, fonts or network access.
//!
//! Start reading at [`Page`].

use crate::svg::{Colour, escape};
use crate::{Figure, Reproduction, ReproductionClaim, Table};
use std::fmt::Write;

/// A page under construction. All input is text and is escaped, except figures, which this crate creates.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
    figures: u32,
}

impl Page {
    /// A page with a title.
    pub fn new(title: &str) -> Self {
        Page { title: title.to_owned(), body: String::new(), figures: 0 }
    }

    fn add(&mut self, html: &str) -> &mut Self {
        self.body.push_str(html);
        self.body.push('\n');
        self
    }

    /// The result in one or two sentences, highlighted under the title. `good` selects its colour.
    pub fn verdict(&mut self, text: &str, good: bool) -> &mut Self {
        let class = if good { "good" } else { "bad" };
        self.add(&format!("<p class=\"verdict {class}\">{}</p>", escape(text)))
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.add(&format!("<h2>{}</h2>", escape(text)))
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.add(&format!("<p>{}</p>", escape(text)))
    }

    /// A link to a file beside this one.
    pub fn link(&mut self, text: &str, path: &str) -> &mut Self {
        self.add(&format!("<p><a href=\"{}\">{}</a></p>", escape(path), escape(text)))
    }

    /// A table.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        self.add(&table.to_html())
    }

    /// A numbered figure with its caption.
    pub fn figure(&mut self, figure: &Figure) -> &mut Self {
        self.figures += 1;
        let html = format!(
            "<figure><div class=\"wide\">{}</div><div class=\"narrow\">{}</div>\
             <figcaption><b>Figure {}.</b> {} <span class=\"file\">{}</span></figcaption></figure>",
            inline(&figure.svg),
            inline(&figure.svg_narrow),
            self.figures,
            escape(&figure.caption),
            escape(&figure.file_name),
        );
        self.add(&html)
    }

    /// Claims with verdicts and evidence.
    pub fn claims(&mut self, claims: &[ReproductionClaim]) -> &mut Self {
        let mut html = String::from("<ul class=\"claims\">");
        for claim in claims {
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
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title>\n<style>{CSS}@media screen and (prefers-color-scheme: dark){{{DARK}{}}}</style></head>\n\
             <body><main>\n<h1>{title}</h1>\n{}</main></body></html>\n",
            Colour::dark_css(),
            self.body
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
    use crate::{Drawing, TableColumn};

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
}
