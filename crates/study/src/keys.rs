//! What identifies runs: their content, so that none is made twice.

use farpace_lab::scenario::Scenario;
use farpace_tcp::config::ExternalControl;
use std::collections::BTreeSet;

/// Identifies the runs of a scenario by all that they depend on, but the seed.
///
/// # Errors
/// A scenario that cannot be written as TOML.
pub(crate) fn point_key(version: &str, scenario: &Scenario) -> Result<String, String> {
    let text = scenario.to_toml().map_err(|error| error.to_string())?;
    let versions: BTreeSet<String> = externals(scenario).map(|own| own.version().to_owned()).collect();
    let versions: String = versions.iter().map(|own| format!("\n{own}")).collect();
    Ok(short_digest(format!("{version}\n{text}{versions}").as_bytes()))
}

/// The controls of the program's own that flows of a scenario have.
pub(crate) fn externals(scenario: &Scenario) -> impl Iterator<Item = &ExternalControl> {
    let settings = scenario.flows.iter().flat_map(|flow| {
        let parts = flow.mix.iter().flat_map(|part| part.receiver.iter().chain([&part.sender]));
        parts.chain([&flow.sender, &flow.receiver])
    });
    settings.filter_map(|settings| settings.external.as_ref())
}

/// Identifies a run.
pub(crate) fn run_key(point: &str, seed: u64) -> String {
    short_digest(format!("{point} {seed}").as_bytes())
}

/// The first 128 bits of BLAKE3, in hexadecimal digits.
pub(crate) fn short_digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(32).collect()
}
