//! What came of flows of datagrams: in the summary, and as a table.

use farpace_lab::DatagramOutcome;
use farpace_lab::scenario::DatagramFlow;
use farpace_report::{Table, TableCell, TableColumn};
use serde::Serialize;

/// A flow of datagrams.
#[derive(Clone, Debug, Serialize)]
pub struct DatagramSummary {
    /// Its name.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received, duplicates included. Those under way at the end of the run are not among them.
    pub received: u64,
    /// Payload received.
    pub received_bytes: u64,
    /// Of those received: arrived after one that was sent later, or for the second time.
    pub late: u64,
}

impl DatagramSummary {
    /// Sums up.
    pub fn new(flow: &DatagramFlow, outcome: &DatagramOutcome) -> Self {
        DatagramSummary {
            name: outcome.name.clone(),
            from: flow.from.clone(),
            to: flow.to.clone(),
            sent: outcome.sent,
            received: outcome.received,
            received_bytes: outcome.bytes.get(),
            late: outcome.late,
        }
    }
}

/// One row per flow of datagrams.
pub fn table(datagrams: &[DatagramSummary]) -> Table {
    let columns = vec![
        TableColumn::text("flow"),
        TableColumn::text("from"),
        TableColumn::text("to"),
        TableColumn::number("sent", "datagrams"),
        TableColumn::number("received", "datagrams"),
        TableColumn::number("payload", "MB"),
        TableColumn::number("late or twice", "datagrams"),
    ];
    let mut table = Table::new("Datagrams", columns);
    for d in datagrams {
        table.row(vec![
            d.name.as_str().into(),
            d.from.as_str().into(),
            d.to.as_str().into(),
            d.sent.into(),
            d.received.into(),
            TableCell::Number(d.received_bytes as f64 / 1e6, Some(3)),
            d.late.into(),
        ]);
    }
    table
}
