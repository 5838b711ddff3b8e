//! What came of hosts with several NICs: in the summary, and as a table.

use farpace_lab::{NicOutcome, NicsOutcome};
use farpace_report::{Table, TableCell, TableColumn};
use serde::Serialize;
use std::collections::BTreeMap;

/// A host with several NICs.
#[derive(Clone, Debug, Serialize)]
pub struct NicsSummary {
    /// The host.
    pub host: String,
    /// Its NICs, in order.
    pub nics: Vec<NicSummary>,
    /// Frames dropped above the NICs.
    pub dropped: u64,
    /// Readings of what makes the NICs one.
    pub readings: BTreeMap<&'static str, String>,
}

/// One NIC.
#[derive(Clone, Debug, Serialize)]
pub struct NicSummary {
    /// `nic0`, `nic1`, ...
    pub name: String,
    /// Its link.
    pub link: String,
    /// The rate of that link, away from the host.
    #[serde(rename = "rate_bit_s")]
    pub rate: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Their bytes, without check sequences.
    pub sent_bytes: u64,
    /// Frames that came out of its link.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
}

impl NicsSummary {
    /// Sums up.
    pub fn new(outcome: &NicsOutcome) -> Self {
        NicsSummary {
            host: outcome.host.clone(),
            nics: outcome.nics.iter().map(NicSummary::new).collect(),
            dropped: outcome.dropped,
            readings: outcome.readings.iter().cloned().collect(),
        }
    }
}

impl NicSummary {
    fn new(outcome: &NicOutcome) -> Self {
        NicSummary {
            name: outcome.name.clone(),
            link: outcome.link.clone(),
            rate: outcome.rate.bits_per_sec(),
            sent_frames: outcome.sent,
            sent_bytes: outcome.sent_bytes.get(),
            received_frames: outcome.received,
            received_bytes: outcome.received_bytes.get(),
        }
    }
}

/// One row per NIC.
pub fn table(nics: &[NicsSummary]) -> Table {
    let columns = vec![
        TableColumn::text("host"),
        TableColumn::text("NIC"),
        TableColumn::text("link"),
        TableColumn::number("rate", "Mbit/s"),
        TableColumn::number("sent", "frames"),
        TableColumn::number("sent", "MB"),
        TableColumn::number("share", "%"),
        TableColumn::number("received", "frames"),
        TableColumn::number("received", "MB"),
    ];
    let mut table = Table::new("NICs", columns);
    for host in nics {
        let all: u64 = host.nics.iter().map(|nic| nic.sent_frames).sum();
        let mb = |bytes: u64| TableCell::Number(bytes as f64 / 1e6, Some(3));
        for nic in &host.nics {
            let share =
                (all > 0).then(|| TableCell::Number(nic.sent_frames as f64 * 100.0 / all as f64, Some(1)));
            table.row(vec![
                host.host.as_str().into(),
                nic.name.as_str().into(),
                nic.link.as_str().into(),
                TableCell::Number(nic.rate as f64 / 1e6, Some(1)),
                nic.sent_frames.into(),
                mb(nic.sent_bytes),
                share.unwrap_or(TableCell::Missing),
                nic.received_frames.into(),
                mb(nic.received_bytes),
            ]);
        }
    }
    table
}
