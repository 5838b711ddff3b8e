//! `farpace profiles`: what a scenario can write for `profile` and `congestion`.

use crate::terminal;
use anyhow::Result;
use farpace_tcp::config::{BufferSize, Config, Profile};
use farpace_units::ByteCount;
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
    /// Print JSON: {"profiles": [{"name", "description", "buffers"}], "congestion": [{"name",
    /// "description"}]}
    #[arg(long)]
    json: bool,
}

/// A word that a scenario can use, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileChoice {
    /// The word.
    pub name: String,
    /// One line.
    pub description: String,
}

/// The choices for a setting, `Profile` or `Congestion`: words and meanings as the schema has them, which
/// takes them from the types themselves.
pub fn choices(schema: &Value, setting: &str) -> Vec<ProfileChoice> {
    let variants = schema.pointer(&format!("/$defs/{setting}/oneOf")).and_then(Value::as_array);
    let text = |v: &Value, key| v.get(key).and_then(Value::as_str).map(str::to_owned);
    let choice = |v: &Value| {
        let description = text(v, "description").unwrap_or_default().replace('\n', " ");
        Some(ProfileChoice { name: text(v, "const")?, description })
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
        let profiles: Vec<Value> = profiles.iter().map(with_buffers).collect();
        terminal::print_json(&json!({ "profiles": profiles, "congestion": congestion }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let buffers = Profile::ALL.map(|profile| ProfileChoice {
        name: profile.name().to_owned(),
        description: {
            let Config { receive_buffer: receive, send_buffer: send, .. } = profile.config();
            format!("receive {}, send {}", size(receive), size(send))
        },
    });
    let width = profiles.iter().chain(&congestion).map(|c| c.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, choices) in [
        ("Profiles: `profile` of a flow's sender or receiver", profiles),
        ("Congestion controls: `congestion` of a flow's sender", congestion),
        ("Buffers of the profiles, unless they are set", buffers.into()),
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

/// The size of a buffer in words.
fn size(buffer: BufferSize) -> String {
    if buffer.is_fixed() {
        return format!("{} fixed", in_binary(buffer.initial));
    }
    format!("{} to {} autotuned", in_binary(buffer.initial), in_binary(buffer.max))
}

/// A size in the largest binary unit that gives a whole number.
fn in_binary(bytes: ByteCount) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = units.iter().find(|(_, shift)| {
        let whole = bytes.get() >> shift;
        (1..1024).contains(&whole) && whole << shift == bytes.get()
    });
    whole.map_or(bytes.to_string(), |(unit, shift)| format!("{} {unit}", bytes.get() >> shift))
}

/// A profile for JSON: sizes in bytes; `max` equals `initial` where a size is fixed.
fn with_buffers(choice: &ProfileChoice) -> Value {
    let profile = Profile::ALL.into_iter().find(|profile| profile.name() == choice.name);
    let buffers = profile.map(|profile| {
        let of = |size: BufferSize| json!({ "initial": size.initial.get(), "max": size.max.get() });
        let Config { receive_buffer: receive, send_buffer: send, .. } = profile.config();
        json!({ "receive": of(receive), "send": of(send) })
    });
    json!({ "name": choice.name, "description": choice.description, "buffers": buffers })
}

#[cfg(test)]
mod tests {
    use super::*;

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
