//! Parameter sweeps over what the paper leaves open, and what goes beyond it.

use super::PacingPaper;
use super::published::FIFOS;
use super::scheduler::PacingMethod;
use super::transfers::{FifoCase, FifoRunKind};
use crate::experiment::Measured;
use crate::sweep::Sweep;
use farpace_report::{Page, Table, TableCell, number};

/// An assumption and the settings that make it.
type Assumption = (&'static str, &'static [(&'static str, &'static str)]);

const ASSUMPTIONS: [Assumption; 6] = [
    ("as assumed", &[]),
    // Its value depends on the FIFO.
    ("FIFO in KiB, not kB", &[(QUEUE, "")]),
    ("the emulator counts check sequences", &[("links.line.overhead", "4 B")]),
    ("the emulator counts all 24 B of Ethernet", &[("links.line.overhead", "24 B")]),
    ("BIC begins with a threshold of 100", &[("flows.bulk.sender.initial_ssthresh", "100 packets")]),
    (
        "recovery of Linux 2.6.22",
        &[("flows.bulk.sender.profile", "linux-2.6.22"), ("flows.bulk.sender.abc", "off")],
    ),
];
const QUEUE: &str = "links.line.queue";

/// Senders and FIFO sizes for them.
const PLACES: [(PacingMethod, u32); 5] = [
    (PacingMethod::None, 16),
    (PacingMethod::None, 1024),
    (PacingMethod::TokenBucket, 64),
    (PacingMethod::TokenBucket, 1024),
    (PacingMethod::Psp, 16),
];

/// Sizes of the token bucket; none: what comes in one tick, 62.5 kB.
const BUCKETS: [Option<&str>; 6] =
    [None, Some("250 kB"), Some("500 kB"), Some("1 MB"), Some("2 MB"), Some("4 MB")];

/// The paper's TCP with modern pacing, and modern TCPs without pacing at the NIC.
const PACED: [PacingMethod; 4] =
    [PacingMethod::None, PacingMethod::Edf, PacingMethod::Fq, PacingMethod::Connection];
const MODERN: [&str; 3] = ["cubic", "bbr3", "farpace"];

fn case(pacer: PacingMethod, fifo: u32) -> FifoCase {
    FifoCase::one(FifoRunKind::Extension, pacer, fifo)
}

fn assumptions() -> Sweep<FifoCase> {
    let mut sweep = Sweep::new();
    for (name, keys) in ASSUMPTIONS {
        let cases = PLACES.map(|(pacer, fifo)| {
            keys.iter().fold(case(pacer, fifo), |case, (key, value)| match *key {
                QUEUE => case.with(QUEUE, &format!("{} B", u64::from(fifo) * 1_024)),
                key => case.with(key, value),
            })
        });
        sweep.row([name], cases);
    }
    sweep
}

fn buckets() -> Sweep<FifoCase> {
    let mut sweep = Sweep::new();
    for burst in BUCKETS {
        let cases = FIFOS.map(|fifo| {
            let case = case(PacingMethod::TokenBucket, fifo);
            burst.iter().fold(case, |case, burst| case.with("links.nic.forward.pacing.burst", burst))
        });
        sweep.row([burst.unwrap_or("62.5 kB (1 ms)")], cases);
    }
    sweep
}

/// A sender of the table of extensions: its name, and its transfer through a FIFO of so many kB.
pub fn modern() -> Vec<(String, [FifoCase; 5])> {
    let name = |pacer| match pacer {
        PacingMethod::None => "BIC, no limit".to_owned(),
        pacer => format!("BIC, {pacer}"),
    };
    let paced = PACED.into_iter().map(|pacer| (name(pacer), FIFOS.map(|fifo| case(pacer, fifo))));
    let stacks = MODERN.into_iter().map(|control| {
        let profile = if control == "farpace" { "farpace" } else { "modern" };
        // The first window and threshold of the profile; nothing of Linux 2.6.
        let sender =
            format!("{{ profile = \"{profile}\", congestion = \"{control}\", send_buffer = \"25 MB\" }}");
        let receiver = "{ profile = \"modern\", receive_buffer = \"25 MB\" }";
        let case = |fifo| {
            let case = case(PacingMethod::None, fifo).with("flows.bulk.sender", &sender);
            case.with("flows.bulk.receiver", receiver)
        };
        (format!("{control}, stack of today, no NIC pacing"), FIFOS.map(case))
    });
    paced.chain(stacks).collect()
}

