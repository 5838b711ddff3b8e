//! `farpace nics up`: several NICs of this host as one, under the kernel's own TCP.

use crate::emulate::words;
use crate::realtime::{LateTolerance, RealtimeFigures, until};
use crate::terminal;
use anyhow::{Result, bail};
use farpace_emulate::{DriveObserver, ReturningNic, below, drive, lateness_line};
use farpace_link::multi_nic::{MAX_NICS, MultiNic, MultiNicConfig, NicSpec, Ratio, Resequence};
use farpace_live::{Device, Driver};
use farpace_path::world::{ElementId, World};
use farpace_path::{BoundaryPort, Port};
use farpace_process::interrupt;
use farpace_units::{Instant, RandomStream, Rate, Span};
use farpace_wire::NicKind;
use serde_json::json;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::mpsc::Receiver;

/// The rate of a NIC whose driver does not say.
const USUAL: Rate = Rate::from_mbit(1_000);

const AFTER_HELP: &str = "\
Makes a TAP device, gives it the addresses and the MAC address of the first NIC, and sends the kernel's \
packets there over all NICs, to a neighbour that does the same. Packets to other hosts leave by the first \
NIC. The NICs need no addresses of their own. While this runs the kernel answers no ARP and receives no \
packets on them. At the end, also after a signal, the previous state is restored.

Examples:
  farpace nics up --addr 10.9.0.1/24 --nic eth1 --nic eth2
  farpace nics up --addr 10.9.0.1/24 --nic eth1=1G --nic eth2=100M --order skip --no-probe
  farpace nics up --addr 10.9.0.1/24 --nic eth1 --nic wlan0 --resequence 40ms";

/// The arguments of `farpace nics up`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A NIC, with its kind if the driver does not report it, as in eth1=1G; may be repeated
    #[arg(long = "nic", value_name = "NIC", value_parser = nic, required = true)]
    nics: Vec<(String, Option<Rate>)>,
    /// An address of the host on all of them together, with its network; may be repeated
    #[arg(long = "addr", value_name = "ADDRESS/BITS", value_parser = farpace_live::prefix)]
    addresses: Vec<(IpAddr, u8)>,
    /// The name of the TAP device
    #[arg(long, value_name = "NAME", default_value = "far0")]
    tap: String,
    /// Selection of the next frame and its NIC
    #[arg(long, value_name = "ORDER", value_enum, default_value = "earliest")]
    order: super::order::OrderName,
    /// With skip: the skip number S [default: computed from the NICs]
    #[arg(long, value_name = "S")]
    skip: Option<u16>,
    /// With skip and round-robin: the share of each NIC, like 90/10 [default: what the paths carry]
    #[arg(long, value_name = "RATIO")]
    ratio: Option<Ratio>,
    /// Use the rates of the NICs: neither rates nor failures are measured
    #[arg(long)]
    no_probe: bool,
    /// The maximum time for which a received frame waits for earlier ones [default: computed from the round
    /// trips of the paths]
    #[arg(long, value_name = "TIME", value_parser = words::span)]
    resequence: Option<Span>,
    /// Pass received frames to the kernel in the order of their arrival: its TCP takes late ones for lost
    #[arg(long, conflicts_with = "resequence")]
    no_resequence: bool,
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

fn nic(text: &str) -> Result<(String, Option<Rate>), String> {
    match text.split_once('=') {
        Some((name, rate)) => {
            let rate = super::path_spec::rate(rate).or_else(|_| words::rate_above_zero(rate))?;
            Ok((name.to_owned(), Some(rate)))
        }
        None => Ok((text.to_owned(), None)),
    }
}

