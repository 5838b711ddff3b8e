//! Where the libraries are.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

const PRELOAD: &str = "libfarpace_preload.so";
const STACK: &str = "libfarpace.so";
/// From the folder of the command.
const PLACES: [&str; 4] = [".", "../lib", "../lib/farpace", "deps"];
/// Another place.
const VARIABLE: &str = "FARPACE_LIB";

/// Both of them.
pub struct Libraries {
    /// What is loaded before the program.
    pub preload: PathBuf,
    /// What that loads when it is needed.
    pub stack: PathBuf,
}

/// Looks for them beside the command.
///
/// # Errors
/// They are not there, with how to have them.
pub fn find() -> Result<Libraries> {
    let command = std::env::current_exe().context("cannot tell where this command is")?;
    let folder = command.parent().context("this command is in no folder")?.to_owned();
    let given = std::env::var_os(VARIABLE).map(PathBuf::from);
    for place in given.into_iter().chain(PLACES.iter().map(|place| folder.join(place))) {
        let (preload, stack) = (place.join(PRELOAD), place.join(STACK));
        if preload.is_file() && stack.is_file() {
            let absolute =
                |path: PathBuf| path.canonicalize().with_context(|| format!("`{}`", path.display()));
            return Ok(Libraries { preload: absolute(preload)?, stack: absolute(stack)? });
        }
    }
    bail!(
        "{PRELOAD} and {STACK} are neither beside this command, in {}, nor in ../lib: build them with \
         `cargo build --release -p farpace-preload -p farpace-capi`, or name their folder in {VARIABLE}",
        folder.display()
    )
}
