//! What has come of a network in real time.

use crate::watch::{Metered, RealtimeWatch};
use farpace_live::Driver;
use farpace_path::world::World;
use farpace_report::{Table, TableColumn, number};
use farpace_units::{Rate, Span};
use serde::Serialize;
use std::path::PathBuf;

/// Packets that leave later than this, more than one in a hundred of them, are those of a machine that is too
/// slow.
const LATE: Span = Span::from_millis(1);

/// The summary of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RealtimeSummary {
    /// How long it ran.
    pub seconds: f64,
    /// Each direction of each link.
    pub directions: Vec<DirectionSummary>,
    /// What was dropped by the network, as it was told to.
    pub drops: Vec<Drops>,
    /// How late packets left.
    pub accuracy: Accuracy,
    /// Captures that were written.
    pub captures: Vec<String>,
}

/// One direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionSummary {
    /// The link.
    pub link: String,
    /// From where to where.
    pub direction: String,
    /// Packets that went in.
    pub packets_in: u64,
    /// Their bytes, with Ethernet headers.
    pub bytes_in: u64,
    /// Packets that came out.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// What came out, over the time from the first packet to the last.
    pub mean_bit_s: u64,
    /// The most that came out in a bin.
    pub peak_bit_s: u64,
}

/// Packets that one element dropped.
#[derive(Clone, Debug, Serialize)]
pub struct Drops {
    /// The element.
    pub place: String,
    /// Why.
    pub cause: &'static str,
    /// How many.
    pub packets: u64,
}

/// How late packets left, by the clock: the honest accuracy of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    /// Packets that left.
    pub packets: u64,
    /// Half of them were late by no more.
    pub median_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1000.
    pub p999_us: f64,
    /// The latest.
    pub most_us: f64,
    /// Packets dropped because an interface took no more, or refused them: these drops are not of the
    /// network.
    pub lost_by_devices: u64,
    /// The machine was too slow: the results are not those of the network.
    pub overloaded: bool,
}

/// All that elements of a world have dropped.
pub(super) fn drops(world: &World) -> Vec<Drops> {
    let of = |id| {
        let drops = world.ledger(id).into_iter().flat_map(|ledger| ledger.drops());
        let place = world.name(id).to_owned();
        drops.map(move |(cause, packets)| Drops { place: place.clone(), cause: cause.name(), packets })
    };
    world.ids().flat_map(of).collect()
}

impl RealtimeSummary {
    pub(super) fn new(driver: &Driver, watch: &RealtimeWatch, lasted: Span, captures: Vec<PathBuf>) -> Self {
        let late = driver.lateness();
        let us = |span: Span| span.as_nanos() as f64 / 1e3;
        let stats = driver.stats();
        let lost_by_devices = stats.queue_full
            + stats.devices.iter().map(|device| device.refused + device.overflowed).sum::<u64>();
        RealtimeSummary {
            seconds: lasted.as_secs_f64(),
            directions: watch.directions().iter().map(direction).collect(),
            drops: drops(driver.world()),
            accuracy: Accuracy {
                packets: late.count(),
                median_us: us(late.quantile(0.5)),
                p99_us: us(late.quantile(0.99)),
                p999_us: us(late.quantile(0.999)),
                most_us: us(late.max()),
                lost_by_devices,
                overloaded: lost_by_devices > 0 || late.quantile(0.99) > LATE,
            },
            captures: captures.iter().map(|path| path.display().to_string()).collect(),
        }
    }

    /// As people read it, on a terminal with `width` columns if there is one.
    pub fn text(&self, width: Option<usize>) -> String {
        let columns = vec![
            TableColumn::text("link"),
            TableColumn::text("direction"),
            TableColumn::number("in", "packets"),
            TableColumn::number("out", "packets"),
            TableColumn::number("mean out", "Mbit/s"),
            TableColumn::number("peak out", "Mbit/s"),
        ];
        let mut table = Table::new("Traffic", columns);
        for d in &self.directions {
            table.row(vec![
                d.link.as_str().into(),
                d.direction.as_str().into(),
                d.packets_in.to_string().into(),
                d.packets_out.to_string().into(),
                number(d.mean_bit_s as f64 / 1e6).into(),
                number(d.peak_bit_s as f64 / 1e6).into(),
            ]);
        }
        let mut text = table.to_text_for(width);
        if !self.drops.is_empty() {
            let columns = vec![
                TableColumn::text("place"),
                TableColumn::text("cause"),
                TableColumn::number("dropped", "packets"),
            ];
            let mut table = Table::new("Drops", columns);
            for drop in &self.drops {
                table.row(vec![
                    drop.place.as_str().into(),
                    drop.cause.into(),
                    drop.packets.to_string().into(),
                ]);
            }
            text = text + "\n" + &table.to_text_for(width);
        }
        let a = &self.accuracy;
        text += &format!(
            "\nIn {:.1} s {} packets left, late by {:.1} us (median), {:.1} us (99 %), {:.0} us (most).\n",
            self.seconds, a.packets, a.median_us, a.p99_us, a.most_us
        );
        for capture in &self.captures {
            text += &format!("Written: {capture}\n");
        }
        text
    }
    /// What is to be said if the run is not what it seems.
    pub fn warning(&self) -> Option<String> {
        let a = &self.accuracy;
        if a.lost_by_devices > 0 {
            return Some(format!(
                "warning: interfaces did not take {} packets: these losses are not of the network that was \
                 asked for",
                a.lost_by_devices
            ));
        }
        a.overloaded.then(|| {
            format!(
                "warning: this machine was too slow: one packet in a hundred left more than {:.1} ms late; \
                 --wait spin, a lower rate, or fewer programs beside it may help",
                a.p99_us / 1e3
            )
        })
    }
}

fn direction(metered: &Metered) -> DirectionSummary {
    let (entered, left) = (metered.entered.total(), metered.left.total());
    let bins = metered.left.bins();
    let width = metered.left.width();
    let first = bins.iter().position(|bin| bin.packets > 0).unwrap_or(bins.len());
    let lasted = width * (bins.len() - first) as u64;
    let max = bins.iter().map(|bin| bin.bytes).max().unwrap_or_default();
    DirectionSummary {
        link: metered.link.clone(),
        direction: metered.name.clone(),
        packets_in: entered.packets,
        bytes_in: entered.bytes.get(),
        packets_out: left.packets,
        bytes_out: left.bytes.get(),
        mean_bit_s: Rate::of(left.bytes, lasted).bits_per_sec(),
        peak_bit_s: Rate::of(max, width).bits_per_sec(),
    }
}
