//! `farpace profiles`: what a scenario can write for `profile` and `congestion`.

use crate::terminal;
use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace profiles
  farpace profiles --json
  farpace run scenarios/papers/stops.toml --set flows.bulk.sender.profile=linux-2.6.17";

/// The arguments of `farpace profiles`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print JSON: {"profiles": [{"name", "description"}], "congestion": [...]}
    #[arg(long)]
    json: bool,
}

/// A word that a scenario can use, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The word.
    pub name: String,
    /// One line.
    pub description: String,
}

/// The choices for a setting, `Profile` or `Congestion`: words and meanings as the schema has them, which takes
/// them from the types themselves.
pub fn choices(schema: &Value, setting: &str) -> Vec<Choice> {
    let variants = schema.pointer(&format!("/$defs/{setting}/oneOf")).and_then(Value::as_array);
    let text = |v: &Value, key| v.get(key).and_then(Value::as_str).map(str::to_owned);
    let choice = |v: &Value| {
        let description = text(v, "description").unwrap_or_default().replace('\n', " ");
        Some(Choice { name: text(v, "const")?, description })
    };
    variants.into_iter().flatten().filter_map(choice).collect()
}

/// `farpace profiles`.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let schema = farpace_lab::scenario::schema();
    let (profiles, congestion) = (choices(&schema, "Profile"), choices(&schema, "Congestion"));
    if args.json {
        terminal::print_json(&json!({ "profiles": profiles, "congestion": congestion }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = profiles.iter().chain(&congestion).map(|c| c.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, choices) in [
        ("Profiles: `profile` of a flow's sender or receiver", profiles),
        ("Congestion controls: `congestion` of a flow's sender", congestion),
    ] {
        text.push_str(&format!("{heading}\n"));
        for c in choices {
            text.push_str(&format!("  {:width$}  {}\n", c.name, c.description));
        }
        text.push('\n');
    }
    terminal::print(text.trim_end_matches('\n'))?;
    terminal::print("\n")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::config::Profile;

    /// Breaks: a profile is missing from the list, or stands there without a description.
    #[test]
    fn every_profile_is_listed() {
        let listed = choices(&farpace_lab::scenario::schema(), "Profile");
        let names: Vec<&str> = listed.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, Profile::ALL.map(Profile::name));
        assert!(listed.iter().all(|c| !c.description.is_empty()), "{listed:?}");
    }

    /// Breaks: the list of congestion controls is empty.
    #[test]
    fn congestion_controls_are_listed() {
        let listed = choices(&farpace_lab::scenario::schema(), "Congestion");
        assert!(listed.iter().any(|c| c.name == "bic" && !c.description.is_empty()), "{listed:?}");
    }
}
