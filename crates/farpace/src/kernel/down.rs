//! `farpace kernel down`.

use super::KernelDownArgs;
use crate::terminal;
use anyhow::{Result, bail};
use farpace_kernel::{HandedBack, HandedBackEverywhere, hand_back_everywhere, registered, unregister};
use farpace_kernel_service::classes;
use farpace_kernel_service::setup::{NAME, held, take_back};
use farpace_process::stopwatch::Stopwatch;
use farpace_units::Span;
use serde_json::json;
use std::process::ExitCode;

/// How long the kernel may take to let controls go.
const TIMEOUT: Span = Span::from_secs(3);

/// What became of connections.
#[derive(Debug, Default)]
pub struct GivenBack(HandedBackEverywhere);

impl GivenBack {
    /// A line for each namespace in which there was something to do, and one for those that are hidden.
    pub fn lines(&self) -> Vec<String> {
        let line = |(number, back): (&u64, &HandedBack)| {
            let mut line =
                format!("network namespace {number}: {} connections are under {} now", back.given, back.to);
            if back.kept > 0 {
                line += &format!(", {} keep their control until they end", back.kept);
            }
            if back.default_changed {
                line += &format!("; net.ipv4.tcp_congestion_control is {} now", back.to);
            }
            line
        };
        let mut lines: Vec<String> = self.0.namespaces.iter().map(line).collect();
        if self.0.hidden_processes > 0 {
            lines.push(format!(
                "processes whose network namespace is unknown (CAP_SYS_PTRACE): {}; their connections may \
                 keep their control until they end",
                self.0.hidden_processes
            ));
        }
        lines
    }
}

/// Gives the connections of every network namespace to its default control.
pub fn give_back() -> Result<GivenBack> {
    Ok(GivenBack(hand_back_everywhere()?))
}

/// Takes away and prints.
pub fn run(args: &KernelDownArgs) -> Result<ExitCode> {
    let classes = take_back(classes::NAME)?;
    let found = take_back(NAME)? > 0;
    let unregistered = if held().is_none() { unregister()? } else { Vec::new() };
    // The kernel lets them go a moment after their owner.
    let waits = Stopwatch::start();
    waits.wait_until(TIMEOUT.as_nanos(), || registered().is_empty());
    let still = registered();
    if !still.is_empty() {
        let names: Vec<_> = still.iter().map(|control| control.name()).collect();
        bail!("{} belongs to a `farpace kernel up` that runs: end that process", names.join(" and "));
    }
    let back = if args.keep_connections { GivenBack::default() } else { give_back()? };
    if args.json {
        let namespaces: Vec<_> = back
            .0
            .namespaces
            .iter()
            .map(|(number, back)| {
                json!({
                    "namespace": number, "given": back.given, "kept": back.kept, "to": back.to,
                    "default_changed": back.default_changed,
                })
            })
            .collect();
        let down = found || !unregistered.is_empty();
        return terminal::print_json(&json!({
            "format": "farpace-kernel-down/1", "was_up": down, "devices": classes, "namespaces": namespaces,
            "hidden_processes": back.0.hidden_processes,
        }))
        .map(|()| ExitCode::SUCCESS);
    }
    let mut text = back.lines().iter().map(|line| format!("{line}\n")).collect::<String>();
    if classes > 0 {
        text += &format!("{classes} devices have no classes of farpace any more.\n");
    }
    text += match found || !unregistered.is_empty() {
        true => "The kernel has no control of farpace any more.\n",
        false if classes > 0 => "",
        false => "There was nothing to take away.\n",
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
