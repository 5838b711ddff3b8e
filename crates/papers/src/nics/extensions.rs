//! Tables of other sets of NICs, other send orders and other TCPs.

use super::MeasuredNics;
use super::cases::NicsCase;
use super::sets::{NicSet, ReceivingHost, TCPS};
use super::striped::StripedRun;
use crate::statistics::jain;
use farpace_report::{Table, TableCell, cells};

/// The share of the sum, and spurious retransmissions.
fn share(m: &MeasuredNics<'_>, set: &NicSet, case: &NicsCase) -> TableCell {
    let share = m.share(set, case);
    m.first(case).map(|run| format!("{share:.1} ({})", percent(run.spurious_percent()))).into()
}

fn percent(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.095 => format!("{v:.3}"),
        v => format!("{v:.1}"),
    }
}

/// A row per set, a column for each of `heads`.
fn by_set<'a>(
    title: &str,
    heads: &[&str],
    sets: impl Iterator<Item = &'a NicSet>,
    cells: impl Fn(&NicSet) -> Vec<TableCell>,
) -> Table {
    let mut table = Table::with(title, "NICs");
    heads.iter().for_each(|head| {
        table.column(head, "");
    });
    for set in sets {
        table.row([set.name.into()].into_iter().chain(cells(set)));
    }
    table
}

/// Sets by send orders.
pub fn orders(m: &MeasuredNics<'_>, receiver: ReceivingHost) -> Table {
    let title = match receiver {
        ReceivingHost::Stock => {
            "One transfer, receivers as they are: share of the sum in % (sent again for nothing in %)"
        }
        ReceivingHost::Resequences => "The same, the receiving host puts frames in order",
    };
    let heads = [&m.of.orders[..], &["widest alone"]].concat();
    by_set(title, &heads, m.of.all_sets(), |set| {
        let cells = m.of.orders.iter().map(|order| share(m, set, &set.case(order, receiver)));
        cells.chain([(m.share(set, &set.single()), 1).into()]).collect()
    })
}

/// `earliest` with TCPs that take other things for a loss; without rows if these were not measured.
pub fn tcps(m: &MeasuredNics<'_>) -> Table {
    let heads = [&["modern"], &TCPS[..]].concat();
    let sets = m.of.sets.iter().filter(|set| m.has(&set.tcp(TCPS[0])));
    let title =
        "The order \"earliest\" under other TCPs: share of the sum in % (sent again for nothing in %)";
    by_set(title, &heads, sets, |set| {
        let stock = set.case("earliest", ReceivingHost::Stock);
        let cases = [stock].into_iter().chain(TCPS.map(|tcp| set.tcp(tcp)));
        cases.map(|case| share(m, set, &case)).collect()
    })
}

/// `earliest` in detail.
pub fn earliest(m: &MeasuredNics<'_>) -> Table {
    let mut table = Table::with(
        "The order \"earliest\" in detail",
        "NICs | receiver | sum of the lines [Mbit/s] | goodput [Mbit/s] | sent again [segments] | \
         for nothing [segments] | timeouts [] | delay above the least [ms, mean] | in 99 % [ms] | \
         delay of the widest alone [ms, mean]",
    );
    for set in m.of.all_sets() {
        for receiver in ReceivingHost::BOTH {
            let Some(run) = m.first(&set.case("earliest", receiver)) else { continue };
            let StripedRun { resent, spurious, timeouts, delay: [mean, high], .. } = *run;
            let alone = m.of_first(&set.single(), |m| m.delay[0]);
            let (sum, goodput) = ((set.payload(), 1), (run.total(), 1));
            let delays = [(mean, 2), (high, 2), (alone, 2)];
            let counts = cells![set.name, receiver.id(), sum, goodput, resent, spurious, timeouts];
            table.row(counts.into_iter().chain(delays.map(TableCell::from)));
        }
    }
    table
}

/// Two transfers at once, and datagrams; without rows if these were not measured.
pub fn others(m: &MeasuredNics<'_>) -> Table {
    let mut table = Table::with(
        "The order \"earliest\": two transfers with resequencing, and datagrams",
        "NICs | two transfers, of the sum [%] | each [Mbit/s] | Jain's index [] | datagrams, of the sum [%] \
         | out of order [%]",
    );
    for set in &m.of.sets {
        let two = m.first(&set.two("earliest", ReceivingHost::Resequences));
        let (Some(two), Some(udp)) = (two, m.first(&set.udp("earliest"))) else { continue };
        let each: Vec<String> = two.goodput.iter().map(|g| format!("{g:.1}")).collect();
        table.row(cells![
            set.name,
            (two.total() * 100.0 / set.payload(), 1),
            each.join(" / "),
            (jain(&two.goodput), 3),
            (udp.udp.unwrap_or(f64::NAN) * 100.0 / set.datagrams(), 1),
            percent(udp.late * 100.0),
        ]);
    }
    table
}
