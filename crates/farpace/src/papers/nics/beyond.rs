//! Tables of other sets of cards and other orders.

use super::case::{Case, Measured};
use super::results::Results;
use super::sets::{JITTERED, Receiver, Set, TCPS};
use crate::statistics::jain;
use farpace_report::{Table, TableCell, TableColumn};

/// What one transfer reaches of the sum of what the lines carry, in percent; NaN if it was not measured.
pub fn share(results: &Results, set: &Set, case: &Case) -> f64 {
    results.goodput(case) * 100.0 / set.payload()
}

/// All sets that were measured, those with jitter too.
pub fn sets(results: &Results) -> impl Iterator<Item = &Set> {
    let jittered = if results.plan.is_quick() { &[][..] } else { &JITTERED };
    results.plan.sets.iter().chain(jittered)
}

/// Sets by orders: the share of the sum, and what was sent again for nothing.
pub fn orders(results: &Results, receiver: Receiver) -> Table {
    let title = match receiver {
        Receiver::Stock => {
            "One transfer, receivers as they are: share of the sum in % (sent again for nothing in %)"
        }
        Receiver::Resequences => "The same, the receiving host puts frames in order",
    };
    let mut columns = vec![TableColumn::text("cards")];
    columns.extend(results.plan.orders.iter().map(|order| TableColumn::number(order, "")));
    columns.push(TableColumn::number("widest alone", ""));
    let mut table = Table::new(title, columns);
    for set in sets(results) {
        let mut row: Vec<TableCell> = vec![set.name.into()];
        row.extend(results.plan.orders.iter().map(|order| {
            let case = set.case(order, receiver);
            let share = share(results, set, &case);
            let text = |m: &Measured| format!("{share:.1} ({})", percent(m.spurious_percent()));
            TableCell::from(results.case(&case).map(text))
        }));
        row.push(TableCell::Number(share(results, set, &set.single()), Some(1)));
        table.row(row);
    }
    table
}

fn percent(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.095 => format!("{v:.3}"),
        v => format!("{v:.1}"),
    }
}

/// `earliest` in detail.
pub fn earliest(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("cards"),
        TableColumn::text("receiver"),
        TableColumn::number("sum of the lines", "Mbit/s"),
        TableColumn::number("goodput", "Mbit/s"),
        TableColumn::number("sent again", "segments"),
        TableColumn::number("for nothing", "segments"),
        TableColumn::number("timeouts", ""),
        TableColumn::number("delay above the least", "ms, mean"),
        TableColumn::number("in 99 %", "ms"),
        TableColumn::number("delay of the widest alone", "ms, mean"),
    ];
    let mut table = Table::new("The order \"earliest\" in detail", columns);
    for set in sets(results) {
        for receiver in Receiver::BOTH {
            let Some(m) = results.case(&set.case("earliest", receiver)) else { continue };
            let number = |value: f64| TableCell::Number(value, Some(2));
            table.row(vec![
                set.name.into(),
                receiver.id().into(),
                TableCell::Number(set.payload(), Some(1)),
                TableCell::Number(m.total(), Some(1)),
                m.resent.into(),
                m.again.into(),
                m.timeouts.into(),
                number(m.delay[0]),
                number(m.delay[1]),
                number(results.of(&set.single(), |m| m.delay[0])),
            ]);
        }
    }
    table
}

/// `earliest` with TCPs that take other things for a loss.
pub fn tcps(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("cards"), TableColumn::number("modern", "")];
    columns.extend(TCPS.map(|profile| TableColumn::number(profile, "")));
    let title =
        "The order \"earliest\" under other TCPs: share of the sum in % (sent again for nothing in %)";
    let mut table = Table::new(title, columns);
    for set in results.plan.sets.iter().filter(|set| results.case(&set.tcp(TCPS[0])).is_some()) {
        let cases = [set.case("earliest", Receiver::Stock)].into_iter().chain(TCPS.map(|tcp| set.tcp(tcp)));
        let mut row: Vec<TableCell> = vec![set.name.into()];
        row.extend(cases.map(|case| {
            let share = share(results, set, &case);
            let text = |m: &Measured| format!("{share:.1} ({})", percent(m.spurious_percent()));
            TableCell::from(results.case(&case).map(text))
        }));
        table.row(row);
    }
    table
}

/// Two transfers at once, and datagrams.
pub fn others(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("cards"),
        TableColumn::number("two transfers, of the sum", "%"),
        TableColumn::number("each", "Mbit/s"),
        TableColumn::number("Jain's index", ""),
        TableColumn::number("datagrams, of the sum", "%"),
        TableColumn::number("out of order", "%"),
    ];
    let mut table =
        Table::new("The order \"earliest\": two transfers with resequencing, and datagrams", columns);
    for set in &results.plan.sets {
        let two = results.case(&set.two("earliest", Receiver::Resequences));
        let udp = results.case(&set.udp("earliest"));
        let (Some(two), Some(udp)) = (two, udp) else { continue };
        let each: Vec<String> = two.goodput.iter().map(|g| format!("{g:.1}")).collect();
        table.row(vec![
            set.name.into(),
            TableCell::Number(two.total() * 100.0 / set.payload(), Some(1)),
            each.join(" / ").into(),
            TableCell::Number(jain(&two.goodput), Some(3)),
            TableCell::Number(udp.udp.unwrap_or(f64::NAN) * 100.0 / set.datagrams(), Some(1)),
            percent(udp.late * 100.0).into(),
        ]);
    }
    table
}
