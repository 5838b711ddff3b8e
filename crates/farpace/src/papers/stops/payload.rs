//! What the runs send: a pattern, a file of the user's, or a file made for the purpose.

use super::Args;
use anyhow::{Context, Result};
use farpace_lab::Payload;
use farpace_lab::scenario::Scenario;
use farpace_units::{ByteCount, RandomStream};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The bytes of all runs.
pub struct Source {
    /// None: the scenario's pattern.
    payload: Option<Payload>,
    size: ByteCount,
    made: Option<PathBuf>,
}

impl Source {
    /// For one run.
    pub fn payload(&self) -> Option<Payload> {
        self.payload.clone()
    }
    /// How many bytes a run sends.
    pub fn size(&self) -> ByteCount {
        self.size
    }
    /// Removes the file that was made.
    pub fn remove(self) {
        drop(self.payload);
        if let Some(path) = self.made {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens or makes what `args` ask for; a file is made in `directory`.
pub fn prepare(args: &Args, scenario: &Scenario, directory: &Path) -> Result<Source> {
    let scenario_size = scenario.flows.first().map_or(ByteCount::ZERO, |flow| flow.size);
    let (path, made) = match &args.payload {
        Some(path) => (path.clone(), None),
        None if args.real_file => {
            let path = directory.join("payload.bin");
            make(&path, scenario.seed, scenario_size)
                .with_context(|| format!("cannot write {scenario_size} to `{}`", path.display()))?;
            (path.clone(), Some(path))
        }
        None => return Ok(Source { payload: None, size: scenario_size, made: None }),
    };
    let payload = Payload::file(&path)?;
    Ok(Source { size: payload.len(), payload: Some(payload), made })
}

/// `size` pseudo-random bytes that do not repeat.
fn make(path: &Path, seed: u64, size: ByteCount) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let mut dice = RandomStream::new(seed, "payload file");
    let mut block = vec![0; 1 << 20];
    let mut left = size.as_len();
    while left > 0 {
        dice.fill(&mut block);
        let part = &block[..left.min(block.len())];
        file.write_all(part)?;
        left -= part.len();
    }
    file.flush()
}
