//! `farpace nics order`: in which order frames leave and arrive.

use super::path_spec::{self, PathSpec};
use crate::terminal;
use anyhow::{Result, bail};
use clap::ValueEnum;
use farpace_link::multi_nic::{
    MAX_NICS, MultiNicConfig, NicPath, NicPaths, NicSpec, OrderKind, PathDelay, PredictedDeparture, Ratio,
    predict, skip_number,
};
use farpace_link::pacing::wire_len;
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{MacAddr, NicKind};
use serde_json::json;
use std::process::ExitCode;

/// Rows of the table that are shown, unless all are asked for.
const SHOWN: usize = 40;
/// Frames that a TCP without patience takes for a loss, if they arrive before one.
const DUPLICATE_ACKS: usize = 3;

const AFTER_HELP: &str = "\
All frames are present at the start, and belong to one flow. Each path is a series of --hops links of its \
rate, and its delay. The lateness of a frame is the number of later frames that arrive before it. From 3 \
on, a TCP that counts duplicate ACKs retransmits it.

Examples:
  farpace nics order --paths 1G,100M
  farpace nics order --paths 1G,100M --order round-robin
  farpace nics order --paths 1G,100M --order skip --skip 4 --ratio 75/25 --frames 16
  farpace nics order --paths \"80 Mbit/s@20 ms,180 Mbit/s@45 ms\" --hops 1 --json";

/// The arguments of `farpace nics order`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The paths: rate, and delay if there is one, like 1G,100M or "80 Mbit/s@20 ms"
    #[arg(long, alias = "ways", value_name = "PATHS", value_delimiter = ',', value_parser = path_spec::path, required = true)]
    paths: Vec<PathSpec>,
    /// Selection of the next frame and its NIC
    #[arg(long, value_name = "ORDER", value_enum, default_value = "earliest")]
    order: OrderName,
    /// With skip: the skip number S [default: computed from the paths]
    #[arg(long, value_name = "S")]
    skip: Option<u16>,
    /// With skip and round-robin: the share of each NIC, like 90/10 [default: what the paths carry]
    #[arg(long, value_name = "RATIO")]
    ratio: Option<Ratio>,
    /// Lines that a frame passes one after the other: 2 with one switch
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    hops: u8,
    /// How many frames
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=200_000))]
    frames: u64,
    /// Length of the IP packet in each frame
    #[arg(long, value_name = "BYTES", default_value = "1500 B")]
    packet: ByteCount,
    /// Show all frames, not the first 40
    #[arg(long)]
    all: bool,
    /// Print JSON with all frames (docs/json.md)
    #[arg(long)]
    json: bool,
}

/// The orders, as words of the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderName(pub(super) OrderKind);

impl ValueEnum for OrderName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [OrderName; OrderKind::ALL.len()] = {
            let mut all = [OrderName(OrderKind::Earliest); OrderKind::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = OrderName(OrderKind::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }
    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

/// `farpace nics order`.
///
/// # Errors
/// Too many paths, a packet that no frame holds, or a ratio for other NICs than there are.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.paths.len() > MAX_NICS {
        bail!("a host has at most {MAX_NICS} NICs, not {}", args.paths.len());
    }
    if !(20..=65_535).contains(&args.packet.get()) {
        bail!("--packet must be from 20 B to 65535 B, not {}", args.packet);
    }
    let order = args.order.0;
    if args.skip.is_some() && order != OrderKind::Skip {
        bail!("--skip is for --order skip, not for {}", order.name());
    }
    if args.ratio.is_some() && !matches!(order, OrderKind::Skip | OrderKind::RoundRobin) {
        bail!("--ratio is for --order skip and round-robin, not for {}", order.name());
    }
    if let Some(ratio) = args.ratio.as_ref().filter(|ratio| ratio.weights().len() != args.paths.len()) {
        bail!("--ratio {ratio} has {} shares for {} paths", ratio.weights().len(), args.paths.len());
    }
    let config = MultiNicConfig {
        order: args.order.0,
        skip: args.skip,
        ratio: args.ratio.clone(),
        hops: args.hops,
        ..MultiNicConfig::default()
    };
    let mut paths = NicPaths::new(&args.paths.iter().enumerate().map(nic).collect::<Vec<_>>());
    let mut to = [None; MAX_NICS];
    for (path, slot) in args.paths.iter().zip(&mut to) {
        let delay = PathDelay { fixed: path.delay, ..PathDelay::of_links(args.hops, path.rate) };
        *slot = Some(NicPath::new(Some(MacAddr::BROADCAST), path.rate, delay));
    }
    let neighbour = paths.set_neighbour(None, to);
    let skips: Vec<u16> =
        paths.ids().map(|nic| args.skip.unwrap_or(skip_number(neighbour, nic, &paths))).collect();
    let bytes = wire_len(args.packet + ByteCount::new(14));
    let sent = predict(&config, paths, neighbour, args.frames, bytes);
    let outcome = OrderOutcome::new(args, bytes, &sent, skips);
    if args.json {
        terminal::print_json(&outcome.json(args))?
    } else {
        terminal::print(&outcome.text(args))?
    }
    Ok(ExitCode::SUCCESS)
}

fn nic((i, path): (usize, &PathSpec)) -> NicSpec {
    NicSpec { mac: MacAddr([2, 0, 0, 0, 0, i as u8]), rate: path.rate, kind: NicKind::of_rate(path.rate) }
}

