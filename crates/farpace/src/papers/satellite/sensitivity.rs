//! What the paper leaves open, turned one by one: filter, first interval and cap of STAR's estimator; how fast senders
//! reach the router.

use super::results::Results;
use crate::grid::{Ber, Contender, Queue, Satellite};
use farpace_report::{Table, TableCell, TableColumn};

/// Filters of the bandwidth samples.
const FILTERS: [&str; 6] = ["none", "ewma-ack", "tustin", "westwood-plus", "tsw", "delivery-rate"];
/// Intervals taken for the first ACK; none: the round trip of the handshake.
const FIRST: [Option<&str>; 4] = [Some("1 us"), Some("1 ms"), Some("10 ms"), None];
/// Caps of the window, in bandwidth-delay products.
const CAPS: [Option<&str>; 2] = [None, Some("2.0")];
/// Where.
pub const BERS: [Ber; 3] = [Ber::Zero, Ber::E7, Ber::E5];

fn cell(filter: &str, first: Option<&str>, cap: Option<&str>, ber: Ber) -> Satellite {
    Satellite::single(Contender::star(filter, first, cap), ber)
}

/// Rates of the access links, Mbit/s.
const ACCESS: [u32; 4] = [1_000, 100, 20, 10];

fn senders() -> [(&'static str, Contender); 3] {
    let star = Contender::paper("star");
    [("STAR", star.clone()), ("STAR, paced", star.paced()), ("TCP-J", Contender::paper("tcp-j"))]
}

fn burst(sender: Contender, access: u32) -> Satellite {
    Satellite { access, ..Satellite::pair(sender.clone(), sender, Ber::Zero, Queue::Small) }
}

/// Cells of [`bursts`].
pub fn burst_cells() -> Vec<Satellite> {
    let of = |access: u32| senders().map(|(_, sender)| burst(sender, access));
    ACCESS.into_iter().flat_map(of).collect()
}

/// Two flows behind 15 kB without errors, by the rate at which their bursts reach the queue.
pub fn bursts(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("access link")];
    columns.extend(senders().map(|(name, _)| TableColumn::number(name, "Mbit/s (timeouts)")));
    let mut table =
        Table::new("Two flows together, queue 15 kB, BER 0: how fast bursts reach the queue", columns);
    for access in ACCESS {
        let mut row: Vec<TableCell> = vec![format!("{access} Mbit/s").into()];
        row.extend(senders().map(|(_, sender)| {
            let runs = results.cell(&burst(sender, access));
            let timeouts = runs.over(|m| m.flows.iter().map(|f| f.timeouts as f64).sum());
            format!("{} ({:.0})", runs.total().text(2), timeouts.mean).into()
        }));
        table.row(row);
    }
    table
}

/// STAR alone, TCP-J alone, and both beside each other, all with the same filter.
fn filtered(filter: &str) -> [Satellite; 3] {
    let [star, j] = ["star", "tcp-j"].map(|name| Contender::paper(name).filtered(filter));
    let alone = |sender: &Contender| Satellite::single(sender.clone(), Ber::E8);
    [alone(&star), alone(&j), Satellite::pair(star, j, Ber::E8, Queue::Large)]
}

/// Cells of [`filters`].
pub fn filter_cells() -> Vec<Satellite> {
    FILTERS.into_iter().flat_map(filtered).collect()
}

/// What a filter in both does to STAR and TCP-J: neither paper prints one.
pub fn filters(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("filter of both"),
        TableColumn::number("STAR alone", "Mbit/s"),
        TableColumn::number("TCP-J alone", "Mbit/s"),
        TableColumn::number("gain (paper +13.5)", "%"),
        TableColumn::number("beside each other, 625 kB", "Mbit/s"),
    ];
    let mut table = Table::new("STAR and TCP-J at BER 1e-8: which filter", columns);
    for filter in FILTERS {
        let [star, j, both] = filtered(filter).map(|c| results.cell(&c));
        let gain = (star.goodput(0).mean / j.goodput(0).mean - 1.0) * 100.0;
        table.row(vec![
            filter.into(),
            star.goodput(0).text(2).into(),
            j.goodput(0).text(2).into(),
            if gain.is_finite() { format!("{gain:+.1}").into() } else { TableCell::Missing },
            format!("{:.2} / {:.2}", both.goodput(0).mean, both.goodput(1).mean).into(),
        ]);
    }
    table
}

/// Cells of [`table`].
pub fn cells() -> Vec<Satellite> {
    let mut cells = Vec::new();
    for filter in FILTERS {
        for first in FIRST {
            for cap in CAPS {
                cells.extend(BERS.map(|ber| cell(filter, first, cap, ber)));
            }
        }
    }
    cells
}

/// Goodput of a single STAR flow for each setting, one seed.
pub fn table(results: &Results) -> Table {
    let mut columns =
        vec![TableColumn::text("filter"), TableColumn::text("first interval"), TableColumn::text("cap")];
    columns.extend(BERS.map(|ber| TableColumn::number(&format!("BER {}", ber.name()), "Mbit/s")));
    let mut table = Table::new("STAR alone, one seed: filter x first interval x cap", columns);
    for filter in FILTERS {
        for first in FIRST {
            for cap in CAPS {
                let goodput = BERS.map(|ber| {
                    let mean = results.cell(&cell(filter, first, cap, ber)).goodput(0).mean;
                    if mean.is_finite() { TableCell::Number(mean, Some(2)) } else { TableCell::Missing }
                });
                let mut row: Vec<TableCell> = vec![
                    filter.into(),
                    first.unwrap_or("handshake").into(),
                    cap.map_or("none".to_owned(), |c| format!("{c} BDP")).into(),
                ];
                row.extend(goodput);
                table.row(row);
            }
        }
    }
    table
}

/// True if these runs were made.
pub fn measured(results: &Results) -> bool {
    cells().iter().any(|c| !results.cell(c).0.is_empty())
}
