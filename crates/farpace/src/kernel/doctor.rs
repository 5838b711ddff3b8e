//! `farpace kernel doctor`.

use super::DoctorArgs;
use crate::terminal;
use anyhow::Result;
use farpace_kernel::{Feature, features};
use farpace_kernel_service::class_probe;
use serde_json::json;
use std::process::ExitCode;

/// Looks and prints.
pub fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let mut features = features();
    features.extend(class_probe::features());
    let works = features.iter().all(|feature| feature.works || !feature.required)
        && features.iter().any(|feature| feature.works && feature.name.starts_with("control "));
    if args.json {
        terminal::print_json(
            &json!({"format": "farpace-kernel-doctor/1", "works": works, "features": features}),
        )?;
    } else {
        terminal::print(&text(&features, works))?;
    }
    Ok(ExitCode::from(if works { terminal::OK } else { terminal::FAILED }))
}

fn text(features: &[Feature], works: bool) -> String {
    let width = features.iter().map(|feature| feature.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for feature in features {
        let judgement = match (feature.works, feature.required) {
            (true, _) => "ok     ",
            (false, false) => "note   ",
            (false, true) => "PROBLEM",
        };
        text += &format!("{judgement}  {:width$}  {}\n", feature.name, feature.found);
        if !feature.works {
            text += &format!("{:width$}  needed for: {}\n", "", feature.purpose, width = width + 9);
        }
    }
    text + if works { "farpace kernel up works here.\n" } else { "farpace kernel up does NOT work here.\n" }
}
