//! The report: text, tables and figures.

use super::cases::{AckCase, AskPolicy, CEILING_KB, DelaySplit, SWEPT, TIME, sweep};
use super::published::{COLUMNS, PublishedPolicy, TABLE_1, TABLE_2};
use super::{MeasuredAcks, clocks};
use farpace_report::{
    ComparedEstimate, ComparisonRow, Figure, Level, Page, ReproductionClaim, Table, TableCell, TimeLine,
    cells, comparison, lines,
};

/// Bins of the rate over time, in seconds.
const BIN: f64 = 0.5;

/// The page between verdict and assumptions.
pub fn body(m: &MeasuredAcks<'_>, claims: &[ReproductionClaim], page: &mut Page) {
    page.paragraph(
        "A TCP receiver delays its ACKs, in the hope of one ACK for two segments: in BSD until the next tick \
         of 200 ms. The sender pays for it. Its window opens more slowly, a lone segment waits for the tick, \
         and the round trips it measures have the wait in them. The thesis lets the sender decide: a segment \
         with the CDL flag is acknowledged at once, and the ACK says so, which makes it a round trip without \
         the wait.",
    );
    page.paragraph(&format!(
        "Here the thesis' transfers of 10 s are made again in virtual time: {} runs. Every byte received was \
         compared with the byte sent.",
        m.count()
    ));
    let flag =
        [(AskPolicy::None, false), (AskPolicy::None, true), (AskPolicy::Rtt, false), (AskPolicy::Rtt, true)];
    let policies = AskPolicy::ALL.map(|policy| (policy, false));
    let [even, uneven] = DelaySplit::BOTH;
    page.heading("Gain and cost").table(&costs(m)).figure(&as_published(m));
    page.heading("CDL for the timed segment");
    for split in [even, uneven] {
        let title = format!("Table 5.1: CDL for the timed segment, {}", split.name());
        page.table(&against(m, &title, &TABLE_1, split == even, |row| row.case(split)));
    }
    over_time(m, page, &flag, even, 2);
    over_time(m, page, &flag, uneven, 3);
    page.heading("Policies").table(&second(m, even)).table(&second(m, uneven));
    over_time(m, page, &policies, even, 4);
    over_time(m, page, &policies, uneven, 5);
    page.heading("Four segments in flight").paragraph(
        "The thesis prints a window of 8760 B: six segments, which take 140 ms for a round trip, because \
         each is 23 ms on the line. But its sender, which times one segment after another, timed 104 in 10 \
         s: 96 ms each. That is a round trip with four segments in flight. A send buffer that is filled in \
         pieces of 2 kB would explain it. With four segments the numbers come close to the thesis', both \
         bytes and ACKs.",
    );
    let title = "Table 5.2 with four segments in flight instead of six, 25+25 ms";
    page.table(&against(m, title, &TABLE_2, true, |row| row.case(even).with_four_in_flight()));
    page.figure(&with_four(m)).heading("Claims").claims(claims);
    page.heading("Finer clocks").paragraph(
        "Chapter 6 proposes to measure round trips with the system's clock instead of a tick of 500 ms, and \
         to time out by it. It gives no numbers. In the table, SRTT is compared with the round trip that the \
         path alone takes for the newest segment of each ACK: all lines are first in, first out, so that it \
         can be computed. Without CDL the timeout is that of RFC 6298, with CDL the thesis' SRTT + 4 RTTVAR \
         of confirmed samples plus the longest delay seen of others. No least timeout is set.",
    );
    page.table(&clocks::table(m)).figure(&clocks::figure(m));
    if !m.of.quick {
        page.heading("What the thesis leaves open").table(&open_points(m));
    }
    page.heading("What the thesis' tables leave open").paragraph(
        "Bytes are 1460 times the segments sent in all rows without timestamps but the first of Table 5.1 \
         (561 kB for 394 segments), whose case is repeated in Table 5.2 (568 kB for 390). With timestamps a \
         segment has 1448 B of payload: 417 of them are 604 kB, not 616, and 390 are 565, not 570. The same \
         case (RTT, timestamps) asked 116 times by Table 5.1 and 266 times by Table 5.2, all other numbers \
         being equal. \"Dup ACK\" is the difference of segments and ACKs, but for one row: these are \
         segments that share an ACK, not duplicates. The text's \"10 to 20 %\" more ACKs are 17 to 62 % in \
         the tables.",
    );
}

