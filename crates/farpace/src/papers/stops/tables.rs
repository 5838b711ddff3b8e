//! The tables, for the terminal and for the report.

use super::claims::state_name;
use super::plan::{Burst, Key, TABLE_2, Variant};
use super::results::{Group, Results, Spread};
use super::rows::{SHALLOW, printed};
use crate::papers::claims_text;
use farpace_report::{Reproduction, Table, TableCell, TableColumn};

/// Table 2 with one window: paper beside measurement.
pub fn table_2(results: &Results, window: u32) -> Table {
    let columns = vec![
        TableColumn::text("profile"),
        TableColumn::number("time: paper", "mean/max/min/sd, s"),
        TableColumn::number("measured", "mean/max/min/sd, s"),
        TableColumn::number("goodput", "Mbit/s"),
        TableColumn::number("timeouts", "mean"),
        TableColumn::number("least efficiency", "%"),
    ];
    let runs = results.deep(Variant::Fix, window).runs.len();
    let mut table = Table::new(
        &format!("Receive window of {window} packets, {runs} runs each; paper | measured"),
        columns,
    );
    for variant in TABLE_2 {
        let group = results.deep(variant, window);
        let paper = printed(variant);
        let p = paper.as_ref();
        table.row(vec![
            variant.label().into(),
            p.map(|p| p.time.map(|t| format!("{t:.1}")).join("/")).into(),
            times(group.time()).into(),
            beside(p.map(|p| p.goodput), group.goodput().mean, 0),
            beside(p.map(|p| p.timeouts), group.timeouts().mean, 1),
            beside(p.map(|p| p.least_efficiency), group.efficiency().min, 0),
        ]);
    }
    table
}

/// `paper | measured`.
fn beside(paper: Option<f64>, measured: f64, decimals: usize) -> TableCell {
    let paper = paper.map_or_else(|| "–".to_owned(), |p| format!("{p:.decimals$}"));
    format!("{paper} | {measured:.decimals$}").into()
}

fn times(s: Spread) -> String {
    [s.mean, s.max, s.min, s.sd].map(|t| format!("{t:.1}")).join("/")
}

/// The shallow bucket.
pub fn shallow(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("profile"),
        TableColumn::number("time: paper", "s"),
        TableColumn::number("measured", "mean, s"),
        TableColumn::number("efficiency: paper", "%"),
        TableColumn::number("measured", "mean, %"),
        TableColumn::number("timeouts", "mean"),
        TableColumn::number("longest silence", "s"),
    ];
    let mut table = Table::new("Bucket of 256 kB, receive window of 1554 packets", columns);
    for variant in TABLE_2 {
        let group = results.group(Key::shallow(variant));
        let paper = (variant == Variant::Linux2617).then_some(SHALLOW);
        table.row(vec![
            variant.label().into(),
            paper.map(|p| format!("about {:.0}", p.0)).into(),
            TableCell::Number(group.time().mean, Some(1)),
            paper.map(|p| p.1).into(),
            TableCell::Number(group.efficiency().mean, Some(1)),
            TableCell::Number(group.timeouts().mean, Some(1)),
            silence(&group),
        ]);
    }
    table
}

/// Every variant with one window, defects alone and remedies, over the same phases.
pub fn switches(results: &Results, window: u32) -> Table {
    let columns = vec![
        TableColumn::text("sender"),
        TableColumn::number("time", "mean, s"),
        TableColumn::number("goodput", "Mbit/s"),
        TableColumn::number("timeouts", "mean"),
        TableColumn::number("longest crawl", "below 2 %, s"),
        TableColumn::number("longest silence", "s"),
        TableColumn::text("mostly in"),
    ];
    let variants = results.variants(window);
    let least =
        variants.iter().map(|v| results.deep(*v, window)).min_by_key(|g| g.runs.len()).unwrap_or_default();
    let runs = least.runs.len();
    let title =
        format!("Window of {window} packets, the same {runs} phase{} each", if runs == 1 { "" } else { "s" });
    let mut table = Table::new(&title, columns);
    for variant in variants {
        let group = results.deep(variant, window).matching(&least);
        table.row(vec![
            variant.label().into(),
            TableCell::Number(group.time().mean, Some(2)),
            TableCell::Number(group.goodput().mean, Some(1)),
            TableCell::Number(group.timeouts().mean, Some(1)),
            group.crawl().map_or("none".into(), |s| TableCell::Number(s, Some(1))),
            silence(&group),
            group.longest().map(|s| state_name(s.state)).into(),
        ]);
    }
    table
}

fn silence(group: &Group) -> TableCell {
    group.longest().map_or("none".into(), |s| TableCell::Number(s.span.as_secs_f64(), Some(2)))
}

/// Windows at which single switches were turned.
pub fn switch_windows(results: &Results) -> Vec<u32> {
    let mut windows: Vec<u32> = results
        .groups()
        .filter(|(key, _)| key.burst == Burst::Deep && !TABLE_2.contains(&key.variant))
        .map(|(key, _)| key.window)
        .collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// Everything for a terminal.
pub fn text(results: &Results, reproduction: &Reproduction) -> String {
    let mut out = format!(
        "Communication stops: {} transfers of {} through a policer of 500 Mbit/s, every byte compared\n\n",
        results.transfers(),
        results.size
    );
    out.push_str("Table 2 of the paper, bucket of 16 MB\n");
    for window in &results.windows {
        out.push_str(&table_2(results, *window).to_text());
        out.push('\n');
    }
    out.push_str(&shallow(results).to_text());
    out.push_str("\nDefects alone, repairs alone, remedies\n");
    for window in switch_windows(results) {
        out.push_str(&switches(results, window).to_text());
        out.push('\n');
    }
    out.push_str(&claims_text(&reproduction.claims));
    out
}
