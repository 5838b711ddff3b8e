//! Parameter sweeps over what the paper leaves open: filter, first interval and limit of STAR's estimator,
//! and the rate of access links.

use super::SatellitePaper;
use super::cases::{Ber, RouterQueue, SatelliteCase};
use crate::contender::Contender;
use crate::experiment::Measured;
use crate::sweep::Sweep;
use farpace_report::{Table, TableCell, cells};

/// Filters of bandwidth samples.
const FILTERS: [&str; 6] = ["none", "ewma-ack", "tustin", "westwood-plus", "tsw", "delivery-rate"];
/// Intervals taken for the first ACK; none: the round trip of the handshake.
const FIRST: [Option<&str>; 4] = [Some("1 us"), Some("1 ms"), Some("10 ms"), None];
/// Limits of the window, in bandwidth-delay products.
const CAPS: [Option<&str>; 2] = [None, Some("2.0")];
/// Bit error rates of the sweep over estimators.
const BERS: [Ber; 3] = [Ber::Zero, Ber::E7, Ber::E5];
/// Rates of the access links, in Mbit/s.
const ACCESS: [u32; 4] = [1_000, 100, 20, 10];

/// A single STAR flow by filter, first interval and limit.
pub fn estimators() -> Sweep<SatelliteCase> {
    let mut sweep = Sweep::new();
    for filter in FILTERS {
        for first in FIRST {
            for cap in CAPS {
                let of_cap = cap.map_or("none".to_owned(), |c| format!("{c} BDP"));
                let case = |ber| SatelliteCase::single(Contender::star(filter, first, cap), ber);
                sweep.row([filter, first.unwrap_or("handshake"), &of_cap], BERS.map(case));
            }
        }
    }
    sweep
}

/// Goodput of a single STAR flow for each setting.
pub fn estimator_table(m: &Measured<'_, SatellitePaper>) -> Table {
    let mut table =
        Table::with("STAR alone, one seed: filter x first interval x cap", "filter | first interval | cap");
    for ber in BERS {
        table.column(&format!("BER {}", ber.name()), "Mbit/s");
    }
    estimators().fill(table, |case| (m.flow_goodput(case, 0).mean, 2).into())
}

/// Two flows behind 15 kB without errors, by the rate of the access links.
pub fn bursts() -> Sweep<SatelliteCase> {
    let star = Contender::published("star");
    let senders = [star.clone(), star.paced(), Contender::published("tcp-j")];
    let mut sweep = Sweep::new();
    for access in ACCESS {
        let case = |sender: &Contender| {
            let pair = SatelliteCase::pair(sender.clone(), sender.clone(), Ber::Zero, RouterQueue::Small);
            SatelliteCase { access, ..pair }
        };
        sweep.row([&format!("{access} Mbit/s")], senders.each_ref().map(case));
    }
    sweep
}

/// How fast bursts reach the queue, and what follows.
pub fn burst_table(m: &Measured<'_, SatellitePaper>) -> Table {
    let unit = "Mbit/s (timeouts)";
    let table = Table::with(
        "Two flows together, queue 15 kB, BER 0: how fast bursts reach the queue",
        &format!("access link | STAR [{unit}] | STAR, paced [{unit}] | TCP-J [{unit}]"),
    );
    bursts().fill(table, |case| {
        let timeouts = m.over(case, |m| m.flows.iter().map(|f| f.timeouts as f64).sum());
        format!("{} ({:.0})", m.total(case).text(2), timeouts.mean).into()
    })
}

/// STAR alone, TCP-J alone, and both beside each other, all with the same filter.
fn filtered(filter: &str) -> [SatelliteCase; 3] {
    let [star, j] = ["star", "tcp-j"].map(|name| Contender::published(name).filtered(filter));
    let alone = |sender: &Contender| SatelliteCase::single(sender.clone(), Ber::E8);
    [alone(&star), alone(&j), SatelliteCase::pair(star, j, Ber::E8, RouterQueue::Large)]
}

/// The cases of [`filter_table`].
pub fn filters() -> Sweep<SatelliteCase> {
    let mut sweep = Sweep::new();
    FILTERS.iter().for_each(|filter| sweep.row([*filter], filtered(filter)));
    sweep
}

/// What a filter in both does to STAR and TCP-J. Neither paper prints one.
pub fn filter_table(m: &Measured<'_, SatellitePaper>) -> Table {
    let mut table = Table::with(
        "STAR and TCP-J at BER 1e-8: which filter",
        "filter of both | STAR alone [Mbit/s] | TCP-J alone [Mbit/s] | gain (paper +13.5) [%] | \
         beside each other, 625 kB [Mbit/s]",
    );
    for filter in FILTERS {
        let [star, j, both] = filtered(filter);
        let [of_star, of_j] = [star, j].map(|case| m.flow_goodput(&case, 0));
        let [first, second] = [0, 1].map(|flow| m.flow_goodput(&both, flow).mean);
        table.row(cells![
            filter,
            of_star.text(2),
            of_j.text(2),
            TableCell::signed((of_star.mean / of_j.mean - 1.0) * 100.0, 1),
            format!("{first:.2} / {second:.2}"),
        ]);
    }
    table
}
