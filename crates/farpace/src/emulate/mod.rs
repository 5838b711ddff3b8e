//! `farpace emulate`: a transparent bridge between interfaces, made of the lab's own elements.
//!
//! Start reading at [`run`]; `line` makes a scenario of flags, `interfaces` opens what is named.

pub(crate) mod interfaces;
mod line;

use crate::device::InterfaceMode;
use crate::realtime::{LateTolerance, RealtimeFigures, until};
use crate::scenario::parse_set;
use crate::{scenario, terminal};
use anyhow::{Context, Result, bail};
pub(crate) use farpace_emulate::words;
use farpace_emulate::{Captures, RealtimeNetwork, RealtimeOptions};
use farpace_lab::scenario::Scenario;
use farpace_live::system::{InterfaceLock, Setup};
use farpace_process::interrupt;
use farpace_units::Span;
use interfaces::How;
use line::LinkOptions;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
A and B are interfaces of this host, like eth1, or tap:NAME, a TAP device that is made for this run. \
Packets from one interface leave by the other, as over a link with these properties, with the code and the \
keys of scenarios. Properties apply to both directions. Options with -back replace them from B to A, and \
--set reaches every key of a scenario (links.line.forward.* from A to B, links.line.backward.* back). The \
interfaces need no addresses, and are not changed.

Rates count whole Ethernet frames with 24 B for checksum, preamble and gap, as on a real link \
(--overhead). A TCP with 1448 B segments gets 94 % of the rate.

Examples:
  farpace emulate eth1 eth2 --rate 100mbit --delay 20ms --queue 50ms
  farpace emulate eth1 eth2 --delay 5ms --police 500mbit --police-burst 16MB      the paper's router
  farpace emulate eth1 eth2 --rate 1gbit --delay 250ms --ber 1e-7 --rate-back 256kbit
  farpace emulate eth1 eth2 --rate 50mbit --loss 1% --reorder 1% --duplicate 0.1% --seed 7
  farpace emulate a=eth1 b=eth2 --scenario wan.toml --pcap captures --for 60s
  farpace emulate eth1 eth2 --rate 1gbit --delay 5ms --mode af-xdp                before the system sees a \
  packet
  farpace emulate eth1 eth2 --rate 10gbit --delay 1ms --queue 4MB --gso           super-segments pass whole

docs/emulator.md has its accuracy and cost.";

/// The arguments of `farpace emulate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The interfaces: two, or with --scenario one for each host, as HOST=INTERFACE
    #[arg(value_name = "INTERFACE", required = true, num_args = 2..)]
    interfaces: Vec<String>,
    /// The network between them, in place of a single link
    #[arg(long, value_name = "FILE", conflicts_with_all = line::FLAGS)]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    line: LinkOptions,
    /// Replace a value of the scenario, as in links.line.forward.loss=0.01; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    set: Vec<(String, String)>,
    /// All random numbers follow from this number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Print the equivalent scenario, and exit
    #[arg(long)]
    print: bool,
    /// Ends after this time; without it at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = words::span_above_zero)]
    lasts: Option<Span>,
    /// Super-segments of up to 64 kB pass whole: many times faster, for rates, delays and queues in bytes
    #[arg(long)]
    gso: bool,
    /// How to be on the interfaces
    #[arg(long, value_enum, default_value = "af-packet")]
    mode: InterfaceMode,
    /// How it waits for the next packet
    #[arg(long, value_name = "HOW", value_enum, default_value = "hybrid")]
    wait: LateTolerance,
    /// Write captures at both interfaces, and of dropped packets, to this directory
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Width of the bins of --csv
    #[arg(long, value_name = "TIME", value_parser = words::span, default_value = "100ms")]
    meter: Span,
    /// Write bytes and packets per bin, in and out, to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
    /// No live figures and no summary
    #[arg(long, short)]
    quiet: bool,
}

/// `farpace emulate`.
///
/// # Errors
/// Flags that make no sense, interfaces that cannot be opened or go away, or files that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let scenario = scenario(args)?;
    if args.print {
        terminal::print(&scenario.to_toml().context("the seed is too large for TOML")?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.gso && args.mode == InterfaceMode::AfXdp {
        bail!("--gso needs --mode af-packet: AF_XDP carries single packets alone");
    }
    if args.gso {
        line::check_whole(&scenario)?;
    }
    interrupt::install();
    let setup = (args.mode == InterfaceMode::AfXdp).then(|| Setup::begin("emulate")).transpose()?;
    let how = How { whole: args.gso, mode: args.mode };
    let _held = InterfaceLock::take_all(interfaces::real(&args.interfaces))?;
    let devices = interfaces::attach(&args.interfaces, &scenario, how, setup.as_ref())?;
    let options = RealtimeOptions {
        wait: args.wait.wait(),
        whole: args.gso,
        bin: args.meter,
        captures: args
            .pcap
            .clone()
            .map(|directory| Captures { directory, epoch: farpace_process::stopwatch::since_1970() }),
    };
    let mut network = RealtimeNetwork::build(&scenario, devices, &options)?;
    if !args.quiet {
        terminal::note(&format!("Between {}, {}.", args.interfaces.join(" and "), until(args.lasts)));
    }
    let ran = network.run(args.lasts, &mut RealtimeFigures::new(args.quiet || args.json), || false);
    // If an interface is gone, what was measured until then still counts.
    let (summary, ran) = match network.finish() {
        Ok(summary) => (summary, ran),
        Err(error) => return ran.and(Err(error)),
    };
    if let Some(file) = &args.csv {
        std::fs::write(file, network.csv()).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    if args.json {
        terminal::print_json(&summary)?;
    } else if !args.quiet {
        terminal::print(&summary.text(terminal::width()))?;
    }
    if let Some(warning) = summary.warning() {
        terminal::note(&warning);
    }
    Ok(terminal::ended(ran))
}

fn scenario(args: &Args) -> Result<Scenario> {
    let mut scenario = match &args.scenario {
        Some(file) => scenario::load(file, &args.set)?,
        None => args.line.scenario(&args.set)?,
    };
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    if let Some(router) = scenario.routers.keys().next() {
        bail!(
            "`{router}` is a router: a bridge between interfaces cannot have one, because the lab's routers \
             do not answer ARP. Leave it out, or use `farpace lab up`, which makes the hosts, too"
        );
    }
    Ok(scenario)
}
