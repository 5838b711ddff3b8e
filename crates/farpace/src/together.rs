//! `farpace together`: the solutions of all five papers on one path; also on devices, in real time.

use crate::experiments::{ExperimentArgs, OutputForm, command_line, end, make};
use crate::realtime::LateTolerance;
use crate::terminal;
use anyhow::Result;
use farpace_emulate::compare::on_devices;
use farpace_papers::together::{DeviceRun, Together};
use farpace_process::interrupt;
use farpace_units::Span;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Paths, from scenarios/gallery:
  ship     two NICs, two policed contracts, one satellite: 500 ms, bit errors, a small queue (together.toml)
  office   two policed lines to a data centre: 60 ms, a small queue, no bit errors (together-office.toml)

Solutions, each as its paper publishes it, and with what is known now:
  recovery      of lost retransmissions   remedy B in Linux 2.6.22       RACK-TLP, PRR, F-RTO, undo
  control       of congestion             TCP-STAR                       farpace
  ack-requests  immediate ACKs            the CDL bit                    TARR
  pacing        at the NICs               PSPacer, highest rate first    earliest deadline first
  nics          several NICs as one       frames sent ahead by a number  frames sent to arrive in turn

Examples:
  farpace together                           report in out/together/report.html
  farpace together --path ship --seeds 5
  farpace together --path office --time \"5 s\" --json
  sudo farpace together --path office --devices    the same in real time, three minutes more

Exit codes:
  0    the comparison was made
  1    bytes arrived other than they were sent
  2    wrong usage, or a file that cannot be written
  130  interrupted; the same command continues with the finished runs";

/// The arguments of `farpace together`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Only this path: ship or office [default: both]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Runs of each kind
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Virtual time of each run, as in "90 s" [default: the scenario's]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// Also on devices of this host, in real time (needs root, and an idle host):
    /// 16 runs a path, one after another
    #[arg(long)]
    pub devices: bool,
    /// The options of every experiment.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: ExperimentArgs,
}

/// `farpace together`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let mut together = Together::new(args.path.as_deref(), args.seeds, args.time, &args.common.set)?;
    if args.devices {
        // One after another: they share the machine.
        for (case, scenario, file) in together.device_runs()? {
            terminal::note(&format!("on devices: {case}"));
            let run = on_devices(scenario, file, LateTolerance::Hybrid.wait())?;
            if interrupt::asked() {
                terminal::note("Interrupted: nothing was written.");
                return Ok(ExitCode::from(terminal::INTERRUPTED));
            }
            let late_ms = run.accuracy.as_ref().map_or(f64::NAN, |accuracy| accuracy.p99_us / 1e3);
            let run = DeviceRun { goodput: run.goodput_mbit_s, late_ms, json: json!(run) };
            together.add_device_run(case, run);
        }
    }
    let (line, dir) = (command_line("together", args), args.common.dir("together"));
    Ok(end(make(&together, &line, &args.common, &dir, OutputForm::of(args.common.json))?, false))
}
