//! `farpace lab up`: namespaces, interfaces, and the network between them.

use crate::emulate::words;
use crate::realtime::{LateTolerance, RealtimeFigures};
use crate::scenario::parse_set;
use crate::{scenario, terminal};
use anyhow::{Context, Result, anyhow, bail};
use farpace_emulate::labs::{self, SiteState, pause};
use farpace_emulate::{Captures, RealtimeOptions, Residents, Site};
use farpace_lab::scenario::Scenario;
use farpace_process::{exit_code, interrupt};
use farpace_units::Span;
use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// The arguments of `farpace lab up`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The scenario, a TOML file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// The lab's name [default: that of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Replace a value of the scenario, as in links.wan.delay="20 ms"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    set: Vec<(String, String)>,
    /// Stay in the foreground, with live figures, until Ctrl-C
    #[arg(long, short)]
    foreground: bool,
    /// Ends after this time; without it when it is taken down
    #[arg(long = "for", value_name = "TIME", value_parser = words::span_above_zero)]
    lasts: Option<Span>,
    /// How it waits for the next packet
    #[arg(long, value_name = "HOW", value_enum, default_value = "hybrid")]
    wait: LateTolerance,
    /// Write captures at each host, and of dropped packets, to this directory
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Print the summary as one JSON object at the end (in the foreground)
    #[arg(long)]
    json: bool,
    /// No live figures and no summary
    #[arg(long, short)]
    quiet: bool,
    /// It has been started by another that waits for it
    #[arg(long, hide = true)]
    detached: bool,
    /// The lab is up as long as this program runs. It finds each host's namespace in FARPACE_NS_HOST
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<String>,
}

/// `farpace lab up`.
///
/// # Errors
/// A bad scenario, a name that is taken, or what the system does not allow.
pub fn run(args: &Args) -> Result<ExitCode> {
    let scenario = scenario::load(&args.scenario, &args.set)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => args.scenario.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    labs::check_name(&name)?;
    if args.foreground || !args.command.is_empty() {
        return here(args, &scenario, &name);
    }
    background(args, &name)
}

/// Starts this program again, without a terminal, and waits until the lab is up.
fn background(args: &Args, name: &str) -> Result<ExitCode> {
    if let Some(old) = SiteState::read(name)?.filter(|old| old.process().is_alive()) {
        bail!("lab `{0}` is up; take it down with `farpace lab down {0}`, or use --name", old.name);
    }
    labs::make_folder()?;
    let log = labs::log_file(name);
    let file = File::create(&log).with_context(|| format!("cannot write `{}`", log.display()))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["lab", "up", "--foreground", "--detached", "--quiet", "--name", name]);
    command.args(args.set.iter().map(|(key, value)| format!("--set={key}={value}")));
    if let Some(lasts) = args.lasts {
        command.arg(format!("--for={lasts}"));
    }
    if let Some(pcap) = &args.pcap {
        command.arg("--pcap").arg(pcap);
    }
    let wait = clap::ValueEnum::to_possible_value(&args.wait);
    command.args(wait.map(|wait| format!("--wait={}", wait.get_name())));
    command.arg(&args.scenario).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().context("cannot start the lab in the background")?;
    loop {
        // A lab of this name that was killed may have left its file.
        let is_ours = |state: &SiteState| state.ready && u32::try_from(state.pid) == Ok(child.id());
        if let Some(state) = SiteState::read(name)?.filter(is_ours) {
            terminal::print(&told(&state))?;
            return Ok(ExitCode::SUCCESS);
        }
        if child.try_wait()?.is_some() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let _ = std::fs::remove_file(&log);
            bail!("the lab has not come up: {}", said.trim().trim_start_matches("error: "));
        }
        pause();
    }
}

/// What a user can do now.
fn told(state: &SiteState) -> String {
    let mut text = format!("Lab `{}` is up.\n", state.name);
    for host in &state.hosts {
        let _ = writeln!(
            text,
            "  {:<12} {:<16} farpace lab exec {} {} -- COMMAND",
            host.host, host.address, state.name, host.host
        );
    }
    let _ = writeln!(text, "Down with: farpace lab down {}", state.name);
    text
}

fn here(args: &Args, scenario: &Scenario, name: &str) -> Result<ExitCode> {
    if args.detached {
        farpace_live::leave_terminal();
    }
    interrupt::install();
    let options = RealtimeOptions {
        wait: args.wait.wait(),
        whole: false,
        bin: Span::from_millis(100),
        captures: args
            .pcap
            .clone()
            .map(|directory| Captures { directory, epoch: farpace_process::stopwatch::since_1970() }),
    };
    let file = args.scenario.display().to_string();
    let mut site = Site::make(scenario, name, &file, Residents::Kernel, &options)?;
    if !args.quiet && args.command.is_empty() {
        terminal::note(told(site.state()).trim_end());
    }
    let mut child = match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest).env("FARPACE_LAB", name);
            for host in &site.state().hosts {
                command.env(format!("FARPACE_NS_{}", host.host), &host.namespace);
            }
            match command.spawn() {
                Ok(child) => Some(child),
                Err(error) => {
                    site.remove()?;
                    terminal::complain(&anyhow!("cannot run `{program}`: {error}"));
                    return Ok(ExitCode::from(exit_code::cannot_run(&error)));
                }
            }
        }
        None => None,
    };
    let mut figures = RealtimeFigures::new(args.quiet || child.is_some());
    let mut status = None;
    site.network().run(args.lasts, &mut figures, || {
        status = child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        status.is_some()
    })?;
    if let Some(child) = child.as_mut().filter(|_| status.is_none()) {
        // The lab ends before its program: a signal, or time is up.
        let _ = child.kill();
        let _ = child.wait();
    }
    let summary = site.network().finish()?;
    if args.json {
        terminal::print_json(&summary)?;
    } else if !args.quiet {
        terminal::note(summary.text(terminal::width()).trim_end());
    }
    if let Some(warning) = summary.warning() {
        terminal::note(&warning);
    }
    let log = args.detached.then(|| site.state().clone());
    site.remove()?;
    if let Some(state) = log {
        state.remove_log();
    }
    Ok(ExitCode::from(status.map_or(0, exit_code::of)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_emulate::INTERFACE;
    use farpace_emulate::labs::HostState;

    /// Breaks: users are told to type what does not work.
    #[test]
    fn users_are_told_what_to_type() {
        let host = HostState {
            host: "a".into(),
            namespace: "far-wan-a".into(),
            interface: INTERFACE.into(),
            address: "10.0.0.1".into(),
        };
        let state = SiteState {
            name: "wan".into(),
            scenario: "wan.toml".into(),
            pid: 1,
            started: 1,
            ready: true,
            hosts: vec![host],
        };
        let text = told(&state);
        assert!(
            text.contains("farpace lab exec wan a -- COMMAND") && text.contains("farpace lab down wan"),
            "{text}"
        );
    }
}
