//! `farpace pacing up`: precise pacing under the kernel's own TCP.

use super::file;
use crate::emulate::words;
use crate::realtime::{LateTolerance, RealtimeFigures, until};
use crate::terminal;
use anyhow::{Context, Result, anyhow};
use farpace_emulate::{DriveObserver, below, drive, lateness_line};
use farpace_link::nic::PacingNic;
use farpace_link::pacing::{PacingConfig, PacingPlan};
use farpace_live::{Device, Driver};
use farpace_path::world::{ElementId, World};
use farpace_path::{BoundaryPort, Cx, Duplex, Element, Inspection, Port, ends_at_port};
use farpace_process::interrupt;
use farpace_units::{Instant, Rate, Span};
use farpace_wire::Packet;
use serde_json::json;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// The line, if neither a flag nor the driver says.
const USUAL: Rate = Rate::from_mbit(1_000);

/// Timers are seldom later.
const USUAL_LATENESS: Span = Span::from_micros(100);

const AFTER_HELP: &str = "\
Makes a TAP device, gives it the addresses and the MAC address of the interface, and paces the kernel's \
packets there, each class at its rate, before they leave by the interface, which needs no address of its \
own. The host's clock times the frames: --wait spin is the most precise. Frames that a stall of the host \
delays leave later, never in a burst. Gap frames are sent with --gap-frames only: on a real link at its \
full rate they keep the distances, elsewhere the time between frames does. At the end, also after a \
signal, the previous state is restored.

Examples:
  farpace pacing up --iface eth1 --addr 10.9.0.1/24 --rate 100mbit
  farpace pacing up --iface eth1 --addr 10.9.0.1/24 --config pacing.toml --line 1gbit --wait spin
  tcpdump -i eth2 -w b.pcap            at the receiver; then: farpace pacing report b.pcap";

/// The arguments of `farpace pacing up`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The interface that sends
    #[arg(long, value_name = "INTERFACE")]
    iface: String,
    /// An address of the host, with its network; may be repeated
    #[arg(long = "addr", value_name = "ADDRESS/BITS", value_parser = farpace_live::prefix)]
    addresses: Vec<(IpAddr, u8)>,
    /// The name of the TAP device
    #[arg(long, value_name = "NAME", default_value = "far0")]
    tap: String,
    /// The classes and their rates (farpace pacing --help)
    #[arg(long, value_name = "FILE", required_unless_present = "rate")]
    config: Option<PathBuf>,
    /// One class for everything, with this rate
    #[arg(long, value_name = "RATE", value_parser = words::rate, conflicts_with = "config")]
    rate: Option<Rate>,
    /// The link rate [default: that of the driver, or 1gbit]
    #[arg(long, value_name = "RATE", value_parser = words::rate)]
    line: Option<Rate>,
    /// Gap frames leave, too
    #[arg(long)]
    gap_frames: bool,
    /// Ends after this time; without it at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = words::span_above_zero)]
    lasts: Option<Span>,
    /// How it waits for the next packet
    #[arg(long, value_name = "HOW", value_enum, default_value = "hybrid")]
    wait: LateTolerance,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
}

/// Ends gap frames at the near end of the line.
struct NoGaps;

impl Element for NoGaps {
    fn ports(&self) -> u16 {
        2
    }
    fn is_passive(&self) -> bool {
        true
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        match port == Port(0) && ends_at_port(&packet) {
            true => cx.consume(packet),
            false => cx.emit(Port(1 - (port.0 & 1)), packet),
        }
    }
    fn on_wake(&mut self, _: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        Vec::new()
    }
}

/// `farpace pacing up`.
///
/// # Errors
/// A configuration that the line cannot have, what the system does not allow, or an interface that goes away.
pub fn run(args: &Args) -> Result<ExitCode> {
    let config = match (&args.config, args.rate) {
        (Some(path), _) => file::read(path)?,
        (None, Some(rate)) => single(rate)?,
        (None, None) => PacingConfig::default(),
    };
    let line = args
        .line
        .or(config.device_rate)
        .or_else(|| farpace_live::system::line_rate(&args.iface))
        .unwrap_or(USUAL);
    let nic = PacingNic::new(&config, line, Span::ZERO).map_err(|error| {
        anyhow!("on a line of {line}: {}{}", error.at.join("."), format_args!(" {}", error.problem))
    })?;
    interrupt::install();
    let socket = below::socket(&args.iface)?;
    let _behind = below::take(&[&args.iface])?;
    let mac = below::mac(socket.info())?;
    let tap = below::front(&args.tap, mac, socket.info().mtu, &args.addresses)?;
    let mut world = World::new(0);
    let stack = world.add("stack", Box::new(BoundaryPort::default()))?;
    let nic = world.add("nic", Box::new(Duplex::new(Some(nic), None)))?;
    let boundary = world.add("line", Box::new(BoundaryPort::timed()))?;
    world.connect((stack, Port(0)), (nic, Port(0)))?;
    match args.gap_frames {
        true => world.connect((nic, Port(1)), (boundary, Port(0)))?,
        false => {
            let filter = world.add("gaps", Box::new(NoGaps))?;
            world.connect((nic, Port(1)), (filter, Port(0)))?;
            world.connect((filter, Port(1)), (boundary, Port(0)))?;
        }
    }
    let mut driver = Driver::new(world, args.wait.wait())?;
    driver.spread_stalls(longest_lateness(&config, line));
    driver.attach_splitting(stack, Box::new(tap));
    driver.attach(boundary, Box::new(socket));
    terminal::note(&format!(
        "{}, {mac}, paced on {} (a line of {line}), {}.",
        args.tap,
        args.iface,
        until(args.lasts)
    ));
    let mut watch = PacingWatch { nic, line: args.iface.clone(), seen: 0, at: Instant::ZERO };
    let ran = drive(&mut driver, args.lasts, &mut RealtimeFigures::new(args.json), &mut watch);
    summary(args, &driver, nic)?;
    Ok(terminal::ended(ran))
}