/// The thesis' rows beside those measured. Its tables do not say which of the two paths they are of.
fn against(
    m: &MeasuredAcks<'_>,
    title: &str,
    rows: &[PublishedPolicy],
    paper: bool,
    case: impl Fn(&PublishedPolicy) -> AckCase,
) -> Table {
    let mut table = Table::with(title, "asks for | ");
    COLUMNS.iter().for_each(|(name, unit, ..)| {
        table.column(name, unit);
    });
    for row in rows {
        if paper && row.numbers.iter().any(Option::is_some) {
            let numbers = row.numbers.map(|n| n.map(|n| (n, 0)).into());
            table.row(cells![row.label(), "thesis"].into_iter().chain(numbers));
        }
        let measured = COLUMNS.map(|(.., of)| m.over(&case(row), of).range_text().into());
        table.row(cells![row.label(), "measured"].into_iter().chain(measured));
    }
    table
}

/// Table 5.2.
pub fn second(m: &MeasuredAcks<'_>, split: DelaySplit) -> Table {
    let title = format!("Table 5.2: policies, {}", split.name());
    against(m, &title, &TABLE_2, split == DelaySplit::Even, |row| row.case(split))
}

/// What each policy gains, and what it costs.
fn costs(m: &MeasuredAcks<'_>) -> Table {
    let mut table = Table::with("Gain and cost: mean (least-most) over the phases of the ticks", "asks for");
    for split in DelaySplit::BOTH {
        table.column(&format!("delivered, {}", split.name()), "kB").column("more than none", "kB");
    }
    table.column("ACKs", "per MB").column("more ACKs than none", "%");
    for policy in AskPolicy::ALL {
        let mut row = cells![policy.label()];
        for split in DelaySplit::BOTH {
            let gain = TableCell::signed(m.gain(split, policy), 1);
            row.extend(cells![m.delivered(split, policy).range_text(), gain]);
        }
        let more = TableCell::signed(m.more_acks(DelaySplit::Even, policy), 0);
        row.extend(cells![m.acks_per_mb(DelaySplit::Even, policy).range_text(), more]);
        table.row(row);
    }
    table
}

/// What policies deliver on the even path, for each value of what the thesis leaves open.
fn open_points(m: &MeasuredAcks<'_>) -> Table {
    let mut table = Table::with("What the thesis leaves open: delivered, 25+25 ms", "what | value");
    SWEPT.iter().for_each(|policy| {
        table.column(policy.label(), "kB");
    });
    table.column("CDL, RTT", "(thesis: 104)").column("drops, RTT + slow start", "packets");
    for (what, value, cases) in sweep() {
        let delivered = cases.each_ref().map(|c| m.over(c, |m| m.delivered).range_text().into());
        let [_, rtt, _, slow_start] = &cases;
        let asked = m.over(rtt, |m| m.asked).range_text();
        let dropped = m.over(slow_start, |m| m.dropped).range_text();
        table.row(cells![what, value].into_iter().chain(delivered).chain(cells![asked, dropped]));
    }
    table
}

/// Table 5.2 as a picture, with the cases that stand for its rows.
fn table_2_figure(
    m: &MeasuredAcks<'_>,
    title: &str,
    [file, caption]: [&str; 2],
    case: impl Fn(&PublishedPolicy) -> AckCase,
) -> Figure {
    let labels = TABLE_2.each_ref().map(PublishedPolicy::label);
    let rows: Vec<ComparisonRow<'_>> = TABLE_2
        .iter()
        .zip(&labels)
        .map(|(row, label)| {
            let measured = m.over(&case(row), |m| m.sent_kb);
            let paper = row.numbers[0].map(|mean| ComparedEstimate { mean, range: None });
            let measured = measured.mean.is_finite().then(|| measured.with_range());
            ComparisonRow { label, values: [paper, measured] }
        })
        .collect();
    comparison(title, "payload sent (kB)", &rows).figure(file, caption)
}

