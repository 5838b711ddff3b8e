//! Files with a pacing configuration: read with a limit, and replaced as a whole.

use anyhow::{Context, Result, anyhow, bail};
use farpace_link::pacing::{MAX_TEXT, PacingConfig};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Reads a pacing configuration. What it says may still be wrong for a line.
///
/// # Errors
/// A file that cannot be read, or is no such configuration: then with line and column.
pub fn read(file: &Path) -> Result<PacingConfig> {
    parse(&text(file)?, file)
}

/// The text of a file, of at most as many bytes as a configuration may have.
pub(super) fn text(file: &Path) -> Result<String> {
    let name = file.display();
    if file.is_dir() {
        bail!("cannot read `{name}`: it is a directory");
    }
    let opened = File::open(file).with_context(|| format!("cannot read `{name}`"))?;
    limited(opened, &name.to_string())
}

/// All of a reader, of at most as many bytes.
pub(super) fn limited(reader: impl Read, name: &str) -> Result<String> {
    let mut text = String::new();
    let read = reader.take(MAX_TEXT.get() + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read `{name}`"))?;
    if text.len() > MAX_TEXT.as_len() {
        bail!("cannot read `{name}`: it is longer than {MAX_TEXT}");
    }
    Ok(text)
}

pub(super) fn parse(text: &str, file: &Path) -> Result<PacingConfig> {
    PacingConfig::parse(text).map_err(|error| anyhow!("{}: {}", file.display(), error.trim_end()))
}

/// Replaces a file, or makes it: nobody ever sees a part of it. A link stays one.
pub(super) fn replace(file: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write `{}`", file.display());
    let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let Some(name) = place.file_name() else { bail!("{}: it has no name", cannot()) };
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(format!(".{}.partial", std::process::id()));
    let new = place.with_file_name(new);
    let write = || -> io::Result<()> {
        fs::write(&new, text)?;
        if let Ok(old) = fs::metadata(&place) {
            fs::set_permissions(&new, old.permissions())?;
        }
        fs::rename(&new, &place)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new))).with_context(cannot)
}