/// What is late by more is made up for slowly: a little less than the time of one full frame at the rate of
/// the fastest class, so that no class is ahead of its rate by more than two frames. Timers are late by tens
/// of microseconds as a rule, which costs no rate this way.
fn longest_lateness(config: &PacingConfig, line: Rate) -> Span {
    let plan = PacingPlan::new(config, line);
    let frames = plan.classes.iter().filter_map(|class| class.spacing.map(|pace| pace.interval_time));
    (frames.min().unwrap_or_default() * 9 / 10).max(USUAL_LATENESS)
}

/// A configuration with one class, in its own words.
fn single(rate: Rate) -> Result<PacingConfig> {
    let text = format!("default = \"all\"\n[[classes]]\nname = \"all\"\nrate = \"{rate}\"\n");
    PacingConfig::parse(&text).map_err(|error| anyhow!("{error}")).context("--rate")
}

type PacedBridge = Duplex<Option<PacingNic>>;

struct PacingWatch {
    nic: ElementId,
    line: String,
    seen: u64,
    at: Instant,
}

impl DriveObserver for PacingWatch {
    fn lines(&mut self, driver: &mut Driver, now: Instant) -> Vec<String> {
        let passed = now.since(self.at).as_secs_f64().max(1e-9);
        self.at = now;
        let sent = driver.stats().devices.get(1).map_or(0, |device| device.bytes_sent);
        let rate = farpace_report::number(sent.saturating_sub(self.seen) as f64 * 8e-6 / passed);
        self.seen = sent;
        let nic =
            driver.world().element::<PacedBridge>(self.nic).and_then(|nic| nic.direction(Port(0)).as_ref());
        let (waits, drops) = nic.map_or((0, 0), |nic| (nic.backlog().packets, nic.stats().drops));
        vec![
            format!("{}: out {rate} Mbit/s, {waits} packets wait, {drops} dropped", self.line),
            lateness_line(driver),
        ]
    }
}

fn summary(args: &Args, driver: &Driver, nic: ElementId) -> Result<()> {
    let Some(nic) =
        driver.world().element::<PacedBridge>(nic).and_then(|nic| nic.direction(Port(0)).as_ref())
    else {
        return Ok(());
    };
    let (stats, late) = (nic.stats(), driver.lateness());
    let us = |share| late.quantile(share).as_nanos() as f64 / 1e3;
    if args.json {
        let classes: Vec<_> = nic
            .classes()
            .iter()
            .map(|class| json!({"class": class.name, "packets": class.stats.packets, "drops": class.stats.dropped}))
            .collect();
        let gap_frames = if args.gap_frames { stats.gap_frames } else { 0 };
        return terminal::print_json(&json!({
            "packets": stats.packets, "gap_frames": gap_frames, "drops": stats.drops, "classes": classes,
            "stalls": driver.stats().stalls, "stalled_ms": driver.stats().stalled.as_secs_f64() * 1e3,
            "made_up_ms": driver.stats().made_up.as_secs_f64() * 1e3,
            "late_median_us": us(0.5), "late_p99_us": us(0.99), "late_most_us": us(1.0),
        }));
    }
    terminal::print(&format!(
        "{} packets were sent, {} dropped, at most {} waited.\n{}.\n{}",
        stats.packets,
        stats.drops,
        stats.peak_packets,
        lateness_line(driver),
        stalls_line(&driver.stats())
    ))
}

/// What the machine has kept from being sent in time; nothing, if it has not.
fn stalls_line(stats: &farpace_live::Stats) -> String {
    let ms = |time: Span| time.as_secs_f64() * 1e3;
    match stats.stalls {
        0 => String::new(),
        n => format!(
            "{n} times it could not go on when it had to, for {:.1} ms together; {:.1} ms of them were made \
             up for, at most 2 % over the rate.\n",
            ms(stats.stalled),
            ms(stats.made_up)
        ),
    }
}
