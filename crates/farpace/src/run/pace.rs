//! `--pace NODE=FILE`: the pacing of a file on a node's way out.

use crate::{pacing, scenario};
use anyhow::{Result, anyhow, bail};
use farpace_lab::scenario::{Direction, Scenario};
use std::path::{Path, PathBuf};

/// Splits `NODE=FILE` at the first `=`.
///
/// # Errors
/// No `=`, or nothing before or after it.
pub fn parse(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((node, file)) if !node.trim().is_empty() && !file.is_empty() => {
            Ok((node.trim().to_owned(), PathBuf::from(file)))
        }
        _ => Err("expected NODE=FILE, as in a=pacing.toml".to_owned()),
    }
}

/// The scenario with the pacing of files, each on the first link of its node.
pub fn load(file: &Path, set: &[(String, String)], pace: &[(String, PathBuf)]) -> Result<Scenario> {
    let bare = scenario::load(file, set)?;
    if pace.is_empty() {
        return Ok(bare);
    }
    let mut all = set.to_vec();
    for (node, place) in pace {
        let config = pacing::read(place)?;
        let (index, way) = first_link(&bare, node)?;
        let link = &bare.links[index];
        if let Some(error) = link.direction(way).rate.and_then(|rate| config.check(rate).into_iter().next()) {
            let at = if error.at.is_empty() { String::new() } else { format!("{}: ", error.at.join(".")) };
            bail!("{}: {at}{} (link `{}`)", place.display(), error.problem, link.name);
        }
        let direction = match way {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        };
        let value = config.to_inline_toml().map_err(|error| anyhow!("{}: {error}", place.display()))?;
        all.push((format!("links.{index}.{direction}.pacing"), value));
    }
    scenario::load(file, &all)
}

/// The first link of a node, and its way out.
fn first_link(scenario: &Scenario, node: &str) -> Result<(usize, Direction)> {
    let ends = scenario.links.iter().enumerate();
    let found = ends.filter_map(|(index, link)| match &link.between {
        [first, _] if first == node => Some((index, Direction::Forward)),
        [_, second] if second == node => Some((index, Direction::Backward)),
        _ => None,
    });
    found.into_iter().next().ok_or_else(|| {
        let mut nodes: Vec<&str> =
            scenario.links.iter().flat_map(|link| &link.between).map(String::as_str).collect();
        nodes.sort_unstable();
        nodes.dedup();
        anyhow!("--pace: the scenario has no node `{node}`; there are {}", nodes.join(", "))
    })
}
