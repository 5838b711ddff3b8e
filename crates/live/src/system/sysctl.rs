//! Parameters of the system, by their names with dots.

use super::SystemError;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    // As `sysctl` reads them: a slash in the name stands for a dot, for interfaces that have one in theirs.
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    Path::new("/proc/sys").join(name.chars().map(swap).collect::<String>())
}

/// The value of a parameter in the namespace of this thread.
///
/// # Errors
/// There is no such parameter.
pub fn read(name: &str) -> Result<String, SystemError> {
    let value = std::fs::read_to_string(path(name));
    let failed = |error| SystemError::System { what: format!("read {name}"), error };
    value.map(|value| value.trim().to_owned()).map_err(failed)
}

/// Sets a parameter in the namespace of this thread.
///
/// # Errors
/// There is no such parameter, no right to set it, or it does not take this value.
pub fn write(name: &str, value: &str) -> Result<(), SystemError> {
    let done = std::fs::write(path(name), value);
    done.map_err(|error| SystemError::System { what: format!("set {name} to {value}"), error })
}
