//! How a NIC paces.

use super::super::spec::ResolvedDirection;
use farpace_link::pacing::{ClassConfig, ClassRate, Gaps, PacingConfig, SchedulerKind};

/// Most classes that are listed.
const MAX: usize = 8;

/// How packets are paced; none if they are not.
pub(super) fn pacing(d: &ResolvedDirection<'_>) -> Option<String> {
    let config = d.pacing?;
    let classes: Vec<String> = config.classes.iter().take(MAX).map(|class| words(class, config)).collect();
    let more = match config.classes.len().saturating_sub(MAX) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    let classes = match classes.is_empty() {
        true => "no classes".to_owned(),
        false => format!("{}{more}", classes.join("; ")),
    };
    let rest = match &config.default {
        Some(class) => format!("What no filter matches belongs to {class}."),
        None => "What no filter matches goes in what these leave.".to_owned(),
    };
    let held = match config.line {
        Some(line) => format!(" The device sends at {line} at most."),
        None => String::new(),
    };
    Some(format!("At its entrance packets are {}: {classes}. {rest}{held}", manner(config)))
}

/// The node that paces in this direction; none if nothing does.
pub(super) fn paces(d: &ResolvedDirection<'_>) -> Option<String> {
    let config = d.pacing.filter(|config| config.scheduler != SchedulerKind::Fifo)?;
    config.classes.iter().any(|class| class.rate.is_some()).then(|| d.from.to_owned())
}

fn manner(config: &PacingConfig) -> String {
    let gap_frames = format!("gap frames ({})", config.gap_frame.name());
    match (config.scheduler, config.gaps) {
        (SchedulerKind::Edf, Gaps::Frames) => {
            format!("paced, earliest deadline first, with {gap_frames}")
        }
        (SchedulerKind::Edf, Gaps::Timers) => "paced, earliest deadline first, by timers".to_owned(),
        (SchedulerKind::Edf, Gaps::Hybrid) => {
            format!(
                "paced, earliest deadline first, by timers and, for the last part of each wait, {gap_frames}"
            )
        }
        (SchedulerKind::Psp, _) => format!("paced as by PSPacer, highest rate first, with {gap_frames}"),
        (SchedulerKind::TokenBucket, _) => {
            format!("held to rates by token buckets that are filled every {}", config.tick)
        }
        (SchedulerKind::Fq, _) => "paced by a timer for each class, as in Linux's fq".to_owned(),
        (SchedulerKind::Fifo, _) => "queued in classes, but not paced: rates do not count".to_owned(),
    }
}

fn words(class: &ClassConfig, config: &PacingConfig) -> String {
    let rate = match class.rate {
        Some(ClassRate::Fixed(rate)) => format!("at {rate} of frames with their check sequences"),
        Some(ClassRate::Connection) => "as fast as each connection's window asks".to_owned(),
        None => "not paced".to_owned(),
    };
    format!("{} {rate} (queue {})", class.name, class.limit.unwrap_or(config.limit))
}
