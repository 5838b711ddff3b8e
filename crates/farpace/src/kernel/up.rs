//! `farpace kernel up`.

use super::setup::{FOLDER, NAME};
use super::{UpArgs, down};
use crate::stopwatch::Stopwatch;
use crate::{interrupt, terminal};
use anyhow::{Context, Result, bail};
use farpace_kernel::{Control, KernelDestination, KernelPolicy, KernelSession, bpf_folder, cgroup_root};
use farpace_live::system::Setup;
use farpace_units::Span;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Loads, and waits for the end.
pub fn run(args: &UpArgs) -> Result<ExitCode> {
    interrupt::install();
    let destinations = args.destinations();
    let groups = match (destinations.is_empty(), args.cgroup.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => vec![cgroup_root()?],
        (false, false) => args.cgroup.clone(),
    };
    let begun = Stopwatch::start();
    // Written down before anything is pinned.
    let setup = if args.stay { Some(Setup::begin(NAME)?) } else { None };
    let mut session = KernelSession::load(&Control::ALL)?;
    for (control, error) in session.refused() {
        terminal::note(&format!("warning: control {control} is left out: {error}"));
        if *control == args.control && !destinations.is_empty() {
            bail!("--control {control}: the kernel refuses it");
        }
    }
    let mut policy = match destinations.is_empty() {
        true => None,
        false => Some(
            KernelPolicy::load(&groups, &destinations)
                .context("the controls were loaded and have gone again")?,
        ),
    };
    if let Some(setup) = setup {
        let folder = bpf_folder()?.join(FOLDER);
        setup.pins(&folder)?;
        session.pin(&folder)?;
        if let Some(policy) = &mut policy {
            policy.pin(&folder)?;
        }
        setup.keep()?;
        return say(args, &session, &groups, &destinations).map(|()| ExitCode::SUCCESS);
    }
    say(args, &session, &groups, &destinations)?;
    begun.wait_until(args.lasts.map_or(u64::MAX, Span::as_nanos), interrupt::asked);
    // First nobody comes under the controls any more, then who is under them goes elsewhere.
    drop(policy);
    drop(session);
    for line in down::give_back()?.lines() {
        terminal::note(&line);
    }
    Ok(ExitCode::SUCCESS)
}

fn say(
    args: &UpArgs,
    session: &KernelSession,
    groups: &[PathBuf],
    destinations: &[KernelDestination],
) -> Result<()> {
    let names: Vec<_> = session.registered().iter().map(|one| one.control.name()).collect();
    if args.json {
        let refused = session.refused().iter();
        let refused: Vec<Value> =
            refused.map(|(control, error)| json!({"control": control, "why": error.to_string()})).collect();
        return terminal::print_json(&json!({
            "format": "farpace-kernel-up/1",
            "controls": names,
            "refused": refused,
            "stays": args.stay,
            "cgroups": groups,
            "destinations": destinations,
        }));
    }
    let mut text = format!("The kernel has {}", names.join(" and "));
    text += &match destinations.len() {
        0 => "; no connection is under them that does not ask".to_owned(),
        _ if args.default => format!("; every new connection is under {}", args.control),
        n => format!("; new connections in {} are by {n} destinations", list(groups)),
    };
    text += match (args.stay, args.lasts) {
        (true, _) => ", until farpace kernel down.\n",
        (false, Some(_)) => ".\n",
        (false, None) => ", until Ctrl-C.\n",
    };
    terminal::print(&text)
}

fn list(groups: &[PathBuf]) -> String {
    groups.iter().map(|group| group.display().to_string()).collect::<Vec<_>>().join(" and ")
}
