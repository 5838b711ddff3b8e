//! `farpace kernel up`.

use super::{UpArgs, down};
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use farpace_kernel::{
    ClassOrder, KernelControl, KernelDestination, KernelPolicy, KernelSession, bpf_folder, cgroup_root,
};
use farpace_kernel_service::classes::{self, ClassesUp, ClassesWanted};
use farpace_kernel_service::setup::{FOLDER, NAME};
use farpace_link::pacing::PacingConfig;
use farpace_live::system::Setup;
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_units::Span;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is loaded, as long as it is wanted.
struct Loaded {
    session: KernelSession,
    policy: Option<KernelPolicy>,
    groups: Vec<PathBuf>,
    destinations: Vec<KernelDestination>,
}

/// Loads, and waits for the end.
pub fn run(args: &UpArgs) -> Result<ExitCode> {
    interrupt::install();
    let begun = Stopwatch::start();
    let classes = match &args.classes {
        Some(file) => {
            let wanted = ClassesWanted {
                file,
                devices: &args.dev,
                horizon: args.horizon,
                super_segments: args.keep_super_segments,
            };
            classes::up(&wanted, &read(file)?, &mut terminal::note)?
        }
        None => Vec::new(),
    };
    // Written down before anything is pinned.
    let setup = if args.stay && args.wants_controls() { Some(Setup::begin(NAME)?) } else { None };
    let mut loaded = if args.wants_controls() { Some(load(args)?) } else { None };
    if args.stay {
        if let (Some(setup), Some(loaded)) = (setup, &mut loaded) {
            let folder = bpf_folder()?.join(FOLDER);
            setup.pins(&folder)?;
            loaded.session.pin(&folder)?;
            if let Some(policy) = &mut loaded.policy {
                policy.pin(&folder)?;
            }
            setup.keep()?;
        }
        say(args, loaded.as_ref(), &classes)?;
        for one in classes {
            one.keep()?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    say(args, loaded.as_ref(), &classes)?;
    begun.wait_until(args.lasts.map_or(u64::MAX, Span::as_nanos), interrupt::asked);
    drop(classes);
    if let Some(Loaded { session, policy, .. }) = loaded {
        // First nobody comes under the controls any more, then who is under them goes elsewhere.
        drop(policy);
        drop(session);
        for line in down::give_back()?.lines() {
            terminal::note(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads and checks a configuration of classes. What only user space can do is refused.
///
/// # Errors
/// Everything that is wrong, a line for each.
fn read(file: &Path) -> Result<PacingConfig> {
    let config = crate::pacing::read(file)?;
    let wrong = classes::refusals(&config, &fs::read_to_string(file)?).map_err(|error| anyhow!("{error}"))?;
    if wrong.is_empty() {
        return Ok(config);
    }
    let lines: Vec<_> = wrong.iter().map(|line| format!("{}: {line}", file.display())).collect();
    bail!("{}", lines.join("\n"))
}

fn load(args: &UpArgs) -> Result<Loaded> {
    let destinations = args.destinations();
    let groups = match (destinations.is_empty(), args.cgroup.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => vec![cgroup_root()?],
        (false, false) => args.cgroup.clone(),
    };
    let session = KernelSession::load(&KernelControl::ALL)?;
    for (control, error) in session.refused() {
        terminal::note(&format!("warning: control {control} is left out: {error}"));
        if *control == args.usual() && !destinations.is_empty() {
            bail!("--control {control}: the kernel refuses it");
        }
    }
    let policy = match destinations.is_empty() {
        true => None,
        false => Some(
            KernelPolicy::load(&groups, &destinations)
                .context("the controls were loaded and have gone again")?,
        ),
    };
    Ok(Loaded { session, policy, groups, destinations })
}

fn say(args: &UpArgs, loaded: Option<&Loaded>, classes: &[ClassesUp]) -> Result<()> {
    if args.json {
        let registered = loaded.map(|loaded| loaded.session.registered()).unwrap_or_default();
        let refused = loaded.map(|loaded| loaded.session.refused()).unwrap_or_default().iter();
        let refused: Vec<Value> =
            refused.map(|(control, error)| json!({"control": control, "why": error.to_string()})).collect();
        let device = |classes: &ClassesUp| {
            json!({
                "device": classes.device, "order": classes.order, "counts_lateness": classes.counts_lateness,
            })
        };
        return terminal::print_json(&json!({
            "format": "farpace-kernel-up/1",
            "controls": registered.iter().map(|one| one.control.name()).collect::<Vec<_>>(),
            "refused": refused,
            "stays": args.stay,
            "cgroups": loaded.map(|loaded| loaded.groups.as_slice()).unwrap_or_default(),
            "destinations": loaded.map(|loaded| loaded.destinations.as_slice()).unwrap_or_default(),
            "classes": classes.iter().map(device).collect::<Vec<_>>(),
        }));
    }
    let end = match (args.stay, args.lasts) {
        (true, _) => ", until farpace kernel down.\n",
        (false, Some(_)) => ".\n",
        (false, None) => ", until Ctrl-C.\n",
    };
    let mut text = String::new();
    for ClassesUp { device, order, .. } in classes {
        text += &match order {
            ClassOrder::Fq => {
                format!("Packets that leave by {device} have departure times by their classes; fq holds them")
            }
            ClassOrder::Htb => format!(
                "Packets that leave by {device} have classes; htb holds them, as exactly as its timers, \
                 since the kernel has no fq"
            ),
        };
        text += end;
    }
    if let Some(Loaded { session, groups, destinations, .. }) = loaded {
        let names: Vec<_> = session.registered().iter().map(|one| one.control.name()).collect();
        text += &format!("The kernel has {}", names.join(" and "));
        text += &match destinations.len() {
            0 => "; no connection is under them that does not ask".to_owned(),
            _ if args.default => format!("; every new connection is under {}", args.usual()),
            n => format!("; new connections in {} are by {n} destinations", list(groups)),
        };
        text += end;
    }
    terminal::print(&text)
}

fn list(groups: &[PathBuf]) -> String {
    groups.iter().map(|group| group.display().to_string()).collect::<Vec<_>>().join(" and ")
}
