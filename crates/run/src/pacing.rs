//! What came of pacing: in the summary, and as a table.

use farpace_lab::PacingOutcome;
use farpace_lab::scenario::Direction;
use farpace_link::pacing::{ClassRate, NamedStats};
use farpace_report::{Table, TableCell, TableColumn};
use serde::Serialize;

/// One paced direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct PacingSummary {
    /// The link.
    pub link: String,
    /// `forward` or `backward`.
    pub direction: &'static str,
    /// The machine that paced.
    pub from: String,
    /// The machine at the other end.
    pub to: String,
    /// Gap frames sent.
    pub gap_frames: u64,
    /// Bytes of the line that they took, with all that surrounds frames.
    #[serde(rename = "gap_line_bytes")]
    pub gap_bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes of the line that they took.
    pub line_bytes: u64,
    /// Packets refused because a queue was full or they were too long.
    pub dropped: u64,
    /// The classes, in the order of the configuration.
    pub classes: Vec<ClassSummary>,
}

/// One class.
#[derive(Clone, Debug, Serialize)]
pub struct ClassSummary {
    /// Its name; `(rest)` if it was not configured.
    pub name: String,
    /// What was configured for it, in words; null if it is not paced.
    pub rate: Option<String>,
    /// The rate that held at the end; 0 for a class without one.
    #[serde(rename = "rate_bit_s")]
    pub rate_now: u64,
    /// Packets sent.
    pub packets: u64,
    /// Their bytes, without check sequences.
    #[serde(rename = "sent_bytes")]
    pub bytes: u64,
    /// Packets refused because its queue was full.
    pub dropped: u64,
    /// Packets that still waited at the end.
    pub waiting: u64,
    /// By how many bytes of the line its latest packet was late.
    #[serde(rename = "latest_line_bytes")]
    pub latest: u64,
}

impl PacingSummary {
    /// Sums up.
    pub fn new(outcome: &PacingOutcome) -> Self {
        PacingSummary {
            link: outcome.link.clone(),
            direction: match outcome.direction {
                Direction::Forward => "forward",
                Direction::Backward => "backward",
            },
            from: outcome.from.clone(),
            to: outcome.to.clone(),
            gap_frames: outcome.nic.gap_frames,
            gap_bytes: outcome.nic.gap_bytes.get(),
            packets: outcome.nic.packets,
            line_bytes: outcome.nic.line_bytes.get(),
            dropped: outcome.nic.drops,
            classes: outcome.classes.iter().map(ClassSummary::new).collect(),
        }
    }
}

impl ClassSummary {
    fn new(class: &NamedStats) -> Self {
        let stats = &class.stats;
        ClassSummary {
            name: class.name.clone(),
            rate: class.rate.map(|rate| rate.to_string()),
            rate_now: stats.rate.bits_per_sec(),
            packets: stats.packets,
            bytes: stats.bytes.get(),
            dropped: stats.dropped,
            waiting: stats.backlog.packets,
            latest: stats.latest.get(),
        }
    }
}

/// Most classes of one direction that get a row; the others share one.
const MAX_ROWS: usize = 12;

/// One row per class, and one for the gap frames.
pub fn table(pacing: &[PacingSummary]) -> Table {
    let columns = vec![
        TableColumn::text("paced line"),
        TableColumn::text("class"),
        TableColumn::text("rate"),
        TableColumn::number("sent", "packets"),
        TableColumn::number("sent", "MB"),
        TableColumn::number("dropped", "packets"),
        TableColumn::number("latest", "B of the line"),
    ];
    let mut table = Table::new("Pacing", columns);
    for line in pacing {
        let place = || TableCell::from(format!("{}, {} to {}", line.link, line.from, line.to));
        let mb = |bytes: u64| TableCell::Number(bytes as f64 / 1e6, Some(3));
        for class in line.classes.iter().take(MAX_ROWS) {
            table.row(vec![
                place(),
                class.name.as_str().into(),
                rate(class).into(),
                class.packets.into(),
                mb(class.bytes),
                class.dropped.into(),
                if class.rate_now > 0 { class.latest.into() } else { TableCell::Missing },
            ]);
        }
        let others = line.classes.get(MAX_ROWS..).unwrap_or_default();
        if !others.is_empty() {
            table.row(vec![
                place(),
                format!("({} others)", others.len()).into(),
                "".into(),
                others.iter().map(|c| c.packets).sum::<u64>().into(),
                mb(others.iter().map(|c| c.bytes).sum()),
                others.iter().map(|c| c.dropped).sum::<u64>().into(),
                others.iter().map(|c| c.latest).max().unwrap_or(0).into(),
            ]);
        }
        table.row(vec![
            place(),
            "(gap frames)".into(),
            "".into(),
            line.gap_frames.into(),
            mb(line.gap_bytes),
            TableCell::Missing,
            TableCell::Missing,
        ]);
    }
    table
}

fn rate(class: &ClassSummary) -> String {
    let follows = ClassRate::Connection.to_string();
    match &class.rate {
        None => "not paced".to_owned(),
        Some(rate) if *rate == follows => "of each connection".to_owned(),
        Some(rate) => rate.clone(),
    }
}