fn as_published(m: &MeasuredAcks<'_>) -> Figure {
    let text = [
        "figures/table-5-2.svg",
        "The thesis' Table 5.2 and what is measured here at 25+25 ms: the mean over the phases of the ticks, \
         the least and the most. The line carries 623 kB.",
    ];
    table_2_figure(m, "Payload sent in 10 s, by policy", text, |row| row.case(DelaySplit::Even))
}

fn with_four(m: &MeasuredAcks<'_>) -> Figure {
    let text = [
        "figures/table-5-2-four.svg",
        "Table 5.2 again, with a receive window of four segments instead of the six that the thesis prints.",
    ];
    let title = "The same with four segments in flight";
    table_2_figure(m, title, text, |row| row.case(DelaySplit::Even).with_four_in_flight())
}

/// Seconds, and a value.
type XyPoint = (f64, f64);

/// Payload behind a full line, and its rate: figures of the first phase.
fn over_time(
    m: &MeasuredAcks<'_>,
    page: &mut Page,
    rows: &[(AskPolicy, bool)],
    split: DelaySplit,
    number: u32,
) {
    let names: Vec<String> = rows
        .iter()
        .map(|(policy, ts)| format!("{}{}", policy.label(), if *ts { ", timestamps" } else { "" }))
        .collect();
    let curves = |of: &dyn Fn(&[XyPoint]) -> Vec<XyPoint>| -> Vec<TimeLine<'_>> {
        let line = |(row, label): (&(AskPolicy, bool), _)| {
            let run = m.first(&AckCase::new(split, row.0, row.1));
            TimeLine { label, points: run.map(|m| of(&m.curve)).unwrap_or_default() }
        };
        rows.iter().zip(names.iter().map(String::as_str)).map(line).collect()
    };
    let behind = curves(&|curve| {
        let ceiling = |t: f64| CEILING_KB * t / TIME.as_secs_f64();
        curve.iter().map(|(t, kb)| (*t, (ceiling(*t) - kb).max(0.0))).collect()
    });
    let title = format!("Behind a full line, {}", split.name());
    page.figure(&lines(&title, "payload behind a full line (kB)", &behind, None).figure(
        &format!("figures/fig5-{number}-behind.svg"),
        &format!(
            "Payload delivered since connecting, less than what a full line would have delivered by then: \
             lower is better, and a level stretch is a full line. One phase (the thesis' Fig. 5.{number}, \
             which draws the payload itself).",
        ),
    ));
    let full = Level { label: "full line", value: CEILING_KB * 8.0 / TIME.as_secs_f64() };
    let title = format!("Rate, {}", split.name());
    page.figure(&lines(&title, "kbit/s in bins of 0.5 s", &curves(&rates), Some(&full)).figure(
        &format!("figures/fig5-{number}-rate.svg"),
        &format!("The same transfers: payload delivered per time (the thesis' Fig. 5.{number})."),
    ));
}

/// Payload per time in bins, as (begin, kbit/s), to the end.
fn rates(curve: &[XyPoint]) -> Vec<XyPoint> {
    let at = |t: f64| curve.iter().take_while(|p| p.0 <= t + 1e-9).last().map_or(0.0, |p| p.1);
    let bins = (TIME.as_secs_f64() / BIN).round() as u32;
    let rate = |n: u32| {
        let from = f64::from(n) * BIN;
        (from, (at(from + BIN) - at(from)) * 8.0 / BIN)
    };
    // The last value holds until the end.
    let end = (TIME.as_secs_f64(), rate(bins.saturating_sub(1)).1);
    if curve.is_empty() { Vec::new() } else { (0..bins).map(rate).chain([end]).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the curves of rates: 50 kB each half a second are 800 kbit/s.
    #[test]
    fn rates_are_differences() {
        let curve: Vec<(f64, f64)> = (0..=500).map(|n| (f64::from(n) * 0.02, f64::from(n) * 2.0)).collect();
        let rates = rates(&curve);
        assert_eq!((rates.len(), rates[3].0, rates[20].0), (21, 1.5, 10.0));
        assert!(rates.iter().all(|(_, kbit)| (kbit - 800.0).abs() < 1e-6), "{rates:?}");
    }
}