/// All cases, each once.
pub fn cases() -> impl Iterator<Item = FifoCase> {
    let all = assumptions().cases().chain(buckets().cases()).collect::<Vec<_>>();
    let modern = modern().into_iter().flat_map(|(_, cases)| cases);
    all.into_iter().chain(modern).collect::<std::collections::BTreeSet<_>>().into_iter()
}

/// Goodput and losses of a transfer.
pub fn cell(m: &Measured<'_, PacingPaper>, case: &FifoCase) -> TableCell {
    let text = |t: &super::FifoTransfer| format!("{} / {}", number(t.goodput.iter().sum()), t.lost);
    m.transfer(case).map(text).into()
}

/// A table with a column of `cell` for each of `columns`.
fn table(m: &Measured<'_, PacingPaper>, title: &str, first: &str, columns: &[String]) -> Table {
    let mut table = Table::with(format!("{title}, transfers of {}", m.of.extension_time), first);
    columns.iter().for_each(|name| {
        table.column(name, "Mbit/s / lost");
    });
    table
}

/// The tables with their text.
pub fn sections(m: &Measured<'_, PacingPaper>, page: &mut Page) {
    let cell = |case: &FifoCase| cell(m, case);
    let fifos = FIFOS.map(|fifo| format!("{fifo} kB"));
    page.heading("What the paper leaves open").paragraph(
        "The paper does not say what its token bucket held. Table 5 tells. A full bucket lets twice of what \
         it holds pass at 1 Gbit/s, of which the line of 500 Mbit/s carries half: what the bucket held waits \
         in the FIFO. A FIFO of 1 MB overflowed in slow start, one of 4 MB did not: the bucket held between \
         1 and 4 MB. The least that 1 ms needs, 62.5 kB, overflows a FIFO of 16 kB alone.",
    );
    let title = "The token bucket by what it holds and by FIFO";
    page.table(&buckets().fill(table(m, title, "bucket", &fifos), cell));
    let places = PLACES.map(|(pacer, fifo)| format!("{pacer}, {fifo} kB"));
    let title = "Table 5 with other assumptions";
    page.table(&assumptions().fill(table(m, title, "assumption", &places), cell));
    page.heading("Beyond the paper").paragraph(
        "The same bottleneck with what a sender may have today: fq, a class that follows its connection, so \
         that nobody has to know the rate, and modern TCPs without pacing at the NIC. A class that follows \
         its connection has no bursts, but slow start goes on until something is lost: only who knows the \
         rate loses nothing.",
    );
    let mut sweep = Sweep::new();
    modern().into_iter().for_each(|(name, cases)| sweep.row([name.as_str()], cases));
    page.table(&sweep.fill(table(m, "Table 5 beyond the paper", "sender", &fifos), cell));
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Span;

    /// Breaks: a setting is refused in the middle of a long measurement, or changes nothing.
    #[test]
    fn every_case_has_a_scenario() {
        for case in cases() {
            let scenario =
                case.scenario(Span::from_secs(1), &crate::assumptions::WorldAssumptions::default());
            assert!(scenario.is_ok(), "{case}: {scenario:?}");
        }
        let all: Vec<FifoCase> = assumptions().cases().collect();
        let rows: Vec<&[FifoCase]> = all.chunks(PLACES.len()).collect();
        for (row, (name, _)) in rows.iter().zip(ASSUMPTIONS).skip(1) {
            assert!(row.iter().zip(rows[0]).all(|(one, base)| one != base), "{name}");
        }
    }
}
