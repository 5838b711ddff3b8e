//! How a NIC paces.

use super::super::spec::ResolvedDirection;
use farpace_link::pacing::{ClassConfig, ClassRate, Gaps, PacingConfig, SchedulerKind};

/// Most classes that are listed.
const MAX: usize = 8;

/// How packets are paced; none if they are not.
pub(super) fn pacing(d: &ResolvedDirection<'_>) -> Option<String> {
    let config = d.pacing?;
    let classes: Vec<String> =
        config.classes.iter().take(MAX).map(|class| class_text(class, config)).collect();
    let more = match config.classes.len().saturating_sub(MAX) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    let classes = match classes.is_empty() {
        true => "no classes".to_owned(),
        false => format!("{}{more}", classes.join("; ")),
    };
    let rest = match &config.default {
        Some(class) => format!("Packets without a filter belong to {class}."),
        None => "Packets without a filter use the remaining rate.".to_owned(),
    };
    let held = match config.device_rate {
        Some(line) => format!(" The device sends at most {line}."),
        None => String::new(),
    };
    Some(format!("The NIC of {} sends packets {}: {classes}. {rest}{held}", d.from, scheduler_text(config)))
}

/// The node that paces in this direction; none if nothing does.
pub(super) fn pacing_node(d: &ResolvedDirection<'_>) -> Option<String> {
    let config = d.pacing.filter(|config| config.scheduler != SchedulerKind::Fifo)?;
    config.classes.iter().any(|class| class.rate.is_some()).then(|| d.from.to_owned())
}

fn scheduler_text(config: &PacingConfig) -> String {
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
            format!("limited by token buckets that are filled every {}", config.tick)
        }
        (SchedulerKind::Fq, _) => "paced by a timer for each class, as in Linux's fq".to_owned(),
        (SchedulerKind::Fifo, _) => "queued in classes, but not paced: rates do not count".to_owned(),
    }
}

fn class_text(class: &ClassConfig, config: &PacingConfig) -> String {
    let rate = match class.rate {
        Some(ClassRate::Fixed(rate)) => format!("at {rate} of frames with their check sequences"),
        Some(ClassRate::Connection) => "at the rate of each connection's window".to_owned(),
        None => "not paced".to_owned(),
    };
    format!("{} {rate} (queue {})", class.name, class.limit.unwrap_or(config.limit))
}
