//! What the paper leaves open about STAR's estimator, turned one by one: filter, first interval, cap.

use super::results::Results;
use crate::grid::{Ber, Contender, Satellite};
use farpace_report::{Cell, Column, Table};

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

/// All of its cells.
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
    let mut columns = vec![Column::text("filter"), Column::text("first interval"), Column::text("cap")];
    columns.extend(BERS.map(|ber| Column::number(&format!("BER {}", ber.name()), "Mbit/s")));
    let mut table = Table::new("STAR alone, one seed: filter x first interval x cap", columns);
    for filter in FILTERS {
        for first in FIRST {
            for cap in CAPS {
                let goodput = BERS.map(|ber| {
                    let mean = results.cell(&cell(filter, first, cap, ber)).goodput(0).mean;
                    if mean.is_finite() { Cell::Number(mean, Some(2)) } else { Cell::Missing }
                });
                let mut row: Vec<Cell> = vec![
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
