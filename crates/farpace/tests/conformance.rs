//! docs/conformance.md says which test shows what the RFCs ask for: the tests exist, and nothing is left out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Numbers in RFC 9293's appendix B: each from 1 to the last.
const NUMBERED: [(&str, u32); 2] = [("MUST", 69), ("SHLD", 31)];
const BEGIN: &str = "<!-- summary: begin -->\n";
const END: &str = "<!-- summary: end -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/conformance.md")).unwrap()
}

/// One row: what asks, under which number or section, and what answers.
struct Row<'a> {
    rfc: &'a str,
    number: &'a str,
    shown: &'a str,
}

impl<'a> Row<'a> {
    /// The tests that it cites.
    fn tests(&self) -> impl Iterator<Item = &'a str> {
        self.shown.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains(".rs::"))
    }

    /// Which column of the summary counts it; none if it is neither shown nor explained.
    fn kind(&self) -> Option<usize> {
        let reason = |word: &str| self.shown.strip_prefix(word).is_some_and(|why| why.len() > 10);
        match () {
            () if reason("by design: ") => Some(1),
            () if reason("not done: ") => Some(2),
            () => self.shown.starts_with('`').then_some(0).filter(|_| self.tests().next().is_some()),
        }
    }
}

/// All rows below the summary.
fn rows(page: &str) -> Vec<Row<'_>> {
    let mut rfc = "";
    let mut rows = Vec::new();
    for line in page.split_once(END).unwrap().1.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            rfc = title.split_once(':').unwrap().0;
        }
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else { continue };
        let cells: Vec<_> = cells.split(" | ").collect();
        let [number, asked, shown] = cells[..] else { panic!("`{line}` has not three cells") };
        assert!(!number.is_empty() && !asked.is_empty(), "`{line}`");
        if asked != "requirement" {
            rows.push(Row { rfc, number, shown });
        }
    }
    assert!(rows.len() > 200, "the page was misread: {} rows", rows.len());
    rows
}

/// What is wrong with a citation, `file::function`.
fn fault(test: &str, files: &mut BTreeMap<String, String>) -> Option<String> {
    let (file, function) = test.split_once("::")?;
    let text = files
        .entry(file.to_owned())
        .or_insert_with(|| std::fs::read_to_string(root().join(file)).unwrap_or_default());
    let Some((before, _)) = text.split_once(&format!("fn {function}(")) else {
        return Some(format!("{file} has no `{function}`"));
    };
    let attributes = before.rsplit("fn ").next().unwrap_or_default();
    (!attributes.contains("#[test]")).then(|| format!("`{function}` in {file} is no test"))
}

/// Breaks: a claim of conformance that no test shows any more.
#[test]
fn every_test_that_is_cited_exists() {
    let (page, mut files) = (page(), BTreeMap::new());
    let mut wrong = Vec::new();
    for row in rows(&page) {
        let faults = row.tests().filter_map(|test| fault(test, &mut files));
        wrong.extend(faults.map(|fault| format!("{} {}: {fault}", row.rfc, row.number)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() > 30, "{} files", files.len());
    // The check itself finds what is not there.
    let known = "crates/farpace/tests/conformance.rs";
    assert_eq!(fault(&format!("{known}::every_test_that_is_cited_exists"), &mut files), None);
    for bad in ["::fault", "::nothing_of_the_kind"] {
        assert!(fault(&format!("{known}{bad}"), &mut files).is_some(), "{bad}");
    }
}

/// Breaks: requirements that are neither met nor admitted to be missing.
#[test]
fn every_row_has_a_test_or_a_reason() {
    let page = page();
    let bare: Vec<_> = rows(&page)
        .iter()
        .filter(|row| row.kind().is_none())
        .map(|row| format!("{} {}", row.rfc, row.number))
        .collect();
    assert!(bare.is_empty(), "{bare:?}");
}

/// Breaks: the list of RFC 9293: a number that is left out, or stands twice with two answers.
#[test]
fn every_number_of_rfc_9293_stands_once() {
    let page = page();
    let rows = rows(&page);
    let ours = || rows.iter().filter(|row| row.rfc == "RFC 9293");
    for (kind, last) in NUMBERED {
        for n in 1..=last {
            let number = format!("{kind}-{n}");
            assert_eq!(ours().filter(|row| row.number == number).count(), 1, "{number}");
        }
        assert_eq!(ours().filter(|row| row.number.starts_with(kind)).count(), last as usize, "{kind}");
    }
}

/// Breaks: the sums at the top of the page. With FARPACE_BLESS=1 it writes them anew.
#[test]
fn the_summary_is_the_sum() {
    let page = page();
    let mut sums: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
    for row in rows(&page) {
        if let Some(kind) = row.kind() {
            sums.entry(row.rfc).or_default()[kind] += 1;
        }
    }
    let mut table =
        String::from("\n| | rows | shown by tests | by design | not done |\n|---|---|---|---|---|\n");
    let mut line = |name: &str, [shown, design, missing]: [u32; 3]| {
        let all = shown + design + missing;
        table += &format!("| {name} | {all} | {shown} | {design} | {missing} |\n");
    };
    let mut total = [0; 3];
    for (rfc, sum) in sums {
        line(rfc, sum);
        (0..3).for_each(|n| total[n] += sum[n]);
    }
    line("all", total);
    table.push('\n');
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("FARPACE_BLESS").is_some() {
        let blessed = format!("{before}{BEGIN}{table}{END}{after}");
        return std::fs::write(root().join("docs/conformance.md"), blessed).unwrap();
    }
    assert_eq!(found, table, "docs/conformance.md is out of date: run this test once with FARPACE_BLESS=1");
}