/// `farpace nics up`.
///
/// # Errors
/// What the system does not allow.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.nics.len() > MAX_NICS {
        bail!("a host has at most {MAX_NICS} NICs, not {}", args.nics.len());
    }
    interrupt::install();
    let (mut sockets, mut specs) = (Vec::new(), Vec::new());
    for (name, rate) in &args.nics {
        let socket = below::socket(name)?;
        let rate = rate.or_else(|| farpace_live::system::line_rate(name)).unwrap_or(USUAL);
        specs.push(NicSpec { mac: below::mac(socket.info())?, rate, kind: NicKind::of_rate(rate) });
        sockets.push(socket);
    }
    let names: Vec<&str> = args.nics.iter().map(|(name, _)| name.as_str()).collect();
    let _behind = below::take(&names)?;
    let mtu = sockets.iter().map(|socket| socket.info().mtu).min().unwrap_or(1_500);
    let mac = specs.first().map(|spec| spec.mac).unwrap_or_default();
    let tap = below::front(&args.tap, mac, mtu, &args.addresses)?;
    let config = MultiNicConfig {
        order: args.order.0,
        skip: args.skip,
        ratio: args.ratio.clone(),
        probe: !args.no_probe,
        resequence: (!args.no_resequence)
            .then(|| Resequence { time: args.resequence, ..Resequence::default() }),
        ..MultiNicConfig::default()
    };
    // Others after each start.
    let seed = farpace_process::stopwatch::since_1970().as_nanos();
    let mut world = World::new(seed);
    let addresses: Vec<IpAddr> = args.addresses.iter().map(|(address, _)| *address).collect();
    let stack = world.add("stack", Box::new(BoundaryPort::default()))?;
    let rng = RandomStream::new(seed, "lists");
    let layer = MultiNic::new(Instant::ZERO, &config, &specs, &addresses, rng);
    let layer = world.add("nics", Box::new(layer))?;
    world.connect((stack, Port(0)), (layer, Port(0)))?;
    let mut boundaries = Vec::new();
    for (number, name) in (1u16..).zip(&names) {
        let boundary = world.add(&format!("nic.{name}"), Box::new(BoundaryPort::timed()))?;
        world.connect((layer, Port(number)), (boundary, Port(0)))?;
        boundaries.push(boundary);
    }
    let mut driver = Driver::new(world, args.wait.wait())?;
    driver.attach_splitting(stack, Box::new(tap));
    let mut changes = Vec::new();
    for (boundary, socket) in boundaries.into_iter().zip(sockets) {
        let (nic, told) = ReturningNic::new(socket)?;
        driver.attach(boundary, Box::new(nic));
        changes.push(told);
    }
    let paths: Vec<String> =
        names.iter().zip(&specs).map(|(name, spec)| format!("{name} ({})", spec.rate)).collect();
    terminal::note(&format!("{}, {mac}, over {}, {}.", args.tap, paths.join(" and "), until(args.lasts)));
    let names = names.into_iter().map(str::to_owned).collect();
    let seen = vec![(0, 0); args.nics.len()];
    let mut watch = NicsWatch { names, layer, seen, at: Instant::ZERO, changes };
    let ran = drive(&mut driver, args.lasts, &mut RealtimeFigures::new(args.json), &mut watch);
    watch.tell();
    summary(args, &driver, &watch)?;
    Ok(terminal::ended(ran))
}

struct NicsWatch {
    names: Vec<String>,
    layer: ElementId,
    seen: Vec<(u64, u64)>,
    at: Instant,
    changes: Vec<Receiver<String>>,
}

impl NicsWatch {
    /// Tells the user of NICs that have vanished or returned.
    fn tell(&self) {
        self.changes.iter().flat_map(Receiver::try_iter).for_each(|line| terminal::note(&line));
    }
}

impl DriveObserver for NicsWatch {
    fn look(&mut self, _: &mut Driver) -> Result<bool> {
        self.tell();
        Ok(false)
    }
    fn lines(&mut self, driver: &mut Driver, now: Instant) -> Vec<String> {
        let passed = now.since(self.at).as_secs_f64().max(1e-9);
        self.at = now;
        let devices = driver.stats().devices;
        let mut lines = Vec::new();
        // The first device is the TAP.
        for ((name, device), seen) in self.names.iter().zip(devices.iter().skip(1)).zip(&mut self.seen) {
            let now = (device.bytes_sent, device.bytes_received);
            let mbit = |now: u64, before: u64| {
                farpace_report::number(now.saturating_sub(before) as f64 * 8e-6 / passed)
            };
            lines.push(format!(
                "{name}: out {} Mbit/s, in {} Mbit/s",
                mbit(now.0, seen.0),
                mbit(now.1, seen.1)
            ));
            *seen = now;
        }
        lines.push(lateness_line(driver));
        lines
    }
}

fn summary(args: &Args, driver: &Driver, watch: &NicsWatch) -> Result<()> {
    let stats = driver.stats();
    let readings = driver.world().any(watch.layer).map(|layer| layer.inspect()).unwrap_or_default();
    let devices: Vec<_> = watch.names.iter().zip(stats.devices.iter().skip(1)).collect();
    if args.json {
        let nic = |(name, d): &(&String, &farpace_live::DeviceCounters)| {
            json!({"nic": name, "sent": d.sent, "sent_bytes": d.bytes_sent, "received": d.received,
                "received_bytes": d.bytes_received, "lost": d.refused + d.overflowed})
        };
        let readings: serde_json::Map<String, serde_json::Value> =
            readings.into_iter().map(|(name, value)| (name.replace(' ', "_"), value.into())).collect();
        return terminal::print_json(
            &json!({"nics": devices.iter().map(nic).collect::<Vec<_>>(), "layer": readings}),
        );
    }
    let mut text = String::new();
    for (name, d) in devices {
        text += &format!(
            "{name}: {} frames, {} MB out; {} frames, {} MB in\n",
            d.sent,
            farpace_report::number(d.bytes_sent as f64 / 1e6),
            d.received,
            farpace_report::number(d.bytes_received as f64 / 1e6)
        );
    }
    for (name, value) in readings {
        text += &format!("{name}: {value}\n");
    }
    terminal::print(&text)
}
