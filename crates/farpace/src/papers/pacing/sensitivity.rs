//! What the paper leaves open, turned one by one; and what it could not know.

use super::pace::Pace;
use super::printed::FIFOS;
use super::results::Results;
use super::transfers::Case;
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::Span;

/// A setting: what it is, and the keys that make it.
struct Turn {
    what: &'static str,
    keys: &'static [(&'static str, &'static str)],
}

const fn turn(what: &'static str, keys: &'static [(&'static str, &'static str)]) -> Turn {
    Turn { what, keys }
}

const TURNS: [Turn; 6] = [
    turn("as assumed", &[]),
    turn("FIFO in KiB, not kB", &[("links.line.queue", "KIB")]),
    turn("the emulator counts check sequences", &[("links.line.overhead", "4 B")]),
    turn("the emulator counts all 24 B of Ethernet", &[("links.line.overhead", "24 B")]),
    turn("BIC begins with a threshold of 100", &[("flows.bulk.sender.initial_ssthresh", "100 packets")]),
    turn(
        "recovery of Linux 2.6.22",
        &[("flows.bulk.sender.profile", "linux-2.6.22"), ("flows.bulk.sender.abc", "off")],
    ),
];

/// FIFO sizes and senders of the table.
const PLACES: [(Pace, u32); 5] = [
    (Pace::None, 16),
    (Pace::None, 1024),
    (Pace::TokenBucket, 64),
    (Pace::TokenBucket, 1024),
    (Pace::Psp, 16),
];

fn case(turn: &Turn, (pace, fifo): (Pace, u32)) -> Case {
    let fold = |case: Case, (key, value): &(&str, &str)| match (*key, *value) {
        ("links.line.queue", _) => case.with(key, &format!("{} B", u64::from(fifo) * 1_024)),
        _ => case.with(key, value),
    };
    turn.keys.iter().fold(Case::one(pace, fifo), fold).drawn(COARSE)
}

/// Bins of these runs, which set them apart from the paper's.
const COARSE: Span = Span::from_secs(1);

/// What the token bucket holds; none: what comes in one tick, 62.5 kB.
const BUCKETS: [Option<&str>; 6] =
    [None, Some("250 kB"), Some("500 kB"), Some("1 MB"), Some("2 MB"), Some("4 MB")];

fn bucket(burst: Option<&str>, fifo: u32) -> Case {
    let case = Case::one(Pace::TokenBucket, fifo).drawn(COARSE);
    match burst {
        Some(burst) => case.with("links.nic.forward.pacing.burst", burst),
        None => case,
    }
}

/// Cells of [`table`] and [`buckets`].
pub fn cells() -> Vec<Case> {
    let turned = TURNS.iter().flat_map(|turn| PLACES.map(|place| case(turn, place)));
    turned.chain(BUCKETS.into_iter().flat_map(|burst| FIFOS.map(|fifo| bucket(burst, fifo)))).collect()
}

/// What the size of the bucket, which the paper does not state, does.
pub fn buckets(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("bucket")];
    for fifo in FIFOS {
        columns.push(TableColumn::number(&format!("{fifo} kB"), "Mbit/s / lost"));
    }
    let title =
        format!("The token bucket by what it holds and by FIFO, transfers of {}", results.plan.beyond);
    let mut table = Table::new(&title, columns);
    for burst in BUCKETS {
        let mut row: Vec<TableCell> = vec![burst.unwrap_or("62.5 kB (1 ms)").into()];
        row.extend(FIFOS.map(|fifo| cell(results, &bucket(burst, fifo))));
        table.row(row);
    }
    table
}

/// What comes of each setting.
pub fn table(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("what is turned")];
    for (pace, fifo) in PLACES {
        columns.push(TableColumn::number(&format!("{pace}, {fifo} kB"), "Mbit/s / lost"));
    }
    let title = format!("Table 5 with other assumptions, transfers of {}", results.plan.beyond);
    let mut table = Table::new(&title, columns);
    for turn in &TURNS {
        let mut row: Vec<TableCell> = vec![turn.what.into()];
        row.extend(PLACES.map(|place| cell(results, &case(turn, place))));
        table.row(row);
    }
    table
}

/// Goodput and losses of a transfer.
pub fn cell(results: &Results, case: &Case) -> TableCell {
    results.transfer(case).map_or(TableCell::Missing, |t| {
        format!("{} / {}", farpace_report::number(t.goodput.iter().sum()), t.lost).into()
    })
}

/// What a sender of today may have in place of Table 5's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Today {
    /// The paper's TCP with this pacing.
    Paced(Pace),
    /// Another TCP without pacing at the NIC.
    Stack(&'static str),
}

/// All of them.
pub const TODAY: [Today; 7] = [
    Today::Paced(Pace::None),
    Today::Paced(Pace::Edf),
    Today::Paced(Pace::Fq),
    Today::Paced(Pace::Connection),
    Today::Stack("cubic"),
    Today::Stack("bbr3"),
    Today::Stack("farpace"),
];

impl Today {
    /// For people.
    pub fn label(self) -> String {
        match self {
            Today::Paced(Pace::None) => "BIC, no limit".to_owned(),
            Today::Paced(pace) => format!("BIC, {pace}"),
            Today::Stack(name) => format!("{name}, stack of today, no NIC pacing"),
        }
    }

    /// The transfer through a FIFO of so many kB.
    pub fn case(self, fifo: u32) -> Case {
        match self {
            Today::Paced(pace) => Case::one(pace, fifo),
            Today::Stack(name) => {
                let profile = if name == "farpace" { "farpace" } else { "modern" };
                // The profile's own first window and threshold; nothing of Linux 2.6.
                let sender = format!(
                    "{{ profile = \"{profile}\", congestion = \"{name}\", send_buffer = \"25 MB\" }}"
                );
                let receiver = "{ profile = \"modern\", receive_buffer = \"25 MB\" }";
                Case::one(Pace::None, fifo)
                    .with("flows.bulk.sender", &sender)
                    .with("flows.bulk.receiver", receiver)
            }
        }
        .drawn(COARSE)
    }
}

/// Cells of [`today`].
pub fn beyond() -> Vec<Case> {
    TODAY.into_iter().flat_map(|today| FIFOS.map(|fifo| today.case(fifo))).collect()
}

/// Table 5 with what there is today.
pub fn today(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("sender")];
    for fifo in FIFOS {
        columns.push(TableColumn::number(&format!("{fifo} kB"), "Mbit/s / lost"));
    }
    let title = format!("Table 5 beyond the paper, transfers of {}", results.plan.beyond);
    let mut table = Table::new(&title, columns);
    for today in TODAY {
        let mut row: Vec<TableCell> = vec![today.label().into()];
        row.extend(FIFOS.map(|fifo| cell(results, &today.case(fifo))));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a setting is refused in the middle of a long measurement, or turns nothing.
    #[test]
    fn every_cell_has_a_scenario() {
        for case in cells().into_iter().chain(beyond()) {
            let scenario = case.scenario(Span::from_secs(1), &[]);
            assert!(scenario.is_ok(), "{case}: {scenario:?}");
        }
        for turn in &TURNS[1..] {
            let turned = PLACES.iter().filter(|p| case(turn, **p) != case(&TURNS[0], **p)).count();
            assert!(turned >= 2, "{}", turn.what);
        }
    }
}