/// What came of it.
struct OrderOutcome {
    /// In the order of arrival, with places late.
    arrived: Vec<(PredictedDeparture, usize)>,
    /// Frames by NIC.
    by_nic: Vec<u64>,
    late: usize,
    most_late: usize,
    /// Until the last has arrived.
    takes: Span,
    /// Of IP packets, until then.
    rate: Rate,
    skips: Vec<u16>,
}

impl OrderOutcome {
    fn new(args: &Args, bytes: ByteCount, sent: &[PredictedDeparture], skips: Vec<u16>) -> Self {
        let arrived = PredictedDeparture::in_order_of_arrival(sent);
        let mut by_nic = vec![0; args.paths.len()];
        for departure in sent {
            if let Some(n) = by_nic.get_mut(departure.nic.index()) {
                *n += 1;
            }
        }
        let takes = arrived.last().map_or(Span::ZERO, |(d, _)| d.arrives.since(Instant::ZERO));
        // Of the lines: while frames leave.
        let leaving = sent.iter().map(|d| d.leaves).max().unwrap_or_default().since(Instant::ZERO);
        OrderOutcome {
            late: arrived.iter().filter(|(_, places)| *places >= DUPLICATE_ACKS).count(),
            most_late: arrived.iter().map(|(_, places)| *places).max().unwrap_or(0),
            by_nic,
            takes,
            rate: Rate::of(ByteCount::new(bytes.get() * sent.len() as u64), leaving),
            skips,
            arrived,
        }
    }

    fn text(&self, args: &Args) -> String {
        let columns = vec![
            TableColumn::number("arrives", "us"),
            TableColumn::number("frame", ""),
            TableColumn::number("NIC", ""),
            TableColumn::number("left", "us"),
            TableColumn::number("late", "places"),
        ];
        let shown = if args.all { self.arrived.len() } else { SHOWN.min(self.arrived.len()) };
        let mut table =
            Table::new(&format!("Frames in the order of arrival, {}", args.order.0.name()), columns);
        for (d, late) in self.arrived.iter().take(shown) {
            table.row(vec![
                micros(d.arrives),
                d.frame.into(),
                u64::from(d.nic.0).into(),
                micros(d.leaves),
                (*late as u64).into(),
            ]);
        }
        let mut text = terminal::table(&table);
        if shown < self.arrived.len() {
            text += &format!("and {} more (--all shows them)\n", self.arrived.len() - shown);
        }
        text += "\n";
        // Only `skip` has such numbers.
        let skips = matches!(args.order.0, OrderKind::Skip);
        let mut columns = vec![
            TableColumn::number("NIC", ""),
            TableColumn::number("rate", ""),
            TableColumn::number("delay", "ms"),
            TableColumn::number("frames", ""),
            TableColumn::number("share", "%"),
        ];
        columns.extend(skips.then(|| TableColumn::number("S", "")));
        let mut table = Table::new("NICs", columns);
        for (i, ((path, frames), skip)) in args.paths.iter().zip(&self.by_nic).zip(&self.skips).enumerate() {
            let mut row = vec![
                (i as u64).into(),
                path.rate.to_string().into(),
                TableCell::Number(path.delay.as_secs_f64() * 1e3, Some(3)),
                (*frames).into(),
                TableCell::Number(*frames as f64 * 100.0 / args.frames.max(1) as f64, Some(2)),
            ];
            row.extend(skips.then(|| u64::from(*skip).into()));
            table.row(row);
        }
        text += &terminal::table(&table);
        let sum: f64 = args.paths.iter().map(|path| path.rate.as_mbit_f64()).sum();
        text += &format!(
            "\nArrived: {} after {:.3} ms. While they left, the lines carried {:.1} of {sum:.1} Mbit/s.\n\
             Late by {DUPLICATE_ACKS} places or more: {} ({:.2} %), the latest by {}.\n",
            frames(self.arrived.len()),
            self.takes.as_secs_f64() * 1e3,
            self.rate.as_mbit_f64().min(sum),
            frames(self.late),
            self.late as f64 * 100.0 / self.arrived.len().max(1) as f64,
            self.most_late,
        );
        text
    }

    fn json(&self, args: &Args) -> serde_json::Value {
        let frame = |(d, late): &(PredictedDeparture, usize)| {
            json!({
                "frame": d.frame, "nic": d.nic.0, "late_places": late,
                "leaves_ns": d.leaves.as_nanos(), "arrives_ns": d.arrives.as_nanos(),
            })
        };
        let nic = |((path, frames), skip): ((&PathSpec, &u64), &u16)| {
            json!({
                "rate_bit_s": path.rate.bits_per_sec(), "delay_ns": path.delay.as_nanos(),
                "frames": frames,
                "skip_number": matches!(args.order.0, OrderKind::Skip).then_some(skip),
            })
        };
        json!({
            "format": "farpace-nics-order/2",
            "order": args.order.0.name(),
            "nics": args.paths.iter().zip(&self.by_nic).zip(&self.skips).map(nic).collect::<Vec<_>>(),
            "frames": self.arrived.iter().map(frame).collect::<Vec<_>>(),
            "late_by_3_places": self.late,
            "most_late_places": self.most_late,
            "takes_ns": self.takes.as_nanos(),
            "lines_carried_bit_s": self.rate.bits_per_sec(),
        })
    }
}

fn frames(n: usize) -> String {
    if n == 1 { "1 frame".to_owned() } else { format!("{n} frames") }
}

fn micros(at: Instant) -> TableCell {
    TableCell::Number(at.since(Instant::ZERO).as_nanos() as f64 / 1e3, Some(3))
}
